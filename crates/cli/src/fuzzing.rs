//! What the fuzz targets reach of this command: its readers of recordings, over bytes instead of files.

use std::path::Path;

use supercargo_manifest::Problems;
use supercargo_model::Declared;
use supercargo_sim::trace::Trace;

use crate::{input, record};

/// The text of a recording, as `replay` reads it from a file of these bytes, and the trace in it.
///
/// # Errors
///
/// What is wrong with it.
pub fn trace(bytes: Vec<u8>) -> Result<(String, Trace), Problems> {
    let (source, _is_cut) = input::whole_lines_of(Path::new("fuzz.jsonl"), bytes)?;
    let trace = Trace::read(&source, &Declared::default())?;
    Ok((source.text.to_string(), trace))
}

/// What `record` goes on with that finds these bytes in its file: the text that is whole, where that ends in the file, and the
/// objects that are there then, as a new file would begin with them. `None` if it becomes too large.
pub fn resumed(bytes: Vec<u8>, packed: bool) -> Option<(String, u64, String)> {
    record::resumed(bytes, packed)
}
