//! The command as people run it: the real binary, what it prints, and how it exits.

mod bad_input;
mod bench;
mod config;
mod conformance;
mod explain;
mod invocation;
mod shell;
mod simulate;
