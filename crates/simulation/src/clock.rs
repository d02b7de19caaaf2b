//! The test cluster on virtual time.

use std::{sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use supercargo_framework::virtual_time::{Executor, VirtualClock};
use supercargo_testcluster::{ApiServer, Clock, TestClusterOptions};

/// An API server as a process of an executor, on its time.
pub fn api_server(executor: &Executor, options: &TestClusterOptions) -> ApiServer {
    let (clock, process) = (SimulatedClock(executor.clock().clone()), executor.process());
    ApiServer::new(options, Arc::new(clock), |task| executor.spawn(process, task))
}

/// The test cluster's clock: one that the executor moves.
struct SimulatedClock(VirtualClock);

impl Clock for SimulatedClock {
    fn now(&self) -> Timestamp {
        self.0.now()
    }

    fn uptime(&self) -> Duration {
        self.0.uptime()
    }

    fn sleep(&self, span: Duration) -> BoxFuture<'static, ()> {
        self.0.sleep(span)
    }
}
