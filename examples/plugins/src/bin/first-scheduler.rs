//! The scheduler of the tutorial's first steps.

use supercargo::{
    framework::{
        ScoreInput, Status,
        points::ScoreNode,
        registry::{Registry, define},
    },
    model::NodeInfo,
};

/// Prefers nodes with a fast disk.
struct FastDisk;

impl ScoreNode for FastDisk {
    fn score_node(&self, _: ScoreInput<'_>, node: &NodeInfo) -> Result<i64, Status> {
        let disk = node.node.labels.get("disk").map(|value| &**value);
        Ok(if disk == Some("ssd") { 100 } else { 0 })
    }
}

fn register(plugins: &mut Registry) {
    plugins.add(define("FastDisk", |_| Ok(FastDisk)).score());
}

fn main() -> std::process::ExitCode {
    supercargo::main(register)
}
