//! Which resources a score looks at, and how much each counts: an argument that several plugins have.

use serde::Deserialize;
use supercargo_framework::registry::Args;
use supercargo_manifest::Problem;
use supercargo_model::{Name, resources};

/// A resource and how much it counts.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct ResourceWeight {
    pub(crate) name: Name,
    /// 1 to 100. Absent, or 0: 1.
    #[serde(default)]
    pub(crate) weight: i64,
}

/// cpu and memory, if none are given; a weight of 1, where none is given.
pub(crate) fn with_defaults(given: Vec<ResourceWeight>) -> Vec<ResourceWeight> {
    if given.is_empty() {
        let default = |name: &str| ResourceWeight { name: name.into(), weight: 1 };
        return vec![default(resources::CPU), default(resources::MEMORY)];
    }
    let weigh = |resource: ResourceWeight| ResourceWeight {
        weight: if resource.weight == 0 { 1 } else { resource.weight },
        ..resource
    };
    given.into_iter().map(weigh).collect()
}

/// What is wrong with weights that stand at a field, such as `scoringStrategy.resources`.
pub(crate) fn problems(args: &Args<'_>, field: &str, all: &[ResourceWeight]) -> Vec<Problem> {
    let bad = |(_, resource): &(usize, &ResourceWeight)| !(1..=100).contains(&resource.weight);
    (all.iter().enumerate().filter(bad))
        .map(|(i, resource)| {
            let message = format!("must be in 1..=100, and is {}", resource.weight);
            args.problem(&format!("{field}[{i}].weight"), message)
        })
        .collect()
}
