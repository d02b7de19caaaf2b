//! Flags of our own: what a running scheduler keeps and tells about its decisions.

use std::path::PathBuf;

use clap::Args;
use supercargo_model::Quantity;

const HEADING: &str = "Decisions (Supercargo extensions)";

/// What is kept and told about decisions.
#[derive(Args, Clone, Debug)]
pub(crate) struct DecisionOptions {
    /// How many decisions are kept in brief for /supercargo/v1/decisions; 0 keeps none
    #[arg(long, value_name = "N", default_value_t = 1000, help_heading = HEADING)]
    pub(crate) decisions_kept: usize,

    /// How much memory they may take
    #[arg(long, value_name = "SIZE", default_value = "4Mi", value_parser = size, help_heading = HEADING)]
    pub(crate) decisions_kept_bytes: u64,

    /// Write every decision in full to a file, a JSON object a line. Every pod is then decided on the full path, which is
    /// slower and comes to the same
    #[arg(long, value_name = "FILE", help_heading = HEADING)]
    pub(crate) decision_log: Option<PathBuf>,

    /// How large the file gets before a new one is begun
    #[arg(long, value_name = "SIZE", default_value = "100Mi", value_parser = size, help_heading = HEADING)]
    pub(crate) decision_log_max_size: u64,

    /// How many such files there are at most
    #[arg(long, value_name = "N", default_value_t = 5, help_heading = HEADING)]
    pub(crate) decision_log_files: usize,

    /// Say in the Scheduled event why this node, too; kube-scheduler does not
    #[arg(long, help_heading = HEADING)]
    pub(crate) explain_in_events: bool,

    /// Do not serve the page for browsers at /ui/
    #[arg(long, help_heading = HEADING)]
    pub(crate) no_ui: bool,
}

/// A number of bytes as Kubernetes writes it: 500k, 100Mi.
fn size(text: &str) -> Result<u64, String> {
    let quantity: Quantity =
        text.parse().map_err(|error: supercargo_model::quantity::QuantityError| error.to_string())?;
    u64::try_from(quantity.value()).map_err(|_| "must not be negative".to_owned())
}
