//! The command as people run it: the real binary, what it prints, and how it exits.

mod bad_input;
mod bench;
mod boundaries;
mod capacity;
mod chart;
mod config;
mod conformance;
mod deploy;
mod documents;
mod dynamic_scoring;
mod explain;
mod extender_example;
mod guests;
mod invocation;
mod load_test;
mod manifests;
mod placement_tests;
mod release;
mod replay;
mod run;
mod shell;
mod simulate;
