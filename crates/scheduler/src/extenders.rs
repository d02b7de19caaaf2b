//! The way to each extender.

use std::sync::Arc;

use supercargo_config::{Configuration, Extender};
use supercargo_engine::extender_calls::ExtenderRole;
use supercargo_extender::{Clock, Extenders, Http, Transport, Watcher};
use supercargo_manifest::Problem;

/// The configured extenders, over HTTP.
pub fn extenders(
    configuration: &Configuration,
    clock: Arc<dyn Clock>,
    watcher: Arc<dyn Watcher>,
) -> Result<Extenders, Problem> {
    let way = |extender: &Extender| match Http::new(extender) {
        Ok(http) => Ok(Arc::new(http) as Arc<dyn Transport>),
        Err(unusable) => Err(Problem::error(unusable.what).hint(unusable.hint)),
    };
    Extenders::new(&configuration.extenders, way, clock, watcher)
}

/// What the engine has to know of extenders.
pub fn roles(extenders: &Extenders) -> Vec<ExtenderRole> {
    extenders.all().iter().map(|extender| extender.role().clone()).collect()
}
