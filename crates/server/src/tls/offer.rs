//! What TLS is offered: versions, cipher suites, ways to agree on a key, by the names that kube-scheduler's flags have.

use std::fmt;

use tokio_rustls::rustls::{
    CipherSuite, NamedGroup, SupportedCipherSuite, SupportedProtocolVersion,
    crypto::{CryptoProvider, SupportedKxGroup, ring},
    version::{TLS12, TLS13},
};

/// Suites that Go knows and we do not speak: no forward secrecy, CBC, RC4 or 3DES.
const NOT_SPOKEN: &[&str] = &[
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_RC4_128_SHA",
    "TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_RC4_128_SHA",
    "TLS_RSA_WITH_3DES_EDE_CBC_SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA256",
    "TLS_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_RSA_WITH_AES_256_CBC_SHA",
    "TLS_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_RSA_WITH_RC4_128_SHA",
];

/// Go's numbers for ways to agree on a key.
const CURVES: &[(i32, Option<NamedGroup>)] = &[
    (23, Some(NamedGroup::secp256r1)),
    (24, Some(NamedGroup::secp384r1)),
    (25, None),
    (29, Some(NamedGroup::X25519)),
    (4588, None),
];

/// A version of TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsVersion {
    /// `VersionTLS12`
    V12,
    /// `VersionTLS13`
    V13,
}

impl TlsVersion {
    pub(super) fn and_newer(self) -> Vec<&'static SupportedProtocolVersion> {
        match self {
            Self::V12 => vec![&TLS13, &TLS12],
            Self::V13 => vec![&TLS13],
        }
    }
}

/// A name or number that stands for nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownOffer(String);

impl fmt::Display for UnknownOffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UnknownOffer {}

/// The cipher suites that are offered; all that are safe by default. Those of TLS 1.3 always are, as in Go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CipherSuites(Option<Vec<CipherSuite>>);

impl CipherSuites {
    /// The suites of these names, and the names of those that kube-scheduler would offer and we do not speak.
    pub fn named(names: &[String]) -> Result<(Self, Vec<String>), UnknownOffer> {
        if names.is_empty() {
            return Ok((Self::default(), Vec::new()));
        }
        let known = ring::ALL_CIPHER_SUITES;
        let (mut suites, mut not_spoken) = (Vec::new(), Vec::new());
        for name in names {
            // Two suites of Go have a second, older name.
            let whole = if name.ends_with("_POLY1305") { format!("{name}_SHA256") } else { name.clone() };
            match known.iter().find(|suite| go_name(suite) == whole) {
                Some(suite) => suites.push(suite.suite()),
                None if NOT_SPOKEN.contains(&&**name) => not_spoken.push(name.clone()),
                None => return Err(UnknownOffer(format!("there is no cipher suite {name:?}"))),
            }
        }
        Ok((Self(Some(suites)), not_spoken))
    }
}

/// rustls marks suites of TLS 1.3 in their names, nobody else does.
fn go_name(suite: &SupportedCipherSuite) -> String {
    format!("{:?}", suite.suite()).replacen("TLS13_", "TLS_", 1)
}

/// The ways to agree on a key that are offered; all that there are by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyExchanges(Option<Vec<NamedGroup>>);

impl KeyExchanges {
    /// Those of Go's numbers (`crypto/tls.CurveID`), and the numbers of those that we do not speak.
    pub fn numbered(numbers: &[i32]) -> Result<(Self, Vec<i32>), UnknownOffer> {
        if numbers.is_empty() {
            return Ok((Self::default(), Vec::new()));
        }
        let (mut groups, mut not_spoken) = (Vec::new(), Vec::new());
        for &number in numbers {
            match CURVES.iter().find(|(curve, _)| *curve == number) {
                Some((_, Some(group))) => groups.push(*group),
                Some((_, None)) => not_spoken.push(number),
                None => return Err(UnknownOffer(format!("there is no key exchange of number {number}"))),
            }
        }
        if groups.is_empty() {
            return Err(UnknownOffer("none of these key exchanges is spoken here: 23, 24 and 29 are".into()));
        }
        Ok((Self(Some(groups)), not_spoken))
    }
}

/// The cryptography behind what is offered.
pub(super) fn provider(suites: CipherSuites, exchanges: KeyExchanges) -> CryptoProvider {
    let mut provider = ring::default_provider();
    if let CipherSuites(Some(wanted)) = suites {
        let offered =
            |suite: &SupportedCipherSuite| suite.tls13().is_some() || wanted.contains(&suite.suite());
        provider.cipher_suites.retain(offered);
    }
    if let KeyExchanges(Some(wanted)) = exchanges {
        provider.kx_groups.retain(|group: &&'static dyn SupportedKxGroup| wanted.contains(&group.name()));
    }
    provider
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    #[test]
    fn suites_of_tls_1_2_are_limited_to_those_named() {
        let wanted = names(&["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "TLS_RSA_WITH_AES_128_CBC_SHA"]);
        let (suites, not_spoken) = CipherSuites::named(&wanted).unwrap();
        assert_eq!(not_spoken, ["TLS_RSA_WITH_AES_128_CBC_SHA"]);
        let offered = provider(suites, KeyExchanges::default()).cipher_suites;
        let older: Vec<_> = offered.iter().filter(|suite| suite.tls13().is_none()).map(go_name).collect();
        assert_eq!(older, ["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"]);
        assert!(offered.len() > 1, "TLS 1.3 stays");
    }

    #[test]
    fn the_older_names_of_chacha_are_known_and_nonsense_is_not() {
        let both = names(&[
            "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305",
            "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
            "TLS_AES_128_GCM_SHA256",
        ]);
        assert_eq!(CipherSuites::named(&both).unwrap().1, [""; 0]);
        assert!(CipherSuites::named(&names(&["TLS_NONSENSE"])).is_err());
    }

    #[test]
    fn key_exchanges_go_by_gos_numbers() {
        let (exchanges, not_spoken) = KeyExchanges::numbered(&[23, 4588]).unwrap();
        assert_eq!(not_spoken, [4588]);
        assert_eq!(provider(CipherSuites::default(), exchanges).kx_groups.len(), 1);
        assert!(KeyExchanges::numbered(&[1]).is_err());
        assert!(KeyExchanges::numbered(&[25]).is_err(), "nothing would be left");
    }
}
