//! Bytes that a text holds in base64.

use serde::{Deserialize, Deserializer, de::Error};

/// Bytes, kept in the base64 they were written in.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Base64(String);

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

impl Base64 {
    /// Bytes to be written.
    pub fn of(bytes: &[u8]) -> Self {
        Self(encode(bytes))
    }

    /// The base64 text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The bytes.
    pub fn bytes(&self) -> Vec<u8> {
        decode(&self.0).unwrap_or_default()
    }
}

/// Shows no bytes: they may be a secret key.
impl std::fmt::Debug for Base64 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Base64({} characters)", self.0.len())
    }
}

fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let byte = |index: usize| u32::from(group.get(index).copied().unwrap_or_default());
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for index in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * index) & 63) as usize];
            text.push(if index > group.len() { '=' } else { char::from(digit) });
        }
    }
    text
}

fn decode(text: &str) -> Option<Vec<u8>> {
    let text: Vec<u8> = text.bytes().filter(|b| !matches!(b, b'\n' | b'\r')).collect();
    if !text.len().is_multiple_of(4) {
        return None;
    }
    let padding = text.iter().rev().take_while(|b| **b == b'=').count();
    let digits = text.get(..text.len() - padding)?;
    if padding > 2 {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    for group in digits.chunks(4) {
        let mut bits: u32 = 0;
        for index in 0..4 {
            bits = bits << 6 | group.get(index).map_or(Some(0), |digit| value(*digit))?;
        }
        let [_, first, second, third] = bits.to_be_bytes();
        bytes.extend([first, second, third].iter().take(group.len() * 3 / 4));
    }
    Some(bytes)
}

fn value(digit: u8) -> Option<u32> {
    Some(u32::from(match digit {
        b'A'..=b'Z' => digit - b'A',
        b'a'..=b'z' => digit - b'a' + 26,
        b'0'..=b'9' => digit - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    }))
}

impl<'de> Deserialize<'de> for Base64 {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        match decode(&text) {
            Some(_) => Ok(Self(text)),
            None => {
                Err(D::Error::custom("this is not base64\nhint: encode the PEM text with: base64 -w0 FILE"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_base64() {
        for (text, bytes) in [
            ("", Some("")),
            ("Zg==", Some("f")),
            ("Zm8=", Some("fo")),
            ("Zm9v", Some("foo")),
            ("Zm9v\nYmFy\n", Some("foobar")),
            ("Zm9", None),
            ("Zm9-", None),
            ("====", None),
            ("Z===", None),
        ] {
            assert_eq!(decode(text), bytes.map(|b| b.as_bytes().to_vec()), "{text:?}");
        }
    }

    #[test]
    fn writes_base64() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foobar", "Zm9vYmFy"),
            ("~~~?", "fn5+Pw=="),
        ] {
            assert_eq!(encode(bytes.as_bytes()), text, "{bytes:?}");
        }
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(decode(&encode(&all)), Some(all));
    }
}
