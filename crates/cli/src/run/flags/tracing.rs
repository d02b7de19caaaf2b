//! Flags of our own: spans for a collector.

use clap::Args;

const HEADING: &str = "Tracing (Supercargo extensions)";

/// Where spans go, and how many.
#[derive(Args, Clone, Debug)]
pub(crate) struct TracingOptions {
    /// Export spans of scheduling attempts to a collector by OTLP over HTTP, such as http://localhost:4318
    #[arg(long, value_name = "URL", help_heading = HEADING)]
    pub(crate) tracing_endpoint: Option<String>,

    /// Of how many attempts in a million
    #[arg(long, value_name = "N", default_value_t = 1_000_000, help_heading = HEADING)]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    pub(crate) tracing_sampling_rate_per_million: u32,
}
