//! Completions, the manual page, help, and readers that go away.

use std::{
    io::{BufRead, BufReader},
    process::{Command, Stdio},
};

use crate::invocation::{project, supercargo};

#[test]
fn completions_for_every_shell() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ran = supercargo(&format!("completions {shell}"));
        assert_eq!(ran.code, Some(0));
        assert!(ran.stdout.contains("simulate") && ran.stdout.contains("conformance"), "{shell}");
    }
    assert_eq!(supercargo("completions tcsh").code, Some(2));
}

#[test]
fn the_manual_page_has_every_command() {
    let page = supercargo("man").stdout;
    for command in ["SIMULATE", "EXPLAIN", "CONFORMANCE", "CONFIG CHECK", "CONFIG DIFF", "COMPLETIONS"] {
        assert!(page.contains(&format!(".SH \"SUPERCARGO {command}\"")), "{command}");
    }
}

#[test]
fn help_and_version() {
    insta::assert_snapshot!(supercargo("-h").stdout);
    insta::assert_snapshot!("simulate_help", supercargo("simulate -h").stdout);
    assert_eq!(supercargo("--version").stdout, format!("supercargo {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn a_reader_that_went_away_is_no_reason_to_complain() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_supercargo"))
        .args(["config", "schema"])
        .current_dir(project())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let mut line = String::new();
    // As `head -1` does it: one line, and then the pipe is closed.
    BufReader::with_capacity(16, child.stdout.take().expect("a pipe")).read_line(&mut line).expect("a line");
    let output = child.wait_with_output().expect("the binary ends");
    assert_eq!((line.as_str(), output.status.code()), ("{\n", Some(0)));
    assert!(output.stderr.is_empty());
}
