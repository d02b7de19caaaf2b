//! What must hold between the devices of a claim.

use std::collections::BTreeMap;

use supercargo_model::{
    Name,
    devices::{ClaimConstraint, Device, DeviceAttribute},
};

/// A request, and the alternative of it that is being tried.
#[derive(Clone, Copy)]
pub(super) struct RequestNames<'c> {
    pub(super) request: &'c Name,
    pub(super) alternative: Option<&'c Name>,
}

pub(super) struct Constraint<'c> {
    requests: &'c [Name],
    attribute: &'c Name,
    kind: ConstraintKind<'c>,
    devices: usize,
}

enum ConstraintKind<'c> {
    /// What the first device has.
    Same(Option<&'c DeviceAttribute>),
    /// By request: as in the reference, the last device of a request stands for all of it.
    Distinct(BTreeMap<&'c Name, &'c DeviceAttribute>),
}

impl<'c> Constraint<'c> {
    /// `None` for a kind that is not known.
    pub(super) fn new(written: &'c ClaimConstraint) -> Option<Self> {
        let (attribute, kind) = match (&written.match_attribute, &written.distinct_attribute) {
            (Some(attribute), _) => (attribute, ConstraintKind::Same(None)),
            (None, Some(attribute)) => (attribute, ConstraintKind::Distinct(BTreeMap::new())),
            (None, None) => return None,
        };
        Some(Self { requests: &written.requests, attribute, kind, devices: 0 })
    }

    fn concerns(&self, names: RequestNames<'_>) -> bool {
        let listed = |name: &str| self.requests.iter().any(|request| **request == *name);
        self.requests.is_empty()
            || listed(names.request)
            || names
                .alternative
                .is_some_and(|alternative| listed(&format!("{}/{alternative}", names.request)))
    }

    /// Whether the device can be added; then it is.
    pub(super) fn add(&mut self, names: RequestNames<'c>, driver: &str, device: &'c Device) -> bool {
        if !self.concerns(names) {
            return true;
        }
        let Some(found) = attribute_of(device, driver, self.attribute) else { return false };
        let first = self.devices == 0;
        match &mut self.kind {
            ConstraintKind::Same(common) => {
                if first {
                    *common = Some(found);
                } else if !common.is_some_and(|common| same(found, common)) {
                    return false;
                }
            }
            ConstraintKind::Distinct(known) => {
                if !first && !known.values().all(|other| different(found, other)) {
                    return false;
                }
                known.insert(names.request, found);
            }
        }
        self.devices += 1;
        true
    }

    pub(super) fn remove(&mut self, names: RequestNames<'c>) {
        if !self.concerns(names) {
            return;
        }
        if let ConstraintKind::Distinct(known) = &mut self.kind {
            known.remove(names.request);
        }
        self.devices -= 1;
    }
}

/// With its full name, or without the domain if that is the driver's.
pub(super) fn attribute_of<'c>(device: &'c Device, driver: &str, name: &str) -> Option<&'c DeviceAttribute> {
    device.attributes.get(name).or_else(|| {
        let (domain, short) = name.split_once('/')?;
        if domain == driver { device.attributes.get(short) } else { None }
    })
}

/// Of the kinds of value that the first has, the one that counts is equal.
fn same(left: &DeviceAttribute, right: &DeviceAttribute) -> bool {
    if left.string.is_some() {
        return left.string == right.string;
    }
    if left.int.is_some() {
        return left.int == right.int;
    }
    if left.bool.is_some() {
        return left.bool == right.bool;
    }
    left.version.is_some() && left.version == right.version
}

fn different(left: &DeviceAttribute, right: &DeviceAttribute) -> bool {
    let known = left.string.is_some() || left.int.is_some() || left.bool.is_some() || left.version.is_some();
    known && !same(left, right)
}
