//! Texts from outside (answers of web services, messages of plugins and of the API server), cut before anybody keeps them.

use std::borrow::Cow;

/// How much of a text from outside reaches logs, events and conditions.
pub const MAX_FOREIGN_TEXT_BYTES: usize = 1024;

/// A text from outside, or its beginning and how long it was.
pub fn clip(text: &str) -> Cow<'_, str> {
    if text.len() <= MAX_FOREIGN_TEXT_BYTES {
        return Cow::Borrowed(text);
    }
    let begins = &text[..text.floor_char_boundary(MAX_FOREIGN_TEXT_BYTES)];
    Cow::Owned(format!("{begins}… ({} bytes in all)", text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_short_stays_and_what_is_long_is_cut_between_letters() {
        assert!(matches!(clip("short"), Cow::Borrowed("short")));
        let cut = clip(&"ä".repeat(600)).into_owned();
        assert_eq!(cut, format!("{}… (1200 bytes in all)", "ä".repeat(512)));
        let cut = clip(&format!("x{}", "ä".repeat(600))).into_owned();
        assert_eq!(cut, format!("x{}… (1201 bytes in all)", "ä".repeat(511)));
    }
}
