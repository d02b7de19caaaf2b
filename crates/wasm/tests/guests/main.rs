//! Guests of all kinds, through the same doors as in production: a configuration, an engine, a decision.

mod abi_page;
mod attributes;
mod configuration;
mod fast_equals_slow;
mod hostile;
mod limits;
mod logging;
mod preemption;
mod reload;
mod rust;
mod support;
