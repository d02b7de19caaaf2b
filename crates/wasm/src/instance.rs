//! One running guest: its memory with the columns in it, kept up to date, and the calls into it.

use std::sync::Arc;

use supercargo_model::{
    Cluster, Name, Node, NodeId, NodeInfo, Pod,
    changes::{ChangeLogId, Moment},
};
use wasmtime::{AsContextMut, Error, InstancePre, Memory, Store, Trap, TypedFunc, WasmParams, WasmResults};

use crate::{
    attributes::{Form, NodeAttribute},
    module::{ABI, ABI_VERSION, ALLOC, GuestStep, INIT, INITIALIZE},
    settings::{Bytes, GuestLimits},
    state::{Logged, State},
    ticker::{TICK, Ticker},
};

/// The table that every call is told of: see the page on the ABI.
const FRAME_BYTES: u32 = 40;
const ALIGNMENT: u32 = 8;
/// A row of the table of texts: address and length.
const TEXT_ENTRY_BYTES: usize = 8;
/// An instance that keeps more texts than this besides several for each row is replaced by a fresh one, which knows only
/// those that are in use.
const SPARE_TEXTS: usize = 10_000;
const TEXTS_FOR_EACH: usize = 4;

/// What a guest answers to a step.
const DONE: u32 = 0;
const SKIP: u32 = 1;
const FAILED: u32 = 2;

/// What went wrong in a guest, in words for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GuestError(pub(crate) String);

/// How a step ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Done,
    /// PreScore has nothing to do for this pod.
    Skip,
}

/// Room in the guest's memory.
#[derive(Clone, Copy, Debug, Default)]
struct Block {
    at: u32,
    bytes: u32,
}

/// A guest, ready to be called.
pub(crate) struct Instance {
    store: Store<State>,
    memory: Memory,
    alloc: TypedFunc<u32, u32>,
    steps: [Option<TypedFunc<u32, u32>>; 4],
    limits: GuestLimits,
    frame: Block,
    pod: Block,
    column_table: Block,
    /// The column of each node attribute that the guest asked for.
    columns: Vec<Block>,
    asked: Block,
    scores: Block,
    verdicts: Block,
    reasons: Block,
    text_table: Block,
    /// The bytes of texts that only this call knows.
    passing_texts: Block,
    /// How many texts the guest's memory holds for good.
    written_texts: usize,
    /// How many texts there were when the calls about this pod began.
    texts_at_start: usize,
    /// How far the columns are.
    known: Option<(ChangeLogId, Moment)>,
    /// The row of a node that was shown as it would be.
    pretended: Option<NodeId>,
    /// The node of each row, as it was written.
    rows: Vec<Option<Arc<Node>>>,
}

impl Instance {
    /// Starts a guest and lets it ask for its attributes.
    pub(crate) fn start(
        pre: &InstancePre<State>,
        args: &str,
        limits: &GuestLimits,
        ticker: &Ticker,
    ) -> Result<Self, GuestError> {
        let _during = ticker.during();
        let mut store = Store::new(pre.module().engine(), State::new(limits.memory_bytes));
        store.limiter(|state| state);
        arm(&mut store, limits);
        let started = pre.instantiate(&mut store);
        let instance = started.map_err(|error| fault(&error, &store, limits, "at its start"))?;
        // That these are there was checked when the module was compiled.
        let missing = |error: Error| GuestError(format!("{error:#}"));
        let memory = instance
            .get_memory(&mut store, "memory")
            .ok_or_else(|| GuestError("it exports no memory".into()))?;
        let alloc = instance.get_typed_func::<u32, u32>(&mut store, ALLOC).map_err(missing)?;
        let abi = instance.get_typed_func::<(), u32>(&mut store, ABI).map_err(missing)?;
        if let Ok(initialize) = instance.get_typed_func::<(), ()>(&mut store, INITIALIZE) {
            call(&mut store, &initialize, (), limits, INITIALIZE)?;
        }
        let version = call(&mut store, &abi, (), limits, ABI)?;
        if version != ABI_VERSION {
            return Err(GuestError(format!(
                "it is made for version {version} of the ABI, and this host offers version {ABI_VERSION}"
            )));
        }
        let steps = GuestStep::ALL.map(|step| instance.get_typed_func(&mut store, step.export()).ok());
        let mut started = Self {
            store,
            memory,
            alloc,
            steps,
            limits: limits.clone(),
            frame: Block::default(),
            pod: Block::default(),
            column_table: Block::default(),
            columns: Vec::new(),
            asked: Block::default(),
            scores: Block::default(),
            verdicts: Block::default(),
            reasons: Block::default(),
            text_table: Block::default(),
            passing_texts: Block::default(),
            written_texts: 0,
            texts_at_start: 0,
            pretended: None,
            known: None,
            rows: Vec::new(),
        };
        if let Ok(init) = instance.get_typed_func::<(u32, u32), u32>(&mut started.store, INIT) {
            started.init(&init, args)?;
        }
        started.store.data_mut().asks = false;
        let state = started.store.data();
        let (node_attributes, pod_attributes) =
            (state.node_attributes.len(), state.pod_attributes.len() as u32);
        started.columns = vec![Block::default(); node_attributes];
        started.frame = started.allocate(FRAME_BYTES)?;
        started.pod = started.allocate(8 * pod_attributes)?;
        started.column_table = started.allocate(4 * node_attributes as u32)?;
        Ok(started)
    }

    fn init(&mut self, init: &TypedFunc<(u32, u32), u32>, args: &str) -> Result<(), GuestError> {
        let length =
            u32::try_from(args.len()).map_err(|_| GuestError("its arguments are too long".into()))?;
        let block = self.allocate(length)?;
        put(self.memory.data_mut(&mut self.store), block.at, args.as_bytes());
        arm(&mut self.store, &self.limits);
        match call(&mut self.store, init, (block.at, length), &self.limits, INIT)? {
            DONE => Ok(()),
            code => Err(self.failed(code, INIT)),
        }
    }

    /// Whether a fresh instance would do better: this one keeps too many texts of the past.
    pub(crate) fn is_worn(&self) -> bool {
        let State { node_attributes, texts, .. } = self.store.data();
        let columns = node_attributes.iter().filter(|(_, form)| *form == Form::Text).count();
        texts.all().len() > SPARE_TEXTS + TEXTS_FOR_EACH * columns * self.rows.len()
    }

    /// A text by its id, such as a reason that the guest gave.
    pub(crate) fn text(&self, id: u32) -> Option<&Name> {
        self.store.data().texts.get(id)
    }

    /// Makes everything ready for calls about a pod and some nodes, by their rows. One of them can be shown as it would
    /// be, with other pods on it.
    pub(crate) fn prepare(
        &mut self,
        cluster: &Cluster,
        pod: &Pod,
        asked: &[u32],
        would_be: Option<&NodeInfo>,
        ticker: &Ticker,
    ) -> Result<(), GuestError> {
        let _during = ticker.during();
        arm(&mut self.store, &self.limits);
        self.follow(cluster)?;
        if let Some(node) = would_be {
            let (data, state) = self.memory.data_and_store_mut(&mut self.store);
            write_row(data, state, &self.columns, node.id.index(), Some(node), NodeAttribute::reads_load);
            self.pretended = Some(node.id);
        }
        let rows = self.rows.len() as u32;
        self.scores = self.room(self.scores, 8 * rows)?;
        self.asked = self.room(self.asked, 4 * asked.len() as u32)?;
        let lasting = self.store.data().texts.all().len();
        self.write_pod(pod);
        self.write_texts(lasting)?;
        let data = self.memory.data_mut(&mut self.store);
        let at = self.asked.at as usize;
        for (bytes, row) in data[at..].chunks_exact_mut(4).zip(asked) {
            bytes.copy_from_slice(&row.to_le_bytes());
        }
        self.write_frame(asked.len() as u32);
        Ok(())
    }

    /// Filter: what it says of each asked node, as code and reason.
    pub(crate) fn filter(
        &mut self,
        asked: &[u32],
        ticker: &Ticker,
        mut each: impl FnMut(u32, u32, u32) -> Result<(), GuestError>,
    ) -> Result<(), GuestError> {
        let rows = self.rows.len() as u32;
        self.verdicts = self.room(self.verdicts, 4 * rows)?;
        self.reasons = self.room(self.reasons, 4 * rows)?;
        self.write_frame(asked.len() as u32);
        self.zero(self.verdicts, 4 * rows);
        self.zero(self.reasons, 4 * rows);
        self.step(GuestStep::Filter, ticker)?;
        let data = self.memory.data(&self.store);
        for row in asked {
            let code = get_u32(data, self.verdicts.at + 4 * row);
            if code != 0 {
                each(*row, code, get_u32(data, self.reasons.at + 4 * row))?;
            }
        }
        Ok(())
    }

    /// Runs a step that works on scores.
    pub(crate) fn run(&mut self, step: GuestStep, ticker: &Ticker) -> Result<End, GuestError> {
        if step == GuestStep::Score {
            self.zero(self.scores, 8 * self.rows.len() as u32);
        }
        self.step(step, ticker)
    }

    /// The scores as the guest left them, by row, and as bytes: `i64::from_le_bytes` makes numbers of them.
    pub(crate) fn scores(&self) -> &[[u8; 8]] {
        let at = self.scores.at as usize;
        self.memory.data(&self.store)[at..at + 8 * self.rows.len()].as_chunks().0
    }

    /// What the guest has logged since this was asked.
    pub(crate) fn take_logged(&mut self) -> Logged {
        std::mem::take(&mut self.store.data_mut().logged)
    }

    /// Forgets what only this pod's calls needed.
    pub(crate) fn finish(&mut self) {
        let (lasting, texts) = (self.written_texts, &mut self.store.data_mut().texts);
        // If the guest has added some, these stay below them.
        if texts.all().len() == self.texts_at_start {
            texts.truncate(lasting);
        }
    }

    fn step(&mut self, step: GuestStep, ticker: &Ticker) -> Result<End, GuestError> {
        let Some(function) = self.steps[step as usize].clone() else {
            return Err(GuestError(format!("it exports no {}", step.export())));
        };
        let _during = ticker.during();
        arm(&mut self.store, &self.limits);
        match call(&mut self.store, &function, self.frame.at, &self.limits, step.export())? {
            DONE => Ok(End::Done),
            SKIP if step == GuestStep::PreScore => Ok(End::Skip),
            code => Err(self.failed(code, step.export())),
        }
    }

    fn failed(&mut self, code: u32, function: &str) -> GuestError {
        let said = self.store.data_mut().said.take();
        GuestError(match (said, code) {
            (Some(said), _) => format!("{function} failed: {said}"),
            (None, FAILED) => format!("{function} failed, and did not say why"),
            (None, code) => format!(
                "{function} returned {}, which means nothing: 0 is done, 1 (of supercargo_pre_score) is skip, 2 is failed",
                code as i32
            ),
        })
    }

    /// Brings the columns up to date: only what has changed is written.
    fn follow(&mut self, cluster: &Cluster) -> Result<(), GuestError> {
        let changes = cluster.changes();
        let current = match &self.known {
            Some((history, moment)) if history.is(changes.history()) => changes.since(*moment),
            _ => None,
        };
        match current {
            Some(missed) => {
                let (data, state) = self.memory.data_and_store_mut(&mut self.store);
                for id in missed.map(|change| change.node).chain(self.pretended.take()) {
                    let node = cluster.node_at(id);
                    write_row(data, state, &self.columns, id.index(), Some(node), NodeAttribute::reads_load);
                }
            }
            None => self.rewrite(cluster)?,
        }
        self.known = Some((changes.history().mark(), changes.now()));
        Ok(())
    }

    /// Writes all rows; of nodes that are still the same, only what depends on their pods.
    fn rewrite(&mut self, cluster: &Cluster) -> Result<(), GuestError> {
        let count = cluster.columns().len();
        self.make_columns(count as u32)?;
        self.pretended = None;
        self.rows.resize(count, None);
        let (data, state) = self.memory.data_and_store_mut(&mut self.store);
        for (row, known) in self.rows.iter_mut().enumerate() {
            let there = cluster.columns().live.contains_index(row);
            let node = there.then(|| cluster.node_at(NodeId::from_index(row)));
            let same = match (&*known, node) {
                (Some(known), Some(node)) => Arc::ptr_eq(known, &node.node),
                (None, None) => continue,
                _ => false,
            };
            write_row(data, state, &self.columns, row, node, |attribute| !same || attribute.reads_load());
            *known = node.map(|node| node.node.clone());
        }
        Ok(())
    }

    fn make_columns(&mut self, rows: u32) -> Result<(), GuestError> {
        for index in 0..self.columns.len() {
            let width = self.store.data().node_attributes[index].1.width();
            let (before, wanted) = (self.columns[index], rows.saturating_mul(width));
            self.columns[index] = self.room(before, wanted)?;
            if self.columns[index].at != before.at || before.bytes == 0 {
                self.zero(self.columns[index], self.columns[index].bytes);
                self.rows.clear();
            }
        }
        let data = self.memory.data_mut(&mut self.store);
        for (index, column) in self.columns.iter().enumerate() {
            put(data, self.column_table.at + 4 * index as u32, &column.at.to_le_bytes());
        }
        Ok(())
    }

    fn write_pod(&mut self, pod: &Pod) {
        let (data, state) = self.memory.data_and_store_mut(&mut self.store);
        let State { pod_attributes, texts, .. } = state;
        for (index, (attribute, form)) in pod_attributes.iter().enumerate() {
            let bits = attribute.of(pod).bits(*form, |text| texts.id(text));
            put(data, self.pod.at + 8 * index as u32, &bits.to_le_bytes());
        }
    }

    /// Writes the texts that the guest's memory lacks: those before `lasting` for good, the others for these calls.
    fn write_texts(&mut self, lasting: usize) -> Result<(), GuestError> {
        let all = self.store.data().texts.all();
        let count = all.len();
        self.texts_at_start = count;
        if count == self.written_texts {
            return Ok(());
        }
        let bytes = |texts: &[Name]| texts.iter().map(|text| text.len()).sum::<usize>() as u32;
        let (new_bytes, passing_bytes) = (bytes(&all[self.written_texts..lasting]), bytes(&all[lasting..]));
        // Id 0 stands for no text.
        let before = self.text_table;
        self.text_table = self.room(before, ((count + 1) * TEXT_ENTRY_BYTES) as u32)?;
        if self.text_table.at != before.at {
            let (data, entries) = (self.memory.data_mut(&mut self.store), before.at as usize);
            let length = if before.bytes == 0 { 0 } else { (self.written_texts + 1) * TEXT_ENTRY_BYTES };
            data.copy_within(entries..entries + length, self.text_table.at as usize);
            put(data, self.text_table.at, &[0; TEXT_ENTRY_BYTES]);
        }
        let lasting_bytes = if new_bytes == 0 { Block::default() } else { self.allocate(new_bytes)? };
        self.passing_texts = self.room(self.passing_texts, passing_bytes)?;
        let (data, state) = self.memory.data_and_store_mut(&mut self.store);
        let (mut at, mut passing_at) = (lasting_bytes.at, self.passing_texts.at);
        // What the guest has interned since, when it was asked for room, has none here: it is written the next time.
        let counted = state.texts.all().iter().enumerate().take(count);
        for (index, text) in counted.skip(self.written_texts) {
            let next = if index < lasting { &mut at } else { &mut passing_at };
            put(data, *next, text.as_bytes());
            let entry = self.text_table.at + ((index + 1) * TEXT_ENTRY_BYTES) as u32;
            put(data, entry, &next.to_le_bytes());
            put(data, entry + 4, &(text.len() as u32).to_le_bytes());
            *next += text.len() as u32;
        }
        self.written_texts = lasting;
        Ok(())
    }

    fn write_frame(&mut self, asked: u32) {
        let texts = self.texts_at_start as u32 + 1;
        let fields = [
            self.rows.len() as u32,
            asked,
            self.asked.at,
            self.column_table.at,
            self.pod.at,
            self.text_table.at,
            // Nothing is written where there is no text.
            if self.text_table.bytes == 0 { 0 } else { texts },
            self.scores.at,
            self.verdicts.at,
            self.reasons.at,
        ];
        let data = self.memory.data_mut(&mut self.store);
        for (index, field) in fields.into_iter().enumerate() {
            put(data, self.frame.at + 4 * index as u32, &field.to_le_bytes());
        }
    }

    fn zero(&mut self, block: Block, bytes: u32) {
        let (at, bytes) = (block.at as usize, bytes as usize);
        self.memory.data_mut(&mut self.store)[at..at + bytes].fill(0);
    }

    /// The same block if it is large enough; or another one, with room to grow.
    fn room(&mut self, block: Block, bytes: u32) -> Result<Block, GuestError> {
        if bytes <= block.bytes { Ok(block) } else { self.allocate(bytes.next_power_of_two()) }
    }

    /// Asks the guest for room in its memory, and believes nothing.
    fn allocate(&mut self, bytes: u32) -> Result<Block, GuestError> {
        if bytes == 0 {
            return Ok(Block::default());
        }
        let at = call(&mut self.store, &self.alloc, bytes, &self.limits, ALLOC)?;
        let size = self.memory.data_size(&self.store) as u64;
        if at == 0 {
            let why =
                if self.store.data().wanted_memory { limit_of_memory(&self.limits) } else { String::new() };
            return Err(GuestError(format!("{ALLOC} has no room for {bytes} bytes{why}")));
        }
        if u64::from(at) + u64::from(bytes) > size {
            return Err(GuestError(format!(
                "{ALLOC} returned {at} for {bytes} bytes, which is not within its memory of {size} bytes"
            )));
        }
        if at % ALIGNMENT != 0 {
            return Err(GuestError(format!(
                "{ALLOC} returned {at}, which is not aligned to {ALIGNMENT} bytes"
            )));
        }
        Ok(Block { at, bytes })
    }
}

fn write_row(
    data: &mut [u8],
    state: &mut State,
    columns: &[Block],
    row: usize,
    node: Option<&NodeInfo>,
    wanted: impl Fn(&NodeAttribute) -> bool,
) {
    let State { node_attributes, texts, .. } = state;
    for ((attribute, form), column) in
        node_attributes.iter().zip(columns).filter(|((attribute, _), _)| wanted(attribute))
    {
        let bits = node.map_or(0, |node| attribute.of(node).bits(*form, |text| texts.id(text)));
        let at = column.at + row as u32 * form.width();
        match form {
            Form::Integer | Form::Real => put(data, at, &bits.to_le_bytes()),
            Form::Text => put(data, at, &(bits as u32).to_le_bytes()),
        }
    }
}

fn put(data: &mut [u8], at: u32, bytes: &[u8]) {
    data[at as usize..at as usize + bytes.len()].copy_from_slice(bytes);
}

fn get_u32(data: &[u8], at: u32) -> u32 {
    let at = at as usize;
    data[at..].first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

/// Fills up the fuel and sets the alarm.
fn arm(store: &mut Store<State>, limits: &GuestLimits) {
    // It fails only where fuel is switched off.
    let _ = store.set_fuel(limits.fuel);
    let ticks = limits.timeout.as_nanos().div_ceil(TICK.as_nanos());
    // One more, because the first tick may come at once.
    store
        .set_epoch_deadline(u64::try_from(ticks).unwrap_or(u64::MAX / 2).saturating_add(1).min(u64::MAX / 2));
    let state = store.data_mut();
    state.said = None;
    state.wanted_memory = false;
}

fn call<P: WasmParams, R: WasmResults>(
    store: &mut Store<State>,
    function: &TypedFunc<P, R>,
    params: P,
    limits: &GuestLimits,
    name: &str,
) -> Result<R, GuestError> {
    let result = function.call(store.as_context_mut(), params);
    result.map_err(|error| fault(&error, store, limits, &format!("in {name}")))
}

fn limit_of_memory(limits: &GuestLimits) -> String {
    format!(": it wanted more than {} of memory", Bytes(limits.memory_bytes))
}

/// What ended a call, in words for people.
fn fault(error: &Error, store: &Store<State>, limits: &GuestLimits, place: &str) -> GuestError {
    let state = store.data();
    let said = state.said.as_ref().map(|said| format!(": {said}")).unwrap_or_default();
    let Some(trap) = error.downcast_ref::<Trap>() else {
        // An error of the host: what the guest asked for cannot be. The rest of the chain tells where it was.
        return GuestError(format!("{} ({place})", error.root_cause()));
    };
    GuestError(match trap {
        Trap::OutOfFuel => format!("it used up its fuel of {} {place}", limits.fuel),
        Trap::Interrupt => format!("it ran longer than {:?} {place}", limits.timeout),
        Trap::StackOverflow => format!("it used up its stack {place}"),
        _ if state.wanted_memory => format!("it trapped {place}{}", limit_of_memory(limits)),
        Trap::UnreachableCodeReached if !said.is_empty() => format!("it gave up {place}{said}"),
        trap => {
            let trap = trap.to_string();
            format!("it trapped {place}: {}{said}", trap.trim_start_matches("wasm trap: "))
        }
    })
}
