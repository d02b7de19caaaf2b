//! The live scheduler as an operator runs it: the real binary, on an API server.
//!
//! The server is in memory, and things go wrong in it on purpose. With `SUPERCARGO_E2E_KUBECONFIG` set, the scenarios that
//! need nothing to go wrong run on that cluster instead, next to whatever else lives there.

mod client;
mod draft;
mod extender;
mod process;
mod stage;

mod asking;
mod churn;
mod crowds;
mod devices;
mod dry_run;
mod dynamic_scoring;
mod election;
mod exhaustion;
mod extenders;
mod faults;
mod filters;
mod guests;
mod hostile;
mod load;
mod logs;
mod preemption;
mod pressure;
mod processes;
mod queueing;
mod recording;
mod scenarios;
mod serving;
mod tells;
mod tracing;
mod volumes;
