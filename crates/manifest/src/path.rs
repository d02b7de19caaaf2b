//! The way from a document to one of its fields: `spec.containers[0].image`.

use std::fmt;

/// One step of a path and the steps before it, linked so that going down costs nothing and only a
/// problem pays for the text.
#[derive(Clone, Copy)]
pub(crate) enum Path<'p> {
    Root(&'p str),
    Key(&'p Path<'p>, &'p str),
    Index(&'p Path<'p>, usize),
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Path::Root(path) => f.write_str(path),
            Path::Index(parent, index) => write!(f, "{parent}[{index}]"),
            Path::Key(parent, key) if !is_plain(key) => write!(f, "{parent}[{key}]"),
            Path::Key(Path::Root(""), key) => f.write_str(key),
            Path::Key(parent, key) => write!(f, "{parent}.{key}"),
        }
    }
}

/// Whether a key can stand between dots. Others (`nvidia.com/gpu`) are put in brackets, as
/// Kubernetes does.
fn is_plain(key: &str) -> bool {
    !key.is_empty() && key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_as_people_write_it() {
        let root = Path::Root("");
        let spec = Path::Key(&root, "spec");
        let containers = Path::Key(&spec, "containers");
        let first = Path::Index(&containers, 0);
        let limits = Path::Key(&first, "limits");
        let gpu = Path::Key(&limits, "nvidia.com/gpu");
        assert_eq!(gpu.to_string(), "spec.containers[0].limits[nvidia.com/gpu]");
        assert_eq!(Path::Index(&root, 3).to_string(), "[3]");
        let given = Path::Root("items[2]");
        assert_eq!(Path::Key(&given, "kind").to_string(), "items[2].kind");
    }
}
