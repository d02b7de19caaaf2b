//! Full decisions in a file, a JSON object a line, rotated by size.
//!
//! The deciding thread hands a copy over and goes on; another one writes. Where it cannot keep up, decisions are left out,
//! and counted.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::{
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread::{self, JoinHandle},
};

use jiff::Timestamp;
use serde::Serialize;
use supercargo_engine::Decision;
use supercargo_live::scheduler::records::DecisionObserver;
use supercargo_manifest::Problem;
use supercargo_sim::report::PodReport;

/// How many decisions may wait to be written.
const MAX_WAITING: usize = 1024;
/// So many are left out before it is told again.
const TOLD_EVERY: u64 = 1000;

/// Hands decisions over.
pub(super) struct DecisionLog {
    /// Until it is dropped.
    to_writer: Option<SyncSender<Entry>>,
    writer: Option<JoinHandle<()>>,
    dropped: AtomicU64,
}

struct Entry {
    time: Timestamp,
    attempt: u32,
    decision: Decision,
}

#[derive(Serialize)]
struct Line<'a> {
    time: String,
    attempt: u32,
    #[serde(flatten)]
    report: &'a PodReport,
}

impl DecisionLog {
    /// Opens the file, to add to it, and starts to write.
    pub(super) fn start(path: &Path, max_bytes: u64, max_files: usize) -> Result<Self, Problem> {
        let cannot = |error: io::Error| {
            Problem::error(format!("cannot write the decision log {}: {error}", path.display()))
        };
        let rotated = Rotated::open(path, max_bytes, max_files).map_err(cannot)?;
        let (to_writer, entries) = sync_channel(MAX_WAITING);
        let writer = thread::Builder::new().name("decision-log".to_owned());
        let writer = writer.spawn(move || write_all(&entries, rotated)).map_err(cannot)?;
        Ok(Self { to_writer: Some(to_writer), writer: Some(writer), dropped: AtomicU64::new(0) })
    }
}

impl Drop for DecisionLog {
    /// What was handed over is written first.
    fn drop(&mut self) {
        drop(self.to_writer.take());
        if let Some(writer) = self.writer.take() {
            // A writer that has failed has nothing more to write.
            let _ = writer.join();
        }
    }
}

impl DecisionObserver for DecisionLog {
    fn decided(&self, attempt: u32, decision: &Decision) {
        let entry = Entry { time: Timestamp::now(), attempt, decision: decision.clone() };
        let handed_over = self.to_writer.as_ref().is_some_and(|to_writer| to_writer.try_send(entry).is_ok());
        if !handed_over {
            let dropped = self.dropped.fetch_add(1, Ordering::Relaxed);
            if dropped.is_multiple_of(TOLD_EVERY) {
                tracing::warn!(
                    dropped = dropped + 1,
                    "decisions are left out of the decision log: it cannot keep up"
                );
            }
        }
    }
}

fn write_all(entries: &Receiver<Entry>, mut to: Rotated) {
    let mut failing = false;
    while let Ok(Entry { time, attempt, decision }) = entries.recv() {
        let report = PodReport::new(&decision);
        let line = Line { time: time.to_string(), attempt, report: &report };
        let written = serde_json::to_string(&line).map_err(io::Error::from).and_then(|line| to.write(&line));
        match written {
            Ok(()) => failing = false,
            // Told once, until it works again.
            Err(error) if !failing => {
                failing = true;
                tracing::warn!(%error, "the decision log cannot be written");
            }
            Err(_) => {}
        }
    }
}

/// A file that is begun anew when it is full: the one before is `FILE.1`, and so on.
struct Rotated {
    path: PathBuf,
    file: File,
    bytes: u64,
    max_bytes: u64,
    /// With the one that is written to.
    max_files: usize,
}

impl Rotated {
    fn open(path: &Path, max_bytes: u64, max_files: usize) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        let about = file.metadata()?;
        // A pipe or a device has no length, and must not be renamed.
        let max_bytes = if about.is_file() { max_bytes } else { u64::MAX };
        Ok(Self { path: path.to_owned(), file, bytes: about.len(), max_bytes, max_files: max_files.max(1) })
    }

    fn write(&mut self, line: &str) -> io::Result<()> {
        let length = line.len() as u64 + 1;
        if self.bytes > 0 && self.bytes + length > self.max_bytes {
            self.rotate()?;
        }
        if let Err(error) = self.file.write_all(format!("{line}\n").as_bytes()) {
            self.take_back();
            return Err(error);
        }
        self.bytes += length;
        Ok(())
    }

    /// Cuts off what a full disk has taken of a line, so that the next one begins on its own.
    fn take_back(&self) {
        let is_longer = self.file.metadata().is_ok_and(|about| about.is_file() && about.len() > self.bytes);
        if is_longer {
            // If that fails as well, a line is broken; the error that led here is told.
            let _ = self.file.set_len(self.bytes);
        }
    }

    /// Begins a new file. It is there before any other is moved: where none can be made, the older ones stay what they are,
    /// however often it is tried.
    fn rotate(&mut self) -> io::Result<()> {
        let new = self.ending_with("new");
        let file = OpenOptions::new().create(true).append(true).open(&new)?;
        file.set_len(0)?;
        let free = (1..self.max_files).find(|number| !self.numbered(*number).exists());
        for number in (1..=free.unwrap_or(self.max_files - 1)).rev() {
            let older = if number == 1 { self.path.clone() } else { self.numbered(number - 1) };
            if older.exists() {
                fs::rename(older, self.numbered(number))?;
            }
        }
        fs::rename(new, &self.path)?;
        (self.file, self.bytes) = (file, 0);
        Ok(())
    }

    fn numbered(&self, number: usize) -> PathBuf {
        self.ending_with(&number.to_string())
    }

    fn ending_with(&self, ending: &str) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(format!(".{ending}"));
        name.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(folder: &Path) -> Vec<(String, String)> {
        let entries = fs::read_dir(folder).unwrap().map(Result::unwrap);
        let mut files: Vec<_> = entries
            .map(|entry| {
                let name = entry.file_name().to_string_lossy().into_owned();
                (name, fs::read_to_string(entry.path()).unwrap())
            })
            .collect();
        files.sort();
        files
    }

    #[test]
    fn a_full_file_makes_room_and_the_oldest_goes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        // Two lines of 4 bytes fit into 10, a third does not.
        let mut log = Rotated::open(&path, 10, 3).unwrap();
        for line in ["one", "two", "thr", "fou", "fiv", "six", "sev"] {
            log.write(line).unwrap();
        }
        let file = |name: &str, text: &str| (name.to_owned(), text.to_owned());
        assert_eq!(
            files(folder.path()),
            [file("log", "sev\n"), file("log.1", "fiv\nsix\n"), file("log.2", "thr\nfou\n")]
        );
        // What is there already counts.
        drop(log);
        let mut log = Rotated::open(&path, 10, 1).unwrap();
        log.write("eight").unwrap();
        log.write("n").unwrap();
        assert_eq!(files(folder.path())[0], file("log", "n\n"));
    }

    #[test]
    fn where_no_file_can_be_made_the_older_ones_stay() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut log = Rotated::open(&path, 4, 3).unwrap();
        for line in ["one", "two", "thr"] {
            log.write(line).unwrap();
        }
        // What is in the way of the new file, as a lack of file descriptors would be.
        let in_the_way = folder.path().join("log.new");
        fs::create_dir(&in_the_way).unwrap();
        for _ in 0..5 {
            log.write("fou").unwrap_err();
        }
        fs::remove_dir(&in_the_way).unwrap();
        let file = |name: &str, text: &str| (name.to_owned(), text.to_owned());
        assert_eq!(
            files(folder.path()),
            [file("log", "thr\n"), file("log.1", "two\n"), file("log.2", "one\n")]
        );
        log.write("fou").unwrap();
        assert_eq!(
            files(folder.path()),
            [file("log", "fou\n"), file("log.1", "thr\n"), file("log.2", "two\n")]
        );
    }

    #[test]
    fn a_device_is_not_rotated() {
        let mut log = Rotated::open(Path::new("/dev/null"), 1, 3).unwrap();
        for _ in 0..3 {
            log.write("a line").unwrap();
        }
        assert!(!Path::new("/dev/null.1").exists());
    }
}
