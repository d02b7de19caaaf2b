//! A text becomes tokens.

use crate::issues::Issues;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Token {
    Equals,
    NotEquals,
    In,
    Less,
    LessEquals,
    GreaterEquals,
    Greater,
    And,
    Or,
    OpenBracket,
    CloseBracket,
    OpenBrace,
    CloseBrace,
    OpenParen,
    CloseParen,
    Dot,
    Comma,
    Minus,
    Not,
    Question,
    Colon,
    Plus,
    Star,
    Slash,
    Percent,
    True,
    False,
    Null,
    Float,
    Int,
    Uint,
    Text,
    Bytes,
    Ident,
    EscapedIdent,
    End,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Lexeme<'t> {
    pub(crate) token: Token,
    pub(crate) text: &'t str,
    /// In characters from the beginning of the text.
    pub(crate) offset: usize,
    /// In bytes.
    pub(crate) at: usize,
}

const SYMBOLS: &[(&str, Token)] = &[
    ("==", Token::Equals),
    ("!=", Token::NotEquals),
    ("<=", Token::LessEquals),
    (">=", Token::GreaterEquals),
    ("&&", Token::And),
    ("||", Token::Or),
    ("<", Token::Less),
    (">", Token::Greater),
    ("[", Token::OpenBracket),
    ("]", Token::CloseBracket),
    ("{", Token::OpenBrace),
    ("}", Token::CloseBrace),
    ("(", Token::OpenParen),
    (")", Token::CloseParen),
    (".", Token::Dot),
    (",", Token::Comma),
    ("-", Token::Minus),
    ("!", Token::Not),
    ("?", Token::Question),
    (":", Token::Colon),
    ("+", Token::Plus),
    ("*", Token::Star),
    ("/", Token::Slash),
    ("%", Token::Percent),
];

/// All tokens, the last of which is the end. What is none is reported and left out.
pub(crate) fn tokens<'t>(text: &'t str, issues: &mut Issues) -> Vec<Lexeme<'t>> {
    let mut found = Vec::new();
    let (mut at, mut offset) = (0, 0);
    while at < text.len() {
        let rest = &text[at..];
        let length = match next(rest) {
            Next::Hidden(length) => length,
            Next::Token(token, length) => {
                found.push(Lexeme { token, text: &rest[..length], offset, at });
                length
            }
            Next::Unknown(length) => {
                let shown = rest[..length].replace('\n', "\\n").replace('\r', "\\r").replace('\t', "\\t");
                issues.report(offset, format!("Syntax error: token recognition error at: '{shown}'"));
                length
            }
        };
        offset += rest[..length].chars().count();
        at += length;
    }
    found.push(Lexeme { token: Token::End, text: "<EOF>", offset, at });
    found
}

enum Next {
    Hidden(usize),
    Token(Token, usize),
    /// With the character at which it became clear that it is no token.
    Unknown(usize),
}

fn next(rest: &str) -> Next {
    let bytes = rest.as_bytes();
    let run = |holds: fn(&u8) -> bool| bytes.iter().take_while(|byte| holds(byte)).count();
    if let spaces @ 1.. = run(|byte| b"\t \r\n\x0c".contains(byte)) {
        return Next::Hidden(spaces);
    }
    if rest.starts_with("//") {
        return Next::Hidden(rest.find('\n').unwrap_or(rest.len()));
    }
    if let Some(length) = number(bytes) {
        return length;
    }
    if let Some(found) = quoted(rest) {
        return found;
    }
    if bytes[0].is_ascii_alphabetic() || bytes[0] == b'_' {
        let length = run(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
        let token = match &rest[..length] {
            "in" => Token::In,
            "true" => Token::True,
            "false" => Token::False,
            "null" => Token::Null,
            _ => Token::Ident,
        };
        return Next::Token(token, length);
    }
    if bytes[0] == b'`' {
        return escaped_ident(rest);
    }
    for (symbol, token) in SYMBOLS {
        if rest.starts_with(symbol) {
            return Next::Token(*token, symbol.len());
        }
    }
    // The beginning of a symbol of two characters is told with the character that came instead of the second.
    let known = usize::from(b"=&|".contains(&bytes[0]));
    Next::Unknown(up_to(rest, known))
}

/// The bytes of the text up to and with the character behind the first `characters`.
fn up_to(rest: &str, characters: usize) -> usize {
    rest.char_indices().nth(characters + 1).map_or(rest.len(), |(at, _)| at)
}

fn escaped_ident(rest: &str) -> Next {
    let inner = |byte: &u8| byte.is_ascii_alphanumeric() || b"_.-/ ".contains(byte);
    let length = rest.bytes().skip(1).take_while(|byte| inner(byte)).count();
    match rest.as_bytes().get(length + 1) {
        Some(b'`') if length > 0 => Next::Token(Token::EscapedIdent, length + 2),
        _ => Next::Unknown(up_to(rest, length + 1)),
    }
}

fn number(bytes: &[u8]) -> Option<Next> {
    let digits =
        |from: usize| bytes[from.min(bytes.len())..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let unsigned = |end: usize| matches!(bytes.get(end), Some(b'u' | b'U'));
    if bytes.starts_with(b"0x") {
        let hex = bytes[2..].iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
        if hex > 0 {
            let end = 2 + hex;
            return Some(match unsigned(end) {
                true => Next::Token(Token::Uint, end + 1),
                false => Next::Token(Token::Int, end),
            });
        }
    }
    let whole = digits(0);
    let exponent = |end: usize| {
        if !matches!(bytes.get(end), Some(b'e' | b'E')) {
            return None;
        }
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        match digits(end + 1 + sign) {
            0 => None,
            found => Some(end + 1 + sign + found),
        }
    };
    if bytes.get(whole) == Some(&b'.')
        && let fraction @ 1.. = digits(whole + 1)
    {
        let end = whole + 1 + fraction;
        return Some(Next::Token(Token::Float, exponent(end).unwrap_or(end)));
    }
    if whole == 0 {
        return None;
    }
    Some(match exponent(whole) {
        Some(end) => Next::Token(Token::Float, end),
        None if unsigned(whole) => Next::Token(Token::Uint, whole + 1),
        None => Next::Token(Token::Int, whole),
    })
}

/// A string or bytes, or what begins like one.
fn quoted(rest: &str) -> Option<Next> {
    let bytes = rest.as_bytes();
    let mut prefix = 0;
    let mut token = Token::Text;
    let mut raw = false;
    if matches!(bytes.first(), Some(b'b' | b'B')) {
        token = Token::Bytes;
        prefix += 1;
    }
    if matches!(bytes.get(prefix), Some(b'r' | b'R')) {
        raw = true;
        prefix += 1;
    }
    let quote = *bytes.get(prefix).filter(|byte| matches!(byte, b'"' | b'\''))?;
    let triple = bytes[prefix..].starts_with(&[quote; 3]);
    if triple && let Ok(end) = body(rest, prefix + 3, quote, true, raw) {
        return Some(Next::Token(token, end));
    }
    // `"""` that never ends is an empty string and the beginning of another.
    match body(rest, prefix + 1, quote, false, raw) {
        Ok(end) => Some(Next::Token(token, end)),
        // A name that happens to stand before a quote.
        Err(_) if prefix > 0 => None,
        Err(failed) => {
            Some(Next::Unknown(rest[failed..].chars().next().map_or(failed, |at| failed + at.len_utf8())))
        }
    }
}

/// The end behind the closing quotes, or where there can be none any more.
fn body(rest: &str, from: usize, quote: u8, triple: bool, raw: bool) -> Result<usize, usize> {
    let bytes = rest.as_bytes();
    let mut at = from;
    while at < bytes.len() {
        let byte = bytes[at];
        if byte == quote && (!triple || bytes[at..].starts_with(&[quote; 3])) {
            return Ok(at + if triple { 3 } else { 1 });
        }
        match byte {
            b'\n' | b'\r' if !triple => return Err(at),
            b'\\' if !raw => at = escape(bytes, at)?,
            _ => at += 1,
        }
    }
    Err(rest.len())
}

/// The end of the escape sequence that begins here, or where it fails.
fn escape(bytes: &[u8], at: usize) -> Result<usize, usize> {
    let hex = |count: usize| {
        let digits = bytes[at + 2..].iter().take(count).take_while(|byte| byte.is_ascii_hexdigit()).count();
        if digits == count { Ok(at + 2 + count) } else { Err(at + 2 + digits) }
    };
    match bytes.get(at + 1) {
        Some(b'a' | b'b' | b'f' | b'n' | b'r' | b't' | b'v' | b'"' | b'\'' | b'\\' | b'?' | b'`') => {
            Ok(at + 2)
        }
        Some(b'x' | b'X') => hex(2),
        Some(b'u') => hex(4),
        Some(b'U') => hex(8),
        Some(b'0'..=b'3') => {
            let octal = |at: usize| matches!(bytes.get(at), Some(b'0'..=b'7'));
            match (octal(at + 2), octal(at + 3)) {
                (true, true) => Ok(at + 4),
                (true, false) => Err(at + 3),
                (false, _) => Err(at + 2),
            }
        }
        _ => Err(at + 1),
    }
}
