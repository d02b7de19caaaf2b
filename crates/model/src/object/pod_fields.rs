//! The fields of a pod that no API server has seen yet: what it would drop because no pod has such a field, and what it
//! would refuse. A misspelt `nodeSelector` is otherwise no selector at all.

use supercargo_manifest::{Entry, Problem, Value, ValueKind, nearest};

/// How much is told of a pod; nobody reads more, and each field costs a search for what may have been meant.
const MAX_FOUND: usize = 100;

/// What a part of a pod may hold. What decides nothing about nodes is not looked into.
enum Shape {
    /// Anything.
    Any,
    /// These fields, and no others.
    Fields(&'static [(&'static str, Shape)]),
    /// A list of such parts.
    List(&'static Shape),
    /// Amounts by resource: none may be negative.
    Amounts,
}

use Shape::{Amounts, Any, Fields, List};

const METADATA: Shape = Fields(&[
    ("annotations", Any),
    ("creationTimestamp", Any),
    ("deletionGracePeriodSeconds", Any),
    ("deletionTimestamp", Any),
    ("finalizers", Any),
    ("generateName", Any),
    ("generation", Any),
    ("labels", Any),
    ("managedFields", Any),
    ("name", Any),
    ("namespace", Any),
    ("ownerReferences", Any),
    ("resourceVersion", Any),
    ("selfLink", Any),
    ("uid", Any),
]);

const LABEL_SELECTOR: Shape = Fields(&[("matchExpressions", List(&EXPRESSION)), ("matchLabels", Any)]);
const EXPRESSION: Shape = Fields(&[("key", Any), ("operator", Any), ("values", Any)]);
const NODE_TERM: Shape =
    Fields(&[("matchExpressions", List(&EXPRESSION)), ("matchFields", List(&EXPRESSION))]);

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

const AFFINITY: Shape = Fields(&[
    (
        "nodeAffinity",
        Fields(&[
            (REQUIRED, Fields(&[("nodeSelectorTerms", List(&NODE_TERM))])),
            (PREFERRED, List(&Fields(&[("preference", NODE_TERM), ("weight", Any)]))),
        ]),
    ),
    ("podAffinity", POD_AFFINITY),
    ("podAntiAffinity", POD_AFFINITY),
]);

const POD_AFFINITY: Shape = Fields(&[
    (REQUIRED, List(&POD_TERM)),
    (PREFERRED, List(&Fields(&[("podAffinityTerm", POD_TERM), ("weight", Any)]))),
]);

const POD_TERM: Shape = Fields(&[
    ("labelSelector", LABEL_SELECTOR),
    ("matchLabelKeys", Any),
    ("mismatchLabelKeys", Any),
    ("namespaceSelector", LABEL_SELECTOR),
    ("namespaces", Any),
    ("topologyKey", Any),
]);

const TOLERATION: Shape =
    Fields(&[("effect", Any), ("key", Any), ("operator", Any), ("tolerationSeconds", Any), ("value", Any)]);

const SPREAD_CONSTRAINT: Shape = Fields(&[
    ("labelSelector", LABEL_SELECTOR),
    ("matchLabelKeys", Any),
    ("maxSkew", Any),
    ("minDomains", Any),
    ("nodeAffinityPolicy", Any),
    ("nodeTaintsPolicy", Any),
    ("topologyKey", Any),
    ("whenUnsatisfiable", Any),
]);

const RESOURCES: Shape = Fields(&[("claims", Any), ("limits", Amounts), ("requests", Amounts)]);

const PORT: Shape =
    Fields(&[("containerPort", Any), ("hostIP", Any), ("hostPort", Any), ("name", Any), ("protocol", Any)]);

const CONTAINER: Shape = Fields(&[
    ("args", Any),
    ("command", Any),
    ("env", Any),
    ("envFrom", Any),
    ("image", Any),
    ("imagePullPolicy", Any),
    ("lifecycle", Any),
    ("livenessProbe", Any),
    ("name", Any),
    ("ports", List(&PORT)),
    ("readinessProbe", Any),
    ("resizePolicy", Any),
    ("resources", RESOURCES),
    ("restartPolicy", Any),
    ("restartPolicyRules", Any),
    ("securityContext", Any),
    ("startupProbe", Any),
    ("stdin", Any),
    ("stdinOnce", Any),
    ("terminationMessagePath", Any),
    ("terminationMessagePolicy", Any),
    ("tty", Any),
    ("volumeDevices", Any),
    ("volumeMounts", Any),
    ("workingDir", Any),
]);

const VOLUME: Shape = Fields(&[
    ("awsElasticBlockStore", Any),
    ("azureDisk", Any),
    ("azureFile", Any),
    ("cephfs", Any),
    ("cinder", Any),
    ("configMap", Any),
    ("csi", Any),
    ("downwardAPI", Any),
    ("emptyDir", Any),
    ("ephemeral", Any),
    ("fc", Any),
    ("flexVolume", Any),
    ("flocker", Any),
    ("gcePersistentDisk", Any),
    ("gitRepo", Any),
    ("glusterfs", Any),
    ("hostPath", Any),
    ("image", Any),
    ("iscsi", Any),
    ("name", Any),
    ("nfs", Any),
    ("persistentVolumeClaim", Fields(&[("claimName", Any), ("readOnly", Any)])),
    ("photonPersistentDisk", Any),
    ("portworxVolume", Any),
    ("projected", Any),
    ("quobyte", Any),
    ("rbd", Any),
    ("scaleIO", Any),
    ("secret", Any),
    ("storageos", Any),
    ("vsphereVolume", Any),
]);

const SPEC: Shape = Fields(&[
    ("activeDeadlineSeconds", Any),
    ("affinity", AFFINITY),
    ("automountServiceAccountToken", Any),
    ("containers", List(&CONTAINER)),
    ("dnsConfig", Any),
    ("dnsPolicy", Any),
    ("enableServiceLinks", Any),
    ("ephemeralContainers", Any),
    ("hostAliases", Any),
    ("hostIPC", Any),
    ("hostNetwork", Any),
    ("hostPID", Any),
    ("hostUsers", Any),
    ("hostname", Any),
    ("hostnameOverride", Any),
    ("imagePullSecrets", Any),
    ("initContainers", List(&CONTAINER)),
    ("nodeName", Any),
    ("nodeSelector", Any),
    ("os", Any),
    ("overhead", Amounts),
    ("preemptionPolicy", Any),
    ("priority", Any),
    ("priorityClassName", Any),
    ("readinessGates", Any),
    ("resourceClaims", Any),
    ("resources", RESOURCES),
    ("restartPolicy", Any),
    ("runtimeClassName", Any),
    ("schedulerName", Any),
    ("schedulingGates", Any),
    ("schedulingGroup", Any),
    ("securityContext", Any),
    ("serviceAccount", Any),
    ("serviceAccountName", Any),
    ("setHostnameAsFQDN", Any),
    ("shareProcessNamespace", Any),
    ("subdomain", Any),
    ("terminationGracePeriodSeconds", Any),
    ("tolerations", List(&TOLERATION)),
    ("topologySpreadConstraints", List(&SPREAD_CONSTRAINT)),
    ("volumes", List(&VOLUME)),
    ("workloadRef", Any),
]);

const POD: Shape =
    Fields(&[("apiVersion", Any), ("kind", Any), ("metadata", METADATA), ("spec", SPEC), ("status", Any)]);
const TEMPLATE: Shape = Fields(&[("metadata", METADATA), ("spec", SPEC)]);

/// What is worth a look in a pod; `path` is its own. The problems do not know their text.
pub(super) fn check_pod(pod: &Value, path: &str) -> Vec<Problem> {
    let mut found = Vec::new();
    check(pod, &POD, path, &mut found);
    found
}

/// The same for the pod template of an object that makes pods: in its spec, or in that of the jobs that it makes.
pub(super) fn check_template(object: &Value, path: &str) -> Vec<Problem> {
    let mut found = Vec::new();
    let spec = object.get("spec").map(|spec| (spec, within(path, "spec")));
    let of_jobs = spec.as_ref().and_then(|(spec, path)| {
        let job = spec.get("jobTemplate")?.get("spec")?;
        Some((job, within(path, "jobTemplate.spec")))
    });
    for (spec, path) in spec.iter().chain(&of_jobs) {
        if let Some(template) = spec.get("template") {
            check(template, &TEMPLATE, &within(path, "template"), &mut found);
        }
    }
    found
}

fn within(path: &str, field: &str) -> String {
    if path.is_empty() { field.to_owned() } else { format!("{path}.{field}") }
}

fn check(value: &Value, shape: &Shape, path: &str, found: &mut Vec<Problem>) {
    match shape {
        _ if found.len() >= MAX_FOUND => {}
        Any => {}
        List(shape) => {
            for (i, item) in value.items().iter().enumerate() {
                check(item, shape, &format!("{path}[{i}]"), found);
            }
        }
        Fields(fields) => {
            for entry in value.entries() {
                let path = within(path, &entry.key);
                match fields.iter().find(|(name, _)| **name == *entry.key) {
                    Some((_, shape)) => check(&entry.value, shape, &path, found),
                    None if found.len() >= MAX_FOUND => return,
                    None => found.push(unknown(entry, path, fields)),
                }
            }
        }
        Amounts => {
            let negative = value.entries().iter().filter(|entry| is_negative(&entry.value));
            found.extend(negative.take(MAX_FOUND).map(|entry| {
                let mut problem = Problem::warning("a negative amount: an API server would refuse the pod");
                problem.at = Some(entry.value.at);
                problem.path(within(path, &entry.key))
            }));
        }
    }
}

fn unknown(entry: &Entry, path: String, fields: &[(&'static str, Shape)]) -> Problem {
    let mut problem = Problem::warning("no pod has such a field: an API server would drop it");
    problem.at = Some(entry.key_at);
    problem.hint = nearest(&entry.key, fields.iter().map(|(name, _)| *name))
        .map(|meant| format!("did you mean {meant}?"));
    problem.path(path)
}

fn is_negative(amount: &Value) -> bool {
    match &amount.kind {
        ValueKind::Number(text) | ValueKind::String(text) => text.trim_start().starts_with('-'),
        _ => false,
    }
}
