//! The pods that Deployments, StatefulSets, ReplicaSets, DaemonSets, Jobs and CronJobs would make, as their controllers
//! make them: names, labels, owners, and the claims of stateful ones.

mod template;

use std::collections::HashSet;

use serde::Deserialize;
use serde_json::{Value as Json, json};
use supercargo_manifest::{self as manifest, Problem, Problems, Source, UnknownFields};
use supercargo_model::{
    Key, Kind, Name, Node, Pod,
    object::{Object, SetAside},
    taint::find_untolerated,
};

use template::{Owner, PodTemplate, with_claims};

/// The kinds that make pods, by API group and name.
pub const KINDS: &[(&str, &str)] = &[
    ("apps", "Deployment"),
    ("apps", "StatefulSet"),
    ("apps", "ReplicaSet"),
    ("apps", "DaemonSet"),
    ("batch", "Job"),
    ("batch", "CronJob"),
    ("", "ReplicationController"),
];

/// How many pods one object may make; more is a slip of the fingers.
const MAX_PODS: u32 = 1_000_000;

/// What the pods are made for.
pub struct Setting<'a> {
    /// The nodes of the cluster: daemons run on those that suit them.
    pub nodes: &'a [&'a Node],
    /// The daemons that run already, by namespace, name of their set, and node.
    pub daemons: &'a HashSet<(Name, Name, Name)>,
    /// How many pods are made, in place of what the objects say.
    pub replicas: Option<u32>,
    /// The namespace of objects that name none.
    pub namespace: &'a str,
    /// The annotations of pods that are kept.
    pub annotations: &'a [Name],
}

/// What an object comes to.
#[derive(Debug, Default)]
pub struct Made {
    /// The pods, and the objects that stand behind them.
    pub objects: Vec<Object>,
    /// The claims of the pods, where there are none of that name yet.
    pub claims: Vec<Object>,
    /// The pods as they would be written.
    pub texts: Vec<(Key, String)>,
    /// What is good to know.
    pub notes: Vec<String>,
}

#[derive(Deserialize)]
struct Written {
    #[serde(default)]
    metadata: WrittenMeta,
    #[serde(default)]
    spec: WrittenSpec,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WrittenMeta {
    name: String,
    namespace: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WrittenSpec {
    replicas: Option<u32>,
    parallelism: Option<u32>,
    completions: Option<u32>,
    completion_mode: Option<String>,
    suspend: bool,
    ordinals: Ordinals,
    template: Option<Pod>,
    job_template: Option<WrittenJob>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Ordinals {
    start: u32,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WrittenJob {
    spec: Box<WrittenSpec>,
}

/// An object that makes pods.
struct Workload<'a> {
    aside: &'a SetAside,
    setting: &'a Setting<'a>,
    namespace: String,
    name: String,
    /// Its spec as it is written.
    spec: Json,
}

/// Makes the pods of an object.
pub fn expand(aside: &SetAside, setting: &Setting<'_>) -> Result<Made, Problems> {
    let SetAside { source, value, path, kind } = aside;
    let written = manifest::decode::<Written>(source, value, path, UnknownFields::Ignore)?;
    let problem = |field: &str, message: String| {
        let place = if path.is_empty() { field.to_owned() } else { format!("{path}.{field}") };
        Problems::from(Problem::error(message).at(source, value.location_of(field)).path(place))
    };
    if written.metadata.name.is_empty() {
        return Err(problem("metadata.name", format!("a {kind} needs a name")));
    }
    let spec = written.spec;
    let (template_of, template_path) = match &spec.job_template {
        Some(job) => (&*job.spec, "spec.jobTemplate.spec.template"),
        None => (&spec, "spec.template"),
    };
    if template_of.template.is_none() {
        return Err(problem(template_path, format!("a {kind} needs a template of its pods")));
    }
    let all: Json = serde_json::from_str(&value.to_json()).unwrap_or_default();
    let workload = Workload {
        aside,
        setting,
        namespace: written.metadata.namespace.unwrap_or_else(|| setting.namespace.to_owned()),
        name: written.metadata.name,
        spec: all["spec"].clone(),
    };
    let count = workload.count(&spec);
    if count > MAX_PODS {
        return Err(problem("spec.replicas", format!("more than {MAX_PODS} pods of one {kind}")));
    }
    workload.make(&spec, count)
}

impl Workload<'_> {
    /// How many pods there are at a time; of daemons, the nodes say that.
    fn count(&self, spec: &WrittenSpec) -> u32 {
        let at_a_time = |job: &WrittenSpec| {
            let parallelism = self.setting.replicas.or(job.parallelism).unwrap_or(1);
            parallelism.min(job.completions.unwrap_or(parallelism))
        };
        match &*self.aside.kind {
            "Job" if spec.suspend => 0,
            "Job" => at_a_time(spec),
            "CronJob" => spec.job_template.as_ref().map_or(1, |job| at_a_time(&job.spec)),
            _ => self.setting.replicas.or(spec.replicas).unwrap_or(1),
        }
    }

    fn make(&self, spec: &WrittenSpec, count: u32) -> Result<Made, Problems> {
        let name = &self.name;
        let owner = |kind: &str, name: &str| Owner::new(kind, &self.namespace, name);
        match &*self.aside.kind {
            "Deployment" => self.deployment(count),
            "StatefulSet" => self.stateful_set(count, spec.ordinals.start),
            "DaemonSet" => self.daemon_set(),
            "Job" => {
                let indexed = spec.completion_mode.as_deref() == Some("Indexed");
                let mut made = self.job(name, &self.spec["template"], indexed, count)?;
                if spec.suspend {
                    made.notes.push(format!("Job {}/{name} is suspended: it makes no pods", self.namespace));
                }
                Ok(made)
            }
            "CronJob" => {
                let job = spec.job_template.as_ref().map(|job| &job.spec);
                let indexed = job.is_some_and(|job| job.completion_mode.as_deref() == Some("Indexed"));
                let template = &self.spec["jobTemplate"]["spec"]["template"];
                self.job(&format!("{name}-1"), template, indexed, count)
            }
            kind => {
                let template = self.template(&self.spec["template"], owner(kind, name));
                let mut made = self.alike(&template, name, count)?;
                let known = if kind == "ReplicaSet" { Kind::ReplicaSet } else { Kind::ReplicationController };
                made.objects.push(self.behind(known, name, self.spec["selector"].clone())?);
                Ok(made)
            }
        }
    }

    fn template(&self, template: &Json, owner: Owner) -> PodTemplate {
        PodTemplate::new(template, &self.namespace, owner)
    }

    /// Pods of a replica set whose name ends in the hash of the template, as do the labels that tell its pods apart.
    fn deployment(&self, count: u32) -> Result<Made, Problems> {
        let hash = template::hash(&self.spec["template"]);
        let replica_set = format!("{}-{hash}", self.name);
        let owner = Owner::new("ReplicaSet", &self.namespace, &replica_set);
        let template = self.template(&self.spec["template"], owner).labelled("pod-template-hash", &hash);
        let mut made = self.alike(&template, &replica_set, count)?;
        let mut selector = self.spec["selector"].clone();
        if let Some(selector) = selector.as_object_mut() {
            let labels = selector.entry("matchLabels").or_insert_with(|| json!({}));
            labels["pod-template-hash"] = hash.into();
        }
        made.objects.push(self.behind(Kind::ReplicaSet, &replica_set, selector)?);
        Ok(made)
    }

    fn stateful_set(&self, count: u32, start: u32) -> Result<Made, Problems> {
        let mut made = Made::default();
        let owner = Owner::new("StatefulSet", &self.namespace, &self.name);
        let template = self.template(&self.spec["template"], owner);
        let claims = self.spec["volumeClaimTemplates"].as_array().cloned().unwrap_or_default();
        for ordinal in start..start.saturating_add(count) {
            let name = format!("{}-{ordinal}", self.name);
            let template = template
                .clone()
                .labelled("apps.kubernetes.io/pod-index", &ordinal.to_string())
                .labelled("statefulset.kubernetes.io/pod-name", &name);
            let pod = with_claims(template.pod(&name), &claims, &name);
            for claim in &claims {
                let named = claim["metadata"]["name"].as_str().unwrap_or_default();
                let claim_name = format!("{named}-{name}");
                made.claims.push(self.claim(claim, &claim_name, None)?);
            }
            self.add(&mut made, pod)?;
        }
        let behind = self.behind(Kind::StatefulSet, &self.name, self.spec["selector"].clone())?;
        made.objects.push(behind);
        Ok(made)
    }

    /// One pod for each node that would let it run, and that has none of this set yet.
    fn daemon_set(&self) -> Result<Made, Problems> {
        let owner = Owner::new("DaemonSet", &self.namespace, &self.name);
        let hash = template::hash(&self.spec["template"]);
        let template = self
            .template(&self.spec["template"], owner)
            .labelled("controller-revision-hash", &hash)
            .tolerating_as_daemon();
        let Object::Pod(daemon) = self.read(Kind::Pod, &template.pod("daemon"))? else {
            return Ok(Made::default());
        };
        let mut made = Made::default();
        let mut run_already = 0;
        for node in self.setting.nodes.iter().filter(|node| suits(node, &daemon)) {
            let known = (daemon.namespace.clone(), Name::from(&*self.name), node.name.clone());
            if self.setting.daemons.contains(&known) {
                run_already += 1;
                continue;
            }
            let name = format!("{}-{}", self.name, node.name);
            self.add(&mut made, template.clone().only_on(&node.name).pod(&name))?;
        }
        if run_already > 0 {
            let set = format!("DaemonSet {}/{}", self.namespace, self.name);
            made.notes.push(format!("{set} runs on {run_already} of its nodes already"));
        }
        Ok(made)
    }

    fn job(&self, name: &str, template: &Json, indexed: bool, count: u32) -> Result<Made, Problems> {
        let owner = Owner::new("Job", &self.namespace, name);
        let template = self
            .template(template, owner)
            .labelled("job-name", name)
            .labelled("batch.kubernetes.io/job-name", name);
        if !indexed {
            return self.alike(&template, name, count);
        }
        let mut made = Made::default();
        for index in 0..count {
            let label = "batch.kubernetes.io/job-completion-index";
            let pod = template.clone().labelled(label, &index.to_string()).pod(&format!("{name}-{index}"));
            self.add(&mut made, pod)?;
        }
        Ok(made)
    }

    /// Pods that differ only in their names.
    fn alike(&self, template: &PodTemplate, base: &str, count: u32) -> Result<Made, Problems> {
        let mut made = Made::default();
        let mut first: Option<Pod> = None;
        for number in 1..=count {
            let name = format!("{base}-{number}");
            let pod = template.pod(&name);
            match &first {
                // Those that are alike share their spec, unless each has volumes of its own.
                Some(first) if !template.has_own_claims() => {
                    let uid = format!("{}/{name}", self.namespace).into();
                    made.texts.push((Key::new(&*self.namespace, &*name), pod.to_string()));
                    made.objects.push(Object::Pod(Pod { name: name.into(), uid, ..first.clone() }));
                }
                _ => {
                    self.add(&mut made, pod)?;
                    first = match made.objects.last() {
                        Some(Object::Pod(pod)) => Some(pod.clone()),
                        _ => None,
                    };
                }
            }
        }
        Ok(made)
    }

    /// Adds a pod, and the claims of its ephemeral volumes.
    fn add(&self, made: &mut Made, pod: Json) -> Result<(), Problems> {
        let name = pod["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        for volume in pod["spec"]["volumes"].as_array().into_iter().flatten() {
            let claim = &volume["ephemeral"]["volumeClaimTemplate"];
            if let (Some(volume), false) = (volume["name"].as_str(), claim.is_null()) {
                let owner = format!("{}/{name}", self.namespace);
                made.claims.push(self.claim(claim, &format!("{name}-{volume}"), Some(&owner))?);
            }
        }
        made.objects.push(self.read(Kind::Pod, &pod)?);
        made.texts.push((Key::new(&*self.namespace, &*name), pod.to_string()));
        Ok(())
    }

    fn claim(&self, template: &Json, name: &str, pod_uid: Option<&str>) -> Result<Object, Problems> {
        let mut claim = json!({"spec": template["spec"], "status": {"phase": "Pending"}});
        claim["metadata"] = json!({
            "name": name, "namespace": self.namespace, "uid": format!("claim/{}/{name}", self.namespace),
            "annotations": template["metadata"]["annotations"],
        });
        if let Some(uid) = pod_uid {
            claim["metadata"]["ownerReferences"] =
                json!([{"apiVersion": "v1", "kind": "Pod", "uid": uid, "controller": true}]);
        }
        self.read(Kind::PersistentVolumeClaim, &claim)
    }

    /// The object that stands behind the pods: they are spread by it.
    fn behind(&self, kind: Kind, name: &str, selector: Json) -> Result<Object, Problems> {
        let metadata = json!({"name": name, "namespace": self.namespace});
        self.read(kind, &json!({"metadata": metadata, "spec": {"selector": selector}}))
    }

    /// Reads what was made. The parts come from a text that made sense, so that there is hardly anything to tell.
    fn read(&self, kind: Kind, written: &Json) -> Result<Object, Problems> {
        let source = Source::new(&*self.aside.source.name, written.to_string());
        Object::from_text(kind, self.setting.annotations, &source)
    }
}

/// Whether the controller of a daemon set would run its pod on a node.
fn suits(node: &Node, daemon: &Pod) -> bool {
    let spec = &daemon.spec;
    let selected = spec.node_selector.iter().all(|(key, value)| node.labels.get(key) == Some(value));
    let required = spec.node_affinity.required.as_ref();
    selected
        && required.is_none_or(|required| required.matches(&node.name, &node.labels))
        && find_untolerated(&node.taints, &spec.tolerations).is_none()
}
