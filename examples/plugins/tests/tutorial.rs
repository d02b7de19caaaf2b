//! What the tutorial shows is what there is: its code stands in this crate, and its commands print what it says.

use std::{fs, path::Path, process::Command};

/// A fenced block, and the comment above it: `file: PATH` or `run: BINARY`.
struct Block {
    comment: (String, String),
    text: String,
}

fn blocks() -> Vec<Block> {
    let tutorial = fs::read_to_string(folder().join("TUTORIAL.md")).unwrap();
    let marked = tutorial.split("<!-- ").skip(1).map(|part| {
        let (comment, rest) = part.split_once(" -->\n").expect("a comment on a line of its own");
        let (kind, of) = comment.split_once(": ").expect("kind: of");
        let (_, text) = rest.split_once('\n').expect("a fence");
        let (text, _) = text.split_once("```").expect("the end of the fence");
        Block { comment: (kind.to_owned(), of.to_owned()), text: text.to_owned() }
    });
    marked.collect()
}

fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn its_code_is_that_of_the_crate() {
    let mut seen = 0;
    for Block { comment: (kind, path), text } in blocks() {
        if kind == "file" {
            let file = fs::read_to_string(folder().join(&path)).unwrap();
            assert!(file.contains(&text), "{path} has no such part:\n{text}");
            seen += 1;
        }
    }
    assert_eq!(seen, 7);
}

#[test]
fn its_commands_print_what_it_says() {
    let mut seen = 0;
    for Block { comment: (kind, binary), text } in blocks() {
        if kind != "run" {
            continue;
        }
        let (command, expected) = text.split_once('\n').expect("a command and its output");
        let arguments = command.strip_prefix("$ cargo run -- ").expect("a command");
        let binary = match &*binary {
            "first-scheduler" => env!("CARGO_BIN_EXE_first-scheduler"),
            _ => env!("CARGO_BIN_EXE_example-scheduler"),
        };
        let ran = Command::new(binary)
            .args(arguments.split(' '))
            .current_dir(folder())
            .env("COLUMNS", "120")
            .output()
            .unwrap();
        assert_eq!(String::from_utf8_lossy(&ran.stdout), expected, "{command}");
        assert!(ran.status.success(), "{command}: {}", String::from_utf8_lossy(&ran.stderr));
        seen += 1;
    }
    assert_eq!(seen, 3);
}
