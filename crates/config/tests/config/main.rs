//! What this crate promises, with the plugins that really exist.

mod conformance;
mod legacy;
mod meaning;
mod policy;
mod properties;
mod reports;
mod schema;
mod written;

use supercargo_config::{Loaded, load};
use supercargo_manifest::{Problems, Source};

/// Loads a configuration of which only the lines after the kind are given.
fn load_v1(lines: &str) -> Result<Loaded, Problems> {
    let text =
        format!("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n{lines}");
    load(&Source::new("config.yaml", text), &supercargo_plugins::registry())
}
