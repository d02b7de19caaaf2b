//! What the configuration says about a guest: where it is, what it is told, and how far it may go.

use std::{
    fmt,
    path::{Path, PathBuf},
    time::Duration,
};

use percent_encoding::percent_decode_str;
use serde::{Deserialize, de::IgnoredAny};
use supercargo_framework::registry::Args;
use supercargo_manifest::{self as manifest, Problem, Problems, Value};
use supercargo_model::Quantity;

/// Executed instructions, roughly: some tenths of a second.
const DEFAULT_FUEL: u64 = 200_000_000;
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(1);
/// Enough for the worst that the limits of size let through, where the compiler is optimised.
const DEFAULT_COMPILE_TIMEOUT: Duration = Duration::from_secs(60);
const DEFAULT_MEMORY_BYTES: u64 = 64 * 1024 * 1024;
const DEFAULT_INSTANCES: usize = 4;
/// A guest's memory is addressed by 32 bits.
const MAX_MEMORY_BYTES: u64 = 4 * 1024 * 1024 * 1024;
const PAGE_BYTES: u64 = 64 * 1024;
const MAX_INSTANCES: usize = 1024;
const DEFAULT_MODULE_BYTES: u64 = 4 * 1024 * 1024;
const MAX_MODULE_BYTES: u64 = 64 * 1024 * 1024;
const DEFAULT_FUNCTION_BYTES: u64 = 128 * 1024;
/// Of the cost of compiling, mostly blocks × (locals + operands), for each byte that a function may have.
const FUNCTION_COST_PER_BYTE: u64 = 64;
/// The same, for each byte that a module may have.
const MODULE_COST_PER_BYTE: u64 = 16;

/// How far a guest may go: in one call, and before it is compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GuestLimits {
    pub(crate) fuel: u64,
    pub(crate) timeout: Duration,
    /// Of the compiler.
    pub(crate) compile_timeout: Duration,
    pub(crate) memory_bytes: u64,
    /// How many instances are kept while nobody needs them.
    pub(crate) instances: usize,
    /// Of its file.
    pub(crate) module_bytes: u64,
    /// Of each of its functions.
    pub(crate) function_bytes: u64,
}

impl GuestLimits {
    /// How much work it may be to compile a function.
    pub(crate) fn function_cost(&self) -> u64 {
        self.function_bytes * FUNCTION_COST_PER_BYTE
    }

    /// How much work it may be to compile all functions.
    pub(crate) fn module_cost(&self) -> u64 {
        self.module_bytes * MODULE_COST_PER_BYTE
    }
}

/// A guest as it is configured.
#[derive(Clone, Debug)]
pub(crate) struct GuestSettings {
    pub(crate) path: PathBuf,
    /// What the guest is told, as JSON.
    pub(crate) args: String,
    pub(crate) limits: GuestLimits,
    /// The field that names the file.
    pub(crate) field: &'static str,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Written {
    path: String,
    #[serde(rename = "guestURL")]
    guest_url: String,
    args: Option<IgnoredAny>,
    fuel: Option<u64>,
    timeout: Option<manifest::Duration>,
    compile_timeout: Option<manifest::Duration>,
    memory: Option<Quantity>,
    instances: Option<u32>,
    module_size: Option<Quantity>,
    function_size: Option<Quantity>,
}

const PATH: &str = "path";
const URL: &str = "guestURL";

/// Whether these are the arguments of a guest.
pub(crate) fn are_of_a_guest(args: &Args<'_>) -> bool {
    args.given().is_some_and(|(_, value)| value.get(PATH).is_some() || value.get(URL).is_some())
}

impl GuestSettings {
    pub(crate) fn read(args: &Args<'_>) -> Result<Self, Problems> {
        let written: Written = args.decode()?;
        let mut problems = Problems::default();
        let file = file(args, &written).map_err(|problem| problems.push(problem));
        let limits = limits(args, &written, &mut problems);
        match file {
            Ok((field, path)) if problems.is_empty() => {
                let own = args.given().and_then(|(_, value)| value.get("args"));
                let own = own.filter(|own| !own.is_null()).map(Value::to_json);
                Ok(Self { path, args: own.unwrap_or_else(|| "{}".to_owned()), limits, field })
            }
            _ => Err(problems),
        }
    }
}

fn limits(args: &Args<'_>, written: &Written, problems: &mut Problems) -> GuestLimits {
    let fuel = written.fuel.unwrap_or(DEFAULT_FUEL);
    if fuel == 0 {
        problems.push(args.problem("fuel", "a guest without fuel cannot do anything").hint("leave it out"));
    }
    let timeout = span(args, ("timeout", "100ms"), written.timeout, DEFAULT_TIMEOUT, problems);
    let compile = ("compileTimeout", "1m");
    let compile_timeout = span(args, compile, written.compile_timeout, DEFAULT_COMPILE_TIMEOUT, problems);
    let memory = written.memory.map_or(DEFAULT_MEMORY_BYTES as i64, Quantity::value);
    let memory_bytes = u64::try_from(memory).unwrap_or(0);
    if !(PAGE_BYTES..=MAX_MEMORY_BYTES).contains(&memory_bytes) {
        problems.push(args.problem("memory", "must be at least 64Ki, a page, and at most 4Gi"));
    }
    let instances = written.instances.map_or(DEFAULT_INSTANCES, |given| given as usize);
    if !(1..=MAX_INSTANCES).contains(&instances) {
        problems.push(args.problem("instances", format!("must be 1 to {MAX_INSTANCES}")));
    }
    let module_bytes = size(args, "moduleSize", written.module_size, DEFAULT_MODULE_BYTES, problems);
    let function_bytes = size(args, "functionSize", written.function_size, DEFAULT_FUNCTION_BYTES, problems);
    GuestLimits { fuel, timeout, compile_timeout, memory_bytes, instances, module_bytes, function_bytes }
}

/// A limit in time, by the name of its field and an example.
fn span(
    args: &Args<'_>,
    (field, example): (&str, &str),
    given: Option<manifest::Duration>,
    default: Duration,
    problems: &mut Problems,
) -> Duration {
    let span = given.map_or(Some(default), manifest::Duration::to_std).filter(|span| !span.is_zero());
    span.unwrap_or_else(|| {
        let hint = format!("write {example}, say");
        problems.push(args.problem(field, "must be longer than nothing").hint(hint));
        default
    })
}

/// A limit of what is compiled.
fn size(args: &Args<'_>, field: &str, given: Option<Quantity>, default: u64, problems: &mut Problems) -> u64 {
    let bytes = given.map_or(Some(default), |given| u64::try_from(given.value()).ok()).unwrap_or(0);
    if !(1..=MAX_MODULE_BYTES).contains(&bytes) {
        let what = format!("must be more than nothing and at most {}", Bytes(MAX_MODULE_BYTES));
        problems.push(args.problem(field, what));
    }
    bytes
}

/// The field that names the file, and the file.
fn file(args: &Args<'_>, written: &Written) -> Result<(&'static str, PathBuf), Problem> {
    match (&*written.path, &*written.guest_url) {
        ("", "") => {
            let given = args.given().is_some_and(|(_, value)| value.get(URL).is_some());
            Err(args.problem(if given { URL } else { PATH }, "must not be empty"))
        }
        (path, "") => {
            if path.contains("://") {
                let problem = args.problem(PATH, format!("{path:?} is a URL, and not a path"));
                return Err(problem.hint("write it as guestURL"));
            }
            Ok((PATH, beside_the_configuration(args, Path::new(path))))
        }
        ("", url) => Ok((URL, path_of(url).map_err(|(what, hint)| args.problem(URL, what).hint(hint))?)),
        _ => Err(args.problem(URL, "the guest is named twice, by path and by guestURL").hint("keep one")),
    }
}

/// A relative path starts where the configuration is: it can be moved together with its guests.
fn beside_the_configuration(args: &Args<'_>, path: &Path) -> PathBuf {
    let source = args.given().map(|(source, _)| source.name.to_string()).unwrap_or_default();
    Path::new(&source).parent().unwrap_or(Path::new("")).join(path)
}

/// The path of a `file:` URL; or what is wrong with it, and a hint.
fn path_of(url: &str) -> Result<PathBuf, (String, &'static str)> {
    let Some((scheme, rest)) = url.split_once(':') else {
        return Err((format!("{url:?} is not a URL"), "write file:///path/to/guest.wasm, or use path"));
    };
    if !scheme.eq_ignore_ascii_case("file") {
        let what = format!("guests are read from files only, and not by {scheme}");
        return Err((
            what,
            "put the file where the scheduler can read it, and write file:///path/to/guest.wasm",
        ));
    }
    let path = match rest.strip_prefix("//") {
        Some(rest) => rest.strip_prefix("localhost").unwrap_or(rest),
        None => rest,
    };
    if !path.starts_with('/') {
        let what = format!("{url:?} names no file of this machine");
        return Err((what, "a file URL has three slashes: file:///path/to/guest.wasm; or use path"));
    }
    match percent_decode_str(path).decode_utf8() {
        Ok(path) => Ok(PathBuf::from(&*path)),
        Err(_) => Err((format!("{url:?} is not UTF-8 after decoding"), "use path for such a name")),
    }
}

/// An amount of memory as people write it.
pub(crate) struct Bytes(pub(crate) u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10)];
        match units.iter().find(|(_, unit)| self.0 >= *unit && self.0.is_multiple_of(*unit)) {
            Some((name, unit)) => write!(f, "{}{name}", self.0 / unit),
            None => write!(f, "{} bytes", self.0),
        }
    }
}
