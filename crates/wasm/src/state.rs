//! What the host keeps beside an instance while it runs: what the guest asked for, its texts, and its limits.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use supercargo_framework::handle::LogLevel;
use supercargo_model::Name;
use wasmtime::{Caller, Error, Extern, Linker, ResourceLimiter};

use crate::attributes::{Form, NO_TEXT, NodeAttribute, PodAttribute};

/// The module that guests import from.
pub(crate) const IMPORTS: &str = "supercargo";
/// A guest that wants more columns than this is mistaken.
const MAX_ATTRIBUTES: usize = 1024;
/// What a guest says is cut here.
const MAX_MESSAGE_BYTES: usize = 1024;
/// So many lines of a guest are kept until they are told; the others are counted.
const MAX_LOGGED_LINES: usize = 16;
/// A single text is not longer than this.
const MAX_TEXT_BYTES: u32 = 1 << 20;
/// Of all tables of a guest together: they do not count as its memory.
const MAX_TABLE_ELEMENTS: usize = 100_000;

/// The texts that a guest knows by their ids.
#[derive(Default)]
pub(crate) struct Texts {
    ids: HashMap<Name, u32, RandomState>,
    /// By id, less one.
    all: Vec<Name>,
    /// What they take, roughly.
    bytes: u64,
}

impl Texts {
    pub(crate) fn id(&mut self, text: &str) -> u32 {
        if let Some(id) = self.ids.get(text) {
            return *id;
        }
        self.bytes += cost(text);
        let text = Name::from(text);
        self.all.push(text.clone());
        let id = self.all.len() as u32;
        self.ids.insert(text, id);
        id
    }

    pub(crate) fn get(&self, id: u32) -> Option<&Name> {
        self.all.get((id.checked_sub(1)?) as usize)
    }

    /// Keeps only the first texts.
    pub(crate) fn truncate(&mut self, count: usize) {
        for text in self.all.drain(count..) {
            self.bytes -= cost(&text);
            self.ids.remove(&text);
        }
    }

    /// By id, less one.
    pub(crate) fn all(&self) -> &[Name] {
        &self.all
    }
}

/// What a text takes beside its bytes: its place in both tables, and a count of its users.
const TEXT_OVERHEAD_BYTES: u64 = 64;

fn cost(text: &str) -> u64 {
    text.len() as u64 + TEXT_OVERHEAD_BYTES
}

/// Lines of a guest for the scheduler's log.
#[derive(Default)]
pub(crate) struct Logged {
    pub(crate) lines: Vec<(LogLevel, String)>,
    /// How many more there were.
    pub(crate) left_out: u64,
}

/// What a store holds besides the guest.
pub(crate) struct State {
    pub(crate) node_attributes: Vec<(NodeAttribute, Form)>,
    pub(crate) pod_attributes: Vec<(PodAttribute, Form)>,
    pub(crate) texts: Texts,
    /// Whether attributes can be asked for: while the guest is made.
    pub(crate) asks: bool,
    /// What the guest said was wrong.
    pub(crate) said: Option<String>,
    /// What the guest logged, and nobody has been told yet.
    pub(crate) logged: Logged,
    max_memory_bytes: u64,
    /// The guest wanted more memory than it may have.
    pub(crate) wanted_memory: bool,
    table_elements: usize,
}

impl State {
    pub(crate) fn new(max_memory_bytes: u64) -> Self {
        Self {
            node_attributes: Vec::new(),
            pod_attributes: Vec::new(),
            texts: Texts::default(),
            asks: true,
            said: None,
            logged: Logged::default(),
            max_memory_bytes,
            wanted_memory: false,
            table_elements: 0,
        }
    }
}

impl ResourceLimiter for State {
    fn memory_growing(&mut self, _: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        let granted = desired as u64 <= self.max_memory_bytes;
        self.wanted_memory |= !granted;
        Ok(granted)
    }

    fn table_growing(&mut self, current: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        let elements = self.table_elements.saturating_add(desired.saturating_sub(current));
        let granted = elements <= MAX_TABLE_ELEMENTS;
        if granted {
            self.table_elements = elements;
        }
        Ok(granted)
    }

    fn memories(&self) -> usize {
        1
    }
}

/// The functions that guests may import, with their types for messages.
pub(crate) const FUNCTIONS: [(&str, &str); 5] = [
    ("node_column", "(param i32 i32 i32) (result i32)"),
    ("pod_fact", "(param i32 i32 i32) (result i32)"),
    ("intern", "(param i32 i32) (result i32)"),
    ("fail", "(param i32 i32)"),
    ("log", "(param i32 i32 i32)"),
];

/// What guests may import, and nothing else: no files, no network, no clock, no randomness.
pub(crate) fn link(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    linker.func_wrap(
        IMPORTS,
        "node_column",
        |mut caller: Caller<'_, State>, at: u32, len: u32, form: u32| {
            let attribute = text(&mut caller, at, len)?;
            let attribute = (
                NodeAttribute::parse(&attribute).map_err(Error::msg)?,
                Form::from_code(form).map_err(Error::msg)?,
            );
            let state = caller.data_mut();
            subscribe(&mut state.node_attributes, attribute, state.asks)
        },
    )?;
    linker.func_wrap(
        IMPORTS,
        "pod_fact",
        |mut caller: Caller<'_, State>, at: u32, len: u32, form: u32| {
            let attribute = text(&mut caller, at, len)?;
            let attribute = (
                PodAttribute::parse(&attribute).map_err(Error::msg)?,
                Form::from_code(form).map_err(Error::msg)?,
            );
            let state = caller.data_mut();
            subscribe(&mut state.pod_attributes, attribute, state.asks)
        },
    )?;
    linker.func_wrap(IMPORTS, "intern", |mut caller: Caller<'_, State>, at: u32, len: u32| {
        let text = text(&mut caller, at, len)?;
        let State { texts, max_memory_bytes, wanted_memory, .. } = caller.data_mut();
        let id = texts.id(&text);
        // They are the host's, and the guest has made them.
        if texts.bytes > *max_memory_bytes {
            *wanted_memory = true;
            return Err(Error::msg("it interns more texts than it may have memory"));
        }
        debug_assert_ne!(id, NO_TEXT);
        wasmtime::Result::Ok(id)
    })?;
    linker.func_wrap(IMPORTS, "fail", |mut caller: Caller<'_, State>, at: u32, len: u32| {
        let said = cut(text(&mut caller, at, len)?);
        caller.data_mut().said = Some(said);
        wasmtime::Result::Ok(())
    })?;
    linker.func_wrap(IMPORTS, "log", |mut caller: Caller<'_, State>, level: u32, at: u32, len: u32| {
        let level = log_level(level)?;
        if caller.data().logged.lines.len() >= MAX_LOGGED_LINES {
            caller.data_mut().logged.left_out += 1;
            return Ok(());
        }
        let line = cut(text(&mut caller, at, len)?);
        caller.data_mut().logged.lines.push((level, line));
        wasmtime::Result::Ok(())
    })?;
    Ok(())
}

fn log_level(level: u32) -> wasmtime::Result<LogLevel> {
    match level {
        0 => Ok(LogLevel::Info),
        1 => Ok(LogLevel::Warn),
        2 => Ok(LogLevel::Error),
        other => Err(Error::msg(format!("the log level {other} means nothing: 0 is info, 1 warn, 2 error"))),
    }
}

/// A message of a guest, as long as it may be.
fn cut(mut message: String) -> String {
    if message.len() > MAX_MESSAGE_BYTES {
        message.truncate(message.floor_char_boundary(MAX_MESSAGE_BYTES));
        message.push('…');
    }
    message
}

/// The place of an attribute among those that were asked for; the same one if it was asked for before.
fn subscribe<T: PartialEq>(attributes: &mut Vec<T>, attribute: T, asks: bool) -> wasmtime::Result<u32> {
    if let Some(known) = attributes.iter().position(|other| *other == attribute) {
        return Ok(known as u32);
    }
    if !asks {
        return Err(Error::msg("attributes can be asked for in supercargo_init only"));
    }
    if attributes.len() >= MAX_ATTRIBUTES {
        return Err(Error::msg(format!("it asks for more than {MAX_ATTRIBUTES} attributes")));
    }
    attributes.push(attribute);
    Ok(attributes.len() as u32 - 1)
}

/// A text in the guest's memory.
fn text(caller: &mut Caller<'_, State>, at: u32, len: u32) -> wasmtime::Result<String> {
    if len > MAX_TEXT_BYTES {
        return Err(Error::msg(format!(
            "a text of {len} bytes is too long: at most {MAX_TEXT_BYTES} are read"
        )));
    }
    let Some(Extern::Memory(memory)) = caller.get_export("memory") else {
        return Err(Error::msg("it exports no memory"));
    };
    let (at, len) = (at as usize, len as usize);
    let bytes = memory.data(&*caller).get(at..at + len);
    let bytes =
        bytes.ok_or_else(|| Error::msg(format!("a text at {at} of {len} bytes is not in its memory")))?;
    let text = String::from_utf8(bytes.to_vec());
    text.map_err(|_| Error::msg(format!("a text at {at} of {len} bytes is not UTF-8")))
}
