//! The line of a text that a problem is on, with the place underlined.

use std::fmt;

use crate::BYTE_ORDER_MARK;
use crate::secrets::redacted;
use crate::value::Location;

/// How much of a line is shown.
const MAX_SHOWN_CHARS: usize = 100;
/// How much of a long line is shown before the place.
const SHOWN_BEFORE_CHARS: usize = 60;
const TAB_WIDTH_CHARS: usize = 4;
/// How much of a line is looked at on each side of the place.
const LOOKED_AT_CHARS: usize = 32 << 10;

/// Writes the excerpt, beginning with a line break; nothing if the text has no such line.
pub(crate) fn write(f: &mut fmt::Formatter<'_>, text: &str, at: Location) -> fmt::Result {
    let Some(line) = lines(text).nth(at.line.saturating_sub(1) as usize) else {
        return Ok(());
    };
    let (line, column) = part(line, at.column.saturating_sub(1) as usize);
    let (line, column) = redacted(line, column);
    let window = Window::new(&line, column);
    let number = at.line.to_string();
    let gutter = " ".repeat(number.len());
    write!(f, "\n{gutter} |")?;
    write!(f, "\n{}", format!("{number} | {}", window.text).trim_end())?;
    let carets = "^".repeat(window.underlined);
    write!(f, "\n{gutter} | {}{carets}", " ".repeat(window.before))
}

/// The part of a line that is looked at for what to show, and the column in it. It begins before any key or address that
/// could reach into what is shown.
fn part(line: &str, column: usize) -> (&str, usize) {
    let start = column.saturating_sub(LOOKED_AT_CHARS);
    let index = |chars: usize| line.char_indices().nth(chars).map_or(line.len(), |(index, _)| index);
    (&line[index(start)..index(column + LOOKED_AT_CHARS)], column - start)
}

/// The lines of a text, which end with a line feed, a carriage return or both.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    // A byte order mark is no character of the first line.
    let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    text.split('\n').flat_map(|line| line.strip_suffix('\r').unwrap_or(line).split('\r'))
}

/// The part of a line that is shown.
struct Window {
    text: String,
    /// Columns before the underlined place.
    before: usize,
    underlined: usize,
}

impl Window {
    fn new(line: &str, column: usize) -> Self {
        let length = line.chars().count();
        let latest_start = length.saturating_sub(MAX_SHOWN_CHARS);
        let start = column.saturating_sub(SHOWN_BEFORE_CHARS).min(latest_start);
        let end = length.min(start + MAX_SHOWN_CHARS);
        let mut window = Self { text: String::new(), before: 0, underlined: 0 };
        if start > 0 {
            window.show('…', false, true);
        }
        let place = column..column + marked_chars(line, column);
        for (index, c) in line.chars().enumerate().take(end).skip(start) {
            window.show(c, place.contains(&index), index < column);
        }
        if end < length {
            window.show('…', false, false);
        }
        window.underlined = window.underlined.max(1);
        window
    }

    fn show(&mut self, c: char, underline: bool, before: bool) {
        let width = if c == '\t' { TAB_WIDTH_CHARS } else { 1 };
        match c {
            '\t' => self.text.push_str(&" ".repeat(TAB_WIDTH_CHARS)),
            // A text must not be able to steer the terminal it is shown on.
            c if c.is_control() => self.text.push('\u{fffd}'),
            c => self.text.push(c),
        }
        self.underlined += if underline { width } else { 0 };
        self.before += if before { width } else { 0 };
    }
}

/// How many characters the scalar at `column` of a line has, as far as the line tells.
fn marked_chars(line: &str, column: usize) -> usize {
    let rest: Vec<char> = line.chars().skip(column).collect();
    match rest.first() {
        None => 1,
        Some(quote @ ('"' | '\'')) => quoted_chars(&rest, *quote),
        Some('{' | '}' | '[' | ']' | ',' | ':' | '|' | '>') => 1,
        Some('-') if rest.get(1).is_none_or(|c| c.is_whitespace()) => 1,
        Some(_) => plain_chars(&rest),
    }
}

fn quoted_chars(rest: &[char], quote: char) -> usize {
    let mut escaped = false;
    for (index, c) in rest.iter().enumerate().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' if quote == '"' => escaped = true,
            c if *c == quote => return index + 1,
            _ => {}
        }
    }
    rest.len()
}

/// A plain scalar goes on up to a colon or a comment or the punctuation of a flow collection.
fn plain_chars(rest: &[char]) -> usize {
    let ends_at = |index: usize| {
        let next_is_space = rest.get(index + 1).is_none_or(|c| c.is_whitespace());
        match rest[index] {
            ':' => next_is_space,
            '#' => index > 0 && rest[index - 1].is_whitespace(),
            ',' | '}' | ']' => true,
            _ => false,
        }
    };
    let end = (0..rest.len()).find(|index| ends_at(*index)).unwrap_or(rest.len());
    let trailing_space = rest[..end].iter().rev().take_while(|c| c.is_whitespace()).count();
    (end - trailing_space).max(1)
}
