//! How the command is linked.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=RUSTC_LINKER");
    if is_linked_by_lld() && env::var("PROFILE").as_deref() == Ok("release") {
        // Code that is not optimised has very many functions that are alike to the byte: keeping one of each saves a fifth of the binary.
        println!("cargo::rustc-link-arg-bins=-Wl,--icf=all");
    }
}

/// Rust brings lld along for this target, unless somebody has chosen another linker.
fn is_linked_by_lld() -> bool {
    let target = env::var("TARGET").unwrap_or_default();
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    let chosen = env::var_os("RUSTC_LINKER").is_some() || flags.contains("link");
    target == "x86_64-unknown-linux-gnu" && !chosen
}
