//! Finds the objects of a JSON text in one look over its bytes, so that each can be read from where it stands.
//!
//! Whatever is out of the ordinary is left to the located reader, which can tell where it is: a mistake in the syntax, a key
//! that is written twice, an object without a kind. So are escapes that two readers might read differently.

use std::collections::HashSet;

use supercargo_manifest::MAX_DEPTH;

/// An object of a text.
pub(super) struct Found<'t> {
    /// The object.
    pub(super) text: &'t str,
    pub(super) kind: &'t str,
    pub(super) group: &'t str,
    /// The line that its name stands on.
    pub(super) line: usize,
}

/// The objects of a JSON text, also those of its lists, in order; `None` if the text is out of the ordinary.
pub(super) fn objects(text: &str) -> Option<Vec<Found<'_>>> {
    let mut scan = Scan { text, bytes: text.as_bytes(), offset: 0, keys: Vec::new() };
    let mut lines = Lines { text, offset: 0, line: 1 };
    let mut found = Vec::new();
    if text.starts_with('\u{feff}') {
        scan.offset = '\u{feff}'.len_utf8();
    }
    scan.skip_space();
    while scan.peek().is_some() {
        let document = scan.document(1)?;
        collect(document, &mut lines, &mut found)?;
        scan.skip_space();
    }
    Some(found)
}

fn collect<'t>(document: Document<'t>, lines: &mut Lines<'t>, found: &mut Vec<Found<'t>>) -> Option<()> {
    let (kind, group) = (document.kind?, group(document.api_version?));
    let Some(items) = document.items.filter(|_| kind.ends_with("List")) else {
        found.push(Found { text: document.text, kind, group, line: lines.at(document.name?) });
        return Some(());
    };
    let item_kind = kind.strip_suffix("List").filter(|kind| !kind.is_empty());
    for item in items {
        let (kind, group) = match (item.kind, item_kind) {
            // A list of one kind need not repeat it on every item.
            (None, Some(of_all)) => (of_all, group),
            (own, _) => (own?, self::group(item.api_version?)),
        };
        if kind.ends_with("List") && item.items.is_some() {
            return None;
        }
        found.push(Found { text: item.text, kind, group, line: lines.at(item.name?) });
    }
    Some(())
}

fn group(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

/// An object, or a list of them.
#[derive(Default)]
struct Document<'t> {
    text: &'t str,
    api_version: Option<&'t str>,
    kind: Option<&'t str>,
    /// Where its name begins.
    name: Option<usize>,
    items: Option<Vec<Document<'t>>>,
}

/// Counts lines, once over the whole text.
struct Lines<'t> {
    text: &'t str,
    offset: usize,
    line: usize,
}

impl Lines<'_> {
    fn at(&mut self, offset: usize) -> usize {
        let passed = &self.text.as_bytes()[self.offset.min(offset)..offset];
        self.line += passed.iter().filter(|byte| **byte == b'\n').count();
        self.offset = self.offset.max(offset);
        self.line
    }
}

struct Scan<'t> {
    text: &'t str,
    bytes: &'t [u8],
    offset: usize,
    /// The keys of the maps that are open, the innermost last.
    keys: Vec<&'t [u8]>,
}

/// Up to here keys are compared one by one.
const SMALL_MAP_ENTRIES: usize = 16;

impl<'t> Scan<'t> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.offset).copied()
    }

    fn take(&mut self, byte: u8) -> Option<()> {
        (self.peek() == Some(byte)).then(|| self.offset += 1)
    }

    fn skip_space(&mut self) {
        while let Some(b' ' | b'\n' | b'\t' | b'\r') = self.peek() {
            self.offset += 1;
        }
    }

    /// An object whose head is of interest.
    fn document(&mut self, depth: usize) -> Option<Document<'t>> {
        let begin = self.offset;
        let mut document = Document::default();
        self.map(depth, |scan, key| {
            match key {
                b"apiVersion" => document.api_version = Some(scan.text_value()?),
                b"kind" => document.kind = Some(scan.text_value()?),
                b"metadata" if scan.peek() == Some(b'{') => {
                    scan.map(depth + 1, |scan, key| {
                        if key == b"name" {
                            document.name = Some(scan.offset);
                        }
                        scan.value(depth + 1)
                    })?;
                }
                b"items" if scan.peek() == Some(b'[') => document.items = Some(scan.items(depth + 1)?),
                _ => scan.value(depth)?,
            }
            Some(())
        })?;
        document.text = &self.text[begin..self.offset];
        Some(document)
    }

    fn items(&mut self, depth: usize) -> Option<Vec<Document<'t>>> {
        let mut items = Vec::new();
        self.list(depth, |scan| {
            items.push(scan.document(depth + 1)?);
            Some(())
        })?;
        Some(items)
    }

    fn value(&mut self, depth: usize) -> Option<()> {
        match self.peek()? {
            b'{' => self.map(depth + 1, |scan, _| scan.value(depth + 1)),
            b'[' => self.list(depth + 1, |scan| scan.value(depth + 1)),
            b'"' => self.string().map(drop),
            // Whoever reads the object looks closer.
            b'-' | b'0'..=b'9' | b'a'..=b'z' => {
                while let Some(b'-' | b'+' | b'.' | b'0'..=b'9' | b'a'..=b'z' | b'E') = self.peek() {
                    self.offset += 1;
                }
                Some(())
            }
            _ => None,
        }
    }

    fn map(&mut self, depth: usize, mut value: impl FnMut(&mut Self, &'t [u8]) -> Option<()>) -> Option<()> {
        if depth > MAX_DEPTH {
            return None;
        }
        self.take(b'{')?;
        self.skip_space();
        if self.take(b'}').is_some() {
            return Some(());
        }
        let first = self.keys.len();
        let mut many = HashSet::new();
        loop {
            let key = self.string()?.as_bytes();
            if key.contains(&b'\\') || self.is_known(first, key, &mut many) {
                return None;
            }
            self.skip_space();
            self.take(b':')?;
            self.skip_space();
            value(self, key)?;
            self.skip_space();
            if self.take(b'}').is_some() {
                self.keys.truncate(first);
                return Some(());
            }
            self.take(b',')?;
            self.skip_space();
        }
    }

    /// Whether the map whose keys begin at `first` has a key already. It has it from now on.
    fn is_known(&mut self, first: usize, key: &'t [u8], many: &mut HashSet<&'t [u8]>) -> bool {
        let keys = &self.keys[first..];
        let known = if keys.len() <= SMALL_MAP_ENTRIES {
            keys.contains(&key)
        } else {
            if many.is_empty() {
                many.extend(keys);
            }
            !many.insert(key)
        };
        self.keys.push(key);
        known
    }

    fn list(&mut self, depth: usize, mut item: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        if depth > MAX_DEPTH {
            return None;
        }
        self.take(b'[')?;
        self.skip_space();
        if self.take(b']').is_some() {
            return Some(());
        }
        loop {
            item(self)?;
            self.skip_space();
            if self.take(b']').is_some() {
                return Some(());
            }
            self.take(b',')?;
            self.skip_space();
        }
    }

    fn text_value(&mut self) -> Option<&'t str> {
        self.string().filter(|text| !text.contains('\\'))
    }

    /// A string as it is written.
    fn string(&mut self) -> Option<&'t str> {
        self.take(b'"')?;
        let begin = self.offset;
        loop {
            match self.peek()? {
                b'"' => {
                    self.offset += 1;
                    return Some(&self.text[begin..self.offset - 1]);
                }
                b'\\' => {
                    // Half of a pair may be missing.
                    if let [b'u', b'd' | b'D', ..] = self.bytes.get(self.offset + 1..)? {
                        return None;
                    }
                    self.offset += 2;
                }
                _ => self.offset += 1,
            }
        }
    }
}
