//! Plugins in WebAssembly: loaded from a file by the configuration, kept within limits, asked once about all nodes, and
//! replaced when their file changes.
//!
//! A guest is a core module with the exports and imports that `ABI.md` beside this crate describes. It asks for the attributes
//! that it reads when it starts; they lie as columns in its memory, and only what has changed is written again. A call is
//! one call for all nodes. The crate `supercargo-guest` is the other side, for guests in Rust.
//!
//! ```
//! use supercargo_framework::registry::Registry;
//!
//! let registry = Registry::default(); // … with the plugins that are built in
//! registry.load_others_with(supercargo_wasm::Host::default());
//! ```

mod attributes;
mod compiler;
mod complexity;
mod fast;
mod guest;
mod host;
mod instance;
mod module;
mod reload;
mod settings;
mod state;
#[cfg(feature = "testing")]
pub mod testing;
mod ticker;

pub use host::{GuestEvent, Host};
pub use reload::ReloadWatch;
