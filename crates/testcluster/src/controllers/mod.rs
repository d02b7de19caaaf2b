//! What happens in a cluster by itself, pretended: kubelets, volumes, workloads.

mod follow;
mod kubelet;
mod volumes;
mod workloads;

use std::sync::Arc;

use tokio::runtime::Runtime;

use crate::api::Api;
use crate::options::Options;

/// Starts the controllers that the options ask for.
pub(crate) fn start(runtime: &Runtime, api: &Arc<Api>, options: &Options) {
    if let Some(kubelets) = &options.kubelets {
        runtime.spawn(kubelet::run(api.clone(), kubelets.clone()));
        if let Some(interval) = kubelets.heartbeat {
            runtime.spawn(kubelet::beat(api.clone(), interval));
        }
    }
    if let Some(delay) = options.volumes {
        runtime.spawn(volumes::run(api.clone(), delay));
    }
    if options.workloads {
        runtime.spawn(workloads::run(api.clone()));
    }
}
