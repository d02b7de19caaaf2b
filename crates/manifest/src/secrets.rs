//! What texts from a configuration must not show to others: a user and password in an address, and what fields hold that
//! are secret. Problems quote lines, and reach logs and pages.

use std::{borrow::Cow, ops::Range};

/// What is shown in the place of a secret.
pub const REDACTED: &str = "--- REDACTED ---";

/// Fields that hold a private key or what proves who somebody is, in configurations and in kubeconfigs, in small letters.
const SECRET_FIELDS: [&str; 4] = ["keydata", "token", "password", "client-key-data"];
/// What begins the authority of an address; JSON may write its slashes so.
const AUTHORITIES: [&str; 2] = ["://", r":\/\/"];
/// A line of so many letters of base64, of all sorts, and nothing else may be a part of a key.
const KEY_LINE_CHARS: usize = 48;

/// A text without the users and passwords of addresses in it.
pub(crate) fn without_passwords(text: &str) -> Cow<'_, str> {
    if !AUTHORITIES.iter().any(|begins| text.contains(begins)) {
        return Cow::Borrowed(text);
    }
    let chars: Vec<char> = text.chars().collect();
    let mut shown = Redacted::default();
    shown.take(&chars, &passwords(&chars), 0);
    Cow::Owned(shown.text)
}

/// A line as it may be shown, and where its column is then.
pub(crate) fn redacted(line: &str, column: usize) -> (String, usize) {
    let chars: Vec<char> = line.chars().collect();
    let mut secrets = passwords(&chars);
    secrets.extend(secret_values(&chars));
    secrets.extend(key_line(&chars));
    secrets.sort_by_key(|secret| secret.start);
    let mut shown = Redacted::default();
    shown.take(&chars, &secrets, column);
    (shown.text, shown.column)
}

#[derive(Default)]
struct Redacted {
    text: String,
    column: usize,
}

impl Redacted {
    /// Takes a text over, but for its secrets, which are in their order.
    fn take(&mut self, chars: &[char], secrets: &[Range<usize>], column: usize) {
        self.column = column;
        let mut at = 0;
        for secret in secrets.iter().filter(|secret| !secret.is_empty()) {
            // What is within another one is gone already.
            let start = secret.start.max(at);
            if start >= secret.end {
                continue;
            }
            self.text.extend(&chars[at..start]);
            self.text.push_str(REDACTED);
            if column >= secret.end {
                self.column = self.column + REDACTED.len() - (secret.end - start);
            } else if column >= start {
                self.column -= column - start;
            }
            at = secret.end;
        }
        self.text.extend(&chars[at..]);
    }
}

/// The users and passwords of all addresses: what is between `://` and the last `@` of the same scalar. A password that was
/// not escaped may have slashes in it, so that an address with an `@` further on loses more than it has to.
fn passwords(chars: &[char]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < chars.len() {
        let Some(begins) = AUTHORITIES.iter().find(|begins| starts_with(&chars[at..], begins)) else {
            at += 1;
            continue;
        };
        let start = at + begins.len();
        let scheme =
            chars[..at].iter().rev().take_while(|c| c.is_ascii_alphanumeric() || "+-.".contains(**c));
        let before = (at - scheme.count()).checked_sub(1).map(|before| chars[before]);
        let end = match before {
            Some(quote @ ('"' | '\'')) => quoted_end(chars, start, quote),
            _ => plain_end(chars, start, false),
        };
        let last = chars[start..end].iter().rposition(|c| *c == '@');
        found.extend(last.map(|last| start..start + last));
        at = end.max(start);
    }
    found
}

/// What fields hold that are secret.
fn secret_values(chars: &[char]) -> Vec<Range<usize>> {
    let is_of_a_name = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
    let flow = chars.iter().position(|c| "{[".contains(*c)).unwrap_or(chars.len());
    let mut found: Vec<Range<usize>> = Vec::new();
    for colon in (0..chars.len()).filter(|index| chars[*index] == ':') {
        if found.last().is_some_and(|last| colon < last.end) {
            continue;
        }
        let before = chars[..colon].iter().rposition(|c| !c.is_whitespace() && !"\"'".contains(*c));
        let Some(last) = before.filter(|last| is_of_a_name(chars[*last])) else { continue };
        let name = chars[..=last].iter().rev().take_while(|c| is_of_a_name(**c));
        let name: String = name.flat_map(|c| c.to_lowercase()).collect();
        if !SECRET_FIELDS.iter().any(|field| field.chars().rev().eq(name.chars())) {
            continue;
        }
        let Some(skipped) = chars[colon + 1..].iter().position(|c| !c.is_whitespace()) else { continue };
        let start = colon + 1 + skipped;
        found.push(match chars[start] {
            quote @ ('"' | '\'') => start + 1..quoted_end(chars, start + 1, quote),
            // The next lines hold it.
            '|' | '>' => continue,
            _ => start..plain_end(chars, start, flow < colon),
        });
    }
    found
}

/// A line that is a piece of a key, perhaps.
fn key_line(chars: &[char]) -> Option<Range<usize>> {
    let is_key = |c: &char| c.is_ascii_alphanumeric() || "+/=".contains(*c);
    let start = chars.iter().position(|c| !c.is_whitespace())?;
    let end = chars.iter().rposition(|c| !c.is_whitespace())? + 1;
    let line = &chars[start..end];
    let has = |sort: fn(&char) -> bool| line.iter().any(sort);
    let is_mixed =
        has(char::is_ascii_digit) && has(char::is_ascii_lowercase) && has(char::is_ascii_uppercase);
    (line.len() >= KEY_LINE_CHARS && is_mixed && line.iter().all(is_key)).then_some(start..end)
}

fn starts_with(chars: &[char], begins: &str) -> bool {
    begins.chars().enumerate().all(|(index, c)| chars.get(index) == Some(&c))
}

/// Where a quoted scalar ends that goes on at an index: at its quote, or with the line.
fn quoted_end(chars: &[char], from: usize, quote: char) -> usize {
    let mut escaped = false;
    for (index, c) in chars.iter().enumerate().skip(from) {
        match c {
            _ if escaped => escaped = false,
            '\\' if quote == '"' => escaped = true,
            c if *c == quote => return index,
            _ => {}
        }
    }
    chars.len()
}

/// Where a plain scalar ends, at the latest: before a comment, the next field, or the end of the flow collection that it is in.
fn plain_end(chars: &[char], from: usize, in_flow: bool) -> usize {
    let ends = |index: &usize| {
        let next_is_space = chars.get(index + 1).is_none_or(|c| c.is_whitespace());
        match chars[*index] {
            ',' => in_flow || next_is_space,
            ':' => next_is_space,
            '}' | ']' => in_flow,
            '#' => *index > 0 && chars[index - 1].is_whitespace(),
            _ => false,
        }
    };
    (from..chars.len()).find(ends).unwrap_or(chars.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_and_keys_are_not_shown() {
        let key = "c2VjcmV0".repeat(6);
        // (line, as it is shown; ~ stands for what is redacted)
        let cases = [
            ("urlPrefix: http://a:80/x", "urlPrefix: http://a:80/x"),
            ("urlPrefix: http://user:pass@a/x # me@b", "urlPrefix: http://~@a/x # me@b"),
            (r#""urlPrefix": "http:\/\/user:pass@a""#, r#""urlPrefix": "http:\/\/~@a""#),
            (r#"{"a": "http://u:p\"w, x@a", "b": "c@d"}"#, r#"{"a": "http://~@a", "b": "c@d"}"#),
            ("- {urlPrefix: 'http://u:p@w/x@a', weight: -1}", "- {urlPrefix: 'http://~@a', weight: -1}"),
            ("{a: http://u:p,w@a, b: http://t@c, d: e@f}", "{a: http://~@a, b: http://~@c, d: e@f}"),
            ("tlsConfig: {keyData: c2VjcmV0, certData: eA==}", "tlsConfig: {keyData: ~, certData: eA==}"),
            (r#"{"KeyData" : "c2VjcmV0", "x": 1}"#, r#"{"KeyData" : "~", "x": 1}"#),
            ("  password: a}b, c # d", "  password: ~, c # d"),
            ("  token: 'a # b", "  token: '~"),
            ("keyData: |", "keyData: |"),
            ("tokens: 1", "tokens: 1"),
            (&format!("    {key}"), "    ~"),
            (&format!("name: {key}"), &format!("name: {key}")),
        ];
        for (line, shown) in cases {
            assert_eq!(redacted(line, 0).0, shown.replace('~', REDACTED), "{line}");
        }
    }

    #[test]
    fn the_place_moves_with_what_is_not_shown() {
        let line = "{a: http://u:p@b, c: d}";
        let (shown, column) = redacted(line, line.find('c').unwrap());
        assert_eq!(&shown[column..], "c: d}");
        let (shown, column) = redacted(line, line.find('p').unwrap());
        assert!(shown[column..].starts_with("p://"), "{shown} {column}");
        let (shown, column) = redacted(line, line.find(":p").unwrap());
        assert!(shown[column..].starts_with(REDACTED), "{shown} {column}");
    }

    #[test]
    fn a_long_line_costs_one_pass() {
        let line = "a://".repeat(250_000);
        assert_eq!(redacted(&line, 0).0, line);
        let line = "token:".repeat(200_000);
        assert!(redacted(&line, 0).0.len() < line.len());
    }
}
