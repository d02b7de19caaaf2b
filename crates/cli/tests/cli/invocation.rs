//! Runs the real binary.

use std::{
    fmt,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// What a run printed, and how it ended.
pub(crate) struct Ran {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) code: Option<i32>,
}

/// As a snapshot shows it.
impl fmt::Display for Ran {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "exit code: {}", self.code.unwrap_or(-1))?;
        writeln!(f, "----- stdout -----\n{}", self.stdout)?;
        write!(f, "----- stderr -----\n{}", self.stderr)
    }
}

impl Ran {
    /// The last line of the data.
    pub(crate) fn last_line(&self) -> &str {
        self.stdout.lines().last().unwrap_or_default()
    }
}

/// The folder of the project.
pub(crate) fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The folder of the data of these tests.
pub(crate) fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data")
}

/// Runs the command in the folder of the project, with arguments as one would type them.
pub(crate) fn supercargo(arguments: &str) -> Ran {
    run(&project(), arguments, "")
}

/// Runs the command in a folder, with a text on stdin.
pub(crate) fn run(folder: &Path, arguments: &str, stdin: &str) -> Ran {
    let mut child = Command::new(env!("CARGO_BIN_EXE_supercargo"))
        .args(arguments.split_whitespace())
        .current_dir(folder)
        .env("COLUMNS", "100")
        .env_remove("NO_COLOR")
        .env_remove("CLICOLOR_FORCE")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    // A command that does not read stdin may be gone before all is written.
    let _ = child.stdin.take().expect("stdin is a pipe").write_all(stdin.as_bytes());
    let output = child.wait_with_output().expect("the binary ends");
    Ran {
        stdout: String::from_utf8(output.stdout).expect("stdout is text"),
        stderr: String::from_utf8(output.stderr).expect("stderr is text"),
        code: output.status.code(),
    }
}
