//! The file of a recording: whole gzip members one after another, so that a file that was cut off is readable up to there.

use std::{
    fs::{File, OpenOptions},
    io::{self, BufReader, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

use flate2::{Compression, bufread::GzDecoder, write::GzEncoder};
use supercargo_manifest::Problem;

use crate::input;

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
        let (text, whole) = whole_part(&mut file, packed).map_err(wrong)?;
        let is_recording = text.is_empty() || text.trim_start().starts_with("{\"at\":");
        if !is_recording || (whole == 0 && file.metadata().map_err(wrong)?.len() > 0) {
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

/// The text that is whole, and where it ends in the file.
fn whole_part(file: &mut File, packed: bool) -> io::Result<(String, u64)> {
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    if !packed {
        let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        bytes.truncate(end);
        return Ok((String::from_utf8_lossy(&bytes).into_owned(), end as u64));
    }
    let (mut text, mut whole) = (Vec::new(), 0);
    while whole < bytes.len() {
        let mut decoder = GzDecoder::new(BufReader::new(&bytes[whole..]));
        let before = text.len();
        if decoder.read_to_end(&mut text).is_err() {
            text.truncate(before);
            break;
        }
        let rest = decoder.into_inner();
        whole = bytes.len() - rest.get_ref().len() - rest.buffer().len();
    }
    Ok((String::from_utf8_lossy(&text).into_owned(), whole as u64))
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
