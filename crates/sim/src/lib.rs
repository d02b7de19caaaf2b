//! Offline clusters: what would be placed where, what was placed where in a trace, and whether that is what
//! kube-scheduler answered.
//!
//! Texts come in, results go out: files are the caller's.

pub mod bench;
pub mod capacity;
pub mod compare;
pub mod configurations;
pub mod conformance;
pub mod explanation;
pub mod measures;
pub mod placement_tests;
pub mod priority_classes;
pub mod replay;
pub mod report;
pub mod resource_claims;
pub mod sampling;
pub mod selectors;
pub mod simulate;
pub mod trace;
pub mod tune;
pub mod utilisation;
pub mod what_if;
pub mod workloads;
