//! The known name that somebody probably meant.

/// The candidate closest to `name`, if one is close enough to be a slip of the fingers.
///
/// Names that differ only in case are always close; otherwise about one edit for every three
/// characters is allowed, where swapping two neighbours counts as one.
///
/// ```
/// use supercargo_manifest::nearest;
///
/// assert_eq!(nearest("nodeselector", ["nodeName", "nodeSelector"]), Some("nodeSelector"));
/// assert_eq!(nearest("imagePullPolicy", ["nodeName", "nodeSelector"]), None);
/// ```
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Nobody misspells a name this long, and the distance costs the product of both lengths.
    const LONGEST_NAME_CHARS: usize = 100;
    let lower: Vec<char> = name.to_lowercase().chars().take(LONGEST_NAME_CHARS + 1).collect();
    if lower.is_empty() || lower.len() > LONGEST_NAME_CHARS {
        return None;
    }
    let allowed = (lower.len() / 3).clamp(1, 4);
    candidates
        .into_iter()
        .map(|candidate| {
            let other: Vec<char> = candidate.to_lowercase().chars().take(LONGEST_NAME_CHARS + 1).collect();
            let too_far_apart = other.len().abs_diff(lower.len()) > allowed;
            (if too_far_apart { usize::MAX } else { distance(&lower, &other) }, candidate)
        })
        .filter(|(distance, candidate)| {
            // A one-letter name is one edit from every other: only its case can be a slip.
            *distance == 0 || *distance <= allowed && *distance < candidate.chars().count()
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before_previous = vec![0; b.len() + 1];
    let mut previous: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut current = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let replaced = previous[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            current[j] = replaced.min(previous[j] + 1).min(current[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                current[j] = current[j].min(before_previous[j - 2] + 1);
            }
        }
        before_previous = std::mem::replace(&mut previous, current);
    }
    previous[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_was_meant() {
        let fields = ["key", "operator", "effect", "tolerationSeconds", "topologyKey", "x"];
        for (name, expected) in [
            ("key", Some("key")),
            ("KEY", Some("key")),
            ("kye", Some("key")),
            ("keys", Some("key")),
            ("efect", Some("effect")),
            ("oprator", Some("operator")),
            ("tolerationseconds", Some("tolerationSeconds")),
            ("tolerationSecs", Some("tolerationSeconds")),
            ("topology-key", Some("topologyKey")),
            ("X", Some("x")),
            ("y", None),
            ("", None),
            ("image", None),
            ("whenUnsatisfiable", None),
        ] {
            assert_eq!(nearest(name, fields), expected, "{name:?}");
        }
        assert_eq!(nearest(&"k".repeat(10_000), fields), None);
    }
}
