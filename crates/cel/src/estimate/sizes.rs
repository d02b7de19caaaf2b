//! Sizes and costs that are known only from when to when.

use super::Path;
use crate::types::{OPTIONAL, Type};

#[derive(Clone, Copy, Debug)]
pub(super) struct Range {
    pub(super) min: u64,
    pub(super) max: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Container {
    List,
    Map,
}

/// The sizes of what is in a list or a map.
#[derive(Clone, Copy)]
pub(super) struct EntrySizes {
    pub(super) kind: Container,
    pub(super) key: Range,
    pub(super) value: Range,
}

impl Range {
    pub(super) const UNKNOWN: Self = Self { min: 0, max: u64::MAX };

    pub(super) const fn fixed(value: u64) -> Self {
        Self { min: value, max: value }
    }

    /// What a union begins with.
    pub(super) const fn nothing_yet(stays: bool) -> Self {
        Self { min: if stays { 0 } else { u64::MAX }, max: 0 }
    }

    pub(super) fn plus(self, other: Self) -> Self {
        Self { min: self.min.saturating_add(other.min), max: self.max.saturating_add(other.max) }
    }

    pub(super) fn times(self, other: Self) -> Self {
        Self { min: self.min.saturating_mul(other.min), max: self.max.saturating_mul(other.max) }
    }

    pub(super) fn scaled(self, factor: f64) -> Self {
        Self { min: scaled(self.min, factor), max: scaled(self.max, factor) }
    }

    pub(super) fn union(self, other: Self) -> Self {
        Self { min: self.min.min(other.min), max: self.max.max(other.max) }
    }
}

impl EntrySizes {
    pub(super) fn union(left: Option<Self>, right: Option<Self>) -> Option<Self> {
        let (left, right) = (left?, right?);
        let (key, value) = (left.key.union(right.key), left.value.union(right.value));
        Some(Self { kind: left.kind, key, value })
    }
}

fn scaled(value: u64, factor: f64) -> u64 {
    let value = value as f64;
    let most = u64::MAX as f64;
    if value > 0.0 && factor > 0.0 && value > most / factor {
        return u64::MAX;
    }
    let scaled = (value * factor).ceil();
    if scaled >= most { u64::MAX } else { scaled as u64 }
}

/// Types whose values all have the same size.
pub(super) fn scalar(of: &Type) -> bool {
    match of {
        Type::Bool | Type::Double | Type::Duration | Type::Int | Type::Timestamp | Type::Uint => true,
        Type::Opaque(OPTIONAL, Some(inner)) => scalar(inner),
        _ => false,
    }
}

/// What of a device a path has come to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Device,
    Driver,
    Shared,
    Domains(Inner),
    Names(Inner),
    Domain,
    Name,
    Attribute,
    Quantity,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Inner {
    Attributes,
    Capacity,
}

/// What the API server lets a device have.
pub(super) fn path_size(path: &Path) -> Option<Range> {
    let (first, rest) = path.split_first()?;
    if &**first != "device" {
        return None;
    }
    let mut place = Place::Device;
    for step in rest {
        place = match (place, &**step) {
            (Place::Domains(inner), "@items" | "@values") => Place::Names(inner),
            (Place::Names(Inner::Attributes), "@items" | "@values") => Place::Attribute,
            (Place::Names(Inner::Capacity), "@items" | "@values") => Place::Quantity,
            (Place::Domains(_), "@keys") => Place::Domain,
            (Place::Names(_), "@keys") => Place::Name,
            (_, "@items" | "@values" | "@keys") => return None,
            (Place::Device, "driver") => Place::Driver,
            (Place::Device, "allowMultipleAllocations") => Place::Shared,
            (Place::Device, "attributes") => Place::Domains(Inner::Attributes),
            (Place::Device, "capacity") => Place::Domains(Inner::Capacity),
            (Place::Names(Inner::Attributes), _) => Place::Attribute,
            _ => return None,
        };
    }
    let max = match place {
        Place::Device | Place::Quantity => 0,
        Place::Driver | Place::Domain => 63,
        Place::Shared => 1,
        Place::Domains(_) | Place::Names(_) | Place::Name => 32,
        Place::Attribute => 64,
    };
    Some(Range { min: 0, max })
}
