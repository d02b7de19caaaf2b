//! TLS: which certificate is shown, which client certificates are believed, and how both change while the process runs.

mod client;
mod names;
mod offer;
mod pair;

pub(crate) use client::user_of;
pub use offer::{CipherSuites, KeyExchanges, TlsVersion, UnknownOffer};

use std::{
    net::IpAddr,
    path::PathBuf,
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        self, RootCertStore, ServerConfig, crypto::CryptoProvider, server::WebPkiClientVerifier,
        sign::CertifiedKey,
    },
};
use tracing::{info, warn};

use crate::error::ServeError;
use names::ByName;
use pair::{Pair, read, read_certificates};

/// How connections are made safe.
#[derive(Clone, Debug)]
pub struct TlsOptions {
    /// What is shown to callers.
    pub certificate: Certificate,
    /// Whose client certificates are believed: CN is the user, O the groups. Without it none is asked for.
    pub client_ca_file: Option<PathBuf>,
    /// `--tls-sni-cert-key`: certificates for callers who ask for certain names.
    pub named_certificates: Vec<NamedCertificate>,
    /// The oldest TLS that is spoken.
    pub min_version: TlsVersion,
    /// The cipher suites that are offered.
    pub cipher_suites: CipherSuites,
    /// The ways to agree on a key that are offered.
    pub key_exchanges: KeyExchanges,
    /// Whether HTTP/2 is offered.
    pub http2: bool,
    /// How often the files are looked at.
    pub reload_every: Duration,
}

impl Default for TlsOptions {
    fn default() -> Self {
        Self {
            certificate: Certificate::SelfSigned { directory: None },
            client_ca_file: None,
            named_certificates: Vec::new(),
            min_version: TlsVersion::V12,
            cipher_suites: CipherSuites::default(),
            key_exchanges: KeyExchanges::default(),
            http2: true,
            reload_every: Duration::from_secs(10),
        }
    }
}

/// Where the server's certificate comes from.
#[derive(Clone, Debug)]
pub enum Certificate {
    /// From files in PEM: the certificate, then those that vouch for it.
    Files {
        /// `--tls-cert-file`
        certificate: PathBuf,
        /// `--tls-private-key-file`
        key: PathBuf,
    },
    /// Made at the start, for `localhost` and the address that is served.
    SelfSigned {
        /// `--cert-dir`: kept there, as `kube-scheduler.crt` and `kube-scheduler.key`, and used again if already there.
        directory: Option<PathBuf>,
    },
}

/// A certificate for callers who ask for certain names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedCertificate {
    /// The certificate's file.
    pub certificate: PathBuf,
    /// Its key's file.
    pub key: PathBuf,
    /// The names, also with `*` for their first part; without any, those in the certificate.
    pub names: Vec<String>,
}

/// What callers are met with, as of now.
pub(crate) struct Tls {
    options: TlsOptions,
    pairs: Pairs,
    current: RwLock<Current>,
}

/// The certificate for everybody, and those for certain names.
struct Pairs {
    default: Pair,
    named: Vec<(Pair, Vec<String>)>,
}

struct Current {
    config: Arc<ServerConfig>,
    /// What the files said, to see when they say something else. Their dates say less: a mounted secret is swapped whole.
    texts: Texts,
}

#[derive(PartialEq, Eq)]
struct Texts {
    default: (Vec<u8>, Vec<u8>),
    named: Vec<(Vec<u8>, Vec<u8>)>,
    client_ca: Option<Vec<u8>>,
}

impl Tls {
    pub(crate) fn new(options: TlsOptions, address: IpAddr) -> Result<Self, ServeError> {
        let named = options.named_certificates.iter().map(|named| {
            let NamedCertificate { certificate, key, names } = named.clone();
            (Pair::Files { certificate, key }, names)
        });
        let pairs = Pairs { default: Pair::new(&options.certificate, address)?, named: named.collect() };
        let texts = Texts::read(&pairs, &options)?;
        let current = RwLock::new(Current { config: config(&texts, &pairs, &options)?, texts });
        Ok(Self { options, pairs, current })
    }

    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        self.current.read().unwrap_or_else(PoisonError::into_inner).config.clone().into()
    }

    /// Looks at the files for as long as it is polled. A file that cannot be used changes nothing: the old one still does.
    pub(crate) async fn follow_files(self: Arc<Self>) {
        loop {
            tokio::time::sleep(self.options.reload_every).await;
            let this = self.clone();
            let reloaded = tokio::task::spawn_blocking(move || this.reload()).await;
            match reloaded {
                Ok(Ok(true)) => info!("new certificates are in use"),
                Ok(Ok(false)) => {}
                Ok(Err(error)) => warn!(%error, "the certificates stay as they were"),
                Err(error) => warn!(%error, "looking at the certificates' files failed"),
            }
        }
    }

    fn reload(&self) -> Result<bool, ServeError> {
        let texts = Texts::read(&self.pairs, &self.options)?;
        if texts == self.current.read().unwrap_or_else(PoisonError::into_inner).texts {
            return Ok(false);
        }
        let config = config(&texts, &self.pairs, &self.options)?;
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Current { config, texts };
        Ok(true)
    }
}

impl Texts {
    fn read(pairs: &Pairs, options: &TlsOptions) -> Result<Self, ServeError> {
        let default = pairs.default.read()?;
        let named = pairs.named.iter().map(|(pair, _)| pair.read()).collect::<Result<_, _>>()?;
        let client_ca = options.client_ca_file.as_deref().map(read).transpose()?;
        Ok(Self { default, named, client_ca })
    }
}

fn config(texts: &Texts, pairs: &Pairs, options: &TlsOptions) -> Result<Arc<ServerConfig>, ServeError> {
    let provider = Arc::new(offer::provider(options.cipher_suites.clone(), options.key_exchanges.clone()));
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&options.min_version.and_newer())
        .map_err(|error| pairs.default.unusable(error))?;
    let builder = match (&texts.client_ca, &options.client_ca_file) {
        (Some(text), Some(path)) => {
            let unusable = |error: &dyn std::fmt::Display| ServeError::unusable(path, error);
            let mut roots = RootCertStore::empty();
            for certificate in read_certificates(text, path)? {
                roots.add(certificate).map_err(|error| unusable(&error))?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider.clone());
            let verifier = verifier.allow_unauthenticated().build().map_err(|error| unusable(&error))?;
            builder.with_client_cert_verifier(verifier)
        }
        _ => builder.with_no_client_auth(),
    };
    let mut by_name = ByName::new(certified(&texts.default, &pairs.default, &provider)?);
    for (text, (pair, names)) in texts.named.iter().zip(&pairs.named) {
        by_name.add(certified(text, pair, &provider)?, names);
    }
    let mut config = builder.with_cert_resolver(Arc::new(by_name));
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    if options.http2 {
        config.alpn_protocols.insert(0, b"h2".to_vec());
    }
    Ok(Arc::new(config))
}

fn certified(
    (certificate, key): &(Vec<u8>, Vec<u8>),
    pair: &Pair,
    provider: &CryptoProvider,
) -> Result<Arc<CertifiedKey>, ServeError> {
    let (chain, key) = pair.parse(certificate, key)?;
    let certified = CertifiedKey::from_der(chain, key, provider);
    certified.map(Arc::new).map_err(|error: rustls::Error| pair.unusable(error))
}
