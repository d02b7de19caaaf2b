//! How the values of kube-scheduler's flags are written.

use std::path::PathBuf;

use supercargo_server::{NamedCertificate, TlsVersion};

/// A truth value as Go reads it.
pub(crate) fn boolean(text: &str) -> Result<bool, String> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err(format!("{text} is neither true nor false")),
    }
}

/// A version of TLS by Go's name; the older ones are known, and not spoken.
pub(crate) fn tls_version(text: &str) -> Result<MinTlsVersion, String> {
    match text {
        "VersionTLS10" | "VersionTLS11" => Ok(MinTlsVersion { version: TlsVersion::V12, raised: true }),
        "VersionTLS12" => Ok(MinTlsVersion { version: TlsVersion::V12, raised: false }),
        "VersionTLS13" => Ok(MinTlsVersion { version: TlsVersion::V13, raised: false }),
        _ => Err("it is one of VersionTLS10, VersionTLS11, VersionTLS12, VersionTLS13".to_owned()),
    }
}

/// The oldest version of TLS to be spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MinTlsVersion {
    pub(crate) version: TlsVersion,
    /// An older one was asked for.
    pub(crate) raised: bool,
}

/// A certificate with its key, and the names that it is for: `foo.crt,foo.key:*.foo.com,foo.com`.
pub(crate) fn named_certificate(text: &str) -> Result<NamedCertificate, String> {
    let (files, names) = text.split_once(':').unwrap_or((text, ""));
    let (certificate, key) = files
        .split_once(',')
        .filter(|(certificate, key)| !certificate.is_empty() && !key.is_empty() && !key.contains(','))
        .ok_or("it is written like foo.crt,foo.key or foo.crt,foo.key:*.foo.com,foo.com")?;
    let names = names.split(',').map(str::trim).filter(|name| !name.is_empty());
    Ok(NamedCertificate {
        certificate: PathBuf::from(certificate),
        key: PathBuf::from(key),
        names: names.map(str::to_owned).collect(),
    })
}

/// How much one part of the program logs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ModuleVerbosity {
    /// The name of a source file, without `.rs`; `*` and `?` stand for others.
    pub(crate) pattern: String,
    pub(crate) level: u8,
}

/// `pattern=N`
pub(crate) fn module_verbosity(text: &str) -> Result<ModuleVerbosity, String> {
    let wrong = || format!("{text:?} is not written like attempt=5");
    let (pattern, level) = text.split_once('=').ok_or_else(wrong)?;
    let level = level.trim().parse::<u32>().map_err(|_| wrong())?;
    let pattern = pattern.trim();
    if pattern.is_empty() {
        return Err(wrong());
    }
    Ok(ModuleVerbosity { pattern: pattern.to_owned(), level: u8::try_from(level).unwrap_or(u8::MAX) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_may_name_those_it_is_for() {
        let read = |text| named_certificate(text).map(|named| (named.certificate, named.key, named.names));
        let files = || (PathBuf::from("a.crt"), PathBuf::from("a.key"));
        let named = |names: &[&str]| {
            let (certificate, key) = files();
            Ok((certificate, key, names.iter().map(|&name| name.to_owned()).collect()))
        };
        assert_eq!(read("a.crt,a.key"), named(&[]));
        assert_eq!(read("a.crt,a.key:*.foo.com,foo.com"), named(&["*.foo.com", "foo.com"]));
        for wrong in ["a.crt", "a.crt,", "a,b,c:d", ""] {
            assert!(named_certificate(wrong).is_err(), "{wrong}");
        }
    }
}
