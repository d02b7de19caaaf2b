//! What a kubeconfig's context comes to: where the server is, whom to trust there, and who we are.

use std::path::PathBuf;

use http::Uri;
use supercargo_extender::tls::TlsError;
use supercargo_manifest::{Base64, Problem};
use tokio_rustls::rustls::pki_types::ServerName;

use super::{
    access::{Environment, address},
    connections::{Pem, Tls, Trusted},
    credentials::{
        Credentials, Impersonated,
        exec::{API_VERSIONS, ExecConfig, ExecPlugin},
    },
    kubeconfig::{Chosen, Cluster, Exec, InteractiveMode, Named, User},
    proxy::Proxy,
};

/// A server, and how it is asked.
pub(super) struct Target {
    pub(super) server: Uri,
    /// Empty if nothing names one.
    pub(super) namespace: String,
    pub(super) tls: Tls,
    pub(super) proxy: Option<Proxy>,
    pub(super) credentials: Credentials,
}

impl Target {
    /// A server of which nothing but the address is known.
    pub(super) fn plain(server: Uri, environment: Environment<'_>) -> Result<Self, Problem> {
        let is_https = server.scheme_str() == Some("https");
        let trusted = if is_https { Trusted::System } else { Trusted::Nobody };
        Ok(Self {
            proxy: Proxy::of_environment(&server, environment).map_err(unusable_proxy)?,
            server,
            namespace: String::new(),
            tls: Tls { trusted, ..Tls::none() },
            credentials: Credentials::none(),
        })
    }

    /// What a context chooses; at another address, if one is given.
    pub(super) fn chosen(
        chosen: &Chosen,
        master: Option<Uri>,
        environment: Environment<'_>,
    ) -> Result<Self, Problem> {
        let server = match master {
            Some(master) => master,
            None => server(&chosen.cluster)?,
        };
        let tls = tls(chosen, &server)?;
        let proxy = match chosen.cluster.spec.proxy_url.as_str() {
            "" => Proxy::of_environment(&server, environment).map_err(unusable_proxy)?,
            given => Some(Proxy::parse(given).map_err(|why| {
                chosen.cluster.place.problem("proxy-url", why).hint("use a proxy by http://")
            })?),
        };
        let credentials = match &chosen.user {
            Some(user) => credentials(user, &chosen.cluster, &server)?,
            None => Credentials::none(),
        };
        Ok(Self { server, namespace: chosen.namespace.clone(), tls, proxy, credentials })
    }
}

fn unusable_proxy(why: String) -> Problem {
    Problem::error(why).hint("use a proxy by http://, or exempt the API server with NO_PROXY")
}

fn server(cluster: &Named<Cluster>) -> Result<Uri, Problem> {
    let (spec, place) = (&cluster.spec, &cluster.place);
    if spec.server.is_empty() {
        let missing = format!("the cluster {:?} has no server", cluster.name);
        return Err(place.problem("server", missing).hint("write it like https://10.0.0.1:6443"));
    }
    let speaks_tls = spec.insecure_skip_tls_verify
        || !spec.certificate_authority.is_empty()
        || !spec.certificate_authority_data.is_empty();
    address(&spec.server, if speaks_tls { "https" } else { "http" }).ok_or_else(|| {
        let wrong = format!("the server's address makes no sense: {}", spec.server);
        place.problem("server", wrong).hint("write it like https://10.0.0.1:6443")
    })
}

/// The text itself goes before a file.
fn pem<T>(entry: &Named<T>, data: &Base64, file: &str) -> Option<Pem> {
    match (data.is_empty(), file.is_empty()) {
        (false, _) => Some(Pem::Text(data.bytes())),
        (true, false) => Some(Pem::File(entry.place.file(file))),
        (true, true) => None,
    }
}

fn tls(chosen: &Chosen, server: &Uri) -> Result<Tls, Problem> {
    if server.scheme_str() != Some("https") {
        return Ok(Tls::none());
    }
    let (cluster, place) = (&chosen.cluster.spec, &chosen.cluster.place);
    let authorities =
        pem(&chosen.cluster, &cluster.certificate_authority_data, &cluster.certificate_authority);
    let trusted = match authorities {
        Some(_) if cluster.insecure_skip_tls_verify => {
            let both = "there is an authority to trust, and anybody is to be trusted";
            let hint = "remove insecure-skip-tls-verify, or certificate-authority and its data";
            return Err(place.problem("insecure-skip-tls-verify", both).hint(hint));
        }
        None if cluster.insecure_skip_tls_verify => Trusted::Anybody,
        None => Trusted::System,
        Some(pem) => Trusted::Authorities(pem),
    };
    let identity = chosen.user.as_ref().map(identity).transpose()?.flatten();
    let server_name = match cluster.tls_server_name.as_str() {
        "" => None,
        name => Some(ServerName::try_from(name.to_owned()).map_err(|error| {
            let hint = "write a host name, such as the server's certificate bears";
            place.problem("tls-server-name", error.to_string()).hint(hint)
        })?),
    };
    let tls = Tls { trusted, identity, server_name };
    match tls.check() {
        Ok(()) => Ok(tls),
        Err(fault) => Err(located(fault, chosen)),
    }
}

fn identity(user: &Named<User>) -> Result<Option<(Pem, Pem)>, Problem> {
    let certificate = pem(user, &user.spec.client_certificate_data, &user.spec.client_certificate);
    let key = pem(user, &user.spec.client_key_data, &user.spec.client_key);
    let incomplete = |field: &str, what: &str| {
        let hint = "give both: client-certificate or its -data, and client-key or its -data";
        Err(user.place.problem(field, what).hint(hint))
    };
    match (certificate, key) {
        (None, None) => Ok(None),
        (Some(certificate), Some(key)) => Ok(Some((certificate, key))),
        (Some(_), None) => incomplete("client-key", "there is a client certificate and no key to it"),
        (None, Some(_)) => incomplete("client-certificate", "there is a key and no client certificate"),
    }
}

/// Says in which field the certificates are that cannot be used.
fn located(fault: TlsError, chosen: &Chosen) -> Problem {
    let (what, place, field, is_data) = match (fault, &chosen.user) {
        (TlsError::Identity(what), Some(user)) => {
            (what, &user.place, "client-certificate", !user.spec.client_certificate_data.is_empty())
        }
        (TlsError::Trust(what) | TlsError::Identity(what), _) => {
            let is_data = !chosen.cluster.spec.certificate_authority_data.is_empty();
            (what, &chosen.cluster.place, "certificate-authority", is_data)
        }
    };
    let field = if is_data { format!("{field}-data") } else { field.to_owned() };
    let hint = "certificates and keys are PEM texts; in a -data field, encoded once more with base64";
    place.problem(&field, what).hint(hint)
}

/// A fixed token goes before a file, a file before a plugin.
fn credentials(user: &Named<User>, cluster: &Named<Cluster>, server: &Uri) -> Result<Credentials, Problem> {
    let (spec, place) = (&user.spec, &user.place);
    if let Some(provider) = &spec.auth_provider {
        let what = format!("the auth provider {:?} is not supported", provider.name);
        return Err(place
            .problem("auth-provider", what)
            .hint("use a credential plugin: exec, with kubelogin or the like"));
    }
    if !spec.token.is_empty() && !spec.username.is_empty() {
        let both = "there is a token, and a user's name and password";
        return Err(place.problem("token", both).hint("keep one of them"));
    }
    let found = if !spec.token.is_empty() {
        Credentials::token(&spec.token).map_err(|why| place.problem("token", why))?
    } else if !spec.token_file.is_empty() {
        let file: PathBuf = place.file(&spec.token_file);
        let hint = "the file holds the token and nothing else";
        Credentials::token_file(file).map_err(|why| place.problem("tokenFile", why).hint(hint))?
    } else if !spec.username.is_empty() {
        Credentials::basic(&spec.username, &spec.password).map_err(|why| place.problem("username", why))?
    } else if let Some(exec) = &spec.exec {
        Credentials::plugin(ExecPlugin::new(plugin(user, exec, cluster, server)?))
    } else {
        Credentials::none()
    };
    let acting = Impersonated {
        user: &spec.as_user,
        uid: &spec.as_uid,
        groups: &spec.as_groups,
        extra: Some(&spec.as_user_extra),
    };
    let acts = !spec.as_uid.is_empty() || !spec.as_groups.is_empty() || !spec.as_user_extra.is_empty();
    if spec.as_user.is_empty() && acts {
        let what = "whom to act as is not said, only the uid, groups or extras";
        return Err(place.problem("as", what).hint("name the user with as"));
    }
    found.acting_as(&acting).map_err(|why| place.problem("as", why))
}

fn plugin(
    user: &Named<User>,
    exec: &Exec,
    cluster: &Named<Cluster>,
    server: &Uri,
) -> Result<ExecConfig, Problem> {
    let problem = |field: &str, what: String| user.place.problem(field, what);
    if exec.command.is_empty() {
        return Err(problem("exec.command", "the credential plugin has no command".to_owned()));
    }
    if !API_VERSIONS.contains(&exec.api_version.as_str()) {
        let what = match exec.api_version.as_str() {
            "" => "the credential plugin has no apiVersion".to_owned(),
            version => format!("credential plugins of {version} are not supported"),
        };
        let hint = format!("set it to {}, if the plugin knows it", API_VERSIONS[0]);
        return Err(problem("exec.apiVersion", what).hint(hint));
    }
    use std::io::IsTerminal;
    if exec.interactive_mode == InteractiveMode::Always && !std::io::stdin().is_terminal() {
        let what =
            format!("the credential plugin {} wants to ask somebody, and there is no terminal", exec.command);
        let hint = "use a plugin that needs nobody, with interactiveMode: Never";
        return Err(problem("exec.interactiveMode", what).hint(hint));
    }
    // A bare name is looked for in PATH; a path starts at the kubeconfig's folder.
    let is_path = exec.command.contains(std::path::MAIN_SEPARATOR);
    let command = if is_path { user.place.file(&exec.command) } else { PathBuf::from(&exec.command) };
    Ok(ExecConfig {
        api_version: exec.api_version.clone(),
        command,
        args: exec.args.clone(),
        env: exec.env.iter().map(|variable| (variable.name.clone(), variable.value.clone())).collect(),
        install_hint: exec.install_hint.clone(),
        interactive: exec.interactive_mode != InteractiveMode::Never,
        cluster: exec.provide_cluster_info.then(|| about(cluster, server)).transpose()?,
    })
}

/// What a plugin is told about the cluster.
fn about(cluster: &Named<Cluster>, server: &Uri) -> Result<serde_json::Value, Problem> {
    let spec = &cluster.spec;
    let mut about = serde_json::json!({ "server": server.to_string().trim_end_matches('/') });
    let authorities = pem(cluster, &spec.certificate_authority_data, &spec.certificate_authority);
    if let Some(pem) = authorities {
        let text = pem.read().map_err(|why| cluster.place.problem("certificate-authority", why))?;
        about["certificate-authority-data"] = Base64::of(&text).as_str().into();
    }
    let texts = [("tls-server-name", &spec.tls_server_name), ("proxy-url", &spec.proxy_url)];
    for (name, value) in texts.into_iter().filter(|(_, value)| !value.is_empty()) {
        about[name] = value.as_str().into();
    }
    let flags = [
        ("insecure-skip-tls-verify", spec.insecure_skip_tls_verify),
        ("disable-compression", spec.disable_compression),
    ];
    for (name, _) in flags.into_iter().filter(|(_, is_set)| *is_set) {
        about[name] = true.into();
    }
    if let Some(config) = spec.exec_extension() {
        about["config"] = config.clone();
    }
    Ok(about)
}
