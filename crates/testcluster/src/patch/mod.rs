//! The four kinds of patches: merge, JSON, strategic merge, and server-side apply.

mod apply;
mod json_patch;
mod merge;
mod merge_keys;
mod strategic;

use serde_json::Value;

use crate::failure::StatusError;

pub(crate) use apply::apply;

/// Nesting beyond this is refused: nothing in Kubernetes goes nearly as deep.
const MAX_DEPTH: usize = 128;

/// What a patch's text means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchKind {
    /// `application/merge-patch+json`: maps are merged, everything else replaced, null removes.
    Merge,
    /// `application/json-patch+json`: a list of operations.
    Json,
    /// `application/strategic-merge-patch+json`: as a merge, but lists of named things are merged by name.
    StrategicMerge,
    /// `application/apply-patch+yaml`: server-side apply.
    Apply,
}

impl PatchKind {
    pub(crate) fn of_content_type(content_type: &str) -> Option<Self> {
        match content_type.split(';').next().unwrap_or_default().trim() {
            "application/merge-patch+json" => Some(Self::Merge),
            "application/json-patch+json" => Some(Self::Json),
            "application/strategic-merge-patch+json" => Some(Self::StrategicMerge),
            "application/apply-patch+yaml" => Some(Self::Apply),
            _ => None,
        }
    }
}

/// The object after a patch that is not an apply.
pub(crate) fn patched(kind: PatchKind, target: &Value, patch: &Value) -> Result<Value, StatusError> {
    let mut result = target.clone();
    match kind {
        PatchKind::Merge => merge::merge(&mut result, patch),
        PatchKind::Json => json_patch::run(&mut result, patch)?,
        PatchKind::StrategicMerge | PatchKind::Apply => strategic::merge(&mut result, patch)?,
    }
    if depth(&result) > MAX_DEPTH {
        return Err(StatusError::bad_request("the patched object is nested too deeply"));
    }
    Ok(result)
}

/// How deep lists and maps are nested in each other.
fn depth(value: &Value) -> usize {
    match value {
        Value::Object(map) => 1 + map.values().map(depth).max().unwrap_or_default(),
        Value::Array(list) => 1 + list.iter().map(depth).max().unwrap_or_default(),
        _ => 0,
    }
}
