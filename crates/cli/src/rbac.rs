//! `supercargo rbac`: the permissions that a configuration needs, and no others.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
    path::PathBuf,
};

use clap::Args;
use supercargo_config::Configuration;
use supercargo_framework::registry::{ApiPermission, Point, Registry};
use supercargo_manifest::Problems;
use supercargo_model::{
    Key, Name,
    kind::{ApiResource, Kind, Watched},
};

use crate::{
    failure::{Ending, Failure},
    objects::read_configuration,
    output::Console,
};

/// What can be said to `supercargo rbac`.
#[derive(Args)]
pub(crate) struct Options {
    /// The KubeSchedulerConfiguration; without it, kube-scheduler's defaults hold
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// The service account's name, and the roles'
    #[arg(long, value_name = "NAME", default_value = "supercargo")]
    name: String,

    /// The service account's namespace
    #[arg(long, value_name = "NAMESPACE", default_value = "kube-system")]
    namespace: String,
}

/// What may be done to some resources.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Rule<'a> {
    why: &'static str,
    group: &'a str,
    resources: &'a [&'a str],
    verbs: &'static [&'static str],
}

const READ: &[&str] = &["get", "list", "watch"];
const WRITE: &[&str] = &["create", "update", "patch"];

/// What every scheduler writes.
const ALWAYS: &[Rule<'_>] = &[
    Rule { why: "bind pods", group: "", resources: &["pods/binding"], verbs: &["create"] },
    Rule { why: "say why a pod waits", group: "", resources: &["pods/status"], verbs: &["patch"] },
    Rule { why: "", group: "events.k8s.io", resources: &["events"], verbs: &["create", "patch"] },
    Rule { why: "say who leads", group: "", resources: &["events"], verbs: &["create"] },
    Rule {
        why: "ask who wants to see metrics, and whether they may",
        group: "authentication.k8s.io",
        resources: &["tokenreviews"],
        verbs: &["create"],
    },
    Rule { why: "", group: "authorization.k8s.io", resources: &["subjectaccessreviews"], verbs: &["create"] },
];

impl From<&ApiPermission> for Rule<'static> {
    fn from(ApiPermission { why, group, resources, verbs, .. }: &ApiPermission) -> Self {
        Self { why, group, resources, verbs }
    }
}

/// Prints the permissions as manifests.
pub(crate) fn run(options: &Options, console: &mut Console, registry: &Registry) -> Result<Ending, Failure> {
    let configuration = read_configuration(options.config.as_ref(), console, registry)?;
    let custom = Custom::of(&configuration, registry);
    let maps = config_maps(&configuration, registry)?;
    let writes = writes(&configuration, registry);
    let text = manifests(&configuration, &custom, &writes, &maps, &options.name, &options.namespace);
    console.bytes(text.as_bytes())?;
    Ok(Ending::Well)
}

type ByGroup = BTreeMap<&'static str, Vec<&'static str>>;

fn by_group(resources: impl IntoIterator<Item = &'static ApiResource>) -> ByGroup {
    let mut groups = ByGroup::new();
    for resource in resources {
        groups.entry(resource.group).or_default().push(resource.plural);
    }
    groups
}

/// The resources of built-in kinds that are watched.
fn watched() -> impl Iterator<Item = &'static ApiResource> {
    Kind::ALL.iter().filter(|kind| kind.watched() != Watched::Named).map(|kind| kind.api())
}

/// The resources of custom kinds, which plugins have declared.
struct Custom {
    read: ByGroup,
    written: ByGroup,
}

impl Custom {
    fn of(configuration: &Configuration, registry: &Registry) -> Self {
        Self {
            read: by_group(configuration.declared(registry).kinds),
            written: by_group(configuration.written_kinds(registry)),
        }
    }
}

/// A rule for each group; the first says why there are rules at all.
fn rules<'a>(
    why: &'static str,
    groups: &'a ByGroup,
    verbs: &'static [&'static str],
) -> impl Iterator<Item = Rule<'a>> {
    groups.iter().enumerate().map(move |(i, (group, resources))| {
        let why = if i == 0 { why } else { "" };
        Rule { why, group, resources, verbs }
    })
}

/// What every scheduler writes, and what the enabled plugins do.
fn writes(configuration: &Configuration, registry: &Registry) -> Vec<Rule<'static>> {
    let points = configuration.profiles.iter().flat_map(|profile| &profile.points);
    let enabled: Vec<(Point, &Name)> =
        points.flat_map(|(point, choices)| choices.iter().map(|choice| (*point, &choice.plugin))).collect();
    let mut rules = ALWAYS.to_vec();
    for (point, plugin) in enabled {
        let needed = registry.get(plugin).into_iter().flat_map(|plugin| plugin.permissions());
        for rule in needed.filter(|permission| permission.at == point).map(Rule::from) {
            if !rules.contains(&rule) {
                rules.push(rule);
            }
        }
    }
    rules
}

/// The ConfigMaps that plugins want to be watched, by plugin and namespace.
type ConfigMaps = BTreeMap<(Name, Name), BTreeSet<Name>>;

fn config_maps(configuration: &Configuration, registry: &Registry) -> Result<ConfigMaps, Problems> {
    let mut maps = ConfigMaps::new();
    for ready in configuration.profiles(registry)? {
        for (plugin, kind, Key { namespace, name }) in ready.profile.watched() {
            if kind == Kind::ConfigMap {
                maps.entry((plugin, namespace)).or_default().insert(name);
            }
        }
    }
    Ok(maps)
}

/// A plugin's name as names of objects are written: with small letters and dashes.
fn in_kebab_case(plugin: &str) -> String {
    let mut written = String::new();
    for letter in plugin.chars() {
        if letter.is_uppercase() && !written.is_empty() {
            written.push('-');
        }
        written.extend(letter.to_lowercase());
    }
    written
}

/// A name as YAML has it. Whatever is no ordinary name stands in quotes, so that it is nothing but a name.
fn quoted(name: &str) -> String {
    const WORDS: [&str; 9] = ["true", "false", "yes", "no", "on", "off", "null", "y", "n"];
    let is_plain = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.'))
        && !WORDS.contains(&&*name.to_ascii_lowercase());
    if is_plain {
        return name.to_owned();
    }
    let escaped = name.chars().map(|c| match c {
        '"' | '\\' => format!("\\{c}"),
        c if c.is_ascii_graphic() || c == ' ' => c.to_string(),
        c => format!("\\U{:08X}", u32::from(c)),
    });
    format!("\"{}\"", escaped.collect::<String>())
}

fn manifests(
    configuration: &Configuration,
    custom: &Custom,
    writes: &[Rule<'static>],
    maps: &ConfigMaps,
    name: &str,
    namespace: &str,
) -> String {
    let (watched, election) = (by_group(watched()), &configuration.leader_election);
    let account =
        format!("- kind: ServiceAccount\n  name: {}\n  namespace: {}\n", quoted(name), quoted(namespace));
    let reads = || {
        let built_in = rules("what plugins look at", &watched, READ);
        built_in.chain(rules("what plugins of your own look at", &custom.read, READ))
    };
    let own_writes = rules("what plugins of your own write", &custom.written, WRITE);
    let mut text =
        String::from("# Generated by `supercargo rbac`: what the configuration needs, and no more.\n");
    let meta = |namespace: Option<&str>, name: &str| {
        let namespace = namespace.map(|namespace| format!("  namespace: {}\n", quoted(namespace)));
        format!("metadata:\n  name: {}\n{}", quoted(name), namespace.unwrap_or_default())
    };
    let binding = |kind: &str, role: &str| {
        format!(
            "roleRef:\n  apiGroup: rbac.authorization.k8s.io\n  kind: {kind}\n  name: {}\nsubjects:\n{account}",
            quoted(role)
        )
    };
    let mut add = |kind: &str, body: String| {
        let group = if kind == "ServiceAccount" { "v1" } else { "rbac.authorization.k8s.io/v1" };
        let _ = write!(text, "---\napiVersion: {group}\nkind: {kind}\n{body}");
    };
    add("ServiceAccount", meta(Some(namespace), name));
    add("ClusterRole", meta(None, name) + &written(reads().chain(writes.iter().copied()).chain(own_writes)));
    add("ClusterRoleBinding", meta(None, name) + &binding("ClusterRole", name));
    if election.leader_elect {
        let lease = format!(
            "rules:\n- apiGroups: [coordination.k8s.io]\n  resources: [leases]\n  verbs: [create]\n\
             - apiGroups: [coordination.k8s.io]\n  resources: [leases]\n  resourceNames: [{}]\n  verbs: [get, update]\n",
            quoted(&election.resource_name)
        );
        let role = format!("{name}-lease");
        add("Role", meta(Some(&election.resource_namespace), &role) + &lease);
        add("RoleBinding", meta(Some(&election.resource_namespace), &role) + &binding("Role", &role));
    }
    for ((plugin, namespace), maps) in maps {
        let names = maps.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", ");
        let rules = format!(
            "rules:\n# read what is preferred: {plugin} is on\n- apiGroups: [\"\"]\n  resources: [configmaps]\n  \
             resourceNames: [{names}]\n  verbs: [{}]\n",
            READ.join(", ")
        );
        let role = format!("{name}-{}", in_kebab_case(plugin));
        add("Role", meta(Some(namespace), &role) + &rules);
        add("RoleBinding", meta(Some(namespace), &role) + &binding("Role", &role));
    }
    let reader = "# For people and dashboards that may look at the scheduler and at what it looks at. Bind it to them.\n";
    let paths = "- nonResourceURLs: [/metrics, /metrics/*, /configz, /healthz/*, /livez/*, /readyz/*, /ui/, /ui/*, /supercargo/v1/*]\n  verbs: [get]\n";
    let looks = written(reads());
    add("ClusterRole", meta(None, &format!("{name}-reader")) + reader + &looks + paths);
    text
}

fn written<'r>(rules: impl Iterator<Item = Rule<'r>>) -> String {
    let mut text = String::from("rules:\n");
    for Rule { why, group, resources, verbs } in rules {
        if !why.is_empty() {
            let _ = writeln!(text, "# {why}");
        }
        let group = if group.is_empty() { "\"\"" } else { group };
        let _ = writeln!(text, "- apiGroups: [{group}]");
        let _ = writeln!(text, "  resources: [{}]", resources.join(", "));
        let _ = writeln!(text, "  verbs: [{}]", verbs.join(", "));
    }
    text
}
