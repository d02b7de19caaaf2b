//! A guest's module: compiled, and checked for what it must and must not have.

use wasmtime::{Engine, ExternType, Func, FuncType, InstancePre, Linker, Module, Store, ValType};

use crate::{
    complexity,
    settings::{Bytes, GuestLimits},
    state::{FUNCTIONS, IMPORTS, State, link},
};

/// The version of the contract between guests and this host.
pub(crate) const ABI_VERSION: u32 = 1;
/// What guests must export besides their memory.
pub(crate) const ABI: &str = "supercargo_abi";
pub(crate) const ALLOC: &str = "supercargo_alloc";
pub(crate) const INIT: &str = "supercargo_init";
/// Called once before all else where a language needs it.
pub(crate) const INITIALIZE: &str = "_initialize";

const MAGIC: &[u8] = b"\0asm";
/// A module, or a comment above it.
const TEXT_BEGINS_WITH: [&[u8]; 3] = [b"(module", b";;", b"(;"];
const CORE_VERSION: &[u8] = &[1, 0, 0, 0];

/// A step of a cycle that a guest can take part in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GuestStep {
    Filter,
    PreScore,
    Score,
    Normalize,
}

impl GuestStep {
    pub(crate) const ALL: [Self; 4] = [Self::Filter, Self::PreScore, Self::Score, Self::Normalize];

    pub(crate) fn export(self) -> &'static str {
        match self {
            Self::Filter => "supercargo_filter",
            Self::PreScore => "supercargo_pre_score",
            Self::Score => "supercargo_score",
            Self::Normalize => "supercargo_normalize",
        }
    }
}

/// The steps that a guest exports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Steps {
    pub(crate) filter: bool,
    pub(crate) pre_score: bool,
    pub(crate) score: bool,
    pub(crate) normalize: bool,
}

impl Steps {
    /// The points that a configuration can name, as people read them.
    pub(crate) fn points(self) -> String {
        let points = [("filter", self.filter), ("preScore", self.pre_score), ("score", self.score)];
        let served: Vec<&str> = points.iter().filter(|(_, served)| *served).map(|(name, _)| *name).collect();
        served.join(", ")
    }

    /// Whether another guest can take this one's place without a new configuration.
    pub(crate) fn serve_the_same_points(self, other: Self) -> bool {
        Self { normalize: false, ..self } == Self { normalize: false, ..other }
    }
}

/// Why a file cannot be a guest, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unfit {
    pub(crate) what: String,
    pub(crate) hint: Option<String>,
}

impl Unfit {
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), hint: None }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// Compiles a module and links it, if it is fit to be a guest; or tells everything that is wrong with it.
pub(crate) fn compile(
    engine: &Engine,
    bytes: &[u8],
    limits: &GuestLimits,
) -> Result<(InstancePre<State>, Steps), Vec<Unfit>> {
    looks_like_a_module(bytes).map_err(|unfit| vec![unfit])?;
    complexity::check(bytes, limits).map_err(|unfit| vec![unfit])?;
    let module = Module::new(engine, bytes).map_err(|error| {
        let hint = "threads, garbage collection, several memories, 64-bit memories and relaxed SIMD are switched off";
        vec![Unfit::new(format!("this is not a valid WebAssembly module: {error:#}")).hint(hint)]
    })?;
    let mut linker = Linker::new(engine);
    let cannot_link = |error: wasmtime::Error| vec![Unfit::new(format!("cannot be linked: {error:#}"))];
    link(&mut linker).map_err(cannot_link)?;
    let mut unfit = Vec::new();
    check_imports(&module, engine, &linker, &mut unfit);
    let steps = check_exports(&module, limits, &mut unfit);
    if !unfit.is_empty() {
        return Err(unfit);
    }
    linker.instantiate_pre(&module).map(|pre| (pre, steps)).map_err(cannot_link)
}

fn looks_like_a_module(bytes: &[u8]) -> Result<(), Unfit> {
    let begins = bytes.trim_ascii_start();
    if TEXT_BEGINS_WITH.iter().any(|begin| begins.starts_with(begin)) {
        let hint = "compile it: wat2wasm NAME.wat, or wasm-tools parse NAME.wat -o NAME.wasm";
        return Err(Unfit::new("this is WebAssembly as text, and not a module").hint(hint));
    }
    if !bytes.starts_with(MAGIC) {
        let hint = "it must begin with the bytes 00 61 73 6d; was it downloaded as a whole?";
        return Err(Unfit::new("this is not a WebAssembly module").hint(hint));
    }
    if bytes.get(MAGIC.len()..MAGIC.len() + CORE_VERSION.len()) != Some(CORE_VERSION) {
        let unfit =
            Unfit::new("this is a WebAssembly component (or of an unknown version), and not a core module");
        return Err(unfit.hint("build the guest for the target wasm32-unknown-unknown"));
    }
    Ok(())
}

fn check_imports(module: &Module, engine: &Engine, linker: &Linker<State>, unfit: &mut Vec<Unfit>) {
    let mut store = Store::new(engine, State::new(0));
    for import in module.imports() {
        let name = format!("{}.{}", import.module(), import.name());
        let Ok(offered) = linker.get(&mut store, import.module(), import.name()) else {
            let wrong = Unfit::new(format!("it imports {name}, which is not offered"));
            let hint = if import.module().starts_with("wasi") {
                "nothing of the machine is offered to guests (no WASI): build for wasm32-unknown-unknown"
                    .to_owned()
            } else {
                let names: Vec<String> =
                    FUNCTIONS.iter().map(|(name, _)| format!("{IMPORTS}.{name}")).collect();
                format!("a guest can import {}", names.join(", "))
            };
            unfit.push(wrong.hint(hint));
            continue;
        };
        let fits = match (import.ty(), offered.into_func()) {
            (ExternType::Func(wanted), Some(offered)) => same(&wanted, &Func::ty(&offered, &store)),
            _ => false,
        };
        if !fits {
            let known = FUNCTIONS.iter().find(|(name, _)| *name == import.name());
            let (_, ty) = known.copied().unwrap_or_default();
            unfit.push(Unfit::new(format!("it imports {name} as something else than a function {ty}")));
        }
    }
}

fn same(wanted: &FuncType, offered: &FuncType) -> bool {
    wanted.params().map(kind).eq(offered.params().map(kind))
        && wanted.results().map(kind).eq(offered.results().map(kind))
}

fn kind(ty: ValType) -> &'static str {
    match ty {
        ValType::I32 => "i32",
        ValType::I64 => "i64",
        ValType::F32 => "f32",
        ValType::F64 => "f64",
        _ => "other",
    }
}

fn check_exports(module: &Module, limits: &GuestLimits, unfit: &mut Vec<Unfit>) -> Steps {
    match module.get_export("memory") {
        Some(ExternType::Memory(memory)) => {
            let bytes = memory.minimum().saturating_mul(memory.page_size());
            if bytes > limits.memory_bytes {
                let limit = Bytes(limits.memory_bytes);
                let what = format!("it wants {} of memory to begin with, and may have {limit}", Bytes(bytes));
                unfit.push(
                    Unfit::new(what).hint("raise `memory` in its arguments, or make its stack smaller"),
                );
            }
        }
        _ => unfit.push(Unfit::new("it exports no memory").hint("export its memory as \"memory\"")),
    }
    // The version comes first: without it, the rest may be right by another contract.
    if !exports(module, ABI, 0, 1, unfit) && module.get_export(ABI).is_none() {
        let hint = format!("export a function {ABI} that returns {ABI_VERSION}; see the page on the ABI");
        unfit.push(Unfit::new(format!("it exports no function {ABI}")).hint(hint));
    }
    if !exports(module, ALLOC, 1, 1, unfit) && module.get_export(ALLOC).is_none() {
        let hint = "it takes a number of bytes and returns the address of so many, aligned to 8";
        unfit.push(Unfit::new(format!("it exports no function {ALLOC}")).hint(hint));
    }
    exports(module, INIT, 2, 1, unfit);
    let [filter, pre_score, score, normalize] =
        GuestStep::ALL.map(|step| exports(module, step.export(), 1, 1, unfit));
    let steps = Steps { filter, pre_score, score, normalize };
    let there = |step: GuestStep| module.get_export(step.export()).is_some();
    if !GuestStep::ALL.into_iter().any(there) {
        let names = GuestStep::ALL.map(GuestStep::export).join(", ");
        unfit
            .push(Unfit::new("it exports no step of a cycle").hint(format!("export one or more of {names}")));
    } else if (there(GuestStep::Normalize) || there(GuestStep::PreScore)) && !there(GuestStep::Score) {
        let step = if there(GuestStep::Normalize) { GuestStep::Normalize } else { GuestStep::PreScore };
        let what = format!("it exports {} without {}", step.export(), GuestStep::Score.export());
        unfit.push(Unfit::new(what).hint("there is nothing to prepare or to normalize without a score"));
    }
    steps
}

/// Whether a function is exported, with the right number of i32 parameters and results.
fn exports(module: &Module, name: &str, params: usize, results: usize, unfit: &mut Vec<Unfit>) -> bool {
    let Some(export) = module.get_export(name) else {
        return false;
    };
    let fits = export.func().is_some_and(|ty| {
        ty.params().map(kind).eq(std::iter::repeat_n("i32", params))
            && ty.results().map(kind).eq(std::iter::repeat_n("i32", results))
    });
    if !fits {
        let params = if params == 0 { String::new() } else { format!("(param{}) ", " i32".repeat(params)) };
        unfit.push(Unfit::new(format!("its export {name} is not a function {params}(result i32)")));
    }
    fits
}
