//! How TLS is spoken as a client: to an extender as kube-scheduler does it, by the same settings.

use std::{fmt, sync::Arc};

use supercargo_config::{Extender, ExtenderTls};
use tokio_rustls::rustls::{
    self, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime, pem::PemObject},
};

/// An extender cannot be called as it is configured.
#[derive(Debug, PartialEq, Eq)]
pub struct Unusable {
    /// What is wrong, with the extender's name.
    pub what: String,
    /// What to do about it.
    pub hint: String,
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\nhint: {}", self.what, self.hint)
    }
}

impl std::error::Error for Unusable {}

/// Whose certificates count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Anybody's.
    Anybody,
    /// Nobody's: TLS is not spoken.
    Nobody,
    /// Of those that the system's authorities vouch for.
    System,
    /// Of those that these authorities vouch for, in PEM.
    Authorities(Vec<u8>),
}

/// A certificate and its key, in PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct Identity {
    /// The certificate, and those between it and its authority.
    pub certificate: Vec<u8>,
    /// Its key.
    pub key: Vec<u8>,
}

/// Shows nothing: the key is a secret.
impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity").finish_non_exhaustive()
    }
}

/// What cannot be made use of, and why.
#[derive(Debug, PartialEq, Eq)]
pub enum TlsError {
    /// The authorities.
    Trust(String),
    /// The client's own certificate or key.
    Identity(String),
}

impl TlsError {
    /// What is wrong.
    pub fn what(self) -> String {
        match self {
            Self::Trust(what) | Self::Identity(what) => what,
        }
    }
}

/// TLS as a client: whom to trust, and what to show.
///
/// # Errors
///
/// If a text is no PEM, or the key does not belong to the certificate.
pub fn client(trust: &Trust, identity: Option<&Identity>) -> Result<ClientConfig, TlsError> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| TlsError::Trust(error.to_string()))?;
    let builder = match trust {
        Trust::Anybody => {
            builder.dangerous().with_custom_certificate_verifier(Arc::new(TrustsAnybody(provider)))
        }
        Trust::Nobody => builder.with_root_certificates(RootCertStore::empty()),
        Trust::System => builder.with_root_certificates(system_authorities()),
        Trust::Authorities(pem) => builder.with_root_certificates(authorities(pem).map_err(TlsError::Trust)?),
    };
    match identity {
        None => Ok(builder.with_no_client_auth()),
        Some(identity) => {
            let (chain, key) = pair(identity).map_err(TlsError::Identity)?;
            let unfit = |error: rustls::Error| {
                TlsError::Identity(format!("the client's key does not fit its certificate: {error}"))
            };
            builder.with_client_auth_cert(chain, key).map_err(unfit)
        }
    }
}

/// TLS as the extender's settings want it.
pub(crate) fn configure(extender: &Extender) -> Result<ClientConfig, Unusable> {
    let unusable = |what: String, hint: &str| Unusable {
        what: format!("extender {}: {what}", extender.name()),
        hint: hint.to_owned(),
    };
    const GIVE_AUTHORITIES: &str = "give the authorities in PEM, by caFile or caData";
    const GIVE_BOTH: &str = "give both in PEM: certFile or certData, and keyFile or keyData";
    let settings = extender.tls_config.clone().unwrap_or_default();
    let authorities = material("caFile", &settings.ca_file, &settings.ca_data.bytes())
        .map_err(|what| unusable(what, GIVE_AUTHORITIES))?;
    if settings.insecure && authorities.is_some() {
        let what = "tlsConfig has authorities to trust, and is insecure".to_owned();
        return Err(unusable(what, "remove insecure, or caFile and caData"));
    }
    let trust = match authorities {
        Some(pem) => Trust::Authorities(pem),
        // As kube-scheduler has it: HTTPS without an authority trusts anybody.
        None if settings.insecure || extender.enable_https => Trust::Anybody,
        None => Trust::System,
    };
    let identity = identity(&settings).map_err(|what| unusable(what, GIVE_BOTH))?;
    client(&trust, identity.as_ref()).map_err(|fault| match fault {
        TlsError::Trust(what) => unusable(what, GIVE_AUTHORITIES),
        TlsError::Identity(what) => unusable(what, GIVE_BOTH),
    })
}

/// The data itself goes before a file.
fn material(field: &str, file: &str, data: &[u8]) -> Result<Option<Vec<u8>>, String> {
    match (data.is_empty(), file.is_empty()) {
        (false, _) => Ok(Some(data.to_vec())),
        (true, false) => {
            std::fs::read(file).map(Some).map_err(|error| format!("{field} {file} cannot be read: {error}"))
        }
        (true, true) => Ok(None),
    }
}

fn identity(settings: &ExtenderTls) -> Result<Option<Identity>, String> {
    let certificate = material("certFile", &settings.cert_file, &settings.cert_data.bytes())?;
    let key = material("keyFile", &settings.key_file, &settings.key_data.bytes())?;
    match (certificate, key) {
        (None, None) => Ok(None),
        (Some(certificate), Some(key)) => Ok(Some(Identity { certificate, key })),
        (Some(_), None) => Err("the client has a certificate and no key".to_owned()),
        (None, Some(_)) => Err("the client has a key and no certificate".to_owned()),
    }
}

fn system_authorities() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
}

fn authorities(pem: &[u8]) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(pem)? {
        roots.add(certificate).map_err(|error| format!("an authority is no certificate: {error}"))?;
    }
    if roots.is_empty() {
        return Err("there is no certificate among the authorities".to_owned());
    }
    Ok(roots)
}

fn pair(identity: &Identity) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), String> {
    let key = PrivateKeyDer::from_pem_slice(&identity.key)
        .map_err(|error| format!("the client's key cannot be read: {error}"))?;
    let chain = certificates(&identity.certificate)?;
    if chain.is_empty() {
        return Err("the client's certificate is no PEM".to_owned());
    }
    Ok((chain, key))
}

fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    CertificateDer::pem_slice_iter(pem)
        .collect::<Result<_, _>>()
        .map_err(|error| format!("a certificate cannot be read: {error}"))
}

/// Asks for no name and no authority, as an operator wanted it. That the server has the key to what it shows is still
/// checked.
#[derive(Debug)]
pub struct TrustsAnybody(pub Arc<CryptoProvider>);

impl ServerCertVerifier for TrustsAnybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_used_is_told_with_the_extender() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path.display().to_string()
        };
        let pair = rcgen::generate_simple_self_signed(["extender".to_owned()]).unwrap();
        let certificate = || file("cert", &pair.cert.pem());
        let key = || file("key", &pair.signing_key.serialize_pem());
        let tls = |tls: ExtenderTls| Extender {
            url_prefix: "https://x".to_owned(),
            tls_config: Some(tls),
            ..Extender::default()
        };
        let none = ExtenderTls::default;
        let cases = [
            (ExtenderTls { ca_file: certificate(), ..none() }, None),
            (ExtenderTls { cert_file: certificate(), key_file: key(), insecure: true, ..none() }, None),
            (
                ExtenderTls { ca_file: certificate(), insecure: true, ..none() },
                Some("tlsConfig has authorities to trust, and is insecure"),
            ),
            (
                ExtenderTls { cert_file: certificate(), ..none() },
                Some("the client has a certificate and no key"),
            ),
            (ExtenderTls { key_file: key(), ..none() }, Some("the client has a key and no certificate")),
            (
                ExtenderTls { ca_file: file("nothing", "nothing"), ..none() },
                Some("there is no certificate among the authorities"),
            ),
            (
                ExtenderTls { ca_file: "/nowhere/ca".to_owned(), ..none() },
                Some("caFile /nowhere/ca cannot be read: No such file or directory (os error 2)"),
            ),
        ];
        for (settings, expected) in cases {
            let found = configure(&tls(settings)).err().map(|unusable| unusable.what);
            assert_eq!(found, expected.map(|what| format!("extender https://x: {what}")));
        }
    }
}
