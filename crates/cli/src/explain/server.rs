//! Asks a running scheduler, which explains from what it knows.

use std::path::PathBuf;

use supercargo_live::{
    real::{Endpoint, RealWorld},
    world::{Request, World},
};
use supercargo_manifest::{Problem, Problems};
use supercargo_model::Name;
use supercargo_sim::explanation::Explanation;

use crate::{page::EXPLAIN_PATH, run::runtime};

/// Where the scheduler is, and who asks.
#[derive(clap::Args)]
pub(crate) struct AskedScheduler {
    /// Ask a running scheduler, at the address where it serves its metrics, in place of reading a cluster
    #[arg(long, value_name = "URL", conflicts_with_all = ["cluster", "pods", "config"])]
    server: Option<String>,

    /// The bearer token to ask it with
    #[arg(long, value_name = "TOKEN", requires = "server", conflicts_with = "token_file")]
    token: Option<String>,

    /// A file with the bearer token
    #[arg(long, value_name = "FILE", requires = "server")]
    token_file: Option<PathBuf>,

    /// The certificates that its own is checked with
    #[arg(long, value_name = "FILE", requires = "server")]
    certificate_authority: Option<PathBuf>,

    /// Do not check its certificate: it makes itself one where it is given none
    #[arg(long, requires = "server")]
    insecure_skip_tls_verify: bool,
}

impl AskedScheduler {
    pub(crate) fn is_given(&self) -> bool {
        self.server.is_some()
    }

    /// Where it is.
    pub(crate) fn url(&self) -> &str {
        self.server.as_deref().unwrap_or_default()
    }

    /// The way to it.
    pub(crate) async fn open(&self) -> Result<RealWorld, Problems> {
        let endpoint = Endpoint {
            url: self.url().to_owned(),
            token: self.token.clone(),
            token_file: self.token_file.clone(),
            certificate_authority: self.certificate_authority.clone(),
            insecure_skip_tls_verify: self.insecure_skip_tls_verify,
        };
        RealWorld::open_endpoint(&endpoint).await.map_err(Problems::from)
    }

    /// The scheduler's explanation of a pod.
    pub(super) fn ask(&self, pod: &str, nodes: &[Name]) -> Result<Explanation, Problems> {
        let url = self.url();
        let runtime = runtime()?;
        let world = runtime.block_on(self.open())?;
        let reply = runtime.block_on(world.send(Request::get(path(pod, nodes))));
        let reply = reply.map_err(|error| {
            Problem::error(format!("{url} does not answer: {error}"))
                .hint("give the address of --secure-port (10259); see also --insecure-skip-tls-verify")
        })?;
        match reply.status {
            200 => {
                let read = serde_json::from_slice(&reply.body);
                Ok(read.map_err(|error| Problem::error(format!("{url} answered something else: {error}")))?)
            }
            401 | 403 => Err(Problem::error(format!("{url} refuses: {}", said(&reply.body)))
                .hint(format!("give a --token that may get the non-resource URL {EXPLAIN_PATH}"))
                .into()),
            status => Err(Problem::error(format!("{url} answered {status}: {}", said(&reply.body))).into()),
        }
    }
}

fn path(pod: &str, nodes: &[Name]) -> String {
    let escaped = |text: &str| {
        let bytes = text.bytes().map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'/' => (byte as char).to_string(),
            other => format!("%{other:02X}"),
        });
        bytes.collect::<String>()
    };
    let nodes: String = nodes.iter().map(|node| format!("&node={}", escaped(node))).collect();
    format!("{EXPLAIN_PATH}?pod={}{nodes}", escaped(pod))
}

/// What a server says in its answer, on one line.
pub(crate) fn said(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let told = serde_json::from_str::<serde_json::Value>(&text).ok();
    let told = told.and_then(|told| told["message"].as_str().map(str::to_owned));
    told.unwrap_or_else(|| text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::path;

    #[test]
    fn names_are_escaped_in_the_address() {
        assert_eq!(path("a/b", &["n-1".into()]), "/supercargo/v1/explain?pod=a/b&node=n-1");
        assert_eq!(path("a&b c", &[]), "/supercargo/v1/explain?pod=a%26b%20c");
    }
}
