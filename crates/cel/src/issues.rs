//! What is wrong with a text, told as cel-go does: all at once, in the order of the text, with the line and a mark.

/// Where each line of a text begins, in characters.
#[derive(Debug)]
pub(crate) struct SourceText {
    lines: Vec<String>,
    starts: Vec<usize>,
}

impl SourceText {
    pub(crate) fn new(text: &str) -> Self {
        let lines: Vec<String> = text.split('\n').map(str::to_owned).collect();
        let mut starts = Vec::with_capacity(lines.len());
        let mut start = 0;
        for line in &lines {
            starts.push(start);
            start += line.chars().count() + 1;
        }
        Self { lines, starts }
    }

    /// Line and column, both from 0.
    fn location(&self, offset: usize) -> (usize, usize) {
        let line = self.starts.partition_point(|start| *start <= offset).saturating_sub(1);
        (line, offset - self.starts[line])
    }
}

#[derive(Debug, Default)]
pub(crate) struct Issues {
    found: Vec<(usize, String)>,
    truncated: usize,
}

const MOST_ISSUES: usize = 100;
/// The line is shown up to this many bytes.
const LONGEST_SNIPPET_BYTES: usize = 16384;

impl Issues {
    pub(crate) fn report(&mut self, offset: usize, message: impl Into<String>) {
        if self.found.len() < MOST_ISSUES {
            self.found.push((offset, message.into()));
        } else {
            self.truncated += 1;
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    pub(crate) fn display(mut self, source: &SourceText) -> String {
        self.found.sort_by_key(|(offset, _)| *offset);
        let mut shown: Vec<String> =
            self.found.iter().map(|(offset, message)| shown(source, *offset, message)).collect();
        if self.truncated > 0 {
            shown.push(format!("{} more errors were truncated", self.truncated));
        }
        shown.join("\n")
    }
}

fn shown(source: &SourceText, offset: usize, message: &str) -> String {
    let (line, column) = source.location(offset);
    let mut text = format!("ERROR: <input>:{}:{}: {message}", line + 1, column + 1);
    let snippet = &source.lines[line];
    if snippet.len() > LONGEST_SNIPPET_BYTES {
        return text;
    }
    let snippet = snippet.replace('\t', " ");
    text.push_str("\n | ");
    text.push_str(&snippet);
    text.push_str("\n | ");
    let mut letters = snippet.chars();
    for letter in letters.by_ref().take(column) {
        text.push(if letter.is_ascii() { '.' } else { '\u{ff0e}' });
    }
    text.push(match letters.next() {
        Some(letter) if !letter.is_ascii() => '\u{ff3e}',
        _ => '^',
    });
    text
}
