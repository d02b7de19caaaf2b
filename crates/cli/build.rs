//! How the command is linked.

use std::env;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=RUSTC_LINKER");
    if is_linked_by_lld() && env::var("PROFILE").as_deref() == Ok("release") {
        // Code that is not optimised has very many functions that are alike to the byte: keeping one of each saves a fifth of the binary.
        println!("cargo::rustc-link-arg-bins=-Wl,--icf=all");
        if is_quick_build() && loads_packed_relocations() {
            // A tenth of what is left.
            println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
        }
    }
}

/// Rust brings lld along for this target, unless somebody has chosen another linker.
fn is_linked_by_lld() -> bool {
    let target = env::var("TARGET").unwrap_or_default();
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    let chosen = env::var_os("RUSTC_LINKER").is_some() || flags.contains("link");
    target == "x86_64-unknown-linux-gnu" && !chosen
}

/// Of the profile to try things with, for this machine; what is released (`dist`) has to start with older C libraries too.
fn is_quick_build() -> bool {
    env::var("OPT_LEVEL").as_deref() == Ok("0")
}

/// Whether this machine's C library loads them: glibc from 2.36 on.
fn loads_packed_relocations() -> bool {
    let Ok(answer) = Command::new("getconf").arg("GNU_LIBC_VERSION").output() else { return false };
    let text = String::from_utf8_lossy(&answer.stdout);
    let version: Vec<u32> =
        text.trim().trim_start_matches("glibc ").split('.').map_while(|part| part.parse().ok()).collect();
    version.as_slice() >= [2, 36].as_slice()
}
