//! Another server than the API server: its address, and who we are to it, as flags name them.

use std::path::PathBuf;

use kube::{
    Config,
    config::{
        AuthInfo, Cluster, Context, KubeConfigOptions, Kubeconfig, NamedAuthInfo, NamedCluster, NamedContext,
    },
};

use super::access::{Unreachable, address};

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

/// The same as a kubeconfig would say it, so that it is treated alike.
pub(super) async fn config(endpoint: &Endpoint) -> Result<Config, Unreachable> {
    const NAME: &str = "endpoint";
    let text = |path: &PathBuf| path.to_string_lossy().into_owned();
    let cluster = Cluster {
        server: Some(address(&endpoint.url)?.to_string()),
        certificate_authority: endpoint.certificate_authority.as_ref().map(text),
        insecure_skip_tls_verify: Some(endpoint.insecure_skip_tls_verify),
        ..Cluster::default()
    };
    let auth_info = AuthInfo {
        token: endpoint.token.clone().map(Into::into),
        token_file: endpoint.token_file.as_ref().map(text),
        ..AuthInfo::default()
    };
    let context = Context { cluster: NAME.to_owned(), user: Some(NAME.to_owned()), ..Context::default() };
    let written = Kubeconfig {
        clusters: vec![NamedCluster {
            name: NAME.to_owned(),
            cluster: Some(cluster),
            ..NamedCluster::default()
        }],
        auth_infos: vec![NamedAuthInfo {
            name: NAME.to_owned(),
            auth_info: Some(auth_info),
            ..NamedAuthInfo::default()
        }],
        contexts: vec![NamedContext {
            name: NAME.to_owned(),
            context: Some(context),
            ..NamedContext::default()
        }],
        current_context: Some(NAME.to_owned()),
        ..Kubeconfig::default()
    };
    let unusable = |error: kube::config::KubeconfigError| {
        Unreachable::new(
            format!("{} cannot be asked: {error}", endpoint.url),
            "look at the files that flags name",
        )
    };
    Config::from_custom_kubeconfig(written, &KubeConfigOptions::default()).await.map_err(unusable)
}
