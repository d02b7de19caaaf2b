//! Which plugins exist, which extension points their types serve, and how they are made from their arguments.

mod args_schema;

use std::{
    cell::RefCell,
    collections::BTreeMap,
    fmt,
    sync::{Arc, OnceLock},
};

use serde::de::DeserializeOwned;
use supercargo_manifest::{self as manifest, Problem, Problems, Severity, Source, UnknownFields, Value};
use supercargo_model::{ApiResource, Name};

use crate::fast::{FastFilter, FastScore};
use crate::handle::HandleRef;
use crate::points::{
    Bind, CycleStart, Filter, NormalizeScore, Observe, Permit, PostBind, PostFilter, PreBind, PreEnqueue,
    PreFilter, PreScore, QueueSort, Requeue, Reserve, Score,
};

pub use args_schema::{ArgsSchema, Field, shape_of};

/// An extension point that a configuration can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the names are kube-scheduler's")]
pub enum Point {
    PreEnqueue,
    QueueSort,
    PreFilter,
    Filter,
    PostFilter,
    PreScore,
    Score,
    Reserve,
    Permit,
    PreBind,
    Bind,
    PostBind,
}

impl Point {
    /// All points, in the order in which a pod passes them.
    pub const ALL: [Self; 12] = [
        Self::PreEnqueue,
        Self::QueueSort,
        Self::PreFilter,
        Self::Filter,
        Self::PostFilter,
        Self::PreScore,
        Self::Score,
        Self::Reserve,
        Self::Permit,
        Self::PreBind,
        Self::Bind,
        Self::PostBind,
    ];

    /// Its name in a configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::PreEnqueue => "preEnqueue",
            Self::QueueSort => "queueSort",
            Self::PreFilter => "preFilter",
            Self::Filter => "filter",
            Self::PostFilter => "postFilter",
            Self::PreScore => "preScore",
            Self::Score => "score",
            Self::Reserve => "reserve",
            Self::Permit => "permit",
            Self::PreBind => "preBind",
            Self::Bind => "bind",
            Self::PostBind => "postBind",
        }
    }
}

/// A plugin, ready to run: what it serves, as the traits of the points.
#[derive(Clone, Default)]
pub struct Plugin {
    pub(crate) pre_enqueue: Option<Arc<dyn PreEnqueue>>,
    pub(crate) queue_sort: Option<Arc<dyn QueueSort>>,
    pub(crate) pre_filter: Option<Arc<dyn PreFilter>>,
    pub(crate) filter: Option<Arc<dyn Filter>>,
    pub(crate) post_filter: Option<Arc<dyn PostFilter>>,
    pub(crate) pre_score: Option<Arc<dyn PreScore>>,
    pub(crate) score: Option<Arc<dyn Score>>,
    pub(crate) normalize: Option<Arc<dyn NormalizeScore>>,
    pub(crate) reserve: Option<Arc<dyn Reserve>>,
    pub(crate) permit: Option<Arc<dyn Permit>>,
    pub(crate) pre_bind: Option<Arc<dyn PreBind>>,
    pub(crate) bind: Option<Arc<dyn Bind>>,
    pub(crate) post_bind: Option<Arc<dyn PostBind>>,
    pub(crate) requeue: Option<Arc<dyn Requeue>>,
    pub(crate) cycle_start: Option<Arc<dyn CycleStart>>,
    pub(crate) fast_filter: Option<Arc<dyn FastFilter>>,
    pub(crate) fast_score: Option<Arc<dyn FastScore>>,
    pub(crate) observe: Option<Arc<dyn Observe>>,
    pub(crate) handle: HandleRef,
    /// It reads the time that the cluster was told last.
    pub(crate) reads_time: bool,
    /// Its effects give way instead of blocking their thread.
    pub(crate) gives_way: bool,
    pub(crate) kinds: Vec<&'static ApiResource>,
}

impl Plugin {
    /// Whether it serves a point where a refusal is waited out; elsewhere it is a fault, and the pod is tried again.
    pub(crate) fn can_refuse(&self) -> bool {
        self.pre_enqueue.is_some()
            || self.pre_filter.is_some()
            || self.filter.is_some()
            || self.reserve.is_some()
            || self.permit.is_some()
    }
}

/// The arguments that a configuration gives a plugin, and where they stand.
pub struct Args<'a> {
    given: Option<(&'a Source, &'a Value)>,
    path: String,
    /// Where the shape of the plugin's type is noted, if that is all that is asked for.
    shape: Option<&'a RefCell<Option<ArgsSchema>>>,
    handle: HandleRef,
}

impl<'a> Args<'a> {
    /// No arguments: the plugin's defaults hold.
    pub fn none() -> Self {
        Self { given: None, path: String::new(), shape: None, handle: HandleRef::default() }
    }

    /// Arguments that stand in a text, at a path such as `profiles[0].pluginConfig[1].args`.
    pub fn new(source: &'a Source, value: &'a Value, path: impl Into<String>) -> Self {
        Self { given: Some((source, value)), path: path.into(), shape: None, handle: HandleRef::default() }
    }

    /// The way to the cluster and the API for the plugin that is made from these arguments.
    pub fn handle(&self) -> HandleRef {
        self.handle.clone()
    }

    /// The text that they stand in, and themselves; `None` if there are none.
    pub fn given(&self) -> Option<(&'a Source, &'a Value)> {
        self.given
    }

    /// The arguments as the plugin's own type; its default if there are none. Unknown fields are errors.
    pub fn decode<T: DeserializeOwned + Default>(&self) -> Result<T, Problems> {
        if let Some(shape) = self.shape {
            shape.replace(Some(shape_of::<T>()));
        }
        match self.given {
            None => Ok(T::default()),
            Some((source, value)) => {
                manifest::decode(source, &without_type(value), &self.path, UnknownFields::Deny)
            }
        }
    }

    /// An error about a field, such as `scoringStrategy.resources[0].weight`, with its place in the text.
    pub fn problem(&self, field: &str, message: impl Into<String>) -> Problem {
        let separator = if self.path.is_empty() || field.is_empty() { "" } else { "." };
        Problem {
            source: self.given.map(|(source, _)| source.clone()),
            at: self.given.map(|(_, value)| value.location_of(field)),
            path: format!("{}{separator}{field}", self.path),
            message: message.into(),
            hint: None,
            severity: Severity::Error,
        }
    }
}

/// Arguments may name their own version and kind; they say nothing to the plugin.
fn without_type(value: &Value) -> Value {
    let mut value = value.clone();
    if let manifest::ValueKind::Map(entries) = &mut value.kind {
        entries.retain(|entry| !matches!(&*entry.key, "apiVersion" | "kind"));
    }
    value
}

type Build = dyn Fn(&Args<'_>) -> Result<Plugin, Problems> + Send + Sync;

/// What a plugin has to be allowed in the API, where it is enabled at a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ApiPermission {
    /// The point.
    pub at: Point,
    /// What for.
    pub why: &'static str,
    /// The API group; empty for the core's.
    pub group: &'static str,
    /// The resources, by their plural names.
    pub resources: &'static [&'static str],
    /// What is done to them.
    pub verbs: &'static [&'static str],
}

/// A plugin that can be made by name.
pub struct Registration {
    name: Name,
    points: Vec<Point>,
    permissions: Vec<ApiPermission>,
    default_args: Option<&'static str>,
    reads: Reads,
    build: Box<Build>,
}

/// What a plugin reads and writes besides the built-in kinds and fields.
#[derive(Clone, Debug, Default)]
struct Reads {
    kinds: Vec<&'static ApiResource>,
    written: Vec<&'static ApiResource>,
    annotations: Vec<Name>,
}

impl Registration {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The points that it serves.
    pub fn points(&self) -> &[Point] {
        &self.points
    }

    /// The custom kinds that it reads.
    pub fn kinds(&self) -> &[&'static ApiResource] {
        &self.reads.kinds
    }

    /// The custom kinds that it writes.
    pub fn written_kinds(&self) -> &[&'static ApiResource] {
        &self.reads.written
    }

    /// The annotations of pods that it reads.
    pub fn annotations(&self) -> &[Name] {
        &self.reads.annotations
    }

    /// What it has to be allowed in the API.
    pub fn permissions(&self) -> &[ApiPermission] {
        &self.permissions
    }

    /// Makes the plugin.
    pub fn build(&self, args: &Args<'_>) -> Result<Plugin, Problems> {
        (self.build)(args)
    }

    /// The arguments that hold when none are given, as JSON; `None` if the plugin takes none or keeps them to itself.
    pub fn default_args(&self) -> Option<&'static str> {
        self.default_args
    }

    /// What the arguments must look like; `None` if the plugin takes none.
    pub fn args_shape(&self) -> Option<ArgsSchema> {
        let shape = RefCell::new(None);
        let asking = Args { shape: Some(&shape), ..Args::none() };
        // What is asked for is noted before anything can be wrong.
        drop(self.build(&asking));
        shape.into_inner()
    }
}

/// Says, checked by the compiler, which points a type serves.
///
/// ```
/// use supercargo_framework::{points::*, queueing::QueueView, registry::*, status::Verdict};
/// use supercargo_model::Pod;
///
/// struct Patience;
/// impl PreEnqueue for Patience {
///     fn pre_enqueue(&self, _: &QueueView<'_>, _: &Pod) -> Verdict { Ok(()) }
/// }
/// let mut registry = Registry::default();
/// registry.add(define("Patience", |_| Ok(Patience)).pre_enqueue());
/// assert_eq!(registry.get("Patience").unwrap().points(), [Point::PreEnqueue]);
/// ```
pub fn define<T: Send + Sync + 'static>(
    name: impl Into<Name>,
    new: impl Fn(&Args<'_>) -> Result<T, Problems> + Send + Sync + 'static,
) -> Definition<T> {
    Definition {
        name: name.into(),
        points: Vec::new(),
        permissions: Vec::new(),
        default_args: None,
        reads: Reads::default(),
        new: Box::new(new),
        attach: Vec::new(),
    }
}

type New<T> = dyn Fn(&Args<'_>) -> Result<T, Problems> + Send + Sync;
type Attach<T> = dyn Fn(&Arc<T>, &mut Plugin) + Send + Sync;

/// A plugin type on its way into a registry: see [`define`].
pub struct Definition<T> {
    name: Name,
    points: Vec<Point>,
    permissions: Vec<ApiPermission>,
    default_args: Option<&'static str>,
    reads: Reads,
    new: Box<New<T>>,
    attach: Vec<Box<Attach<T>>>,
}

macro_rules! serves {
    ($($method:ident: $point:ident;)*) => {
        $(
            #[doc = concat!("The type serves [`", stringify!($point), "`].")]
            #[must_use]
            pub fn $method(mut self) -> Self
            where
                T: $point,
            {
                self.points.push(Point::$point);
                self.attach.push(Box::new(|plugin, served| served.$method = Some(plugin.clone())));
                self
            }
        )*
    };
}

impl<T: Send + Sync + 'static> Definition<T> {
    serves! {
        pre_enqueue: PreEnqueue;
        queue_sort: QueueSort;
        pre_filter: PreFilter;
        filter: Filter;
        post_filter: PostFilter;
        pre_score: PreScore;
        score: Score;
        reserve: Reserve;
        permit: Permit;
        pre_bind: PreBind;
        bind: Bind;
        post_bind: PostBind;
    }

    /// Tells, as JSON, the arguments that hold when none are given.
    #[must_use]
    pub fn default_args(mut self, json: &'static str) -> Self {
        self.default_args = Some(json);
        self
    }

    /// The type is told what the API server tells.
    #[must_use]
    pub fn observe(mut self) -> Self
    where
        T: Observe,
    {
        self.attach.push(Box::new(|plugin, served| served.observe = Some(plugin.clone())));
        self
    }

    /// The type reads the time: the cluster is told it before each cycle.
    #[must_use]
    pub fn reads_time(mut self) -> Self {
        self.attach.push(Box::new(|_, served| served.reads_time = true));
        self
    }

    /// The type's effects never block their thread: they run among those of the scheduler itself, not on threads of their
    /// own.
    #[must_use]
    pub fn gives_way(mut self) -> Self {
        self.attach.push(Box::new(|_, served| served.gives_way = true));
        self
    }

    /// The type reads a custom kind: wherever the plugin is on, objects of the kind are watched and kept in the cluster
    /// ([`Cluster::custom`](supercargo_model::Cluster::custom)), and its events can be
    /// [asked for](crate::event::EventResource::Custom).
    #[must_use]
    pub fn reads(mut self, kind: &'static ApiResource) -> Self {
        self.reads.kinds.push(kind);
        self
    }

    /// The type writes a custom kind: it is permitted to, wherever the plugin is on.
    #[must_use]
    pub fn writes(mut self, kind: &'static ApiResource) -> Self {
        self.reads.written.push(kind);
        self
    }

    /// The type reads an annotation of pods. Others are not kept.
    #[must_use]
    pub fn reads_annotation(mut self, key: impl Into<Name>) -> Self {
        self.reads.annotations.push(key.into());
        self
    }

    /// Says what the type has to be allowed in the API.
    #[must_use]
    pub fn needs(mut self, permission: ApiPermission) -> Self {
        self.permissions.push(permission);
        self
    }

    /// Calls back with each plugin that is made, for whoever must find it again.
    #[must_use]
    pub fn once_made(mut self, tell: impl Fn(&Arc<T>) + Send + Sync + 'static) -> Self {
        self.attach.push(Box::new(move |plugin, _| tell(plugin)));
        self
    }

    /// The type serves [`NormalizeScore`], which comes with its Score.
    #[must_use]
    pub fn normalize(mut self) -> Self
    where
        T: NormalizeScore,
    {
        self.attach.push(Box::new(|plugin, served| served.normalize = Some(plugin.clone())));
        self
    }

    /// The type's filter has a fast form.
    #[must_use]
    pub fn fast_filter(mut self) -> Self
    where
        T: FastFilter,
    {
        self.attach.push(Box::new(|plugin, served| served.fast_filter = Some(plugin.clone())));
        self
    }

    /// The type's score has a fast form.
    #[must_use]
    pub fn fast_score(mut self) -> Self
    where
        T: FastScore,
    {
        self.attach.push(Box::new(|plugin, served| served.fast_score = Some(plugin.clone())));
        self
    }

    /// The type wants to know when a cycle begins.
    #[must_use]
    pub fn cycle_start(mut self) -> Self
    where
        T: CycleStart,
    {
        self.attach.push(Box::new(|plugin, served| served.cycle_start = Some(plugin.clone())));
        self
    }

    /// The type says which events help the pods that it refused.
    #[must_use]
    pub fn requeue(mut self) -> Self
    where
        T: Requeue,
    {
        self.attach.push(Box::new(|plugin, served| served.requeue = Some(plugin.clone())));
        self
    }
}

impl<T: Send + Sync + 'static> From<Definition<T>> for Registration {
    fn from(definition: Definition<T>) -> Self {
        let Definition { name, points, permissions, default_args, reads, new, attach } = definition;
        let kinds = reads.kinds.clone();
        Self {
            name,
            points,
            permissions,
            default_args,
            reads,
            build: Box::new(move |args| {
                let instance = Arc::new(new(args)?);
                let mut plugin = Plugin { handle: args.handle(), kinds: kinds.clone(), ..Plugin::default() };
                for attach in &attach {
                    attach(&instance, &mut plugin);
                }
                Ok(plugin)
            }),
        }
    }
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registration").field("name", &self.name).field("points", &self.points).finish()
    }
}

/// Makes plugins of names that no registry knows, from their arguments alone: out of a file, say.
pub trait Loader: Send + Sync {
    /// The plugin of a name; `None` if these arguments are not those of a plugin that can be loaded.
    fn load(&self, name: &str, args: &Args<'_>) -> Option<Result<Registration, Problems>>;

    /// How arguments say that a plugin is to be loaded: the hint for a name that nobody knows.
    fn hint(&self, name: &str) -> String;
}

/// The plugins that exist, by name.
#[derive(Default)]
pub struct Registry {
    plugins: BTreeMap<Name, Registration>,
    loader: OnceLock<Box<dyn Loader>>,
}

impl Registry {
    /// Adds a plugin, or replaces the one of its name.
    pub fn add(&mut self, plugin: impl Into<Registration>) {
        let plugin = plugin.into();
        self.plugins.insert(plugin.name.clone(), plugin);
    }

    /// A plugin by name.
    pub fn get(&self, name: &str) -> Option<&Registration> {
        self.plugins.get(name)
    }

    /// All plugins, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Registration> {
        self.plugins.values()
    }

    /// Loads plugins of other names from here on; the first loader stays.
    pub fn load_others_with(&self, loader: impl Loader + 'static) {
        let _ = self.loader.set(Box::new(loader));
    }

    /// What loads plugins of other names.
    pub fn loader(&self) -> Option<&dyn Loader> {
        self.loader.get().map(|loader| &**loader)
    }
}
