//! The way to each extender.

use std::sync::Arc;

use supercargo_config::{Configuration, Extender};
use supercargo_engine::extender_calls::ExtenderRole;
use supercargo_extender::{Clock, Extenders, Http, Transport, Watcher};
use supercargo_manifest::Problem;

/// The way to an extender as it is configured.
pub type ExtenderTransport = Arc<dyn Fn(&Extender) -> Result<Arc<dyn Transport>, Problem> + Send + Sync>;

/// Over HTTP.
pub fn over_http() -> ExtenderTransport {
    Arc::new(|extender| match Http::new(extender) {
        Ok(http) => Ok(Arc::new(http)),
        Err(unusable) => Err(Problem::error(unusable.what).hint(unusable.hint)),
    })
}

/// The configured extenders.
pub fn extenders(
    configuration: &Configuration,
    transport: &ExtenderTransport,
    clock: Arc<dyn Clock>,
    watcher: Arc<dyn Watcher>,
) -> Result<Extenders, Problem> {
    Extenders::new(&configuration.extenders, |extender: &Extender| transport(extender), clock, watcher)
}

/// What the engine has to know of extenders.
pub fn roles(extenders: &Extenders) -> Vec<ExtenderRole> {
    extenders.all().iter().map(|extender| extender.role().clone()).collect()
}
