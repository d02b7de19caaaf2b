//! Selectors are compiled once, and asked once about each device of a slice, as long as the slice stays what it is.

use std::sync::Arc;

use supercargo_cel::{
    DeviceFact, DeviceFacts, DeviceSelector, EvaluationError, SelectableDevice, SelectorDefect,
};
use supercargo_model::{
    Name,
    devices::{Device, DeviceAttribute, ResourceSlice},
};

use super::HashMap;

/// Compiled selectors, and which devices they select.
#[derive(Default)]
pub struct SelectorCache {
    ids: HashMap<Name, SelectorId>,
    compiled: Vec<Result<DeviceSelector, SelectorDefect>>,
    /// By the address of the slice, which is kept as long as the answers about it.
    slices: HashMap<usize, SliceAnswers>,
    /// Slices that nobody else has any more are forgotten when there are so many.
    tidied_at: usize,
}

/// More than a cluster's classes and claims have.
const MOST_SELECTORS: usize = 10_000;
const FEW_SLICES: usize = 1024;

/// A selector's place in the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SelectorId(usize);

struct SliceAnswers {
    slice: Arc<ResourceSlice>,
    /// By selector, then by device.
    of: Vec<Box<[Option<Selected>]>>,
}

/// Whether a selector selects a device, or why that cannot be told.
#[derive(Clone, Debug)]
pub(super) enum Selected {
    Yes,
    No,
    Failed(Arc<str>),
}

/// Devices in the form that selectors look at, by address.
pub(super) type ReadyDevices = HashMap<usize, Result<SelectableDevice, EvaluationError>>;

impl SelectorCache {
    /// To be called before a search: what is kept is bounded.
    pub(super) fn tidy(&mut self) {
        if self.compiled.len() >= MOST_SELECTORS {
            *self = Self::default();
        }
        if self.slices.len() > self.tidied_at.max(FEW_SLICES) {
            self.slices.retain(|_, answers| Arc::strong_count(&answers.slice) > 1);
            self.tidied_at = 2 * self.slices.len();
        }
    }

    pub(super) fn id(&mut self, expression: &Name) -> SelectorId {
        if let Some(id) = self.ids.get(expression) {
            return *id;
        }
        let id = SelectorId(self.compiled.len());
        self.compiled.push(DeviceSelector::compile(expression));
        self.ids.insert(expression.clone(), id);
        id
    }

    /// Whether a selector selects a device of a slice.
    pub(super) fn selects(
        &mut self,
        SelectorId(id): SelectorId,
        slice: &Arc<ResourceSlice>,
        place: usize,
        ready: &mut ReadyDevices,
    ) -> &Selected {
        let address = Arc::as_ptr(slice) as usize;
        let answers = self
            .slices
            .entry(address)
            .or_insert_with(|| SliceAnswers { slice: slice.clone(), of: Vec::new() });
        if answers.of.len() <= id {
            answers.of.resize_with(id + 1, Box::default);
        }
        let answers = &mut answers.of[id];
        if answers.is_empty() {
            *answers = vec![None; slice.devices.len()].into();
        }
        let compiled = &self.compiled[id];
        answers[place].get_or_insert_with(|| {
            let device = &slice.devices[place];
            let address = std::ptr::from_ref(device) as usize;
            let ready = ready.entry(address).or_insert_with(|| selectable(&slice.driver, device));
            evaluated(compiled, ready)
        })
    }
}

fn evaluated(
    compiled: &Result<DeviceSelector, SelectorDefect>,
    device: &Result<SelectableDevice, EvaluationError>,
) -> Selected {
    let result = match (compiled, device) {
        (Err(defect), _) => return Selected::Failed(format!("CEL compile error: {defect}").into()),
        (Ok(selector), Ok(device)) => selector.evaluate(device).result,
        (Ok(_), Err(error)) => Err(error.clone()),
    };
    match result {
        Ok(true) => Selected::Yes,
        Ok(false) => Selected::No,
        Err(error) => Selected::Failed(format!("CEL runtime error: {error}").into()),
    }
}

fn selectable(driver: &str, device: &Device) -> Result<SelectableDevice, EvaluationError> {
    let mut facts = DeviceFacts::new(driver, device.is_shared());
    for (name, attribute) in &device.attributes {
        facts.attribute(name, fact(attribute))?;
    }
    for (name, capacity) in &device.capacity {
        facts.capacity(name, capacity.value.written());
    }
    Ok(facts.build())
}

fn fact(attribute: &DeviceAttribute) -> DeviceFact<'_> {
    if let Some(value) = attribute.int {
        return DeviceFact::Int(value);
    }
    if let Some(value) = attribute.bool {
        return DeviceFact::Bool(value);
    }
    match (&attribute.string, &attribute.version) {
        (Some(text), _) => DeviceFact::Text(text),
        (None, Some(version)) => DeviceFact::Version(version),
        (None, None) => DeviceFact::Unsupported,
    }
}
