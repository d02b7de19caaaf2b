//! Builds the example guest in Rust, for tests and measurements: nothing binary is kept in the repository.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

const TARGET: &str = "wasm32-unknown-unknown";

/// The example guest of `examples/guest` as a module. It is built into a folder below the given one.
///
/// # Panics
/// If it cannot be built, with what the compiler said. The standard library for WebAssembly is fetched by `rustup` if it is
/// not there; whoever has no `rustup` must have it.
pub fn example_guest(folder: &Path) -> Vec<u8> {
    add_target();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    // A folder of its own, so that it does not wait for the build that runs this.
    let target: PathBuf = folder.join("example-guest");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    run(Command::new(cargo)
        .current_dir(root)
        .args(["build", "--package", "example-guest", "--release", "--locked", "--offline"])
        .args(["--target", TARGET, "--target-dir"])
        .arg(&target)
        // What was set for the host is not for the guest.
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .env("RUSTFLAGS", "-C target-feature=+simd128")
        .env("CARGO_PROFILE_RELEASE_DEBUG", "false")
        .env("CARGO_PROFILE_RELEASE_STRIP", "true"));
    let module = target.join(TARGET).join("release/example_guest.wasm");
    std::fs::read(&module).unwrap_or_else(|error| panic!("{}: {error}", module.display()))
}

fn add_target() {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let asked = Command::new(rustc).args(["--print", "target-libdir", "--target", TARGET]).output();
    let folder =
        asked.map(|asked| String::from_utf8_lossy(&asked.stdout).trim().to_owned()).unwrap_or_default();
    if !Path::new(&folder).is_dir() {
        run(Command::new("rustup").args(["target", "add", TARGET]));
    }
}

fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}:\n{}", String::from_utf8_lossy(&output.stderr));
}
