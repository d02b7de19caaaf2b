//! Objects as scenarios write them: only what matters is said, and names are short. The stage fills in the rest.

use serde_json::{Value, json};

/// An object that is to be made.
#[derive(Clone)]
pub(crate) struct Draft(pub(crate) Value);

/// A node with room for ten pods, 4 cpu and 8Gi.
pub(crate) fn node(name: &str) -> Draft {
    let amounts = json!({"cpu": "4", "memory": "8Gi", "pods": "10"});
    Draft(json!({
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {}},
        "status": {"capacity": amounts, "allocatable": amounts,
                   "conditions": [{"type": "Ready", "status": "True", "reason": "E2E", "message": "pretends"}]},
    }))
}

/// A pod that asks for nothing, and ends at once when it is deleted.
pub(crate) fn pod(name: &str) -> Draft {
    Draft(json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"name": name}},
        "spec": {"terminationGracePeriodSeconds": 0,
                 "containers": [{"name": "main", "image": "registry.example/e2e:1"}]},
    }))
}

/// A disruption budget that leaves no pod with this label to be disturbed.
pub(crate) fn strict_budget(app: &str) -> Draft {
    Draft(json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": app},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": app}}},
    }))
}

impl Draft {
    pub(crate) fn name(&self) -> &str {
        self.0["metadata"]["name"].as_str().unwrap_or_default()
    }

    pub(crate) fn kind(&self) -> &str {
        self.0["kind"].as_str().unwrap_or_default()
    }

    /// With a field set, by the way that leads there, such as `/spec/unschedulable`.
    pub(crate) fn with(mut self, path: &str, value: Value) -> Self {
        let mut at = &mut self.0;
        for part in path.split('/').skip(1) {
            at = match part.parse::<usize>() {
                Ok(index) => &mut at[index],
                Err(_) => &mut at[part],
            };
        }
        *at = value;
        self
    }

    pub(crate) fn label(self, key: &str, value: &str) -> Self {
        self.with(&format!("/metadata/labels/{key}"), value.into())
    }

    /// A pod that asks for this much cpu; a node that has this much to give.
    pub(crate) fn cpu(self, amount: &str) -> Self {
        match self.kind() {
            "Node" => self.with("/status/allocatable/cpu", amount.into()),
            _ => self.with("/spec/containers/0/resources/requests/cpu", amount.into()),
        }
    }

    /// A node that takes no pods without a toleration.
    pub(crate) fn tainted(self, key: &str) -> Self {
        self.with("/spec/taints", json!([{"key": key, "effect": "NoSchedule"}]))
    }

    pub(crate) fn cordoned(self) -> Self {
        self.with("/spec/unschedulable", true.into())
    }

    /// A pod of a priority class of the scenario.
    pub(crate) fn class(self, class: &str) -> Self {
        self.with("/spec/priorityClassName", class.into())
    }

    /// A pod that takes its time to end: there is no kubelet that would end it sooner.
    pub(crate) fn slow_to_end(self) -> Self {
        self.with("/spec/terminationGracePeriodSeconds", 600.into())
    }

    pub(crate) fn for_scheduler(self, name: &str) -> Self {
        self.with("/spec/schedulerName", name.into())
    }
}
