//! Another server than the API server: its address, and who we are to it, as flags name them.

use std::path::PathBuf;

use supercargo_manifest::Problem;

use super::{
    access::{Environment, address},
    connections::{Pem, Tls, Trusted},
    credentials::Credentials,
    target::Target,
};

/// A server, and how to reach it.
#[derive(Clone, Debug, Default)]
pub struct Endpoint {
    /// Its address.
    pub url: String,
    /// A bearer token.
    pub token: Option<String>,
    /// A file with one.
    pub token_file: Option<PathBuf>,
    /// The certificates that its own is checked with.
    pub certificate_authority: Option<PathBuf>,
    /// Its certificate is not checked.
    pub insecure_skip_tls_verify: bool,
}

/// How it is asked.
pub(super) fn find(endpoint: &Endpoint, environment: Environment<'_>) -> Result<Target, Problem> {
    let Some(server) = address(&endpoint.url, "https") else {
        let message = format!("the address makes no sense: {}", endpoint.url);
        return Err(Problem::error(message).hint("write it like https://10.0.0.1:10259"));
    };
    let mut target = Target::plain(server, environment)?;
    if target.server.scheme_str() == Some("https") {
        let trusted = match &endpoint.certificate_authority {
            _ if endpoint.insecure_skip_tls_verify => Trusted::Anybody,
            Some(file) => Trusted::Authorities(Pem::File(file.clone())),
            None => Trusted::System,
        };
        target.tls = Tls { trusted, ..Tls::none() };
        target.tls.check().map_err(|fault| Problem::error(fault.what()))?;
    }
    target.credentials = match (&endpoint.token, &endpoint.token_file) {
        (Some(token), _) => Credentials::token(token).map_err(Problem::error)?,
        (None, Some(file)) => Credentials::token_file(file.clone()).map_err(Problem::error)?,
        (None, None) => Credentials::none(),
    };
    Ok(target)
}
