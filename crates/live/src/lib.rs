//! The scheduler against an API server: what it reads, what it writes, and how it holds its lease.
//!
//! Everything that happens outside the process goes through one door, [`world::World`].

pub mod events;
pub mod informer;
pub mod lease;
pub mod real;
pub mod recording;
pub mod requests;
pub mod scheduler;
pub mod status;
#[cfg(test)]
mod testing;
pub mod world;
