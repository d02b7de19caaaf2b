//! Binds pods in the ordinary way: one binding, sent to whoever keeps the cluster.

use std::sync::Arc;

use supercargo_framework::{
    Status,
    handle::{Effect, HandleRef},
    points::{Bind, BindOutcome, Binding},
    registry::Args,
};
use supercargo_model::{Name, Pod};

/// The plugin's name.
pub const NAME: &str = "DefaultBinder";

/// The plugin.
pub struct DefaultBinder(HandleRef);

impl DefaultBinder {
    /// Binds through the handle that comes with the arguments.
    pub fn new(args: &Args<'_>) -> Self {
        Self(args.handle())
    }
}

impl Bind for DefaultBinder {
    fn bind<'a>(&'a self, pod: &'a Arc<Pod>, node: &'a Name) -> Effect<'a, Result<BindOutcome, Status>> {
        Box::pin(async move {
            self.0.connected()?.bind(Binding::new(pod, node)).await?;
            Ok(BindOutcome::Done)
        })
    }
}
