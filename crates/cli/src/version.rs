//! `supercargo version`: what this command is, and which kube-scheduler it matches.

use clap::Args;
use serde::Serialize;

use crate::{
    arguments::DocumentFormat,
    failure::{Ending, Failure},
    output::Console,
};

/// The release of this command.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The commit that it was built from; empty where that is not known (`build.rs`).
pub(crate) const COMMIT: &str = env!("SUPERCARGO_COMMIT");
/// The kube-scheduler whose verdicts and scores it gives.
pub(crate) const KUBERNETES: &str = "v1.36.4";

/// What `version` is told.
#[derive(Args)]
pub(crate) struct Options {
    /// How it is printed
    #[arg(long, short, value_enum, default_value_t, value_name = "FORMAT")]
    output: DocumentFormat,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Version {
    version: &'static str,
    git_commit: Option<&'static str>,
    kube_scheduler: &'static str,
    rust: &'static str,
    platform: &'static str,
}

/// Prints the version.
pub(crate) fn run(options: &Options, console: &mut Console) -> Result<Ending, Failure> {
    let version = Version {
        version: VERSION,
        git_commit: (!COMMIT.is_empty()).then_some(COMMIT),
        kube_scheduler: KUBERNETES,
        rust: env!("SUPERCARGO_RUST"),
        platform: env!("SUPERCARGO_TARGET"),
    };
    match options.output.structured(true) {
        Some(how) => console.structured(how, &version)?,
        None => {
            console.line(format!("supercargo      {VERSION}"))?;
            console.line(format!("git commit      {}", version.git_commit.unwrap_or("unknown")))?;
            console.line(format!("kube-scheduler  {KUBERNETES} (same verdicts and scores)"))?;
            console.line(format!("built with      Rust {} for {}", version.rust, version.platform))?;
        }
    }
    Ok(Ending::Well)
}
