//! The claims of a pod that is bound: they have what they ask for, for this pod, on this node.

use serde_json::Value;

use super::Violation;
use crate::object::{at, items, name, namespace, text, uid};

/// The rules that a binding breaks; each claim is told by its name, and as it is stored.
pub(super) fn broken(
    pod: &Value,
    node: Option<&Value>,
    claims: &[(String, Option<Value>)],
) -> Vec<Violation> {
    let pod_name = format!("{}/{}", namespace(pod), name(pod));
    let judge = |(claim, stored): &(String, Option<Value>)| {
        let missing = match stored {
            None => Some("it is not there"),
            Some(stored) if at(stored, &["status", "allocation"]).is_none() => Some("nothing is allocated"),
            Some(stored) if !is_reserved(stored, uid(pod)) => Some("it is not reserved for the pod"),
            Some(_) => None,
        };
        if let Some(missing) = missing {
            return Some(Violation::ClaimNotReady { pod: pod_name.clone(), claim: claim.clone(), missing });
        }
        let selector =
            stored.as_ref().and_then(|stored| at(stored, &["status", "allocation", "nodeSelector"]));
        let is_elsewhere = node.zip(selector).is_some_and(|(node, selector)| !selects(selector, node));
        is_elsewhere.then(|| Violation::ClaimElsewhere {
            pod: pod_name.clone(),
            claim: claim.clone(),
            node: node.map(name).unwrap_or_default().to_owned(),
        })
    };
    claims.iter().filter_map(judge).collect()
}

fn is_reserved(claim: &Value, pod_uid: &str) -> bool {
    items(claim, &["status", "reservedFor"]).iter().any(|consumer| text(consumer, &["uid"]) == pod_uid)
}

/// One of the terms holds: all of its expressions.
fn selects(selector: &Value, node: &Value) -> bool {
    items(selector, &["nodeSelectorTerms"]).iter().any(|term| {
        let expressions = items(term, &["matchExpressions"]);
        let of_label = |key: &str| at(node, &["metadata", "labels", key]).and_then(Value::as_str);
        let fields = items(term, &["matchFields"]);
        let of_field = |key: &str| (key == "metadata.name").then(|| name(node));
        expressions.iter().all(|one| holds(one, of_label(text(one, &["key"]))))
            && fields.iter().all(|one| holds(one, of_field(text(one, &["key"]))))
    })
}

fn holds(expression: &Value, value: Option<&str>) -> bool {
    let values = items(expression, &["values"]);
    let is_listed = value.is_some_and(|value| values.iter().any(|one| one == value));
    let number = |value: Option<&str>| value.and_then(|text| text.parse::<i64>().ok());
    let bound = number(values.first().and_then(Value::as_str));
    match text(expression, &["operator"]) {
        "In" => is_listed,
        "NotIn" => !is_listed,
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        "Gt" => number(value).zip(bound).is_some_and(|(value, bound)| value > bound),
        "Lt" => number(value).zip(bound).is_some_and(|(value, bound)| value < bound),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_claim_is_there_allocated_reserved_and_within_reach() {
        let pod = json!({"metadata": {"namespace": "a", "name": "p", "uid": "u"}});
        let node = json!({"metadata": {"name": "n", "labels": {"zone": "z"}}});
        let claim = |selector: Value, uid: &str| {
            json!({"status": {
                "allocation": {"nodeSelector": {"nodeSelectorTerms": [selector]}},
                "reservedFor": [{"resource": "pods", "name": "p", "uid": uid}],
            }})
        };
        let on = |name: &str| json!({"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]});
        let zone = json!({"matchExpressions": [{"key": "zone", "operator": "In", "values": ["z"]}]});
        for (stored, expected) in [
            (None, Some("it is not there")),
            (Some(json!({"status": {}})), Some("nothing is allocated")),
            (Some(claim(on("n"), "another")), Some("it is not reserved for the pod")),
            (Some(claim(on("n"), "u")), None),
            (Some(claim(zone, "u")), None),
            (Some(claim(on("m"), "u")), Some("elsewhere")),
        ] {
            let found = broken(&pod, Some(&node), &[("c".to_owned(), stored.clone())]);
            let found = found.first().map(|violation| match violation {
                Violation::ClaimNotReady { missing, .. } => *missing,
                _ => "elsewhere",
            });
            assert_eq!(found, expected, "{stored:?}");
        }
    }
}
