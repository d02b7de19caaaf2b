//! The file of a recording: whole gzip members one after another, so that a file that was cut off is readable up to there.

use std::{
    fs::{File, OpenOptions},
    io::{self, BufReader, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

use flate2::{Compression, bufread::GzDecoder, write::GzEncoder};
use supercargo_manifest::Problem;

use crate::input;

/// What every line of a recording begins with.
const BEGINNING: &str = "{\"at\":";
/// More than this is written at once.
const LARGE_BYTES: usize = 4 << 20;

pub(super) struct RecordingFile {
    base: PathBuf,
    path: PathBuf,
    file: File,
    packed: bool,
    waiting: Vec<u8>,
    written_bytes: u64,
    rotate_bytes: u64,
    /// Of a recording that is continued, until it is taken.
    text: Option<String>,
}

impl RecordingFile {
    /// Begins a file, or goes on with the last one of a recording. What was cut off in it is cut away.
    pub(super) fn open(path: &Path, rotate_bytes: u64) -> Result<Self, Problem> {
        let packed = path.extension().is_none_or(|ending| ending != "jsonl");
        let last = (1..).map(|n| numbered(path, n)).take_while(|path| path.exists()).last();
        let present = last.unwrap_or_else(|| path.to_owned());
        let wrong = |error: io::Error| input::about(&present, format!("cannot write this: {error}"));
        let mut file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(&present)
            .map_err(wrong)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(wrong)?;
        let most = input::most_unpacked_bytes(&bytes);
        let parts = parts(bytes, packed, most);
        let Parts { text, rest, whole } = parts.map_err(|input::TooLarge| input::too_large(&present))?;
        // A disk may have been full before even the first part was whole.
        let beginning = if text.is_empty() { &rest } else { &text };
        let is_empty = file.metadata().map_err(wrong)?.len() == 0;
        if !is_empty && !beginning.trim_start().starts_with(BEGINNING) {
            let hint = "choose another file, or remove this one";
            return Err(input::about(&present, "this file is there, and is no recording").hint(hint));
        }
        file.set_len(whole).map_err(wrong)?;
        file.seek(SeekFrom::Start(whole)).map_err(wrong)?;
        Ok(Self {
            base: path.to_owned(),
            path: present,
            file,
            packed,
            waiting: Vec::new(),
            written_bytes: whole,
            rotate_bytes,
            text: Some(text).filter(|text| !text.is_empty()),
        })
    }

    /// What an earlier recording wrote.
    pub(super) fn take_text(&mut self) -> Option<String> {
        self.text.take()
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Lines that are on the disk after the next flush.
    pub(super) fn write(&mut self, lines: &str) -> io::Result<()> {
        self.waiting.extend_from_slice(lines.as_bytes());
        if self.waiting.len() >= LARGE_BYTES { self.flush() } else { Ok(()) }
    }

    pub(super) fn flush(&mut self) -> io::Result<()> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let waiting = std::mem::take(&mut self.waiting);
        let bytes = if self.packed {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
            encoder.write_all(&waiting)?;
            encoder.finish()?
        } else {
            waiting
        };
        self.file.write_all(&bytes)?;
        self.written_bytes += bytes.len() as u64;
        self.file.flush()
    }

    /// Whether it is time for a new file.
    pub(super) fn is_full(&self) -> bool {
        self.rotate_bytes > 0 && self.written_bytes + (self.waiting.len() as u64 / 16) >= self.rotate_bytes
    }

    /// Goes on in a new file, which begins with a snapshot.
    pub(super) fn rotate(&mut self, snapshot: &str) -> io::Result<()> {
        self.flush()?;
        let free = (1..).map(|n| numbered(&self.base, n)).find(|path| !path.exists());
        self.path = free.unwrap_or_else(|| self.base.clone());
        self.file = OpenOptions::new().create_new(true).write(true).open(&self.path)?;
        self.write(snapshot)?;
        self.flush()?;
        self.written_bytes = 0;
        Ok(())
    }
}

/// `trace.jsonl.gz` is followed by `trace.1.jsonl.gz`.
fn numbered(path: &Path, number: u32) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let (stem, ending) = match name.split_once('.') {
        Some((stem, ending)) if !stem.is_empty() => (stem.to_owned(), format!(".{ending}")),
        _ => (name, String::new()),
    };
    path.with_file_name(format!("{stem}.{number}{ending}"))
}

/// What is in the file of a recording.
#[derive(Debug, PartialEq)]
pub(super) struct Parts {
    pub(super) text: String,
    /// What can be read of the part that was cut off.
    rest: String,
    /// Where the text ends in the file.
    pub(super) whole: u64,
}

/// The text that is whole, and what is left; at most so many bytes of it.
pub(super) fn parts(mut bytes: Vec<u8>, packed: bool, most: u64) -> Result<Parts, input::TooLarge> {
    let (mut text, mut rest, mut whole) = (Vec::new(), Vec::new(), 0);
    if packed {
        while whole < bytes.len() {
            let mut decoder = GzDecoder::new(BufReader::new(&bytes[whole..]));
            let before = text.len();
            let read = (&mut decoder).take(most + 1 - before as u64).read_to_end(&mut text);
            if text.len() as u64 > most {
                return Err(input::TooLarge);
            }
            if read.is_err() {
                rest = text.split_off(before);
                break;
            }
            let left = decoder.into_inner();
            whole = bytes.len() - left.get_ref().len() - left.buffer().len();
        }
    } else {
        whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        rest = bytes.split_off(whole);
        text = bytes;
    }
    let lossy = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ok(Parts { text: lossy(text), rest: lossy(rest), whole: whole as u64 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_was_cut_off_is_continued_after_what_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace.jsonl.gz");
        let mut file = RecordingFile::open(&path, 0).unwrap();
        for line in ["{\"at\":1}\n", "{\"at\":2}\n"] {
            file.write(line).unwrap();
            file.flush().unwrap();
        }
        let whole = std::fs::read(&path).unwrap();
        std::fs::write(&path, &whole[..whole.len() - 5]).unwrap();
        let mut again = RecordingFile::open(&path, 0).unwrap();
        assert_eq!(again.take_text().as_deref(), Some("{\"at\":1}\n"));
        again.write("{\"at\":3}\n").unwrap();
        again.flush().unwrap();
        let (source, is_cut) = input::whole_lines(&path).unwrap();
        assert_eq!((&*source.text, is_cut), ("{\"at\":1}\n{\"at\":3}\n", false));
    }

    #[test]
    fn a_small_file_does_not_fill_the_memory() {
        let packed = |letters: usize| {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
            encoder.write_all(&vec![b'x'; letters]).unwrap();
            encoder.finish().unwrap()
        };
        let two = [packed(5000), packed(5000)].concat();
        assert_eq!(parts(two.clone(), true, 10_000).unwrap().whole, two.len() as u64);
        assert_eq!(parts(two, true, 9999), Err(input::TooLarge));
    }

    #[test]
    fn a_file_that_was_cut_off_in_its_first_part_is_begun_anew() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["trace.jsonl.gz", "trace.jsonl"] {
            let path = folder.path().join(name);
            let mut file = RecordingFile::open(&path, 0).unwrap();
            file.write("{\"at\":1,\"op\":\"add\"}\n").unwrap();
            file.flush().unwrap();
            let whole = std::fs::read(&path).unwrap();
            std::fs::write(&path, &whole[..whole.len() - 5]).unwrap();
            let mut again = RecordingFile::open(&path, 0).unwrap();
            assert_eq!(again.take_text(), None, "{name}");
            again.write("{\"at\":2}\n").unwrap();
            again.flush().unwrap();
            let (source, is_cut) = input::whole_lines(&path).unwrap();
            assert_eq!((&*source.text, is_cut), ("{\"at\":2}\n", false), "{name}");
        }
    }

    #[test]
    fn a_large_file_is_followed_by_another() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace.jsonl");
        let mut file = RecordingFile::open(&path, 10).unwrap();
        file.write("{\"at\":1}\n{\"at\":2}\n").unwrap();
        file.flush().unwrap();
        assert!(file.is_full());
        file.rotate("{\"at\":2, \"snapshot\": true}\n").unwrap();
        assert_eq!(file.path(), folder.path().join("trace.1.jsonl"));
        assert!(!file.is_full());
        // A recording goes on with its last file.
        let mut again = RecordingFile::open(&path, 10).unwrap();
        assert!(again.take_text().unwrap().contains("snapshot"));
    }

    #[test]
    fn what_is_no_recording_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        for (name, content) in [("letter.gz", "Dear all"), ("letter.jsonl", "Dear all\n")] {
            let path = folder.path().join(name);
            std::fs::write(&path, content).unwrap();
            assert!(RecordingFile::open(&path, 0).is_err());
            assert_eq!(std::fs::read_to_string(&path).unwrap(), content);
        }
    }
}
