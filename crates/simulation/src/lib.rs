//! The whole scheduler and the test cluster in one thread on virtual time, and scenarios that are played on them.
//!
//! The scheduler is the one that runs in production ([`supercargo_scheduler::start`]), and the API server answers with the
//! code that serves HTTP; only the way between them and the time are simulated. The same seed leads to the same course of
//! things.
//!
//! A [`scenario`] says what is done to a cluster and when to look; what is seen is compared with what kube-scheduler did. It
//! can be played on any [`Stage`](scenario::Stage): the simulation, or a real process over TCP.

pub mod clock;
pub mod random;
pub mod scenario;
pub mod scheduler;
pub mod soak;
pub mod world;
