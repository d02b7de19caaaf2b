//! The scheduler: all of supercargo's commands, with the plugins of this crate.

fn main() -> std::process::ExitCode {
    supercargo::main(example_scheduler::register)
}
