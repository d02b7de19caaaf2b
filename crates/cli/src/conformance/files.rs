//! Which files are checked, and as what.

use std::path::{Path, PathBuf};

use supercargo_manifest::Problems;

use crate::input;

/// How the names of files end that are checked; `.gz` may follow.
const ENDING: &str = ".json";

/// What a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileKind {
    Scenario,
    NodesToFind,
    NodeOrder,
    Configurations,
    Selectors,
}

impl FileKind {
    fn of(path: &Path) -> Self {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let name = name.strip_suffix(".gz").unwrap_or(&name);
        match name.strip_suffix(ENDING) {
            Some("nodes-to-find") => Self::NodesToFind,
            Some("node-order") => Self::NodeOrder,
            Some("configurations") => Self::Configurations,
            Some("cel") => Self::Selectors,
            _ => Self::Scenario,
        }
    }

    /// How it is called beside the names of scenarios.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Scenario => "scenario",
            Self::NodesToFind => "nodes-to-find",
            Self::NodeOrder => "node-order",
            Self::Configurations => "configurations",
            Self::Selectors => "cel",
        }
    }
}

/// A file to check.
pub(super) struct CheckFile {
    pub(super) path: PathBuf,
    pub(super) kind: FileKind,
}

/// All files of the given paths, folders with all that is in them.
pub(super) fn at(paths: &[PathBuf]) -> Result<Vec<CheckFile>, Problems> {
    let mut files = Vec::new();
    let mut problems = Problems::default();
    for path in paths {
        if let Err(more) = collect(path, &mut files) {
            problems.extend(more);
        }
    }
    if files.is_empty() && problems.is_empty() {
        problems.push(super::nothing_to_check(paths));
    }
    if problems.is_empty() { Ok(files) } else { Err(problems) }
}

fn collect(path: &Path, files: &mut Vec<CheckFile>) -> Result<(), Problems> {
    if !path.is_dir() {
        files.push(CheckFile { path: path.to_owned(), kind: FileKind::of(path) });
        return Ok(());
    }
    for path in input::files_in(path, &[ENDING])? {
        files.push(CheckFile { kind: FileKind::of(&path), path });
    }
    for entry in input::entries_of(path)?.iter().filter(|entry| is_real_folder(entry)) {
        collect(entry, files)?;
    }
    Ok(())
}

/// A link could lead round in a circle.
fn is_real_folder(path: &Path) -> bool {
    path.is_dir() && !path.is_symlink()
}
