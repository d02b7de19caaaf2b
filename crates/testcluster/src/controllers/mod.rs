//! What happens in a cluster by itself, pretended: kubelets, volumes, workloads, budgets, claims to devices and their driver.

mod budgets;
mod claims;
mod drivers;
mod follow;
mod kubelet;
mod volumes;
mod workloads;

use std::sync::Arc;

use futures_util::future::BoxFuture;

use crate::api::Api;
use crate::options::TestClusterOptions;

/// Starts the controllers that the options ask for, each as a task that never ends.
pub(crate) fn start(
    api: &Arc<Api>,
    options: &TestClusterOptions,
    mut spawn: impl FnMut(BoxFuture<'static, ()>),
) {
    if let Some(kubelets) = &options.kubelets {
        spawn(Box::pin(kubelet::run(api.clone(), kubelets.clone())));
        if let Some(interval) = kubelets.heartbeat {
            spawn(Box::pin(kubelet::beat(api.clone(), interval)));
        }
    }
    if let Some(delay) = options.volumes {
        spawn(Box::pin(volumes::run(api.clone(), delay)));
    }
    if options.workloads {
        spawn(Box::pin(workloads::run(api.clone())));
    }
    if options.budgets {
        spawn(Box::pin(budgets::run(api.clone())));
    }
    if options.claims {
        spawn(Box::pin(claims::run(api.clone())));
    }
    if let Some(driver) = &options.driver {
        spawn(Box::pin(drivers::run(api.clone(), driver.clone())));
    }
}
