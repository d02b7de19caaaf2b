//! Credential plugins: a command that writes a credential, by the contract of `client.authentication.k8s.io`.

use std::{
    fmt,
    io::{self, IsTerminal},
    path::PathBuf,
    process::{Command, Output, Stdio},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures_util::{
    FutureExt,
    future::{BoxFuture, Shared},
};
use jiff::Timestamp;
use serde::Deserialize;
use supercargo_extender::tls::Identity;
use supercargo_manifest::{Problems, Source, UnknownFields, clip, decode, read};

use super::Credential;
use crate::real::kubeconfig::without_excerpt;

/// The versions of the contract that are spoken.
pub(in crate::real) const API_VERSIONS: [&str; 2] =
    ["client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"];
/// A credential is renewed this long before it ends, so that it does not end under way.
const AHEAD: Duration = Duration::from_secs(10);

/// What is run, and how.
pub(in crate::real) struct ExecConfig {
    pub(in crate::real) api_version: String,
    /// A name that is looked for in `PATH`, or a path.
    pub(in crate::real) command: PathBuf,
    pub(in crate::real) args: Vec<String>,
    pub(in crate::real) env: Vec<(String, String)>,
    /// What to do if there is no such command.
    pub(in crate::real) install_hint: String,
    /// Whether it may ask the person at the terminal.
    pub(in crate::real) interactive: bool,
    /// What it is told about the cluster.
    pub(in crate::real) cluster: Option<serde_json::Value>,
}

/// A plugin and what it said last. It runs once at a time, whoever waits for it and however long.
pub(in crate::real) struct ExecPlugin(Arc<Inner>);

struct Inner {
    settings: ExecConfig,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    known: Option<Arc<Credential>>,
    running: Option<Running>,
}

type Running = Shared<BoxFuture<'static, Result<Arc<Credential>, String>>>;

impl ExecPlugin {
    pub(in crate::real) fn new(settings: ExecConfig) -> Self {
        Self(Arc::new(Inner { settings, state: Mutex::default() }))
    }

    /// What the plugin said, if that still holds; else it is run.
    pub(super) async fn current(&self) -> Result<Arc<Credential>, String> {
        let running = {
            let mut state = self.0.state();
            if let Some(known) = state.known.as_ref().filter(|known| known.holds()) {
                return Ok(known.clone());
            }
            state.running.get_or_insert_with(|| self.start()).clone()
        };
        running.await
    }

    pub(super) fn refused(&self, credential: &Arc<Credential>) {
        // Unless it was renewed meanwhile.
        self.0.state().known.take_if(|known| Arc::ptr_eq(known, credential));
    }

    fn start(&self) -> Running {
        let plugin = self.0.clone();
        let task = async move {
            let runs = plugin.clone();
            let ended = tokio::task::spawn_blocking(move || runs.settings.run()).await;
            let outcome = ended.unwrap_or_else(|error| Err(error.to_string())).map(Arc::new);
            let mut state = plugin.state();
            state.running = None;
            state.known = outcome.clone().ok();
            outcome
        };
        task.boxed().shared()
    }
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Credential {
    fn holds(&self) -> bool {
        self.expires.is_none_or(|end| Timestamp::now() + AHEAD < end)
    }
}

impl ExecConfig {
    fn run(&self) -> Result<Credential, String> {
        let output = self.command().output().map_err(|error| self.not_run(&error))?;
        if !output.status.success() {
            return Err(self.failed(&output));
        }
        self.credential(&output.stdout)
    }

    fn command(&self) -> Command {
        let terminal = self.interactive && io::stdin().is_terminal();
        let mut command = Command::new(&self.command);
        command.args(&self.args).envs(self.env.iter().map(|(name, value)| (name, value)));
        command.env("KUBERNETES_EXEC_INFO", self.info(terminal));
        // What it asks, it asks by stderr; without anybody to answer, that is told with its failure.
        command.stdin(if terminal { Stdio::inherit() } else { Stdio::null() });
        command.stderr(if terminal { Stdio::inherit() } else { Stdio::piped() });
        command
    }

    /// What the plugin is told.
    fn info(&self, terminal: bool) -> String {
        let mut spec = serde_json::json!({ "interactive": terminal });
        if let Some(cluster) = &self.cluster {
            spec["cluster"] = cluster.clone();
        }
        let info =
            serde_json::json!({ "apiVersion": self.api_version, "kind": "ExecCredential", "spec": spec });
        info.to_string()
    }

    fn not_run(&self, error: &io::Error) -> String {
        let hint = match (error.kind(), self.install_hint.trim()) {
            (io::ErrorKind::NotFound, "") => "install it, or put it into PATH",
            (io::ErrorKind::NotFound, hint) => hint,
            _ => return format!("the credential plugin {self} cannot be run: {error}"),
        };
        format!("the credential plugin {self} is not there\nhint: {hint}")
    }

    fn failed(&self, output: &Output) -> String {
        let said = String::from_utf8_lossy(&output.stderr);
        let status = output.status;
        match said.trim() {
            "" => format!("the credential plugin {self} failed ({status})"),
            said => format!("the credential plugin {self} failed ({status}): {}", clip(said)),
        }
    }

    fn credential(&self, output: &[u8]) -> Result<Credential, String> {
        let name = format!("the credential plugin {self}");
        let source = Source::new(name.as_str(), String::from_utf8_lossy(output));
        let answer = answer(&source).map_err(|problems| {
            // The text may hold secrets.
            let told = problems.into_iter().map(|problem| without_excerpt(problem).to_string());
            told.collect::<Vec<_>>().join("\n").trim_start_matches("error: ").to_owned()
        })?;
        if answer.kind != "ExecCredential" || answer.api_version != self.api_version {
            let (version, kind) = (clip(&answer.api_version), clip(&answer.kind));
            let wanted = &self.api_version;
            return Err(format!(
                "{name} was asked for an ExecCredential of {wanted}, and gave {kind} of {version}"
            ));
        }
        answer.status.credential().map_err(|why| format!("{name} {why}"))
    }
}

impl fmt::Display for ExecConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.command.display())
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    #[serde(default)]
    status: Status,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    expiration_timestamp: Option<Timestamp>,
    token: String,
    client_certificate_data: String,
    client_key_data: String,
}

fn answer(source: &Source) -> Result<Answer, Problems> {
    let documents = read(source)?;
    let nothing = || supercargo_manifest::Problem::error(format!("{} gave nothing", source.name));
    let document = documents.first().ok_or_else(nothing)?;
    decode(source, document, "", UnknownFields::Ignore)
}

impl Status {
    fn credential(self) -> Result<Credential, &'static str> {
        let identity = match (self.client_certificate_data, self.client_key_data) {
            (certificate, key) if certificate.is_empty() && key.is_empty() => None,
            (certificate, key) if !certificate.is_empty() && !key.is_empty() => {
                Some(Identity { certificate: certificate.into(), key: key.into() })
            }
            _ => return Err("gave a client certificate without its key, or a key without its certificate"),
        };
        let token = match self.token.trim() {
            "" if identity.is_none() => return Err("gave neither a token nor a client certificate"),
            "" => Credential::default(),
            token => Credential::bearer(token).map_err(|_| "gave a token that cannot be sent")?,
        };
        Ok(Credential { identity, expires: self.expiration_timestamp, ..token })
    }
}
