//! Prefers nodes with a kind of disk that the configuration names, and among them those with more room for the pod; and
//! keeps pods off nodes that are in maintenance.
//!
//! ```yaml
//! profiles:
//! - plugins:
//!     multiPoint: {enabled: [{name: DiskAndRoom, weight: 2}]}
//!   pluginConfig:
//!   - name: DiskAndRoom
//!     args: {path: example_guest.wasm, args: {disk: ssd}}
//! ```

use serde::Deserialize;
use supercargo_guest::{Args, Attributes, Column, Nodes, Plugin, Pod, PodAttribute, Text, Verdict, Verdicts};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The value of the label `disk` that is preferred.
    disk: String,
}

/// The plugin.
pub struct DiskAndRoom {
    preferred: Text,
    disk: Column<Text>,
    maintenance: Column<Text>,
    cpu: Column<f64>,
    free_cpu: Column<f64>,
    memory: Column<f64>,
    free_memory: Column<f64>,
    wanted_cpu: PodAttribute<f64>,
    wanted_memory: PodAttribute<f64>,
    in_maintenance: Text,
}

impl Plugin for DiskAndRoom {
    fn new(args: Args<'_>, attributes: &mut Attributes) -> Result<Self, String> {
        let Arguments { disk } = args.read()?;
        Ok(Self {
            preferred: attributes.text(&disk),
            disk: attributes.node("label:disk"),
            maintenance: attributes.node("annotation:maintenance"),
            cpu: attributes.node("allocatable:cpu"),
            free_cpu: attributes.node("free:cpu"),
            memory: attributes.node("allocatable:memory"),
            free_memory: attributes.node("free:memory"),
            wanted_cpu: attributes.pod("request:cpu"),
            wanted_memory: attributes.pod("request:memory"),
            in_maintenance: attributes.text("node(s) were in maintenance"),
        })
    }

    fn filter(&self, _: &Pod<'_>, nodes: &Nodes<'_>, verdicts: &mut Verdicts<'_>) -> Result<(), String> {
        let maintenance = nodes.column(self.maintenance);
        for row in nodes.asked().filter(|row| !maintenance[*row].is_absent()) {
            verdicts.refuse(row, Verdict::Unresolvable, self.in_maintenance);
        }
        Ok(())
    }

    /// Half of the points for the disk, a quarter each for the share of cpu and memory that stays free.
    fn score(&self, pod: &Pod<'_>, nodes: &Nodes<'_>, scores: &mut [i64]) -> Result<(), String> {
        let (wanted_cpu, wanted_memory) = (pod.get(self.wanted_cpu), pod.get(self.wanted_memory));
        let disks = nodes.column(self.disk);
        let cpu = nodes.column(self.cpu).iter().zip(nodes.column(self.free_cpu));
        let memory = nodes.column(self.memory).iter().zip(nodes.column(self.free_memory));
        for (((score, disk), (cpu, free_cpu)), (memory, free_memory)) in
            scores.iter_mut().zip(disks).zip(cpu).zip(memory)
        {
            let room = share(free_cpu - wanted_cpu, *cpu) + share(free_memory - wanted_memory, *memory);
            let disk = if *disk == self.preferred { 50 } else { 0 };
            *score = i64::from(disk + (25.0 * room) as i32);
        }
        Ok(())
    }
}

/// From 0 to 1; 0 of nothing, which is not a number and so not above 0.
fn share(part: f64, whole: f64) -> f64 {
    let share = part / whole;
    let share = if share > 1.0 { 1.0 } else { share };
    if share > 0.0 { share } else { 0.0 }
}

supercargo_guest::plugin!(DiskAndRoom: filter, score);

#[cfg(test)]
mod tests {
    use super::*;
    use supercargo_guest::testing::{Attribute, Scene};

    const GI: i64 = 1 << 30;

    fn node(disk: &str, free_cpu: i64, free_memory: i64) -> Vec<(&'static str, Attribute)> {
        vec![
            ("label:disk", disk.into()),
            ("allocatable:cpu", 4000.into()),
            ("free:cpu", free_cpu.into()),
            ("allocatable:memory", (8 * GI).into()),
            ("free:memory", free_memory.into()),
        ]
    }

    #[test]
    fn scores_disk_and_room() {
        let scene = Scene::<DiskAndRoom>::new(r#"{"disk": "ssd"}"#).unwrap();
        let scene = scene
            .pod(&[("request:cpu", 1000.into()), ("request:memory", GI.into())])
            // 50 + 25 × (3000 ÷ 4000 + 7 ÷ 8) = 50 + 40.6
            .node(&node("ssd", 4000, 8 * GI))
            // 25 × (1000 ÷ 4000 + 3 ÷ 8) = 15.6
            .node(&node("hdd", 2000, 4 * GI))
            // More is asked for than there is: 0 for that share, and 25 × 0 for the other
            .node(&node("hdd", 0, GI));
        assert_eq!(scene.scores(), Ok(Some(vec![90, 15, 0])));
    }

    #[test]
    fn refuses_nodes_in_maintenance() {
        let scene = Scene::<DiskAndRoom>::new(r#"{"disk": "ssd"}"#).unwrap();
        let scene = scene.node(&[]).node(&[("annotation:maintenance", "tonight".into())]);
        let refused = (Verdict::Unresolvable, "node(s) were in maintenance".to_owned());
        assert_eq!(scene.verdicts(), Ok(vec![(Verdict::Fit, String::new()), refused]));
    }

    #[test]
    fn says_what_is_wrong_with_its_arguments() {
        let wrong = Scene::<DiskAndRoom>::new(r#"{"disc": "ssd"}"#).err().unwrap();
        assert!(wrong.contains("unknown field `disc`"), "{wrong}");
    }
}
