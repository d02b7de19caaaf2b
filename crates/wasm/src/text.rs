//! WebAssembly as text: what people write by hand, without its comments.

/// A text with blanks in the place of its comments, so that lines and columns stay; `None` if a comment has no end.
///
/// The parser reads comments again and again, however deep they are in each other: it never gets to see one.
pub(crate) fn without_comments(text: &[u8]) -> Option<Vec<u8>> {
    let mut plain = text.to_vec();
    let mut at = 0;
    while at < plain.len() {
        let end = match (plain[at], plain.get(at + 1)) {
            (b'"', _) => {
                at = end_of_string(&plain, at);
                continue;
            }
            (b';', Some(b';')) => {
                plain[at..].iter().position(|byte| *byte == b'\n').map_or(plain.len(), |n| at + n)
            }
            (b'(', Some(b';')) => end_of_comment(&plain, at)?,
            _ => {
                at += 1;
                continue;
            }
        };
        plain[at..end].iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
        at = end;
    }
    Some(plain)
}

/// Behind the quote that ends a string, or at the end of the text.
fn end_of_string(text: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < text.len() {
        match text[at] {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    text.len()
}

/// Behind the end of a comment that may hold others.
fn end_of_comment(text: &[u8], start: usize) -> Option<usize> {
    let (mut at, mut depth) = (start, 0usize);
    loop {
        match text.get(at..at + 2)? {
            b"(;" => (depth, at) = (depth + 1, at + 2),
            b";)" if depth == 1 => return Some(at + 2),
            b";)" => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_become_blanks_and_strings_stay() {
        let cases = [
            ("(module) ;; end\n;;\n", Some("(module)       \n  \n")),
            ("(; a (; b ;)\n ;)(module)", Some("            \n   (module)")),
            (r#"(data "(; no ;; \"; ;) comment") ;)"#, Some(r#"(data "(; no ;; \"; ;) comment") ;)"#)),
            (r#"(data "a\\") ;; x"#, Some(r#"(data "a\\")     "#)),
            ("(module) (; (; ;)", None),
            ("(;)", None),
            ("\"open (;", Some("\"open (;")),
            ("(", Some("(")),
        ];
        for (text, expected) in cases {
            let plain = without_comments(text.as_bytes()).map(|plain| String::from_utf8(plain).unwrap());
            assert_eq!(plain.as_deref(), expected, "{text}");
        }
    }
}
