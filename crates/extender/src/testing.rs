//! Certificates for tests of whatever speaks TLS.

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use tokio_rustls::rustls::RootCertStore;

/// Issues certificates that those trust who trust it.
pub struct CertificateAuthority(CertifiedIssuer<'static, KeyPair>);

impl Default for CertificateAuthority {
    fn default() -> Self {
        let mut params = CertificateParams::new([]).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        Self(CertifiedIssuer::self_signed(params, key).expect("a certificate"))
    }
}

impl CertificateAuthority {
    /// Its own certificate, in PEM.
    pub fn pem(&self) -> String {
        self.0.pem()
    }

    /// A certificate for a host, and its key, in PEM. Its subject has this name, and is of these organizations.
    pub fn issue(&self, name: &str, host: &str, organizations: &[&str]) -> (String, String) {
        let mut params = CertificateParams::new([host.to_owned()]).expect("a host's name");
        params.distinguished_name.push(DnType::CommonName, name);
        for organization in organizations {
            params.distinguished_name.push(DnType::OrganizationName, *organization);
        }
        let key = KeyPair::generate().expect("a key");
        (params.signed_by(&key, &self.0).expect("a certificate").pem(), key.serialize_pem())
    }

    /// What trusts it, and nobody else.
    pub fn roots(&self) -> RootCertStore {
        let mut roots = RootCertStore::empty();
        roots.add(self.0.der().clone()).expect("a certificate");
        roots
    }
}
