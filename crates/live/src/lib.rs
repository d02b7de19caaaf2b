//! The scheduler against an API server: what it reads, what it writes, and how it holds its lease.
//!
//! Everything that happens outside the process goes through one door, [`world::World`].

pub mod feed;
pub mod lease;
pub mod requests;
#[cfg(test)]
mod testing;
pub mod volumes;
pub mod world;
