//! How the API server is found, and who we are to it.

use std::{
    ffi::{OsStr, OsString},
    fmt,
    path::{Path, PathBuf},
};

use http::Uri;
use supercargo_manifest::{Problem, Problems};

use super::{in_cluster, kubeconfig::Kubeconfig, target::Target};

/// How to reach the API server. The default asks the environment, and does not throttle.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RestConfig {
    /// A kubeconfig file, from the command line or the configuration's `clientConnection`. Without it: the files that
    /// `KUBECONFIG` names, the cluster that the process runs in, `~/.kube/config`, in this order.
    pub kubeconfig: Option<PathBuf>,
    /// A context of the kubeconfig, instead of its current one. With it, the cluster that the process runs in is not asked.
    pub context: Option<String>,
    /// The server's address, instead of the kubeconfig's. Alone it is enough: no kubeconfig is looked for then.
    pub master: Option<String>,
    /// Requests in a second, watches not counted; `None` does not throttle: the API server's own priority and fairness
    /// sees to that better. kube-scheduler's 50 is honoured where a configuration says so.
    pub queries_per_second: Option<f32>,
    /// Requests at once beyond that.
    pub burst: u32,
}

/// The API server cannot even be asked.
#[derive(Debug, PartialEq)]
pub struct Unreachable(Problems);

impl fmt::Display for Unreachable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Whoever shows this says that it is an error.
        f.write_str(self.0.to_string().trim_start_matches("error: "))
    }
}

impl std::error::Error for Unreachable {}

impl From<Problem> for Unreachable {
    fn from(problem: Problem) -> Self {
        Self(problem.into())
    }
}

impl From<Unreachable> for Problems {
    fn from(unreachable: Unreachable) -> Self {
        unreachable.0
    }
}

/// The variables of an environment.
pub(super) type Environment<'e> = &'e dyn Fn(&str) -> Option<OsString>;

/// Finds the server and the credentials.
pub(super) fn find(access: &RestConfig, environment: Environment<'_>) -> Result<Target, Unreachable> {
    let master = access.master.as_deref().filter(|master| !master.is_empty());
    let master = master.map(|master| address(master, "http").ok_or_else(|| senseless(master))).transpose()?;
    let is_alone = access.kubeconfig.is_none() && access.context.is_none();
    if is_alone && let Some(master) = master {
        return Ok(Target::plain(master, environment)?);
    }
    let named = environment("KUBECONFIG").filter(|files| !files.is_empty());
    if is_alone
        && named.is_none()
        && let Some(pod) = in_cluster::find(environment)?
    {
        return Ok(pod);
    }
    let kubeconfig = match (&access.kubeconfig, &named) {
        (Some(file), _) => of_file(file)?,
        (None, Some(files)) => merged(files)?,
        (None, None) => of_home(environment)?,
    };
    let chosen = kubeconfig.choose(access.context.as_deref())?;
    Ok(Target::chosen(&chosen, master, environment)?)
}

/// Reads an address such as `https://10.0.0.1:6443`; the scheme may be left out.
pub(super) fn address(text: &str, scheme: &str) -> Option<Uri> {
    let full = if text.contains("://") { text.to_owned() } else { format!("{scheme}://{text}") };
    let uri = full.parse::<Uri>().ok()?;
    let makes_sense = uri.host().is_some() && matches!(uri.scheme_str(), Some("http" | "https"));
    makes_sense.then_some(uri)
}

fn senseless(master: &str) -> Problem {
    Problem::error(format!("the master's address makes no sense: {master}"))
        .hint("write it like https://10.0.0.1:6443")
}

fn of_file(file: &Path) -> Result<Kubeconfig, Unreachable> {
    const HINT: &str =
        "name another file with --kubeconfig, or with clientConnection.kubeconfig in the configuration";
    Kubeconfig::open(file).map_err(|problems| {
        let hinted = problems.into_iter().map(|problem| match problem.hint {
            None => problem.hint(HINT),
            Some(_) => problem,
        });
        Unreachable(hinted.collect())
    })
}

fn of_home(environment: Environment<'_>) -> Result<Kubeconfig, Unreachable> {
    let home = environment("HOME").map(|home| Path::new(&home).join(".kube").join("config"));
    match home.filter(|file| file.exists()) {
        Some(file) => of_file(&file),
        None => Err(nowhere("not in a pod, KUBECONFIG is not set, and there is no ~/.kube/config").into()),
    }
}

/// What several files say together. Some may not be there, as with kubectl, but not all.
fn merged(files: &OsStr) -> Result<Kubeconfig, Unreachable> {
    let files: Vec<_> = std::env::split_paths(files).filter(|file| !file.as_os_str().is_empty()).collect();
    let (there, missing): (Vec<_>, Vec<_>) = files.iter().partition(|file| file.exists());
    if there.is_empty() {
        let names: Vec<_> = files.iter().map(|file| file.display().to_string()).collect();
        return Err(nowhere(&format!("KUBECONFIG names {}, and nothing is there", names.join(", "))).into());
    }
    for file in missing {
        tracing::warn!(file = %file.display(), "KUBECONFIG names a file that is not there");
    }
    let mut merged = Kubeconfig::default();
    for file in there {
        merged.merge(Kubeconfig::open(file).map_err(Unreachable)?);
    }
    Ok(merged)
}

fn nowhere(why: &str) -> Problem {
    Problem::error(format!("no cluster to work for: {why}"))
        .hint("name a kubeconfig with --kubeconfig or KUBECONFIG, or a server with --master")
}

#[cfg(test)]
mod tests;
