//! The server's certificate and key: read from files, or made.

use std::{
    fs,
    io::{self, Write},
    net::IpAddr,
    path::{Path, PathBuf},
};

use rcgen::CertifiedKey;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};

use super::Certificate;
use crate::error::ServeError;

/// What the files in `--cert-dir` are called.
const KEPT_NAME: &str = "kube-scheduler";

/// Where a certificate and its key are.
pub(super) enum Pair {
    Files { certificate: PathBuf, key: PathBuf },
    Memory { certificate: Vec<u8>, key: Vec<u8> },
}

impl Pair {
    /// Finds the pair, and makes one if need be.
    pub(super) fn new(source: &Certificate, address: IpAddr) -> Result<Self, ServeError> {
        match source {
            Certificate::Files { certificate, key } => {
                Ok(Self::Files { certificate: certificate.clone(), key: key.clone() })
            }
            Certificate::SelfSigned { directory: None } => {
                let (certificate, key) = self_signed(address)?;
                Ok(Self::Memory { certificate: certificate.into(), key: key.into() })
            }
            Certificate::SelfSigned { directory: Some(directory) } => {
                let certificate = directory.join(format!("{KEPT_NAME}.crt"));
                let key = directory.join(format!("{KEPT_NAME}.key"));
                if !(certificate.exists() && key.exists()) {
                    let (certificate_text, key_text) = self_signed(address)?;
                    fs::create_dir_all(directory).map_err(|error| ServeError::file(directory, error))?;
                    write_private(&key, &key_text).map_err(|error| ServeError::file(&key, error))?;
                    fs::write(&certificate, certificate_text)
                        .map_err(|error| ServeError::file(&certificate, error))?;
                }
                Ok(Self::Files { certificate, key })
            }
        }
    }

    pub(super) fn read(&self) -> Result<(Vec<u8>, Vec<u8>), ServeError> {
        match self {
            Self::Files { certificate, key } => Ok((read(certificate)?, read(key)?)),
            Self::Memory { certificate, key } => Ok((certificate.clone(), key.clone())),
        }
    }

    pub(super) fn parse(
        &self,
        certificate: &[u8],
        key: &[u8],
    ) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), ServeError> {
        let (certificate_path, key_path) = self.paths();
        let chain = read_certificates(certificate, certificate_path)?;
        let key =
            PrivateKeyDer::from_pem_slice(key).map_err(|error| ServeError::unusable(key_path, error))?;
        Ok((chain, key))
    }

    /// The certificate and the key do not serve.
    pub(super) fn unusable(&self, why: impl std::fmt::Display) -> ServeError {
        ServeError::unusable(self.paths().0, why)
    }

    fn paths(&self) -> (&Path, &Path) {
        match self {
            Self::Files { certificate, key } => (certificate, key),
            Self::Memory { .. } => (Path::new("(self-signed)"), Path::new("(self-signed)")),
        }
    }
}

pub(super) fn read(path: &Path) -> Result<Vec<u8>, ServeError> {
    fs::read(path).map_err(|error| ServeError::file(path, error))
}

/// The certificates of a PEM text; there must be one at least.
pub(super) fn read_certificates(
    text: &[u8],
    path: &Path,
) -> Result<Vec<CertificateDer<'static>>, ServeError> {
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text).collect();
    let certificates = certificates.map_err(|error| ServeError::unusable(path, error))?;
    if certificates.is_empty() {
        return Err(ServeError::unusable(path, "there is no certificate in it"));
    }
    Ok(certificates)
}

fn self_signed(address: IpAddr) -> Result<(String, String), ServeError> {
    let mut names = vec!["localhost".to_owned(), "127.0.0.1".into(), "::1".into()];
    if !address.is_unspecified() && !address.is_loopback() {
        names.push(address.to_string());
    }
    let CertifiedKey { cert, signing_key } = rcgen::generate_simple_self_signed(names)
        .map_err(|error| ServeError::unusable(Path::new("(self-signed)"), error))?;
    Ok((cert.pem(), signing_key.serialize_pem()))
}

/// Writes what only this user may read, from the first moment on.
fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)?.write_all(text.as_bytes())
}
