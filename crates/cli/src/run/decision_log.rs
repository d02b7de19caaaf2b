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
use supercargo_sim::report::Report;

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
    report: &'a Report,
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
        let report = Report::new(&decision);
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
        let bytes = file.metadata()?.len();
        Ok(Self { path: path.to_owned(), file, bytes, max_bytes, max_files: max_files.max(1) })
    }

    fn write(&mut self, line: &str) -> io::Result<()> {
        let length = line.len() as u64 + 1;
        if self.bytes > 0 && self.bytes + length > self.max_bytes {
            self.rotate()?;
        }
        self.file.write_all(format!("{line}\n").as_bytes())?;
        self.bytes += length;
        Ok(())
    }

    fn rotate(&mut self) -> io::Result<()> {
        for number in (1..self.max_files).rev() {
            let older = if number == 1 { self.path.clone() } else { self.numbered(number - 1) };
            if older.exists() {
                fs::rename(older, self.numbered(number))?;
            }
        }
        self.file = OpenOptions::new().create(true).write(true).truncate(true).open(&self.path)?;
        self.bytes = 0;
        Ok(())
    }

    fn numbered(&self, number: usize) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(format!(".{number}"));
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
}
