//! The cluster that the process runs in, as its pod is told of it.

use std::path::Path;

use http::Uri;
use supercargo_manifest::Problem;

use super::{
    access::Environment,
    connections::{Pem, Tls, Trusted},
    credentials::Credentials,
    proxy::Proxy,
    target::Target,
};

/// What the kubelet mounts into a pod.
const SERVICE_ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// The cluster, if the process runs in one.
pub(super) fn find(environment: Environment<'_>) -> Result<Option<Target>, Problem> {
    find_at(environment, Path::new(SERVICE_ACCOUNT))
}

fn find_at(environment: Environment<'_>, mounted: &Path) -> Result<Option<Target>, Problem> {
    let set = |name| environment(name)?.into_string().ok().filter(|value| !value.is_empty());
    let (Some(host), Some(port)) = (set("KUBERNETES_SERVICE_HOST"), set("KUBERNETES_SERVICE_PORT")) else {
        return Ok(None);
    };
    let token = mounted.join("token");
    if !token.exists() {
        return Ok(None);
    }
    let broken = |what: String| {
        Problem::error(format!("this pod's cluster cannot be used: {what}"))
            .hint("give the pod a service account, or name a kubeconfig with --kubeconfig or KUBECONFIG")
    };
    let host = if host.contains(':') { format!("[{host}]") } else { host };
    let server = format!("https://{host}:{port}").parse::<Uri>();
    let server = server.map_err(|error| broken(format!("KUBERNETES_SERVICE_HOST {host}: {error}")))?;
    let authorities = Trusted::Authorities(Pem::File(mounted.join("ca.crt")));
    let namespace = std::fs::read_to_string(mounted.join("namespace")).unwrap_or_default();
    Ok(Some(Target {
        proxy: Proxy::of_environment(&server, environment).map_err(broken)?,
        server,
        namespace: namespace.trim().to_owned(),
        tls: Tls { trusted: authorities, ..Tls::none() },
        credentials: Credentials::token_file(token).map_err(broken)?,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_knows_its_cluster() {
        let folder = tempfile::tempdir().unwrap();
        let found = |variables: &[(&str, &str)]| {
            let environment = |name: &str| {
                variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into())
            };
            find_at(&environment, folder.path())
        };
        let v4 = [("KUBERNETES_SERVICE_HOST", "10.96.0.1"), ("KUBERNETES_SERVICE_PORT", "443")];
        let v6 = [("KUBERNETES_SERVICE_HOST", "fd00::1"), ("KUBERNETES_SERVICE_PORT", "6443")];
        assert!(found(&v4).unwrap().is_none(), "no token");

        std::fs::write(folder.path().join("token"), " \n").unwrap();
        let problem = found(&v4).err().unwrap().to_string();
        assert!(
            problem.contains("there is no token in it\nhint: give the pod a service account"),
            "{problem}"
        );

        std::fs::write(folder.path().join("token"), "secret\n").unwrap();
        for (variables, server) in [(&v4, "https://10.96.0.1:443/"), (&v6, "https://[fd00::1]:6443/")] {
            let target = found(variables).unwrap().unwrap();
            assert_eq!((target.server.to_string().as_str(), target.namespace.as_str()), (server, ""));
        }
        std::fs::write(folder.path().join("namespace"), "kube-system\n").unwrap();
        let target = found(&v4).unwrap().unwrap();
        assert_eq!(target.namespace, "kube-system");
        assert_eq!(target.tls.trusted, Trusted::Authorities(Pem::File(folder.path().join("ca.crt"))));
        assert!(found(&v4[..1]).unwrap().is_none());
    }
}
