//! Names as Kubernetes allows them.

/// Says what is wrong with the name of an extended resource, such as `example.com/gpu`.
pub(crate) fn check_extended_resource(name: &str) -> Result<(), String> {
    if !is_qualified(name) {
        return Err(format!("{name:?} is not the name of a resource"));
    }
    let native = !name.contains('/') || name.contains("kubernetes.io/");
    if native || name.starts_with("requests.") || !is_qualified(&format!("requests.{name}")) {
        return Err(format!("{name:?} is not the name of an extended resource"));
    }
    Ok(())
}

/// Whether this is a name with an optional domain before it.
fn is_qualified(name: &str) -> bool {
    match name.split_once('/') {
        Some((domain, name)) => is_subdomain(domain) && is_label(name),
        None => is_label(name),
    }
}

fn is_label(name: &str) -> bool {
    const MAX_LABEL_BYTES: usize = 63;
    let inner = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    let ends = |b: Option<u8>| b.is_some_and(|b| b.is_ascii_alphanumeric());
    name.len() <= MAX_LABEL_BYTES
        && name.bytes().all(inner)
        && ends(name.bytes().next())
        && ends(name.bytes().next_back())
}

fn is_subdomain(domain: &str) -> bool {
    const MAX_SUBDOMAIN_BYTES: usize = 253;
    let lower = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let part = |part: &str| {
        part.bytes().all(|b| lower(b) || b == b'-')
            && part.bytes().next().is_some_and(lower)
            && part.bytes().next_back().is_some_and(lower)
    };
    domain.len() <= MAX_SUBDOMAIN_BYTES && domain.split('.').all(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_extended_resources() {
        for (name, good) in [
            ("example.com/gpu", true),
            ("example.com/Gpu_1", true),
            ("cpu", false),
            ("kubernetes.io/gpu", false),
            ("sub.kubernetes.io/gpu", false),
            ("requests.example.com/gpu", false),
            ("Example.com/gpu", false),
            ("example.com/", false),
            ("a/b/c", false),
            ("", false),
        ] {
            assert_eq!(check_extended_resource(name).is_ok(), good, "{name:?}");
        }
    }
}
