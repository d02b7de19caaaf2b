//! TLS: which certificate is shown, which client certificates are believed, and how both change while the process runs.

mod client;
mod pair;

pub(crate) use client::user_of;

use std::{
    net::IpAddr,
    path::PathBuf,
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        self, RootCertStore, ServerConfig, SupportedProtocolVersion,
        crypto::ring,
        server::WebPkiClientVerifier,
        version::{TLS12, TLS13},
    },
};
use tracing::{info, warn};

use crate::error::ServeError;
use pair::{Pair, read, read_certificates};

/// How connections are made safe.
#[derive(Clone, Debug)]
pub struct TlsOptions {
    /// What is shown to callers.
    pub certificate: Certificate,
    /// Whose client certificates are believed: CN is the user, O the groups. Without it none is asked for.
    pub client_ca_file: Option<PathBuf>,
    /// The oldest TLS that is spoken.
    pub min_version: TlsVersion,
    /// How often the files are looked at.
    pub reload_every: Duration,
}

impl Default for TlsOptions {
    fn default() -> Self {
        Self {
            certificate: Certificate::SelfSigned { directory: None },
            client_ca_file: None,
            min_version: TlsVersion::V12,
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

/// A version of TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsVersion {
    /// `VersionTLS12`
    V12,
    /// `VersionTLS13`
    V13,
}

impl TlsVersion {
    fn and_newer(self) -> Vec<&'static SupportedProtocolVersion> {
        match self {
            Self::V12 => vec![&TLS13, &TLS12],
            Self::V13 => vec![&TLS13],
        }
    }
}

/// What callers are met with, as of now.
pub(crate) struct Tls {
    options: TlsOptions,
    pair: Pair,
    current: RwLock<Current>,
}

struct Current {
    config: Arc<ServerConfig>,
    /// What the files said, to see when they say something else. Their dates say less: a mounted secret is swapped whole.
    texts: Texts,
}

#[derive(PartialEq, Eq)]
struct Texts {
    certificate: Vec<u8>,
    key: Vec<u8>,
    client_ca: Option<Vec<u8>>,
}

impl Tls {
    pub(crate) fn new(options: TlsOptions, address: IpAddr) -> Result<Self, ServeError> {
        let pair = Pair::new(&options.certificate, address)?;
        let texts = Texts::read(&pair, &options)?;
        let current = RwLock::new(Current { config: config(&texts, &pair, &options)?, texts });
        Ok(Self { options, pair, current })
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
        let texts = Texts::read(&self.pair, &self.options)?;
        if texts == self.current.read().unwrap_or_else(PoisonError::into_inner).texts {
            return Ok(false);
        }
        let config = config(&texts, &self.pair, &self.options)?;
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Current { config, texts };
        Ok(true)
    }
}

impl Texts {
    fn read(pair: &Pair, options: &TlsOptions) -> Result<Self, ServeError> {
        let (certificate, key) = pair.read()?;
        let client_ca = options.client_ca_file.as_deref().map(read).transpose()?;
        Ok(Self { certificate, key, client_ca })
    }
}

fn config(texts: &Texts, pair: &Pair, options: &TlsOptions) -> Result<Arc<ServerConfig>, ServeError> {
    let (chain, key) = pair.parse(&texts.certificate, &texts.key)?;
    let provider = Arc::new(ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&options.min_version.and_newer())
        .map_err(|error| pair.unusable(error))?;
    let builder = match (&texts.client_ca, &options.client_ca_file) {
        (Some(text), Some(path)) => {
            let unusable = |error: &dyn std::fmt::Display| ServeError::unusable(path, error);
            let mut roots = RootCertStore::empty();
            for certificate in read_certificates(text, path)? {
                roots.add(certificate).map_err(|error| unusable(&error))?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider);
            let verifier = verifier.allow_unauthenticated().build().map_err(|error| unusable(&error))?;
            builder.with_client_cert_verifier(verifier)
        }
        _ => builder.with_no_client_auth(),
    };
    let mut config =
        builder.with_single_cert(chain, key).map_err(|error: rustls::Error| pair.unusable(error))?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
