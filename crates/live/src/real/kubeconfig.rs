//! Kubeconfig files: what is in them, how several are merged, and which cluster and user a context chooses.

#[cfg(test)]
mod tests;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use serde::Deserialize;
use supercargo_manifest::{Base64, Problem, Problems, Source, UnknownFields, Value, decode, nearest, read};

/// Fields whose values are not to be seen in an error.
const SECRETS: [&str; 3] = ["token", "password", "client-key-data"];

/// One file, or several that were merged.
#[derive(Default)]
pub(super) struct Kubeconfig {
    current_context: Option<Named<()>>,
    contexts: Vec<Named<Context>>,
    clusters: Vec<Named<Cluster>>,
    users: Vec<Named<User>>,
}

/// Something with a name, and where it is written.
#[derive(Clone)]
pub(super) struct Named<T> {
    pub(super) name: String,
    pub(super) spec: T,
    pub(super) place: FieldPlace,
}

/// Where something is written.
#[derive(Clone)]
pub(super) struct FieldPlace {
    source: Source,
    value: Value,
    path: String,
    /// Paths in the file are relative to this.
    folder: PathBuf,
}

impl FieldPlace {
    /// A problem in a field, which may be empty.
    pub(super) fn problem(&self, field: &str, message: impl Into<String>) -> Problem {
        let path = if field.is_empty() { self.path.clone() } else { format!("{}.{field}", self.path) };
        let at = self.value.location_of(field);
        without_secrets(Problem::error(message).at(&self.source, at).path(path))
    }

    /// Where a file is that is named in this one.
    pub(super) fn file(&self, path: &str) -> PathBuf {
        self.folder.join(path)
    }
}

/// What a context chooses.
pub(super) struct Chosen {
    pub(super) cluster: Named<Cluster>,
    pub(super) user: Option<Named<User>>,
    /// Empty if the context names none.
    pub(super) namespace: String,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "kebab-case", default)]
struct Document {
    current_context: String,
    contexts: Vec<NamedContext>,
    clusters: Vec<NamedCluster>,
    users: Vec<NamedUser>,
}

#[derive(Deserialize)]
struct NamedContext {
    name: String,
    #[serde(default)]
    context: Context,
}

#[derive(Deserialize)]
struct NamedCluster {
    name: String,
    #[serde(default)]
    cluster: Cluster,
}

#[derive(Deserialize)]
struct NamedUser {
    name: String,
    #[serde(default)]
    user: User,
}

#[derive(Clone, Deserialize, Default)]
#[serde(default)]
struct Context {
    cluster: String,
    user: String,
    namespace: String,
}

/// Where an API server is, and whom to trust there.
#[derive(Clone, Deserialize, Default)]
#[serde(rename_all = "kebab-case", default)]
pub(super) struct Cluster {
    pub(super) server: String,
    pub(super) certificate_authority: String,
    pub(super) certificate_authority_data: Base64,
    pub(super) insecure_skip_tls_verify: bool,
    pub(super) tls_server_name: String,
    pub(super) proxy_url: String,
    pub(super) disable_compression: bool,
    extensions: Vec<Extension>,
}

impl Cluster {
    /// What is meant for credential plugins.
    pub(super) fn exec_extension(&self) -> Option<&serde_json::Value> {
        let of_plugins = |extension: &&Extension| extension.name == "client.authentication.k8s.io/exec";
        self.extensions.iter().find(of_plugins).map(|extension| &extension.extension)
    }
}

#[derive(Clone, Deserialize)]
struct Extension {
    name: String,
    #[serde(default)]
    extension: serde_json::Value,
}

/// Who we are.
#[derive(Clone, Deserialize, Default)]
#[serde(rename_all = "kebab-case", default)]
pub(super) struct User {
    pub(super) token: String,
    #[serde(rename = "tokenFile")]
    pub(super) token_file: String,
    pub(super) username: String,
    pub(super) password: String,
    pub(super) client_certificate: String,
    pub(super) client_certificate_data: Base64,
    pub(super) client_key: String,
    pub(super) client_key_data: Base64,
    #[serde(rename = "as")]
    pub(super) as_user: String,
    pub(super) as_uid: String,
    pub(super) as_groups: Vec<String>,
    pub(super) as_user_extra: BTreeMap<String, Vec<String>>,
    pub(super) auth_provider: Option<AuthProvider>,
    pub(super) exec: Option<Exec>,
}

#[derive(Clone, Deserialize)]
pub(super) struct AuthProvider {
    #[serde(default)]
    pub(super) name: String,
}

/// A command that gives credentials.
#[derive(Clone, Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Exec {
    pub(super) api_version: String,
    pub(super) command: String,
    pub(super) args: Vec<String>,
    pub(super) env: Vec<Variable>,
    pub(super) install_hint: String,
    pub(super) interactive_mode: InteractiveMode,
    pub(super) provide_cluster_info: bool,
}

#[derive(Clone, Deserialize)]
pub(super) struct Variable {
    pub(super) name: String,
    #[serde(default)]
    pub(super) value: String,
}

/// Whether a plugin may ask the person at the terminal.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize, Default)]
pub(super) enum InteractiveMode {
    Never,
    #[default]
    IfAvailable,
    Always,
}

impl Kubeconfig {
    /// Reads one file; a file without anything in it is a kubeconfig.
    pub(super) fn open(file: &Path) -> Result<Self, Problems> {
        let name = file.display().to_string();
        let text = std::fs::read_to_string(file)
            .map_err(|error| Problem::error(format!("kubeconfig {name}: {error}")))?;
        Self::parse(&Source::new(name, text), file.parent().unwrap_or(Path::new("")))
    }

    /// Reads a text whose relative paths start at the folder.
    pub(super) fn parse(source: &Source, folder: &Path) -> Result<Self, Problems> {
        let mut merged = Self::default();
        for value in read(source)? {
            let document: Document = decode(source, &value, "", UnknownFields::Ignore)
                .map_err(|problems| problems.into_iter().map(without_secrets).collect::<Problems>())?;
            merged.merge(Self::of(document, &Origin { source, value: &value, folder })?);
        }
        Ok(merged)
    }

    fn of(document: Document, origin: &Origin<'_>) -> Result<Self, Problems> {
        let current = Some(document.current_context).filter(|name| !name.is_empty());
        let contexts = document.contexts.into_iter().map(|named| (named.name, named.context));
        let clusters = document.clusters.into_iter().map(|named| (named.name, named.cluster));
        let users = document.users.into_iter().map(|named| (named.name, named.user));
        Ok(Self {
            current_context: current.map(|name| Named {
                name,
                spec: (),
                place: origin.place(origin.value.get("current-context"), "current-context".to_owned()),
            }),
            contexts: origin.named("contexts", "context", contexts)?,
            clusters: origin.named("clusters", "cluster", clusters)?,
            users: origin.named("users", "user", users)?,
        })
    }

    /// Adds what another file has and this one has not, as kubectl does: whatever comes first holds, and entries are
    /// taken as a whole.
    pub(super) fn merge(&mut self, next: Self) {
        fn add<T>(known: &mut Vec<Named<T>>, next: Vec<Named<T>>) {
            for entry in next {
                if !known.iter().any(|one| one.name == entry.name) {
                    known.push(entry);
                }
            }
        }
        self.current_context = self.current_context.take().or(next.current_context);
        add(&mut self.contexts, next.contexts);
        add(&mut self.clusters, next.clusters);
        add(&mut self.users, next.users);
    }

    /// What the context chooses, or the current one.
    pub(super) fn choose(&self, context: Option<&str>) -> Result<Chosen, Problem> {
        let context = self.context(context)?;
        let cluster = self.clusters.iter().find(|cluster| cluster.name == context.spec.cluster);
        let cluster = cluster.ok_or_else(|| {
            let name = &context.spec.cluster;
            let problem = context.place.problem("cluster", format!("there is no cluster {name:?}"));
            among(problem, name, &self.clusters)
        })?;
        let user = self.users.iter().find(|user| user.name == context.spec.user);
        if user.is_none() && !context.spec.user.is_empty() {
            // As kubectl has it: then nobody is who we are.
            tracing::warn!(
                context = context.name,
                user = context.spec.user,
                "the kubeconfig has no such user"
            );
        }
        let namespace = context.spec.namespace.clone();
        Ok(Chosen { cluster: cluster.clone(), user: user.cloned(), namespace })
    }

    fn context(&self, name: Option<&str>) -> Result<&Named<Context>, Problem> {
        let (wanted, missing) = match (name, &self.current_context) {
            (Some(name), _) => (name, Problem::error(format!("the kubeconfig has no context {name:?}"))),
            (None, Some(current)) => {
                let missing = format!("there is no context {:?}", current.name);
                (current.name.as_str(), current.place.problem("", missing))
            }
            (None, None) => {
                let problem = Problem::error("the kubeconfig has no current-context");
                return Err(among(problem, "", &self.contexts));
            }
        };
        let found = self.contexts.iter().find(|context| context.name == wanted);
        found.ok_or_else(|| among(missing, wanted, &self.contexts))
    }
}

/// A problem with a name that is not there, and those that are.
fn among<T>(problem: Problem, name: &str, known: &[Named<T>]) -> Problem {
    const MAX_NAMES: usize = 10;
    let names = || known.iter().map(|one| one.name.as_str());
    if let Some(near) = nearest(name, names()) {
        return problem.hint(format!("did you mean {near}?"));
    }
    let mut listed: Vec<_> = names().take(MAX_NAMES).collect();
    match known.len() {
        0 => problem.hint("there are none at all: is this the right file?"),
        count => {
            if count > MAX_NAMES {
                listed.push("…");
            }
            problem.hint(format!("choose one of {}", listed.join(", ")))
        }
    }
}

/// The document that entries are read from.
struct Origin<'d> {
    source: &'d Source,
    value: &'d Value,
    folder: &'d Path,
}

impl Origin<'_> {
    fn place(&self, value: Option<&Value>, path: String) -> FieldPlace {
        let value = value.unwrap_or(self.value).clone();
        FieldPlace { source: self.source.clone(), value, path, folder: self.folder.to_owned() }
    }

    /// The entries of a list, whose names must differ.
    fn named<T>(
        &self,
        list: &str,
        field: &str,
        entries: impl Iterator<Item = (String, T)>,
    ) -> Result<Vec<Named<T>>, Problems> {
        let mut named: Vec<Named<T>> = Vec::new();
        let mut problems = Problems::default();
        let items = self.value.get(list).map_or(&[][..], Value::items);
        for (index, ((name, spec), item)) in entries.zip(items).enumerate() {
            if named.iter().any(|one| one.name == name) {
                let whole = self.place(Some(item), format!("{list}[{index}]"));
                problems.push(whole.problem("name", format!("{name:?} is defined twice")));
            }
            let place = self.place(item.get(field).or(Some(item)), format!("{list}[{index}].{field}"));
            named.push(Named { name, spec, place });
        }
        if problems.is_empty() { Ok(named) } else { Err(problems) }
    }
}

/// The problem without the line that it is in, if that is a secret's.
fn without_secrets(problem: Problem) -> Problem {
    let field = problem.path.rsplit('.').next().unwrap_or_default();
    if SECRETS.contains(&field) { without_excerpt(problem) } else { problem }
}

/// The problem with its place, and without the line that it is in.
pub(super) fn without_excerpt(mut problem: Problem) -> Problem {
    if let (Some(source), Some(at)) = (&problem.source, problem.at.take()) {
        problem.source = Some(Source::new(format!("{}:{}:{}", source.name, at.line, at.column), ""));
    }
    problem
}
