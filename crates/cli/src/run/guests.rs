//! Plugins in WebAssembly while the scheduler runs: what happens to them is logged and counted, and their files are watched.

use std::sync::Arc;

use supercargo_framework::handle::LogLevel;
use supercargo_live::scheduler::PODS_TARGET;
use supercargo_manifest::Problem;
use supercargo_server::metrics::{Metrics, Reload};
use supercargo_wasm::{GuestEvent, Host, ReloadWatch};

/// Follows the guests until the answer is dropped, and says which of them judge otherwise from now on.
pub(super) fn follow(
    host: &Host,
    metrics: Arc<Metrics>,
    changed: impl Fn(&str) + Send + Sync + 'static,
) -> Result<ReloadWatch, Problem> {
    host.listen(move |event| {
        tell(event, &metrics);
        if let GuestEvent::Reloaded { plugin, .. } = event {
            changed(plugin);
        }
    });
    host.watch().map_err(|error| Problem::error(format!("cannot watch the files of guests: {error}")))
}

fn tell(event: &GuestEvent<'_>, metrics: &Metrics) {
    match *event {
        // The pod's own log line and event tell the rest.
        GuestEvent::Failed { plugin, why } => {
            tracing::debug!(plugin, why, "a guest failed");
            metrics.own.guest_failed(plugin);
        }
        GuestEvent::Reloaded { plugin, file } => {
            tracing::info!(plugin, file = %file.display(), "the guest's file has changed: the new one takes over");
            metrics.own.guest_reloaded(plugin, Reload::Loaded);
        }
        GuestEvent::Refused { plugin, file, why } => {
            let file = file.display();
            tracing::warn!(plugin, %file, why, "the guest's file has changed and cannot be used: the old one stays");
            metrics.own.guest_reloaded(plugin, Reload::Refused);
        }
        // A guest is called for every pod: what it says is bounded as lines about pods are.
        GuestEvent::Logged { plugin, level, line } => match level {
            LogLevel::Error => tracing::error!(target: PODS_TARGET, plugin, "{line}"),
            LogLevel::Warn => tracing::warn!(target: PODS_TARGET, plugin, "{line}"),
            LogLevel::Info => tracing::info!(target: PODS_TARGET, plugin, "{line}"),
        },
        GuestEvent::LeftOut { plugin, lines } => {
            tracing::info!(target: PODS_TARGET, plugin, lines, "the guest logged more in one call than is written");
        }
    }
}
