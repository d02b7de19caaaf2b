//! The supercargo command with the plugins that kube-scheduler comes with.

use std::process::ExitCode;

fn main() -> ExitCode {
    supercargo::run(std::env::args_os(), &supercargo_plugins::registry())
}
