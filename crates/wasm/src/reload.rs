//! Hot reload: looks at the files of guests, and lets a changed one take over if it can.

use std::{
    collections::HashMap,
    fs,
    path::Path,
    sync::{Arc, mpsc},
    thread::{self, JoinHandle},
    time::{Duration, SystemTime},
};

use crate::{
    guest::Guest,
    host::{self, GuestEvent, Host},
    module::Unfit,
};

/// How often the files are looked at. A change counts once it has lasted from one look to the next, so that a file is not
/// read while it is being written.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// How long the watch may take to end; a compiler cannot be stopped.
const LONGEST_END: Duration = Duration::from_millis(200);
const END_LOOK: Duration = Duration::from_millis(5);

/// What tells that a file may have changed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Stamp {
    modified: Option<SystemTime>,
    bytes: u64,
    inode: u64,
}

impl Stamp {
    /// `None` if there is no file.
    fn of(path: &Path) -> Option<Self> {
        let metadata = fs::metadata(path).ok()?;
        #[cfg(unix)]
        let inode = std::os::unix::fs::MetadataExt::ino(&metadata);
        #[cfg(not(unix))]
        let inode = 0;
        Some(Self { modified: metadata.modified().ok(), bytes: metadata.len(), inode })
    }
}

/// What was seen of a guest's file.
struct Seen {
    /// At the last look.
    stamp: Option<Stamp>,
    /// When its content was last compared.
    read: Option<Stamp>,
    content: Option<Arc<[u8]>>,
}

/// Looks at the files of guests while it is held.
pub struct ReloadWatch {
    stop: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Host {
    /// Watches the files of the guests that are in use from here on, in a thread of its own.
    ///
    /// # Errors
    /// If there can be no more threads.
    pub fn watch(&self) -> std::io::Result<ReloadWatch> {
        let (stop, stopped) = mpsc::channel::<()>();
        let mut watcher = Watcher { host: self.clone(), seen: HashMap::new() };
        watcher.look();
        let thread = thread::Builder::new().name("wasm-watch".to_owned()).spawn(move || {
            while stopped.recv_timeout(LOOK_EVERY) == Err(mpsc::RecvTimeoutError::Timeout) {
                watcher.look();
            }
        })?;
        Ok(ReloadWatch { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for ReloadWatch {
    fn drop(&mut self) {
        drop(self.stop.take());
        let Some(thread) = self.thread.take() else { return };
        for _ in 0..LONGEST_END.as_millis() / END_LOOK.as_millis() {
            if thread.is_finished() {
                let _ = thread.join();
                return;
            }
            thread::sleep(END_LOOK);
        }
        // It compiles. What comes of that is not needed any more, and the process does not wait for it.
    }
}

struct Watcher {
    host: Host,
    /// By the guest's address: a guest that is gone is forgotten.
    seen: HashMap<usize, Seen>,
}

impl Watcher {
    fn look(&mut self) {
        let guests = self.host.guests();
        let address = |guest: &Arc<Guest>| Arc::as_ptr(guest) as usize;
        self.seen.retain(|seen, _| guests.iter().any(|guest| address(guest) == *seen));
        for guest in &guests {
            let path = &guest.settings.path;
            let stamp = Stamp::of(path);
            let seen = self.seen.entry(address(guest)).or_insert_with(|| Seen {
                stamp: stamp.clone(),
                // The file may have changed since the guest was made from it.
                read: None,
                content: Some(guest.content.clone()),
            });
            let settled = seen.stamp == stamp;
            seen.stamp.clone_from(&stamp);
            // Later, if one that took too long is still being compiled.
            if settled && seen.read != stamp && !self.host.is_compiling() {
                seen.read = stamp;
                reload(&self.host, guest, &mut seen.content);
            }
        }
    }
}

/// Lets the file's content take over, if it is another one and can be used.
fn reload(host: &Host, guest: &Guest, content: &mut Option<Arc<[u8]>>) {
    let path = &guest.settings.path;
    let started = host::read(path, &guest.settings.limits).map_err(|unfit| vec![unfit]).and_then(|bytes| {
        if content.as_ref() == Some(&bytes) {
            return Ok(None);
        }
        *content = Some(bytes.clone());
        host.start(&guest.settings, &bytes).map(Some)
    });
    let refuse = |why: &str| host.tell(&GuestEvent::Refused { plugin: &guest.name, file: path, why });
    match started {
        Ok(None) => {}
        Ok(Some(started)) => {
            let before = guest.running().steps;
            if started.steps.serve_the_same_points(before) {
                guest.replace_with(started);
                host.tell(&GuestEvent::Reloaded { plugin: &guest.name, file: path });
            } else {
                refuse(&format!(
                    "it serves {}, and the one that runs serves {}: restart the scheduler to change that",
                    started.steps.points(),
                    before.points()
                ));
            }
        }
        Err(unfit) => refuse(&in_a_line(&unfit)),
    }
}

fn in_a_line(unfit: &[Unfit]) -> String {
    let told = unfit.iter().map(|unfit| match &unfit.hint {
        Some(hint) => format!("{} (hint: {hint})", unfit.what),
        None => unfit.what.clone(),
    });
    told.collect::<Vec<_>>().join("; ")
}
