//! Regular expressions as Go reads them, for the engine of the `regex` crate: both match in linear time and prefer the same
//! match, but their syntaxes differ, and Go's `\d`, `\w`, `\s` and `\b` are about ASCII.

use regex::{Regex, RegexBuilder};
use std::fmt::Write;

const DEEPEST: u32 = 1000;
const LARGEST_BYTES: usize = 4 << 20;

/// The compiled expression, or what is wrong with it in Go's words.
pub(crate) fn compile(pattern: &str) -> Result<Regex, String> {
    let translated = Translator::new(pattern).translate().map_err(|error| error.shown())?;
    let built = RegexBuilder::new(&translated).nest_limit(DEEPEST).size_limit(LARGEST_BYTES).build();
    built.map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => Defect::new("expression too large", pattern).shown(),
        _ => Defect::new("invalid or unsupported Perl syntax", pattern).shown(),
    })
}

struct Defect {
    what: &'static str,
    at: String,
}

impl Defect {
    fn new(what: &'static str, at: &str) -> Self {
        Self { what, at: at.to_owned() }
    }

    fn shown(&self) -> String {
        format!("error parsing regexp: {}: `{}`", self.what, self.at)
    }
}

type Result2<T> = Result<T, Defect>;

const BAD_ESCAPE: &str = "invalid escape sequence";
const BAD_RANGE: &str = "invalid character class range";
const BAD_PERL: &str = "invalid or unsupported Perl syntax";

struct Translator<'p> {
    pattern: &'p str,
    rest: &'p str,
    written: String,
    open: u32,
    /// Something that can be repeated stands before.
    repeatable: bool,
    /// The repetition that stands right before, with what is behind it.
    repetition: Option<&'p str>,
    names: Vec<&'p str>,
}

impl<'p> Translator<'p> {
    fn new(pattern: &'p str) -> Self {
        Self {
            pattern,
            rest: pattern,
            written: String::new(),
            open: 0,
            repeatable: false,
            repetition: None,
            names: Vec::new(),
        }
    }

    fn translate(mut self) -> Result2<String> {
        while let Some(letter) = self.rest.chars().next() {
            let before = self.repetition.take();
            match letter {
                '(' => self.group()?,
                ')' => self.close()?,
                '|' => {
                    self.skip(1);
                    self.written.push('|');
                    self.repeatable = false;
                }
                '*' | '+' | '?' => self.repeat(1, before)?,
                '{' => match counted(self.rest) {
                    Some((length, fits)) => {
                        if !fits {
                            return Err(Defect::new("invalid repeat count", &self.rest[..length]));
                        }
                        self.repeat(length, before)?;
                    }
                    None => self.literal('{'),
                },
                '[' => self.class()?,
                '\\' => self.escape()?,
                '^' | '$' | '.' => {
                    self.skip(1);
                    self.written.push(letter);
                    self.repeatable = true;
                }
                other => self.literal(other),
            }
        }
        if self.open > 0 {
            return Err(Defect::new("missing closing )", self.pattern));
        }
        Ok(self.written)
    }

    fn skip(&mut self, bytes: usize) {
        self.rest = &self.rest[bytes..];
    }

    fn literal(&mut self, letter: char) {
        self.skip(letter.len_utf8());
        push_letter(&mut self.written, letter);
        self.repeatable = true;
    }

    fn close(&mut self) -> Result2<()> {
        if self.open == 0 {
            return Err(Defect::new("unexpected )", self.pattern));
        }
        self.open -= 1;
        self.skip(1);
        self.written.push(')');
        self.repeatable = true;
        Ok(())
    }

    /// A repetition of so many bytes, and perhaps the `?` behind it.
    fn repeat(&mut self, length: usize, before: Option<&'p str>) -> Result2<()> {
        let start = self.rest;
        if !self.repeatable {
            return Err(Defect::new("missing argument to repetition operator", &start[..length]));
        }
        let lazy = usize::from(start[length..].starts_with('?'));
        let end = length + lazy;
        if let Some(before) = before {
            let both = &before[..before.len() - start.len() + end];
            return Err(Defect::new("invalid nested repetition operator", both));
        }
        self.written.push_str(&start[..end]);
        self.skip(end);
        self.repetition = Some(start);
        Ok(())
    }

    fn group(&mut self) -> Result2<()> {
        if self.open >= DEEPEST {
            return Err(Defect::new("expression nests too deeply", self.pattern));
        }
        self.repeatable = false;
        let start = self.rest;
        let Some(inner) = start.strip_prefix("(?") else {
            self.skip(1);
            self.written.push('(');
            self.open += 1;
            return Ok(());
        };
        for opening in ["P<", "<"] {
            if let Some(named) = inner.strip_prefix(opening) {
                return self.named_group(start, named);
            }
        }
        self.flags(start, inner)
    }

    fn named_group(&mut self, start: &'p str, named: &'p str) -> Result2<()> {
        let wrong = |at: &str| Defect::new("invalid named capture", at);
        let end = named.find('>').ok_or_else(|| wrong(start))?;
        let name = &named[..end];
        let length = start.len() - named.len() + end + 1;
        let valid = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if !valid || self.names.contains(&name) {
            return Err(wrong(&start[..length]));
        }
        self.names.push(name);
        // The names are never asked for, and Rust's may not begin with a digit.
        self.written.push('(');
        self.skip(length);
        self.open += 1;
        Ok(())
    }

    /// `(?i)`, `(?s-m:`.
    fn flags(&mut self, start: &'p str, inner: &'p str) -> Result2<()> {
        let mut negative = false;
        let mut any = false;
        for (at, letter) in inner.char_indices() {
            let end = start.len() - inner.len() + at + letter.len_utf8();
            match letter {
                'i' | 'm' | 's' | 'U' => any = true,
                '-' if !negative => {
                    negative = true;
                    any = false;
                }
                ':' | ')' => {
                    if negative && !any {
                        return Err(Defect::new(BAD_PERL, &start[..end]));
                    }
                    // No flags at all change nothing.
                    self.written.push_str(if &start[..end] == "(?)" { "" } else { &start[..end] });
                    self.skip(end);
                    self.open += u32::from(letter == ':');
                    return Ok(());
                }
                _ => return Err(Defect::new(BAD_PERL, &start[..end])),
            }
        }
        Err(Defect::new("missing closing )", self.pattern))
    }

    fn escape(&mut self) -> Result2<()> {
        let start = self.rest;
        let Some(letter) = start[1..].chars().next() else {
            return Err(Defect::new("trailing backslash at end of expression", ""));
        };
        self.repeatable = true;
        let boundary = match letter {
            'A' => "\\A",
            'b' => "(?-u:\\b)",
            'B' => "(?-u:\\B)",
            'z' => "\\z",
            'Q' => {
                let (quoted, rest) = start[2..].split_once("\\E").unwrap_or((&start[2..], ""));
                quoted.chars().for_each(|letter| push_letter(&mut self.written, letter));
                self.rest = rest;
                return Ok(());
            }
            _ => "",
        };
        if !boundary.is_empty() {
            self.written.push_str(boundary);
            self.skip(2);
            return Ok(());
        }
        if let Some((class, length)) = named_class(start)? {
            self.written.push_str(&class);
            self.skip(length);
            return Ok(());
        }
        let (letter, length) = escaped(start)?;
        push_letter(&mut self.written, letter);
        self.skip(length);
        Ok(())
    }

    fn class(&mut self) -> Result2<()> {
        let start = self.rest;
        let unclosed = || Defect::new("missing closing ]", start);
        self.written.push('[');
        self.skip(1);
        if let Some(rest) = self.rest.strip_prefix('^') {
            self.written.push('^');
            self.rest = rest;
        }
        let mut first = true;
        loop {
            let Some(letter) = self.rest.chars().next() else { return Err(unclosed()) };
            if letter == ']' && !first {
                break;
            }
            first = false;
            if self.rest.starts_with("[:")
                && let Some(end) = self.rest[2..].find(":]")
            {
                let name = &self.rest[..end + 4];
                let class = posix(name).ok_or_else(|| Defect::new(BAD_RANGE, name))?;
                self.written.push_str(class);
                self.skip(name.len());
                continue;
            }
            if let Some((class, length)) = named_class(self.rest)? {
                self.written.push_str(&class);
                self.skip(length);
                continue;
            }
            self.range(start)?;
        }
        self.skip(1);
        self.written.push(']');
        self.repeatable = true;
        Ok(())
    }

    /// One character of a class, or two with a dash between them.
    fn range(&mut self, class: &'p str) -> Result2<()> {
        let start = self.rest;
        let (low, length) = class_letter(start, class)?;
        self.skip(length);
        let mut high = low;
        if let Some(rest) = self.rest.strip_prefix('-')
            && !rest.is_empty()
            && !rest.starts_with(']')
        {
            let (letter, length) = class_letter(rest, class)?;
            self.skip(1 + length);
            high = letter;
            if high < low {
                let shown = &start[..start.len() - self.rest.len()];
                return Err(Defect::new(BAD_RANGE, shown));
            }
        }
        let _ = write!(self.written, "\\x{{{:X}}}-\\x{{{:X}}}", low as u32, high as u32);
        Ok(())
    }
}

fn push_letter(written: &mut String, letter: char) {
    if letter.is_ascii_alphanumeric() || !letter.is_ascii() {
        written.push(letter);
    } else {
        let _ = write!(written, "\\x{:02X}", letter as u32);
    }
}

fn class_letter(text: &str, class: &str) -> Result2<(char, usize)> {
    match text.chars().next() {
        None => Err(Defect::new("missing closing ]", class)),
        Some('\\') => escaped(text),
        Some(letter) => Ok((letter, letter.len_utf8())),
    }
}

/// `{2}`, `{2,}` and `{2,3}`: how long it is, and whether Go allows so many.
fn counted(text: &str) -> Option<(usize, bool)> {
    let end = text.find('}')?;
    let inner = &text[1..end];
    let (low, high) = inner.split_once(',').map_or((inner, None), |(low, high)| (low, Some(high)));
    let number = |digits: &str| -> Option<u64> {
        let leading = digits.len() > 1 && digits.starts_with('0');
        let valid = !digits.is_empty() && !leading && digits.bytes().all(|byte| byte.is_ascii_digit());
        valid.then(|| digits.parse().unwrap_or(u64::MAX))
    };
    let low = number(low)?;
    let high = match high {
        None => Some(low),
        Some("") => None,
        Some(high) => Some(number(high)?),
    };
    let most = 1000;
    let fits = low <= most && high.is_none_or(|high| high <= most && low <= high);
    Some((end + 1, fits))
}

/// Classes with a name: of Perl, and of Unicode.
fn named_class(text: &str) -> Result2<Option<(String, usize)>> {
    let Some(behind) = text.strip_prefix('\\') else { return Ok(None) };
    let perl = match behind.chars().next() {
        Some('d') => "[0-9]",
        Some('D') => "[^0-9]",
        Some('s') => "[\\t\\n\\x0C\\r ]",
        Some('S') => "[^\\t\\n\\x0C\\r ]",
        Some('w') => "[0-9A-Za-z_]",
        Some('W') => "[^0-9A-Za-z_]",
        Some('p' | 'P') => return unicode_class(text).map(Some),
        _ => return Ok(None),
    };
    Ok(Some((perl.to_owned(), 2)))
}

fn unicode_class(text: &str) -> Result2<(String, usize)> {
    let negated = text.starts_with("\\P");
    let behind = &text[2..];
    let (name, length) = match behind.chars().next() {
        None => return Err(Defect::new(BAD_ESCAPE, text)),
        Some('{') => {
            let end = behind.find('}').ok_or_else(|| Defect::new(BAD_RANGE, text))?;
            (&behind[1..end], 2 + end + 1)
        }
        Some(letter) => (&behind[..letter.len_utf8()], 2 + letter.len_utf8()),
    };
    let (negated, name) = name.strip_prefix('^').map_or((negated, name), |name| (!negated, name));
    let class = match name {
        "Any" => "\\x{0}-\\x{10FFFF}".to_owned(),
        _ => format!("\\p{{{name}}}"),
    };
    let class = format!("[{}{class}]", if negated { "^" } else { "" });
    // Only what the engine knows too; Go's names are those of categories and scripts.
    let plain = name.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'_');
    if !plain || Regex::new(&class).is_err() {
        return Err(Defect::new(BAD_RANGE, &text[..length]));
    }
    Ok((class, length))
}

fn posix(name: &str) -> Option<&'static str> {
    Some(match name {
        "[:alnum:]" => "[0-9A-Za-z]",
        "[:^alnum:]" => "[^0-9A-Za-z]",
        "[:alpha:]" => "[A-Za-z]",
        "[:^alpha:]" => "[^A-Za-z]",
        "[:ascii:]" => "[\\x00-\\x7F]",
        "[:^ascii:]" => "[^\\x00-\\x7F]",
        "[:blank:]" => "[\\t ]",
        "[:^blank:]" => "[^\\t ]",
        "[:cntrl:]" => "[\\x00-\\x1F\\x7F]",
        "[:^cntrl:]" => "[^\\x00-\\x1F\\x7F]",
        "[:digit:]" => "[0-9]",
        "[:^digit:]" => "[^0-9]",
        "[:graph:]" => "[!-~]",
        "[:^graph:]" => "[^!-~]",
        "[:lower:]" => "[a-z]",
        "[:^lower:]" => "[^a-z]",
        "[:print:]" => "[ -~]",
        "[:^print:]" => "[^ -~]",
        "[:punct:]" => "[!-/:-@\\[-`{-~]",
        "[:^punct:]" => "[^!-/:-@\\[-`{-~]",
        "[:space:]" => "[\\t-\\r ]",
        "[:^space:]" => "[^\\t-\\r ]",
        "[:upper:]" => "[A-Z]",
        "[:^upper:]" => "[^A-Z]",
        "[:word:]" => "[0-9A-Za-z_]",
        "[:^word:]" => "[^0-9A-Za-z_]",
        "[:xdigit:]" => "[0-9A-Fa-f]",
        "[:^xdigit:]" => "[^0-9A-Fa-f]",
        _ => return None,
    })
}

/// The character that an escape sequence stands for, and how long it is.
fn escaped(text: &str) -> Result2<(char, usize)> {
    let Some(letter) = text[1..].chars().next() else {
        return Err(Defect::new("trailing backslash at end of expression", ""));
    };
    let wrong = |length: usize| {
        let end = (0..=length.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        Defect::new(BAD_ESCAPE, &text[..end])
    };
    let simple = |letter| Ok((letter, 2));
    match letter {
        'a' => simple('\x07'),
        'f' => simple('\x0c'),
        'n' => simple('\n'),
        'r' => simple('\r'),
        't' => simple('\t'),
        'v' => simple('\x0b'),
        '0'..='7' => {
            let digits: String =
                text[1..].chars().take(3).take_while(|digit| ('0'..='7').contains(digit)).collect();
            if letter != '0' && digits.len() == 1 {
                return Err(wrong(2));
            }
            let code = u32::from_str_radix(&digits, 8).unwrap_or(0);
            char::from_u32(code).map(|letter| (letter, 1 + digits.len())).ok_or_else(|| wrong(2))
        }
        'x' => {
            let (digits, length) = match text[2..].strip_prefix('{') {
                Some(braced) => {
                    let end = braced.find('}').ok_or_else(|| wrong(text.len()))?;
                    (&braced[..end], 3 + end + 1)
                }
                None => (text.get(2..4).ok_or_else(|| wrong(4))?, 4),
            };
            let hex = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
            let code = hex.then(|| u32::from_str_radix(digits, 16).ok()).flatten();
            code.and_then(char::from_u32).map(|letter| (letter, length)).ok_or_else(|| wrong(length))
        }
        other if other.is_ascii() && !other.is_ascii_alphanumeric() => simple(other),
        other => Err(wrong(1 + other.len_utf8())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_match_as_in_go() {
        for (pattern, text, matches) in [
            ("(?i)^A100$", "a100", true),
            (r"^\d+$", "123", true),
            // Digits of other scripts are none.
            (r"^\d$", "٣", false),
            (r"^\w+$", "é", false),
            (r"\bb\b", "a b c", true),
            (r"a\Bb", "ab", true),
            // What does not count is text.
            ("^a{,2}$", "a{,2}", true),
            ("^x{$", "x{", true),
            (r"^\Qa.b\E+$", "a.bbb", true),
            (r"^\Qa.b\E$", "axb", false),
            (r"^[[:alpha:]_-]+$", "a_-", true),
            (r"^[^a&&b]$", "&", false),
            (r"^\x{4e16}\x41\101$", "世AA", true),
            (r"^\p{Greek}\pL\PN$", "αab", true),
            ("^[]a]+$", "]a", true),
            ("a#b", "a#b", true),
            ("^(?P<n>a)(?<m>b)$", "ab", true),
            ("(?s).", "\n", true),
            (".", "\n", false),
            ("^$", "", true),
            ("a|", "", true),
        ] {
            assert_eq!(compile(pattern).unwrap().is_match(text), matches, "{pattern} on {text}");
        }
    }

    #[test]
    fn defects_are_told_in_go_s_words() {
        for (pattern, defect) in [
            ("[", "missing closing ]: `[`"),
            ("a[b", "missing closing ]: `[b`"),
            ("a(", "missing closing ): `a(`"),
            ("a)", "unexpected ): `a)`"),
            ("*", "missing argument to repetition operator: `*`"),
            ("a|*", "missing argument to repetition operator: `*`"),
            ("a**", "invalid nested repetition operator: `**`"),
            ("a+?*", "invalid nested repetition operator: `+?*`"),
            ("a{1001}", "invalid repeat count: `{1001}`"),
            ("a{2,1}", "invalid repeat count: `{2,1}`"),
            ("[z-a]", "invalid character class range: `z-a`"),
            (r"\q", r"invalid escape sequence: `\q`"),
            (r"\1", r"invalid escape sequence: `\1`"),
            ("a\\", "trailing backslash at end of expression: ``"),
            ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
            ("(?x)a", "invalid or unsupported Perl syntax: `(?x`"),
            (r"\pX", r"invalid character class range: `\pX`"),
            ("[[:foo:]]", "invalid character class range: `[:foo:]`"),
        ] {
            assert_eq!(compile(pattern).unwrap_err(), format!("error parsing regexp: {defect}"), "{pattern}");
        }
    }
}
