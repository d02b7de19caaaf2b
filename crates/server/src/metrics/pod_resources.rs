//! What each pod asks for and may use at most: `/metrics/resources`.
//!
//! There is a series for each pod and resource, so that nothing is kept: the text is written from the pods of the moment.

use std::fmt::Write;

/// A pod that is not over, with what the scheduler reckons for it.
#[derive(Clone, Debug, Default)]
pub struct PodResources {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub pod: String,
    /// The node it is on; empty while it is pending.
    pub node: String,
    /// The scheduler it asks for.
    pub scheduler: String,
    /// Its priority, if it has one.
    pub priority: Option<i32>,
    /// What it asks for, in base units (cores, bytes).
    pub requests: Vec<(String, f64)>,
    /// What it may use at most.
    pub limits: Vec<(String, f64)>,
}

/// The requests and limits of all these pods as text.
pub fn pod_resources_text(pods: &[PodResources]) -> String {
    let mut text = String::new();
    family(&mut text, "kube_pod_resource_request", "What pods ask for, by resource.", pods, |pod| {
        &pod.requests
    });
    family(&mut text, "kube_pod_resource_limit", "What pods may use at most, by resource.", pods, |pod| {
        &pod.limits
    });
    text
}

fn family(
    text: &mut String,
    name: &str,
    help: &str,
    pods: &[PodResources],
    amounts: impl Fn(&PodResources) -> &[(String, f64)],
) {
    let mut head = Some(format!("# HELP {name} {help}\n# TYPE {name} gauge\n"));
    for pod in pods {
        for (resource, amount) in amounts(pod).iter().filter(|(_, amount)| *amount != 0.0) {
            // A family without series has no head either.
            text.push_str(&head.take().unwrap_or_default());
            series(text, name, pod, resource, *amount);
        }
    }
}

fn series(text: &mut String, name: &str, pod: &PodResources, resource: &str, amount: f64) {
    let priority = pod.priority.map(|priority| priority.to_string()).unwrap_or_default();
    let labels = [
        ("namespace", &*pod.namespace),
        ("node", &pod.node),
        ("pod", &pod.pod),
        ("priority", &priority),
        ("resource", resource),
        ("scheduler", &pod.scheduler),
        ("unit", unit(resource)),
    ];
    text.push_str(name);
    for (place, (label, value)) in labels.iter().enumerate() {
        text.push(if place == 0 { '{' } else { ',' });
        text.push_str(label);
        text.push_str("=\"");
        escape(text, value);
        text.push('"');
    }
    writeln!(text, "}} {amount}").expect("a string takes everything");
}

fn unit(resource: &str) -> &'static str {
    match resource {
        "cpu" => "cores",
        "memory" | "storage" | "ephemeral-storage" => "bytes",
        _ if resource.starts_with("hugepages-") => "bytes",
        _ if resource.starts_with("attachable-volumes-") => "integer",
        _ => "",
    }
}

fn escape(text: &mut String, value: &str) {
    for letter in value.chars() {
        match letter {
            '\\' => text.push_str("\\\\"),
            '"' => text.push_str("\\\""),
            '\n' => text.push_str("\\n"),
            _ => text.push(letter),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_a_series_for_each_amount() {
        let pod = PodResources {
            namespace: "shop".into(),
            pod: "cart".into(),
            scheduler: "default-scheduler".into(),
            priority: Some(10),
            requests: vec![("cpu".into(), 0.5), ("memory".into(), 0.0), ("hugepages-2Mi".into(), 4194304.0)],
            ..PodResources::default()
        };
        let expected = r#"# HELP kube_pod_resource_request What pods ask for, by resource.
# TYPE kube_pod_resource_request gauge
kube_pod_resource_request{namespace="shop",node="",pod="cart",priority="10",resource="cpu",scheduler="default-scheduler",unit="cores"} 0.5
kube_pod_resource_request{namespace="shop",node="",pod="cart",priority="10",resource="hugepages-2Mi",scheduler="default-scheduler",unit="bytes"} 4194304
"#;
        assert_eq!(pod_resources_text(&[pod]), expected);
    }

    #[test]
    fn label_values_cannot_break_out() {
        let pod =
            PodResources { pod: "a\"}\\\n".into(), limits: vec![("x".into(), 1.0)], ..Default::default() };
        assert!(pod_resources_text(&[pod]).contains(r#"pod="a\"}\\\n""#));
    }
}
