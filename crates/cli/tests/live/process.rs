//! `supercargo run` as a process of its own.

use std::{
    fs::{self, File},
    io::{Read, Write},
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

const PATIENCE: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// How much of a log is shown when a test fails.
const SHOWN_LINES: usize = 80;

/// Waits until something holds; the test ends if that takes too long.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < PATIENCE, "waited in vain for {PATIENCE:?} until {what}");
        std::thread::sleep(LOOK_EVERY);
    }
}

/// Tells something that helps whoever looks at a failure.
pub(crate) fn tell(text: &str) {
    // Nobody may be there to read it.
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// What a process may run out of.
#[derive(Clone, Copy)]
pub(crate) enum Resource {
    /// How long its files may get.
    FileBytes,
    FileDescriptors,
}

/// A running scheduler. It is killed when it is dropped.
pub(crate) struct SchedulerProcess {
    child: Child,
    log: PathBuf,
}

impl SchedulerProcess {
    /// Starts the binary, with health and metrics in the clear on a port of its own.
    pub(crate) fn start(arguments: &[String], log: &Path) -> Self {
        let clear = ["--insecure-address".to_owned(), "127.0.0.1:0".to_owned()];
        Self::start_plain(&[&clear, arguments].concat(), log)
    }

    /// Starts the binary with these arguments alone.
    pub(crate) fn start_plain(arguments: &[String], log: &Path) -> Self {
        Self::spawn(Command::new(env!("CARGO_BIN_EXE_supercargo")).arg("run").args(arguments), log)
    }

    /// Starts the binary so that a file that may not grow is an error of whoever writes, as a full disk is, and no signal
    /// that ends the process.
    pub(crate) fn start_for_full_disk(arguments: &[String], log: &Path) -> Self {
        let script = "trap '' XFSZ; exec \"$0\" run --insecure-address 127.0.0.1:0 \"$@\"";
        Self::spawn(
            Command::new("sh").args(["-c", script, env!("CARGO_BIN_EXE_supercargo")]).args(arguments),
            log,
        )
    }

    fn spawn(command: &mut Command, log: &Path) -> Self {
        let file = File::create(log).expect("a log file");
        let child = command
            .stdin(Stdio::null())
            .stdout(file.try_clone().expect("the same file"))
            .stderr(file)
            .spawn()
            .expect("the binary starts");
        Self { child, log: log.to_owned() }
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Where it serves, once it does.
    pub(crate) fn address(&self) -> Option<String> {
        let log = self.log();
        let told =
            ["serving address=", "\"address\":\""].into_iter().find_map(|says| log.split(says).nth(1))?;
        Some(told.split([' ', '"', '\n']).next()?.to_owned())
    }

    /// Asks for a path of its server: the status, and the body.
    pub(crate) fn get(&self, path: &str) -> Option<(u16, String)> {
        let address = self.address()?;
        let mut stream = TcpStream::connect(&address).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).ok()?;
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let (head, body) = answer.split_once("\r\n\r\n")?;
        let status = head.split_whitespace().nth(1)?.parse().ok()?;
        Some((status, body.to_owned()))
    }

    pub(crate) fn answers(&self, path: &str, status: u16) -> bool {
        self.get(path).is_some_and(|(code, _)| code == status)
    }

    #[track_caller]
    pub(crate) fn wait_until_ready(&self) {
        wait_until("the scheduler is ready", || self.answers("/readyz", 200));
    }

    /// The sum of all series of a metric whose labels contain a text.
    pub(crate) fn metric(&self, name: &str, labels: &str) -> f64 {
        let (_, text) = self.get("/metrics").expect("metrics");
        assert!(text.contains(&format!("\n{name}")), "there is no {name}");
        let series = text.lines().filter(|line| !line.starts_with('#') && line.contains(labels));
        let named = series.filter(|line| line.split(['{', ' ']).next() == Some(name));
        named.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
    }

    /// Sends a signal, such as `STOP`.
    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([&format!("-{name}"), &self.child.id().to_string()]).status();
        assert!(sent.expect("kill").success(), "{name} could not be sent");
    }

    /// Sets a limit of the running process, or lifts it. Only the soft one, so that nobody has to be root.
    pub(crate) fn limit(&self, resource: Resource, most: Option<u64>) {
        let (flag, name) = match resource {
            Resource::FileBytes => ("fsize", "Max file size"),
            Resource::FileDescriptors => ("nofile", "Max open files"),
        };
        let pid = self.child.id();
        let limits = fs::read_to_string(format!("/proc/{pid}/limits")).expect("it runs");
        let columns = limits.lines().find_map(|line| line.strip_prefix(name)).expect("a limit");
        let hard = columns.split_whitespace().nth(1).expect("the hard limit behind the soft one");
        let soft = most.map_or(hard.to_owned(), |most| most.to_string());
        let set =
            Command::new("prlimit").args([format!("--pid={pid}"), format!("--{flag}={soft}:")]).status();
        assert!(set.expect("prlimit").success(), "{flag} could not be set");
    }

    /// How many files, sockets and the like it has open.
    pub(crate) fn open_files(&self) -> u64 {
        fs::read_dir(format!("/proc/{}/fd", self.child.id())).expect("it runs").count() as u64
    }

    /// Whether it has a thread of this name.
    pub(crate) fn has_thread(&self, name: &str) -> bool {
        let threads = fs::read_dir(format!("/proc/{}/task", self.child.id())).into_iter().flatten().flatten();
        threads.into_iter().any(|thread| {
            fs::read_to_string(thread.path().join("comm")).is_ok_and(|comm| comm.trim_end() == name)
        })
    }

    /// Ends it at once, as SIGKILL does.
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it has ended");
    }

    #[track_caller]
    pub(crate) fn wait_for_end(&mut self) -> ExitStatus {
        let mut ended = None;
        wait_until("the scheduler ends", || {
            ended = self.child.try_wait().expect("a child");
            ended.is_some()
        });
        ended.expect("it has ended")
    }

    /// The memory that it holds.
    pub(crate) fn resident_kib(&self) -> u64 {
        self.memory_kib("VmRSS:")
    }

    /// The most that it has held so far.
    pub(crate) fn peak_kib(&self) -> u64 {
        self.memory_kib("VmHWM:")
    }

    fn memory_kib(&self, what: &str) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix(what)).expect("a line about memory");
        line.split_whitespace().next().and_then(|kib| kib.parse().ok()).expect("a number")
    }
}

impl Drop for SchedulerProcess {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            let log = self.log();
            let lines: Vec<&str> = log.lines().collect();
            let shown = lines[lines.len().saturating_sub(SHOWN_LINES)..].join("\n");
            tell(&format!("----- {} -----\n{shown}", self.log.display()));
        }
    }
}
