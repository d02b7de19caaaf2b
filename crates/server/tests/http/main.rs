//! What callers see, over real sockets.

mod access;
mod client;
mod health;
mod limits;
mod setup;
mod text;
mod tls;
mod zpages;
