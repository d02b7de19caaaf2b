//! Claims to devices as the API server and the claim controller would have completed them: made from templates, one for each
//! pod that wants one, and given back by pods that leave.

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
};

use serde_json::{Value, json};
use supercargo_engine::Engine;
use supercargo_framework::{
    Verdict,
    assumed::{AssumedObjects, ReserveCycle},
};
use supercargo_manifest::{Problem, Problems, nearest};
use supercargo_model::{
    ApiResource, Cluster, Key, Kind, Name, Pod,
    devices::{AllocationMode, ResourceClaim, extended_claim_uid},
    object::Object,
    pod::{GeneratedClaim, PodClaimStatuses},
};

/// Where templates of claims are on an API server.
pub static RESOURCE_CLAIM_TEMPLATES: ApiResource = ApiResource {
    group: "resource.k8s.io",
    version: "v1",
    plural: "resourceclaimtemplates",
    kind: "ResourceClaimTemplate",
    namespaced: true,
};

/// How many warnings are given.
const MAX_WARNINGS: usize = 10;

/// What claims are made from, by namespace and name.
type Templates = BTreeMap<Key, Arc<Value>>;

/// Makes the claims that pending pods want from templates, fills in what the API server would, and takes the templates away
/// unless somebody else reads them, too. What makes no sense is told.
pub fn resolve(objects: &mut Vec<Object>, keeps_templates: bool) -> Problems {
    let templates = take_templates(objects, keeps_templates);
    let (mut made, mut warnings) = (Vec::new(), Vec::new());
    for object in objects.iter_mut() {
        match object {
            Object::Pod(pod) if pod.node.is_none() => make_claims(pod, &templates, &mut made, &mut warnings),
            Object::ResourceClaim(claim) => fill(claim),
            _ => {}
        }
    }
    objects.extend(made);
    warnings.truncate(MAX_WARNINGS);
    warnings.into_iter().collect()
}

fn take_templates(objects: &mut Vec<Object>, keeps: bool) -> Templates {
    let mut templates = Templates::new();
    objects.retain(|object| match object {
        Object::Custom(custom) if *custom.api == RESOURCE_CLAIM_TEMPLATES => {
            templates.insert(custom.key(), custom.content.clone());
            keeps
        }
        _ => true,
    });
    templates
}

/// Who does not say how many devices wants one.
fn fill(claim: &mut ResourceClaim) {
    for request in &mut claim.requests {
        for asked in request.exactly.iter_mut().chain(&mut request.first_available) {
            if asked.allocation_mode == AllocationMode::ExactCount && asked.count == 0 {
                asked.count = 1;
            }
        }
    }
}

fn make_claims(pod: &mut Pod, templates: &Templates, made: &mut Vec<Object>, warnings: &mut Vec<Problem>) {
    let known = pod.claims.as_deref().cloned().unwrap_or_default();
    let mut generated = known.generated.clone();
    for wanted in &pod.spec.resource_claims {
        let Some(template) = &wanted.resource_claim_template_name else { continue };
        if generated.iter().any(|claim| claim.name == wanted.name) {
            continue;
        }
        let key = Key::new(pod.namespace.clone(), template.clone());
        match templates.get(&key).map(|template| claim_of(pod, &wanted.name, template)) {
            Some(Ok(mut claim)) => {
                fill(&mut claim);
                generated.push(GeneratedClaim {
                    name: wanted.name.clone(),
                    resource_claim_name: Some(claim.name.clone()),
                });
                made.push(Object::ResourceClaim(claim));
            }
            Some(Err(why)) => warnings.push(unusable(&key, &why)),
            None => warnings.push(unknown(pod, &key, templates)),
        }
    }
    if generated.len() > known.generated.len() {
        pod.claims = Some(Arc::new(PodClaimStatuses { generated, ..known }));
    }
}

/// A claim for a pod. Its name ends in the claim's name rather than in letters that differ from run to run.
fn claim_of(pod: &Pod, claim: &Name, template: &Value) -> Result<ResourceClaim, serde_json::Error> {
    let name = format!("{}-{claim}", pod.name);
    let written = json!({
        "metadata": {
            "name": name, "namespace": &*pod.namespace, "uid": format!("resourceclaims/{}/{name}", pod.namespace),
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "Pod", "name": &*pod.name, "uid": &*pod.uid, "controller": true},
            ],
        },
        "spec": template["spec"]["spec"],
    });
    match Object::from_value(Kind::ResourceClaim, &written)? {
        Object::ResourceClaim(claim) => Ok(claim),
        other => Err(serde::de::Error::custom(format_args!("this is a {}", other.kind().name()))),
    }
}

fn unusable(template: &Key, why: &serde_json::Error) -> Problem {
    Problem::warning(format!("ResourceClaimTemplate {template} makes no claims: {why}"))
}

fn unknown(pod: &Pod, template: &Key, templates: &Templates) -> Problem {
    let message = format!(
        "pod {} wants a claim from the ResourceClaimTemplate {template}, and there is none: it waits for it",
        pod.key()
    );
    let names: Vec<String> = templates.keys().map(Key::to_string).collect();
    match nearest(&template.to_string(), names.iter().map(String::as_str)) {
        Some(near) => Problem::warning(message).hint(format!("did you mean {near}?")),
        None => Problem::warning(message)
            .hint("give the templates, too: `kubectl get resourceclaimtemplates -A -o yaml`"),
    }
}

/// The devices that the claims of a pod have got, as `driver/pool/device`, in the order of the claims.
pub fn devices_of(cluster: &Cluster, pod: &Pod) -> Vec<String> {
    let pod = cluster.pod(&pod.key()).map_or(pod, |stored| stored);
    let named = pod.spec.resource_claims.iter().filter_map(|claim| claim.resource_claim_name.as_ref());
    let made = pod.claims.iter().flat_map(|made| {
        let generated = made.generated.iter().filter_map(|claim| claim.resource_claim_name.as_ref());
        generated.chain(made.extended.iter().map(|claim| &claim.resource_claim_name))
    });
    let devices = cluster.devices();
    let devices_of = |name: &Name| {
        let claim = devices.claim(&Key::new(pod.namespace.clone(), name.clone()));
        // What is chosen and not written yet is its own already.
        let in_flight = || devices.in_flight(&claim?.uid).map(|chosen| &**chosen);
        let got = claim.and_then(|claim| claim.allocation.as_ref()).or_else(in_flight);
        got.map(|got| got.devices.results.clone()).unwrap_or_default()
    };
    // The claim for extended resources has a name only once it is written.
    let unwritten = devices.in_flight(&extended_claim_uid(&pod.uid)).into_iter();
    let unwritten = unwritten.flat_map(|chosen| chosen.devices.results.clone());
    let all = named.chain(made).flat_map(devices_of).chain(unwritten);
    all.map(|device| format!("{}/{}/{}", device.driver, device.pool, device.device)).collect()
}

/// Keeps for a pod what was chosen for it on its node: nobody else gets it.
pub(crate) fn reserve(
    engine: &mut Engine,
    assumed: &mut AssumedObjects,
    pod: &Arc<Pod>,
    node: &Name,
) -> Verdict {
    let Some(profile) = engine.profiles().shared(&pod.spec.scheduler_name) else { return Ok(()) };
    let mut cycle = ReserveCycle::new(engine.cluster_mut(), assumed, pod.uid.clone());
    profile.profile.reserve(&mut cycle, pod, node).map_err(|rejection| rejection.status)
}

/// The claims that were made for a pod, made once more for a copy of it: whether they have got devices is not copied.
pub(crate) fn copy_claims(cluster: &Cluster, pod: &Pod, copy: &mut Pod) -> Vec<ResourceClaim> {
    let Some(known) = pod.claims.as_deref() else { return Vec::new() };
    let (mut claims, mut generated) = (Vec::new(), Vec::new());
    for GeneratedClaim { name, resource_claim_name } in &known.generated {
        let written = resource_claim_name
            .as_ref()
            .and_then(|written| cluster.devices().claim(&Key::new(pod.namespace.clone(), written.clone())));
        let mut resource_claim_name = resource_claim_name.clone();
        if let Some(claim) = written {
            let mut claim = ResourceClaim {
                name: format!("{}-{name}", copy.name).into(),
                uid: format!("{} {}", claim.uid, copy.name).into(),
                allocation: None,
                reserved_for: Vec::new(),
                devices: Vec::new(),
                ..(**claim).clone()
            };
            for owner in claim.owners.iter_mut().filter(|owner| owner.uid == pod.uid) {
                (owner.name, owner.uid) = (copy.name.clone(), copy.uid.clone());
            }
            resource_claim_name = Some(claim.name.clone());
            claims.push(claim);
        }
        generated.push(GeneratedClaim { name: name.clone(), resource_claim_name });
    }
    copy.claims = Some(Arc::new(PodClaimStatuses { generated, ..PodClaimStatuses::default() }));
    claims
}

/// Pods have left their nodes: claims that only they used have no devices any more.
pub fn give_back(objects: &mut [Object], left: &HashSet<Key>) {
    for object in objects {
        let Object::ResourceClaim(claim) = object else { continue };
        let is_left = |consumer: &Name| left.contains(&Key::new(claim.namespace.clone(), consumer.clone()));
        let before = claim.reserved_for.len();
        let staying: Vec<_> =
            claim.reserved_for.iter().filter(|user| !is_left(&user.name)).cloned().collect();
        if staying.len() < before {
            claim.reserved_for = staying;
            if claim.reserved_for.is_empty() {
                claim.allocation = None;
                claim.devices = Vec::new();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use supercargo_manifest::Source;
    use supercargo_model::{Declared, object::Reader};

    use super::*;

    fn read(written: &[Value]) -> Vec<Object> {
        let declared = Declared { kinds: vec![&RESOURCE_CLAIM_TEMPLATES], ..Declared::default() };
        let mut reader = Reader::new(declared);
        for (i, one) in written.iter().enumerate() {
            reader.read(&Source::new(format!("{i}"), one.to_string()));
        }
        reader.finish().expect("they make sense").objects
    }

    fn pod(claim: Value) -> Value {
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "uid": "u"}, "spec": {"resourceClaims": [claim]}})
    }

    fn template() -> Value {
        let requests = json!([{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]);
        json!({
            "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": {"name": "one-gpu"},
            "spec": {"spec": {"devices": {"requests": requests}}},
        })
    }

    #[test]
    fn pods_get_claims_from_templates() {
        let wants = pod(json!({"name": "gpu", "resourceClaimTemplateName": "one-gpu"}));
        let mut objects = read(&[template(), wants]);
        assert_eq!(resolve(&mut objects, false).to_string(), "");
        let [Object::Pod(pod), Object::ResourceClaim(claim)] = &objects[..] else { panic!("{objects:?}") };
        let generated = &pod.claims.as_ref().expect("it has claims").generated;
        assert_eq!(generated[0].resource_claim_name.as_deref(), Some("p-gpu"));
        assert_eq!((&*claim.name, &*claim.owners[0].uid), ("p-gpu", "u"));
        assert_eq!(claim.requests[0].exactly.as_ref().map(|asked| asked.count), Some(1), "by default one");
    }

    #[test]
    fn a_template_that_is_not_there_is_told() {
        let wants = pod(json!({"name": "gpu", "resourceClaimTemplateName": "one-gpo"}));
        let mut objects = read(&[template(), wants]);
        let told = resolve(&mut objects, false).to_string();
        assert!(
            told.contains("pod default/p wants a claim") && told.contains("did you mean default/one-gpu?"),
            "{told}"
        );
        assert_eq!(objects.len(), 1);
    }

    #[test]
    fn the_last_pod_gives_the_devices_back() {
        let users = |names: &[&str]| -> Value {
            names.iter().map(|name| json!({"resource": "pods", "name": name, "uid": name})).collect()
        };
        let claim = |name: &str, names: &[&str]| {
            json!({
                "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": name},
                "status": {"allocation": {"devices": {"results": []}}, "reservedFor": users(names)},
            })
        };
        let mut objects = read(&[claim("one", &["p"]), claim("two", &["p", "q"]), claim("none", &[])]);
        give_back(&mut objects, &HashSet::from([Key::new("default", "p")]));
        let told: Vec<(bool, usize)> = objects
            .iter()
            .map(|object| match object {
                Object::ResourceClaim(claim) => (claim.allocation.is_some(), claim.reserved_for.len()),
                other => panic!("{other:?}"),
            })
            .collect();
        // Nobody used the third, and so nobody has given it back.
        assert_eq!(told, [(false, 0), (true, 1), (true, 0)]);
    }
}
