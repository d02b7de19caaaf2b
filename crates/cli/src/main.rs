//! The supercargo command with the plugins that kube-scheduler comes with.

use std::process::ExitCode;

/// Columns come and go with shapes: the system's allocator gives their pages back and asks for them again.
#[global_allocator]
static MEMORY: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    supercargo::main(|_| {})
}
