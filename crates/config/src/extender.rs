//! Extenders: web services that take part in scheduling.

use std::borrow::Cow;

use serde::Deserialize;

use crate::{Base64, Duration};

/// What is shown in the place of a private key, or of a user and password.
pub use supercargo_manifest::REDACTED;

/// An address as it may be shown: without the user and password in it.
pub fn without_password(address: &str) -> Cow<'_, str> {
    let hidden = || {
        let (scheme, rest) = address.split_once("://")?;
        let authority = rest.split(['/', '?', '#']).next()?;
        // What follows the colon is no port: a password that should have been escaped goes on after the slash.
        let is_broken = |(_, port): (&str, &str)| !port.bytes().all(|byte| byte.is_ascii_digit());
        let authority = match authority.contains('@') {
            false if authority.rsplit_once(':').is_some_and(is_broken) => rest,
            _ => authority,
        };
        let (_, host) = authority.rsplit_once('@')?;
        Some(format!("{scheme}://{REDACTED}@{host}{}", &rest[authority.len()..]))
    };
    hidden().map_or(Cow::Borrowed(address), Cow::Owned)
}

/// A web service that takes part in scheduling. A step whose verb is empty is not its own.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Extender {
    /// Where it is; the verbs are appended to it.
    pub url_prefix: String,
    /// Refuses nodes.
    pub filter_verb: String,
    /// Has a say in preemption.
    pub preempt_verb: String,
    /// Scores nodes.
    pub prioritize_verb: String,
    /// How much its scores count.
    pub weight: i64,
    /// Binds pods, instead of the bind plugins.
    pub bind_verb: String,
    /// Whether to speak TLS.
    #[serde(rename = "enableHTTPS")]
    pub enable_https: bool,
    /// How to speak TLS.
    pub tls_config: Option<ExtenderTls>,
    /// How long a call may take.
    pub http_timeout: Duration,
    /// Whether it knows the nodes itself, so that their names are enough.
    pub node_cache_capable: bool,
    /// If there are any: only pods that ask for one of them are sent.
    pub managed_resources: Vec<ManagedResource>,
    /// Whether scheduling goes on when it cannot be reached.
    pub ignorable: bool,
}

impl Extender {
    /// How long a call may take when nothing is said.
    pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(5);

    /// What it is called in logs, statuses, metrics and pages: where it is, without a user and password.
    pub fn name(&self) -> Cow<'_, str> {
        without_password(&self.url_prefix)
    }

    /// Whether it is called for every node or every pod while a pod waits.
    pub fn is_in_hot_path(&self) -> bool {
        !self.filter_verb.is_empty() || !self.prioritize_verb.is_empty()
    }
}

/// A resource that an extender looks after.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ManagedResource {
    /// The extended resource's name.
    pub name: String,
    /// Whether the scheduler leaves checking it to the extender.
    #[serde(default)]
    pub ignored_by_scheduler: bool,
}

/// How to reach an extender over TLS.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ExtenderTls {
    /// Whether to trust any certificate.
    pub insecure: bool,
    /// The name that the certificate must bear, if it is not the host's.
    pub server_name: String,
    /// A file with the client's certificate.
    pub cert_file: String,
    /// A file with the client's key.
    pub key_file: String,
    /// A file with the authorities to trust.
    pub ca_file: String,
    /// The client's certificate (PEM) itself.
    pub cert_data: Base64,
    /// The client's key (PEM) itself.
    pub key_data: Base64,
    /// The authorities to trust (PEM) themselves.
    pub ca_data: Base64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_no_part_of_a_name() {
        for (address, shown) in [
            ("https://b", "https://b"),
            ("https://b:1/x?y=@", "https://b:1/x?y=@"),
            ("https://user:pass@word@c:8080/x?y=@", "https://--- REDACTED ---@c:8080/x?y=@"),
            ("http://token@c", "http://--- REDACTED ---@c"),
            ("http://user:pass/word@c/x", "http://--- REDACTED ---@c/x"),
            ("", ""),
        ] {
            let extender = Extender { url_prefix: address.to_owned(), ..Extender::default() };
            assert_eq!(extender.name(), shown);
        }
    }
}
