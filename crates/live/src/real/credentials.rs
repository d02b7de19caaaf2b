//! Who we are to the API server, request by request: a fixed header, a token in a file that is replaced now and then, or
//! what a credential plugin says.

pub(super) mod exec;
#[cfg(test)]
mod tests;

use std::{
    collections::BTreeMap,
    fmt::Write,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use http::{HeaderMap, HeaderName, HeaderValue, header};
use jiff::Timestamp;
use supercargo_extender::tls::Identity;
use supercargo_manifest::Base64;

use exec::ExecPlugin;

/// A token file is read again after this; who writes it keeps the old token valid for longer.
const READ_AGAIN: Duration = Duration::from_secs(60);

/// What is shown to the server.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Credential {
    /// For `Authorization`.
    pub(super) header: Option<HeaderValue>,
    /// For TLS, instead of the kubeconfig's.
    pub(super) identity: Option<Identity>,
    pub(super) expires: Option<Timestamp>,
}

/// Where credentials come from.
pub(super) struct Credentials {
    source: CredentialSource,
    impersonation: Vec<(HeaderName, HeaderValue)>,
}

enum CredentialSource {
    Fixed(Arc<Credential>),
    TokenFile(TokenFile),
    Plugin(ExecPlugin),
}

impl Credentials {
    /// Nobody in particular; perhaps a client certificate tells who.
    pub(super) fn none() -> Self {
        Self::of(CredentialSource::Fixed(Arc::default()))
    }

    /// A token that holds for as long as we run.
    pub(super) fn token(token: &str) -> Result<Self, String> {
        Ok(Self::of(CredentialSource::Fixed(Arc::new(Credential::bearer(token)?))))
    }

    /// A name and a password.
    pub(super) fn basic(username: &str, password: &str) -> Result<Self, String> {
        let encoded = Base64::of(format!("{username}:{password}").as_bytes());
        let header = Some(secret(&format!("Basic {}", encoded.as_str()))?);
        Ok(Self::of(CredentialSource::Fixed(Arc::new(Credential { header, ..Credential::default() }))))
    }

    /// A token that others replace.
    pub(super) fn token_file(path: PathBuf) -> Result<Self, String> {
        Ok(Self::of(CredentialSource::TokenFile(TokenFile::open(path)?)))
    }

    /// A plugin. It is run with the first request.
    pub(super) fn plugin(plugin: ExecPlugin) -> Self {
        Self::of(CredentialSource::Plugin(plugin))
    }

    fn of(source: CredentialSource) -> Self {
        Self { source, impersonation: Vec::new() }
    }

    /// Acts as somebody else.
    pub(super) fn acting_as(self, impersonated: &Impersonated<'_>) -> Result<Self, String> {
        Ok(Self { impersonation: impersonated.headers()?, ..self })
    }

    /// What holds now.
    pub(super) async fn current(&self) -> Result<Arc<Credential>, String> {
        match &self.source {
            CredentialSource::Fixed(credential) => Ok(credential.clone()),
            CredentialSource::TokenFile(file) => Ok(file.current()),
            CredentialSource::Plugin(plugin) => plugin.current().await,
        }
    }

    /// Writes it, and whom we act as, into a request.
    pub(super) fn sign(&self, credential: &Credential, headers: &mut HeaderMap) {
        if let Some(header) = &credential.header {
            headers.insert(header::AUTHORIZATION, header.clone());
        }
        for (name, value) in &self.impersonation {
            headers.append(name, value.clone());
        }
    }

    /// The server does not accept it: the next request does not show it again if there is another.
    pub(super) fn refused(&self, credential: &Arc<Credential>) {
        match &self.source {
            CredentialSource::Fixed(_) => {}
            CredentialSource::TokenFile(file) => file.read_again(),
            CredentialSource::Plugin(plugin) => plugin.refused(credential),
        }
    }
}

impl Credential {
    fn bearer(token: &str) -> Result<Self, String> {
        Ok(Self { header: Some(secret(&format!("Bearer {}", token.trim()))?), ..Self::default() })
    }
}

/// A header that no log shows.
fn secret(text: &str) -> Result<HeaderValue, String> {
    let unfit = "it has characters that cannot be sent, such as line breaks";
    let mut value = HeaderValue::try_from(text).map_err(|_| unfit.to_owned())?;
    value.set_sensitive(true);
    Ok(value)
}

/// A token in a file.
struct TokenFile {
    path: PathBuf,
    known: Mutex<(Arc<Credential>, Instant)>,
}

impl TokenFile {
    fn open(path: PathBuf) -> Result<Self, String> {
        let credential = Self::read(&path)?;
        Ok(Self { path, known: Mutex::new((credential, Instant::now())) })
    }

    fn read(path: &PathBuf) -> Result<Arc<Credential>, String> {
        let told = |why: String| format!("{}: {why}", path.display());
        let token = std::fs::read_to_string(path).map_err(|error| told(error.to_string()))?;
        if token.trim().is_empty() {
            return Err(told("there is no token in it".to_owned()));
        }
        Credential::bearer(&token).map(Arc::new).map_err(told)
    }

    fn current(&self) -> Arc<Credential> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.1.elapsed() >= READ_AGAIN {
            self.renew(&mut known);
        }
        known.0.clone()
    }

    fn read_again(&self) {
        self.renew(&mut self.known.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// A file that cannot be read costs nothing while the last token holds: some remove it once it was read.
    fn renew(&self, known: &mut (Arc<Credential>, Instant)) {
        known.1 = Instant::now();
        match Self::read(&self.path) {
            Ok(credential) => known.0 = credential,
            Err(error) => tracing::warn!(error, "the token cannot be read again; the last one is used"),
        }
    }
}

/// Whom to act as.
#[derive(Default)]
pub(super) struct Impersonated<'u> {
    pub(super) user: &'u str,
    pub(super) uid: &'u str,
    pub(super) groups: &'u [String],
    pub(super) extra: Option<&'u BTreeMap<String, Vec<String>>>,
}

impl Impersonated<'_> {
    fn headers(&self) -> Result<Vec<(HeaderName, HeaderValue)>, String> {
        let mut headers = Vec::new();
        let mut add = |name: &str, value: &str| -> Result<(), String> {
            let unfit = |_| format!("{value:?} cannot be sent in a header");
            let value = HeaderValue::try_from(value).map_err(|error| unfit(error.to_string()))?;
            let name = HeaderName::try_from(name).map_err(|error| error.to_string())?;
            headers.push((name, value));
            Ok(())
        };
        for (name, value) in [("impersonate-user", self.user), ("impersonate-uid", self.uid)] {
            if !value.is_empty() {
                add(name, value)?;
            }
        }
        for group in self.groups {
            add("impersonate-group", group)?;
        }
        for (key, values) in self.extra.into_iter().flatten() {
            let name = format!("impersonate-extra-{}", escaped(key));
            values.iter().try_for_each(|value| add(&name, value))?;
        }
        Ok(headers)
    }
}

/// A key as it is written in the name of a header.
fn escaped(key: &str) -> String {
    let mut name = String::new();
    for byte in key.to_lowercase().bytes() {
        if byte.is_ascii_alphanumeric() || b"!#$&'*+-.^_`|~".contains(&byte) {
            name.push(char::from(byte));
        } else {
            let _ = write!(name, "%{byte:02x}");
        }
    }
    name
}
