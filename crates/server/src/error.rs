//! Why nothing is served: what is wrong, where, and how to mend it.

use std::{
    fmt, io,
    net::SocketAddr,
    path::{Path, PathBuf},
};

/// Why nothing is served.
#[derive(Debug)]
pub enum ServeError {
    /// The address cannot be listened on.
    Bind {
        /// Where.
        address: SocketAddr,
        /// Why.
        error: io::Error,
    },
    /// Without TLS, only this machine may be served.
    NotLoopback {
        /// Where others could have listened in.
        address: SocketAddr,
    },
    /// A file cannot be read or written.
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A certificate or key does not serve.
    Unusable {
        /// The file it is in.
        path: PathBuf,
        /// Why.
        why: String,
    },
}

impl ServeError {
    pub(crate) fn file(path: &Path, error: io::Error) -> Self {
        Self::File { path: path.to_owned(), error }
    }

    pub(crate) fn unusable(path: &Path, why: impl fmt::Display) -> Self {
        Self::Unusable { path: path.to_owned(), why: why.to_string() }
    }
}

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bind { address, error } => {
                write!(
                    f,
                    "cannot listen on {address}: {error}\nhint: is another process there? choose another port"
                )
            }
            Self::NotLoopback { address } => write!(
                f,
                "will not serve {address} without TLS: tokens would cross the network in the clear\n\
                 hint: serve a loopback address such as 127.0.0.1, or use TLS"
            ),
            Self::File { path, error } => {
                write!(f, "{}: {error}\nhint: check the path and who may read it", path.display())
            }
            Self::Unusable { path, why } => write!(
                f,
                "{}: {why}\nhint: certificates and keys are PEM files, and the key belongs to the first certificate",
                path.display()
            ),
        }
    }
}

impl std::error::Error for ServeError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Bind { error, .. } | Self::File { error, .. } => Some(error),
            Self::NotLoopback { .. } | Self::Unusable { .. } => None,
        }
    }
}
