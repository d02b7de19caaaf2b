//! Embeds the scheduler in a program of one's own, follows what it does, and asks it a question.
//!
//! `cargo run -p supercargo-scheduler --features live --example embed -- http://127.0.0.1:8001`

use std::{error::Error, sync::Arc};

use supercargo_live::{
    real::{RealWorld, RestConfig},
    scheduler::records::RecordKind,
    world::SharedWorld,
};
use supercargo_scheduler::{SchedulerOptions, start};

#[allow(clippy::print_stdout, reason = "it is a program")]
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let server = std::env::args().nth(1);
    schedule(RestConfig { master: server, ..RestConfig::default() }, |line| println!("{line}")).await
}

/// Schedules until a pod was placed, and says how it went.
pub(crate) async fn schedule(access: RestConfig, mut say: impl FnMut(String)) -> Result<(), Box<dyn Error>> {
    let registry = supercargo_plugins::registry();
    let configuration = supercargo_config::default_configuration(&registry)?;
    let world: SharedWorld = Arc::new(RealWorld::open(&access).await?);
    let scheduler = start(&world, &configuration, &registry, SchedulerOptions::default())?;
    let mut records = scheduler.records().follow();
    while let Some(delivery) = records.next().await {
        say(format!("{} {:?}", delivery.record.pod, delivery.record.what));
        if let RecordKind::Left { .. } = delivery.record.what {
            break;
        }
    }
    let waiting = scheduler.inspector().queue().await.unwrap_or_default();
    say(format!("{} pods wait", waiting.len()));
    scheduler.stop().await;
    Ok(())
}
