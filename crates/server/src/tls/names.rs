//! Which certificate is shown to whom: by the name that the caller asks for.

use std::{collections::HashMap, sync::Arc};

use tokio_rustls::rustls::{
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};
use x509_cert::{
    Certificate,
    der::Decode,
    ext::pkix::{SubjectAltName, name::GeneralName},
};

/// Certificates by name. A whole name counts for more than a pattern, and names that were given for more than those in
/// certificates.
#[derive(Debug)]
pub(super) struct ByName {
    default: Arc<CertifiedKey>,
    given: HashMap<String, Arc<CertifiedKey>>,
    found: HashMap<String, Arc<CertifiedKey>>,
}

impl ByName {
    pub(super) fn new(default: Arc<CertifiedKey>) -> Self {
        Self { default, given: HashMap::new(), found: HashMap::new() }
    }

    /// Shows this certificate to those who ask for one of the names, or of the names in it if none are given.
    pub(super) fn add(&mut self, certificate: Arc<CertifiedKey>, names: &[String]) {
        let (table, names) = match names {
            [] => (&mut self.found, names_in(&certificate)),
            names => (&mut self.given, names.to_vec()),
        };
        for name in names {
            table.entry(name.to_ascii_lowercase()).or_insert_with(|| certificate.clone());
        }
    }

    fn of(&self, name: &str) -> &Arc<CertifiedKey> {
        let pattern = name.split_once('.').map(|(_, rest)| format!("*.{rest}"));
        let names = [Some(name), pattern.as_deref()].into_iter().flatten();
        let mut found = names.flat_map(|name| [&self.given, &self.found].map(|table| table.get(name)));
        found.find_map(|certificate| certificate).unwrap_or(&self.default)
    }
}

impl ResolvesServerCert for ByName {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let name = hello.server_name().unwrap_or_default().to_ascii_lowercase();
        Some(self.of(&name).clone())
    }
}

/// The DNS names of a certificate; none if they cannot be read.
fn names_in(certificate: &CertifiedKey) -> Vec<String> {
    let parsed = certificate.cert.first().and_then(|der| Certificate::from_der(der).ok());
    let names = parsed.and_then(|parsed| parsed.tbs_certificate.get::<SubjectAltName>().ok().flatten());
    let Some((_, SubjectAltName(names))) = names else { return Vec::new() };
    let dns = names.into_iter().filter_map(|name| match name {
        GeneralName::DnsName(name) => Some(name.to_string()),
        _ => None,
    });
    dns.collect()
}
