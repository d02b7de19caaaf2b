//! The contract with plugins: profiles of made-up ones, and the loops over columns.

mod contract;
mod events;
mod filtering;
mod handle;
mod scoring;
mod support;
mod vector;
