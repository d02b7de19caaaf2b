//! A strict JSON reader (RFC 8259) that knows where every value stands.

use crate::duplicates::check_duplicates;
use crate::problem::{Problem, Problems};
use crate::value::{Entry, Location, Source, Value, ValueKind};
use crate::{BYTE_ORDER_MARK, MAX_DEPTH};

/// Why a text could not be read as JSON.
pub(crate) enum JsonFailure {
    /// The text is not JSON.
    Syntax(Box<SyntaxError>),
    /// The text is JSON, yet some keys are written twice.
    Duplicates(Problems),
}

/// The place where a text stops being JSON.
pub(crate) struct SyntaxError {
    pub(crate) problem: Problem,
    /// Whether what stands there is something YAML has and JSON has not, such as a bare word.
    pub(crate) looks_like_yaml: bool,
}

/// Reads one JSON document or several one after another.
pub(crate) fn read(source: &Source) -> Result<Vec<Value>, JsonFailure> {
    let start = if source.text.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len_utf8() } else { 0 };
    let mut reader = Reader {
        source,
        bytes: source.text.as_bytes(),
        offset: start,
        located: Located { offset: start, at: Location::START },
        duplicates: Problems::default(),
    };
    let mut documents = Vec::new();
    reader.skip_space();
    while reader.peek().is_some() {
        let document = reader.value(0).map_err(JsonFailure::Syntax)?;
        if !document.is_null() {
            documents.push(document);
        }
        reader.skip_space();
    }
    if reader.duplicates.is_empty() {
        return Ok(documents);
    }
    reader.duplicates.0.sort_by_key(|problem| problem.at);
    Err(JsonFailure::Duplicates(reader.duplicates))
}

/// The last place whose line and column were counted. Places are asked for in the order of the
/// text, so the whole text is counted once.
struct Located {
    offset: usize,
    at: Location,
}

struct Reader<'t> {
    source: &'t Source,
    bytes: &'t [u8],
    offset: usize,
    located: Located,
    duplicates: Problems,
}

type Parsed<T> = Result<T, Box<SyntaxError>>;

impl Reader<'_> {
    fn value(&mut self, depth: usize) -> Parsed<Value> {
        let at = self.here();
        let kind = match self.peek() {
            Some(b'{') => self.map(depth + 1)?,
            Some(b'[') => self.list(depth + 1)?,
            Some(b'"') => ValueKind::String(self.string()?),
            Some(b'-' | b'0'..=b'9') => ValueKind::Number(self.number()?),
            Some(b't') => self.word("true", ValueKind::Bool(true))?,
            Some(b'f') => self.word("false", ValueKind::Bool(false))?,
            Some(b'n') => self.word("null", ValueKind::Null)?,
            _ => return Err(self.unexpected_start("a value")),
        };
        Ok(Value { at, kind })
    }

    fn map(&mut self, depth: usize) -> Parsed<ValueKind> {
        self.check_depth(depth)?;
        self.offset += 1;
        let mut entries = Vec::new();
        self.skip_space();
        if self.take(b'}') {
            return Ok(ValueKind::Map(entries));
        }
        loop {
            if self.peek() != Some(b'"') {
                return Err(self.unexpected_start("a key in double quotes"));
            }
            let key_at = self.here();
            let key = self.string()?;
            self.skip_space();
            if !self.take(b':') {
                return Err(self.unexpected("a colon after the key"));
            }
            self.skip_space();
            let value = self.value(depth)?;
            entries.push(Entry { key, key_at, value });
            self.skip_space();
            if self.take(b'}') {
                check_duplicates(self.source, &entries, &mut self.duplicates);
                return Ok(ValueKind::Map(entries));
            }
            if !self.take(b',') {
                return Err(self.unexpected("a comma or the closing } of the map"));
            }
            self.skip_space();
        }
    }

    fn list(&mut self, depth: usize) -> Parsed<ValueKind> {
        self.check_depth(depth)?;
        self.offset += 1;
        let mut items = Vec::new();
        self.skip_space();
        if self.take(b']') {
            return Ok(ValueKind::List(items));
        }
        loop {
            items.push(self.value(depth)?);
            self.skip_space();
            if self.take(b']') {
                return Ok(ValueKind::List(items));
            }
            if !self.take(b',') {
                return Err(self.unexpected("a comma or the closing ] of the list"));
            }
            self.skip_space();
        }
    }

    fn check_depth(&mut self, depth: usize) -> Parsed<()> {
        if depth <= MAX_DEPTH {
            return Ok(());
        }
        Err(self.error(format!("lists and maps are nested more than {MAX_DEPTH} deep")))
    }

    fn word(&mut self, word: &str, kind: ValueKind) -> Parsed<ValueKind> {
        let rest = &self.bytes[self.offset..];
        let ends = rest.get(word.len()).is_none_or(|b| !b.is_ascii_alphanumeric());
        if !rest.starts_with(word.as_bytes()) || !ends {
            return Err(self.unexpected_start("a value"));
        }
        self.offset += word.len();
        Ok(kind)
    }

    fn number(&mut self) -> Parsed<Box<str>> {
        let start = self.offset;
        self.take(b'-');
        if !self.take(b'0') {
            self.digits()?;
        }
        if self.take(b'.') {
            self.digits()?;
        }
        if self.take(b'e') || self.take(b'E') {
            let _sign = self.take(b'+') || self.take(b'-');
            self.digits()?;
        }
        if self.peek().is_some_and(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_')) {
            return Err(self.unexpected("the end of the number"));
        }
        Ok(self.source.text[start..self.offset].into())
    }

    fn digits(&mut self) -> Parsed<()> {
        let start = self.offset;
        while self.peek().is_some_and(|b| b.is_ascii_digit()) {
            self.offset += 1;
        }
        if self.offset > start { Ok(()) } else { Err(self.unexpected("a digit")) }
    }

    fn string(&mut self) -> Parsed<Box<str>> {
        self.offset += 1;
        let mut text = String::new();
        let mut piece_start = self.offset;
        loop {
            match self.peek() {
                Some(b'"') => {
                    let piece = &self.source.text[piece_start..self.offset];
                    self.offset += 1;
                    if text.is_empty() {
                        return Ok(piece.into());
                    }
                    text.push_str(piece);
                    return Ok(text.into());
                }
                Some(b'\\') => {
                    text.push_str(&self.source.text[piece_start..self.offset]);
                    text.push(self.escape()?);
                    piece_start = self.offset;
                }
                Some(b) if b >= b' ' => self.offset += 1,
                Some(_) => {
                    return Err(self.error("a control character or a line break inside a string"));
                }
                None => return Err(self.error("the text ends inside a string")),
            }
        }
    }

    fn escape(&mut self) -> Parsed<char> {
        let character = match self.bytes.get(self.offset + 1) {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode_escape(),
            _ => return Err(self.error(r#"after a backslash comes one of " \ / b f n r t u"#)),
        };
        self.offset += 2;
        Ok(character)
    }

    /// `\u0041`, or a pair such as `\ud83d\ude00` for a character beyond the first 65536.
    fn unicode_escape(&mut self) -> Parsed<char> {
        let Some(first) = self.hex_unit() else {
            return Err(self.error(r"\u needs four hexadecimal digits"));
        };
        let mut code = first;
        let mut length = 6;
        if (0xd800..0xdc00).contains(&first) {
            self.offset += 6;
            let second = self.hex_unit();
            self.offset -= 6;
            if let Some(second @ 0xdc00..0xe000) = second {
                code = 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
                length = 12;
            }
        }
        match char::from_u32(code) {
            Some(character) => {
                self.offset += length;
                Ok(character)
            }
            None => Err(self.error("half of a surrogate pair, without the other half")),
        }
    }

    fn hex_unit(&self) -> Option<u32> {
        let escape = self.bytes.get(self.offset..self.offset + 6)?;
        let digits = escape.strip_prefix(br"\u")?;
        digits.iter().try_fold(0, |unit, digit| Some(unit * 16 + char::from(*digit).to_digit(16)?))
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.offset).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let taken = self.peek() == Some(byte);
        self.offset += usize::from(taken);
        taken
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.offset += 1;
        }
    }

    /// The location of the next byte.
    fn here(&mut self) -> Location {
        let Located { offset, at } = &mut self.located;
        while *offset < self.offset {
            match self.bytes[*offset] {
                b'\n' => *at = Location { line: at.line.saturating_add(1), column: 1 },
                // A lone carriage return ends a line too; one before a line feed does not count.
                b'\r' if self.bytes.get(*offset + 1) != Some(&b'\n') => {
                    *at = Location { line: at.line.saturating_add(1), column: 1 };
                }
                b'\r' => {}
                // The byte continues a character that is already counted.
                0x80..0xc0 => {}
                _ => at.column = at.column.saturating_add(1),
            }
            *offset += 1;
        }
        *at
    }

    /// What stands here cannot begin a key or a value. JSON has no use for most characters in such a
    /// place, so whoever wrote one had YAML in mind.
    fn unexpected_start(&mut self, expected: &str) -> Box<SyntaxError> {
        let mut error = self.unexpected(expected);
        error.looks_like_yaml =
            self.peek().is_some_and(|b| !matches!(b, b'{' | b'}' | b'[' | b']' | b',' | b':' | b'"'));
        error
    }

    fn unexpected(&mut self, expected: &str) -> Box<SyntaxError> {
        let next = self.source.text[self.offset..].chars().next();
        let found = next.map_or("the end of the text".to_owned(), |c| format!("{c:?}"));
        self.error(format!("expected {expected}, found {found}"))
    }

    fn error(&mut self, message: impl Into<String>) -> Box<SyntaxError> {
        let problem = Problem::error(message).at(self.source, self.here());
        Box::new(SyntaxError { problem, looks_like_yaml: false })
    }
}

#[cfg(test)]
mod tests;
