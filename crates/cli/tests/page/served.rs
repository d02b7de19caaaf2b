//! The command that serves the page, as a process of its own.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use serde_json::Value;

const PATIENCE: Duration = Duration::from_secs(60);

/// A process that serves the page. It is killed when it is dropped.
pub(crate) struct ServedPage {
    child: Child,
    /// Where the page is: `http://127.0.0.1:PORT/ui/`.
    pub(crate) address: String,
}

impl ServedPage {
    /// Starts the command, which says on stdout where the page is.
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_supercargo"))
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the binary starts");
        let mut lines = BufReader::new(child.stdout.take().expect("it was asked for")).lines();
        let mut said = lines.by_ref().map_while(Result::ok);
        let address = said.find_map(|line| address_in(&line)).expect("the address of the page");
        // What it says later has to go somewhere.
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, address }
    }

    /// Of the example cluster.
    pub(crate) fn of_examples() -> Self {
        let (cluster, pods) = (example("cluster"), example("pods.yaml"));
        Self::start(&["ui", "--cluster", text(&cluster), "--pods", text(&pods), "--port", "0"])
    }

    /// The head and the body of what is at a path, asked for by a name.
    pub(crate) fn get_as(&self, host: &str, path: &str) -> (String, String) {
        let address = self.address.trim_start_matches("http://").trim_end_matches("/ui/");
        let mut stream = TcpStream::connect(address).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a limit");
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        (head.to_owned(), body.to_owned())
    }

    /// What is answered below `/supercargo/v1/`.
    pub(crate) fn ask(&self, path: &str) -> Value {
        let (head, body) = self.get_as("localhost", &format!("/supercargo/v1/{path}"));
        assert!(head.starts_with("HTTP/1.1 200"), "{path}: {head}\n{body}");
        serde_json::from_str(&body).expect("JSON")
    }
}

impl Drop for ServedPage {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The address in a line, if it is one of a page.
fn address_in(line: &str) -> Option<String> {
    let start = line.find("http://127.0.0.1:")?;
    let address = line[start..].split_whitespace().next()?;
    address.ends_with("/ui/").then(|| address.to_owned())
}

/// A file of the examples.
pub(crate) fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name)
}

pub(crate) fn text(path: &Path) -> &str {
    path.to_str().expect("a path that is text")
}
