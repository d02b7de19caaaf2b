//! What all guests share: the compiler, the clock that interrupts them, and who is told about them.

use std::{
    fs,
    io::{self, Read},
    path::Path,
    sync::{Arc, Mutex, OnceLock, PoisonError, Weak},
};

use supercargo_framework::{
    handle::LogLevel,
    registry::{Args, Definition, Loader, Registration, define},
};
use supercargo_manifest::Problems;
use supercargo_model::Name;
use wasmtime::{Config, Engine, InstancePre};

use crate::{
    compiler::Compiler,
    guest::{Guest, RunningModule},
    instance::GuestError,
    module::{self, Steps, Unfit},
    settings::{self, Bytes, GuestLimits, GuestSettings},
    state::State,
    ticker::Ticker,
};

/// Compiled modules that are kept, so that the same file is compiled once while a configuration is read.
const KEPT_MODULES: usize = 16;

/// Something that an operator should know about a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuestEvent<'a> {
    /// A call failed, and with it the cycle of a pod.
    Failed {
        /// The plugin.
        plugin: &'a str,
        /// Why.
        why: &'a str,
    },
    /// The file has changed, and the new guest takes over when the next cycle begins.
    Reloaded {
        /// The plugin.
        plugin: &'a str,
        /// The file.
        file: &'a Path,
    },
    /// The file has changed and cannot be used; the guest that runs stays.
    Refused {
        /// The plugin.
        plugin: &'a str,
        /// The file.
        file: &'a Path,
        /// Why.
        why: &'a str,
    },
    /// It has something to say.
    Logged {
        /// The plugin.
        plugin: &'a str,
        /// How important it is.
        level: LogLevel,
        /// What it says.
        line: &'a str,
    },
    /// It said more than is logged.
    LeftOut {
        /// The plugin.
        plugin: &'a str,
        /// How many lines.
        lines: u64,
    },
}

type Listener = dyn Fn(&GuestEvent<'_>) + Send + Sync;

/// Hosts guests: plugins in WebAssembly. Clones are the same host.
#[derive(Clone, Default)]
pub struct Host(Arc<Shared>);

#[derive(Default)]
struct Shared {
    /// Made when the first guest needs it.
    machine: OnceLock<Result<Machine, String>>,
    compiler: Compiler,
    compiled: Mutex<Vec<Compiled>>,
    guests: Mutex<Vec<Weak<Guest>>>,
    listener: OnceLock<Box<Listener>>,
}

struct Machine {
    engine: Engine,
    ticker: Ticker,
}

struct Compiled {
    bytes: Arc<[u8]>,
    limits: GuestLimits,
    pre: InstancePre<State>,
    steps: Steps,
}

fn machine() -> Result<Machine, String> {
    let mut config = Config::new();
    config.consume_fuel(true).epoch_interruption(true);
    // The same guest gives the same scores on every machine.
    config.cranelift_nan_canonicalization(true).wasm_relaxed_simd(false);
    config.wasm_memory64(false).wasm_multi_memory(false);
    let engine = Engine::new(&config).map_err(|error| format!("{error:#}"))?;
    let ticker = Ticker::start(engine.weak()).map_err(|error| error.to_string())?;
    Ok(Machine { engine, ticker })
}

impl Host {
    /// Tells what happens to guests from here on; the first listener stays.
    pub fn listen(&self, listener: impl Fn(&GuestEvent<'_>) + Send + Sync + 'static) {
        let _ = self.0.listener.set(Box::new(listener));
    }

    pub(crate) fn tell(&self, event: &GuestEvent<'_>) {
        if let Some(listener) = self.0.listener.get() {
            listener(event);
        }
    }

    fn machine(&self) -> Result<&Machine, GuestError> {
        let machine = self.0.machine.get_or_init(machine).as_ref();
        machine.map_err(|error| GuestError(format!("WebAssembly cannot be run here: {error}")))
    }

    pub(crate) fn ticker(&self) -> Result<&Ticker, GuestError> {
        self.machine().map(|machine| &machine.ticker)
    }

    /// Whether a module is being compiled, perhaps one that nobody waits for any more.
    pub(crate) fn is_compiling(&self) -> bool {
        self.0.compiler.is_busy()
    }

    /// The guests that are in use.
    pub(crate) fn guests(&self) -> Vec<Arc<Guest>> {
        let mut guests = self.0.guests.lock().unwrap_or_else(PoisonError::into_inner);
        guests.retain(|guest| guest.strong_count() > 0);
        guests.iter().filter_map(Weak::upgrade).collect()
    }

    /// Compiles and starts what a file holds; or tells everything that is wrong with it.
    pub(crate) fn start(
        &self,
        settings: &GuestSettings,
        bytes: &Arc<[u8]>,
    ) -> Result<RunningModule, Vec<Unfit>> {
        let (pre, steps) = self.compile(settings, bytes)?;
        RunningModule::start(pre, steps, settings, self).map_err(|GuestError(what)| vec![Unfit::new(what)])
    }

    fn compile(
        &self,
        settings: &GuestSettings,
        bytes: &Arc<[u8]>,
    ) -> Result<(InstancePre<State>, Steps), Vec<Unfit>> {
        let limits = &settings.limits;
        let compiled = || self.0.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |known: &&Compiled| known.bytes == *bytes && known.limits == *limits;
        if let Some(known) = compiled().iter().find(same) {
            return Ok((known.pre.clone(), known.steps));
        }
        let machine = self.machine().map_err(|GuestError(what)| vec![Unfit::new(what)])?;
        let (engine, given, allowed) = (machine.engine.clone(), bytes.clone(), limits.clone());
        let compile = move || module::compile(&engine, &given, &allowed);
        let (pre, steps) = self.0.compiler.run(limits.compile_timeout, compile)?;
        let mut compiled = compiled();
        if compiled.len() >= KEPT_MODULES {
            compiled.remove(0);
        }
        compiled.push(Compiled { bytes: bytes.clone(), limits: limits.clone(), pre: pre.clone(), steps });
        Ok((pre, steps))
    }

    /// Makes the plugin.
    fn guest(&self, name: &Name, args: &Args<'_>) -> Result<(Guest, Steps), Problems> {
        let settings = GuestSettings::read(args)?;
        let file = settings.path.display().to_string();
        let told = |unfit: &Unfit| {
            let mut problem = args.problem(settings.field, format!("{name}: {file}: {}", unfit.what));
            problem.hint.clone_from(&unfit.hint);
            problem
        };
        let all = |unfit: Vec<Unfit>| -> Problems { unfit.iter().map(told).collect() };
        let bytes = read(&settings.path, &settings.limits).map_err(|unfit| all(vec![unfit]))?;
        let running = self.start(&settings, &bytes).map_err(all)?;
        let steps = running.steps;
        Ok((Guest::new(name.clone(), settings, bytes, self.clone(), running), steps))
    }

    fn watch_later(&self, guest: &Arc<Guest>) {
        self.0.guests.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::downgrade(guest));
    }
}

/// The bytes of a guest's file.
pub(crate) fn read(path: &Path, limits: &GuestLimits) -> Result<Arc<[u8]>, Unfit> {
    let unreadable = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => Unfit::new("there is no such file")
            .hint("a relative path starts at the folder of the configuration"),
        io::ErrorKind::PermissionDenied => Unfit::new("this file may not be read by the scheduler"),
        _ => Unfit::new(format!("cannot be read: {error}")),
    };
    let metadata = fs::metadata(path).map_err(unreadable)?;
    if metadata.is_dir() {
        return Err(Unfit::new("this is a folder, and a file is needed"));
    }
    if !metadata.is_file() {
        return Err(Unfit::new("this is not a regular file").hint("devices and pipes are not read"));
    }
    let mut bytes = Vec::new();
    // One more than it may have: it may grow while it is read.
    let file = fs::File::open(path).map_err(unreadable)?;
    file.take(limits.module_bytes + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > limits.module_bytes {
        let (length, limit) = (metadata.len().max(bytes.len() as u64), Bytes(limits.module_bytes));
        let hint =
            "raise `moduleSize` in its arguments, or build it for size (opt-level = \"s\", strip = true)";
        return Err(Unfit::new(format!("has {length} bytes, and may have {limit}")).hint(hint));
    }
    Ok(bytes.into())
}

impl Loader for Host {
    fn load(&self, name: &str, args: &Args<'_>) -> Option<Result<Registration, Problems>> {
        settings::are_of_a_guest(args).then(|| self.register(name, args))
    }

    fn hint(&self, name: &str) -> String {
        format!(
            "to load it from a WebAssembly file, give its path in pluginConfig: {{name: {name}, args: {{path: …}}}}"
        )
    }
}

impl Host {
    fn register(&self, name: &str, args: &Args<'_>) -> Result<Registration, Problems> {
        let name = Name::from(name);
        let (_, steps) = self.guest(&name, args)?;
        let host = self.clone();
        let definition: Definition<Guest> = define(name.clone(), move |args| {
            let (guest, now) = host.guest(&name, args)?;
            if now.serve_the_same_points(steps) {
                Ok(guest)
            } else {
                Err(args
                    .problem(guest.settings.field, "the file has changed while it was read; try again")
                    .into())
            }
        });
        let host = self.clone();
        let mut definition = definition.cycle_start().once_made(move |guest| host.watch_later(guest));
        if steps.filter {
            definition = definition.filter().fast_filter();
        }
        if steps.pre_score {
            definition = definition.pre_score();
        }
        if steps.score {
            definition = definition.score().normalize().fast_score();
        }
        Ok(definition.into())
    }
}
