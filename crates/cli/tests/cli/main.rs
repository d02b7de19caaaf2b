//! The command as people run it: the real binary, what it prints, and how it exits.

mod bad_input;
mod bench;
mod boundaries;
mod capacity;
mod config;
mod conformance;
mod deploy;
mod dynamic_scoring;
mod explain;
mod guests;
mod invocation;
mod load_test;
mod placement_tests;
mod replay;
mod run;
mod shell;
mod simulate;
