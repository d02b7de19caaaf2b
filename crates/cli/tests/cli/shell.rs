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

#[test]
fn the_version_says_what_it_is_and_what_it_matches() {
    let text = supercargo("version").stdout;
    for word in [env!("CARGO_PKG_VERSION"), "git commit", "v1.36.4", "Rust 1."] {
        assert!(text.contains(word), "{text}");
    }
    let json: serde_json::Value = serde_json::from_str(&supercargo("version -o json").stdout).expect("JSON");
    assert_eq!(json["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(json["kubeScheduler"], "v1.36.4");
    assert!(json["platform"].as_str().is_some_and(|platform| platform.contains('-')), "{json}");
    assert!(supercargo("version -o yaml").stdout.contains("kubeScheduler: v1.36.4\n"));
}

#[test]
fn documents_are_listed_printed_and_opened() {
    let list = supercargo("docs");
    for page in ["scoring", "moving", "commands", "glossary", "abi", "tutorial"] {
        assert!(list.stdout.lines().any(|line| line.split(' ').next() == Some(page)), "{page}: {list}");
    }
    let page = std::fs::read_to_string(project().join("docs/glossary.md")).expect("the page");
    assert_eq!(supercargo("docs glossary").stdout, page);
    assert_eq!(supercargo("docs glossary.md").stdout, page);
    let missing = supercargo("docs scorign");
    assert_eq!(missing.code, Some(2));
    assert!(
        missing.stderr.contains("there is no page \"scorign\"") && missing.stderr.contains("scoring"),
        "{missing}"
    );
    let opened = |pager: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_supercargo"));
        command.args(["docs", "glossary", "--open"]).env("PAGER", pager).output().expect("it runs")
    };
    assert_eq!(String::from_utf8(opened("cat -").stdout).expect("text"), page);
    let failed = opened("no-such-pager");
    assert_eq!(failed.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&failed.stderr).contains("hint: set PAGER"), "{failed:?}");
}
