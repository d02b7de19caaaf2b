//! Write a plugin of the Supercargo scheduler in Rust, and run it as WebAssembly: without building the scheduler anew.
//!
//! A plugin is one trait and one macro. When it starts it asks for the attributes that it reads; after that it is called once
//! for a pod and all nodes, and every attribute is a slice with a row for each node.
//!
//! ```
//! use supercargo_guest::{Args, Column, Attributes, Nodes, Plugin, Pod, PodAttribute, Text};
//!
//! /// Prefers nodes with the pod's favourite disk, and among them those with free cpu.
//! struct FavouriteDisk {
//!     disk: Column<Text>,
//!     free: Column<f64>,
//!     cpu: Column<f64>,
//!     wanted: PodAttribute<Text>,
//! }
//!
//! impl Plugin for FavouriteDisk {
//!     fn new(_: Args<'_>, attributes: &mut Attributes) -> Result<Self, String> {
//!         Ok(Self {
//!             disk: attributes.node("label:disk"),
//!             free: attributes.node("free:cpu"),
//!             cpu: attributes.node("allocatable:cpu"),
//!             wanted: attributes.pod("label:disk"),
//!         })
//!     }
//!
//!     fn score(&self, pod: &Pod<'_>, nodes: &Nodes<'_>, scores: &mut [i64]) -> Result<(), String> {
//!         let wanted = pod.get(self.wanted);
//!         let columns = nodes.column(self.disk).iter().zip(nodes.column(self.free)).zip(nodes.column(self.cpu));
//!         for (score, ((disk, free), cpu)) in scores.iter_mut().zip(columns) {
//!             let favourite = if *disk == wanted { 50.0 } else { 0.0 };
//!             *score = (favourite + (50.0 * free / cpu.max(1.0)).max(0.0)) as i64;
//!         }
//!         Ok(())
//!     }
//! }
//!
//! supercargo_guest::plugin!(FavouriteDisk: score);
//! ```
//!
//! Build it with `crate-type = ["cdylib"]` for `wasm32-unknown-unknown`, and name the file in the configuration. With
//! `RUSTFLAGS="-C target-feature=+simd128"` loops such as this one use vector instructions.
//!
//! Plugins can be tested without a host: see [`testing`].

mod attributes;
mod exports;
mod memory;
mod plugin;
pub mod testing;
mod view;

pub use attributes::{Args, Attributes, Column, PodAttribute, Value};
pub use plugin::{Plugin, PreScore};
pub use view::{Nodes, Pod, Text, Verdict, Verdicts};

/// The older name of [`Attributes`].
#[deprecated(note = "use Attributes")]
pub type Facts = Attributes;
/// The older name of [`PodAttribute`].
#[deprecated(note = "use PodAttribute")]
pub type PodFact<T> = PodAttribute<T>;

/// What the macro needs; not for plugins.
#[doc(hidden)]
pub mod exported {
    pub use crate::{
        exports::{filter, init, normalize, pre_score, score},
        memory::{allocate, panic_says_why},
    };
}

/// The guest in Rust that the page on the ABI shows is compiled with the tests.
#[cfg(doctest)]
#[doc = include_str!("../../wasm/ABI.md")]
struct AbiPage;

/// How important a line for the scheduler's log is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogLevel {
    /// Good to know.
    Info = 0,
    /// Odd.
    Warn = 1,
    /// Wrong.
    Error = 2,
}

/// Writes a line to the scheduler's log, under the plugin's name. A call may log 16 lines of 1 KiB each; more are counted.
pub fn log(level: LogLevel, line: &str) {
    memory::host::log(level as u32, line);
}

/// The version of the ABI that this crate speaks.
pub const ABI_VERSION: u32 = 1;

/// Makes a type the plugin of this module, for the named steps: `filter`, `pre_score`, `score` and `normalize`. They decide
/// where a configuration can enable it.
///
/// ```
/// # use supercargo_guest::*;
/// # struct Nothing;
/// # impl Plugin for Nothing { fn new(_: Args<'_>, _: &mut Attributes) -> Result<Self, String> { Ok(Self) } }
/// supercargo_guest::plugin!(Nothing: filter, score, normalize);
/// ```
#[macro_export]
macro_rules! plugin {
    ($plugin:ty: $($step:ident),+ $(,)?) => {
        #[cfg(target_arch = "wasm32")]
        const _: () = {
            ::std::thread_local! {
                static PLUGIN: ::std::cell::OnceCell<$plugin> = const { ::std::cell::OnceCell::new() };
            }

            #[unsafe(no_mangle)]
            extern "C" fn supercargo_abi() -> u32 {
                $crate::ABI_VERSION
            }

            #[unsafe(no_mangle)]
            extern "C" fn supercargo_alloc(bytes: u32) -> u32 {
                $crate::exported::allocate(bytes)
            }

            #[unsafe(no_mangle)]
            extern "C" fn supercargo_init(args: u32, length: u32) -> u32 {
                $crate::exported::panic_says_why();
                $crate::exported::init(&PLUGIN, args, length)
            }

            $($crate::plugin!(@export $step PLUGIN);)+
        };
        // Other targets only see to it that it is a plugin and that its steps exist.
        #[cfg(not(target_arch = "wasm32"))]
        const _: () = {
            fn is_a_plugin<T: $crate::Plugin>() {}
            let _ = is_a_plugin::<$plugin>;
            $($crate::plugin!(@name $step);)+
        };
    };
    (@export filter $cell:ident) => {
        #[unsafe(no_mangle)]
        extern "C" fn supercargo_filter(frame: u32) -> u32 {
            $crate::exported::filter(&$cell, frame)
        }
    };
    (@export pre_score $cell:ident) => {
        #[unsafe(no_mangle)]
        extern "C" fn supercargo_pre_score(frame: u32) -> u32 {
            $crate::exported::pre_score(&$cell, frame)
        }
    };
    (@export score $cell:ident) => {
        #[unsafe(no_mangle)]
        extern "C" fn supercargo_score(frame: u32) -> u32 {
            $crate::exported::score(&$cell, frame)
        }
    };
    (@export normalize $cell:ident) => {
        #[unsafe(no_mangle)]
        extern "C" fn supercargo_normalize(frame: u32) -> u32 {
            $crate::exported::normalize(&$cell, frame)
        }
    };
    (@name filter) => {};
    (@name pre_score) => {};
    (@name score) => {};
    (@name normalize) => {};
}
