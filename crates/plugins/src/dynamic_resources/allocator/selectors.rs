//! Selectors are compiled once, and a device is made ready for them once a search.

use std::collections::HashMap;

use supercargo_cel::{
    DeviceFact, DeviceFacts, DeviceSelector, EvaluationError, SelectableDevice, SelectorDefect,
};
use supercargo_model::{
    Name,
    devices::{Device, DeviceAttribute},
};

/// Compiled selectors by their text.
#[derive(Default)]
pub struct SelectorCache {
    compiled: HashMap<Name, Result<DeviceSelector, SelectorDefect>>,
}

/// More than a cluster's classes and claims have.
const MOST_SELECTORS: usize = 10_000;

impl SelectorCache {
    pub(super) fn get(&mut self, expression: &Name) -> &Result<DeviceSelector, SelectorDefect> {
        if self.compiled.len() >= MOST_SELECTORS && !self.compiled.contains_key(expression) {
            self.compiled.clear();
        }
        self.compiled.entry(expression.clone()).or_insert_with(|| DeviceSelector::compile(expression))
    }
}

pub(super) fn selectable(driver: &str, device: &Device) -> Result<SelectableDevice, EvaluationError> {
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
