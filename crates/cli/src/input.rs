//! Reads files, folders and stdin.

use std::{
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
};

use flate2::read::MultiGzDecoder;
use supercargo_manifest::{Location, Problem, Problems, Source};

/// Stands for stdin on the command line.
const STDIN: &str = "-";
/// What every gzip stream begins with.
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
/// How the names of manifests end; `.gz` may follow.
const MANIFEST_ENDINGS: [&str; 3] = [".yaml", ".yml", ".json"];

/// Reads all manifests: files, the manifests of folders, and stdin for `-`. All that cannot be read is told at once.
pub(crate) fn manifests<'p>(paths: impl IntoIterator<Item = &'p PathBuf>) -> Result<Vec<Source>, Problems> {
    let [sources] = manifests_of([paths.into_iter().collect()])?;
    Ok(sources)
}

/// The same for several lists of paths.
pub(crate) fn manifests_of<const N: usize>(lists: [Vec<&PathBuf>; N]) -> Result<[Vec<Source>; N], Problems> {
    let mut problems = Problems::default();
    let mut stdin_is_read = false;
    let lists = lists.map(|paths| {
        let mut sources = Vec::new();
        for path in paths {
            if is_stdin(path) && std::mem::replace(&mut stdin_is_read, true) {
                problems.push(Problem::error("`-` is given twice, and stdin can be read only once"));
                continue;
            }
            match manifests_at(path) {
                Ok(more) => sources.extend(more),
                Err(more) => problems.extend(more),
            }
        }
        sources
    });
    if problems.is_empty() { Ok(lists) } else { Err(problems) }
}

fn manifests_at(path: &Path) -> Result<Vec<Source>, Problems> {
    if !path.is_dir() {
        return text_with_content(path).map(|source| vec![source]).map_err(Problems::from);
    }
    let files = files_in(path, &MANIFEST_ENDINGS)?;
    if files.is_empty() {
        let message = format!("there is no {} file in this folder", MANIFEST_ENDINGS.join(", "));
        return Err(about(path, message).into());
    }
    let (sources, problems): (Vec<_>, Vec<_>) =
        files.iter().map(|file| text_with_content(file)).partition(Result::is_ok);
    if problems.is_empty() {
        Ok(sources.into_iter().flatten().collect())
    } else {
        Err(problems.into_iter().filter_map(Result::err).collect())
    }
}

/// The files directly in a folder whose names end as given, `.gz` aside, in the order of their names.
pub(crate) fn files_in(folder: &Path, endings: &[&str]) -> Result<Vec<PathBuf>, Problem> {
    let wanted = |path: &Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let name = name.strip_suffix(".gz").unwrap_or(&name);
        !name.starts_with('.') && endings.iter().any(|ending| name.ends_with(ending))
    };
    let mut entries = entries_of(folder)?;
    entries.retain(|path| path.is_file() && wanted(path));
    Ok(entries)
}

/// What is in a folder, in the order of the names.
pub(crate) fn entries_of(folder: &Path) -> Result<Vec<PathBuf>, Problem> {
    let unreadable = |error: io::Error| about(folder, format!("cannot read this folder: {error}"));
    let entries = fs::read_dir(folder).map_err(unreadable)?;
    let paths: io::Result<Vec<PathBuf>> = entries.map(|entry| entry.map(|entry| entry.path())).collect();
    let mut paths = paths.map_err(unreadable)?;
    paths.sort();
    Ok(paths)
}

/// The text of a file, or of stdin for `-`; unpacked if it is packed with gzip.
pub(crate) fn text(path: &Path) -> Result<Source, Problem> {
    let (bytes, cut) = unpacked(path)?;
    match cut {
        Some(error) => Err(about(path, format!("cannot unpack this: {error}"))),
        None => as_text(path, bytes),
    }
}

/// The whole lines of a file that may have been cut off while it was written, and whether it was.
pub(crate) fn whole_lines(path: &Path) -> Result<(Source, bool), Problem> {
    let (mut bytes, cut) = unpacked(path)?;
    let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
    let is_cut = match cut {
        Some(error) if end == 0 => return Err(about(path, format!("cannot unpack this: {error}"))),
        Some(_) => true,
        // A last line without line end may be whole.
        None => {
            end > 0
                && serde_json::from_slice::<serde::de::IgnoredAny>(&bytes[end..])
                    .is_err_and(|error| error.is_eof())
                && !bytes[end..].trim_ascii().is_empty()
        }
    };
    if is_cut {
        bytes.truncate(end);
    }
    Ok((as_text(path, bytes)?, is_cut))
}

/// What a file holds, unpacked as far as that is possible, and what is wrong with the rest.
fn unpacked(path: &Path) -> Result<(Vec<u8>, Option<io::Error>), Problem> {
    let bytes = read(path).map_err(|error| unreadable(path, &error))?;
    if !bytes.starts_with(&GZIP_MAGIC) {
        return Ok((bytes, None));
    }
    let mut unpacked = Vec::new();
    let cut = MultiGzDecoder::new(&bytes[..]).read_to_end(&mut unpacked).err();
    Ok((unpacked, cut))
}

fn as_text(path: &Path, bytes: Vec<u8>) -> Result<Source, Problem> {
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Source::new(name(path), text)),
        Err(error) => {
            let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            let line = 1 + valid.iter().filter(|byte| **byte == b'\n').count();
            let message = format!("line {line} is not text: it holds bytes that are not UTF-8");
            Err(about(path, message))
        }
    }
}

/// The same, where nothing at all is a sign that something went wrong before.
fn text_with_content(path: &Path) -> Result<Source, Problem> {
    let source = text(path)?;
    let is_blank = |line: &str| line.is_empty() || line.starts_with('#') || line == "---";
    if source.text.lines().all(|line| is_blank(line.trim())) {
        let hint =
            "give what `kubectl get … -o yaml` prints; if it printed nothing, see what it said on stderr";
        return Err(Problem::error("the file is empty").at(&source, Location::START).hint(hint));
    }
    Ok(source)
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    if is_stdin(path) {
        let mut bytes = Vec::new();
        io::stdin().lock().read_to_end(&mut bytes)?;
        return Ok(bytes);
    }
    fs::read(path)
}

fn unreadable(path: &Path, error: &io::Error) -> Problem {
    let what = match error.kind() {
        io::ErrorKind::NotFound => "there is no such file".to_owned(),
        io::ErrorKind::PermissionDenied => "this file may not be read by you".to_owned(),
        io::ErrorKind::IsADirectory => "this is a folder, and a file is needed".to_owned(),
        _ => format!("cannot read this: {error}"),
    };
    let problem = about(path, what);
    match nearest_file(path) {
        Some(near) if error.kind() == io::ErrorKind::NotFound => {
            problem.hint(format!("did you mean {near}?"))
        }
        _ => problem,
    }
}

/// A file beside the missing one that may have been meant.
fn nearest_file(path: &Path) -> Option<String> {
    let folder = path.parent()?;
    let folder_to_list = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let names: Vec<String> = (entries_of(folder_to_list).ok()?.iter())
        .filter_map(|entry| Some(entry.file_name()?.to_str()?.to_owned()))
        .collect();
    let near = supercargo_manifest::nearest(path.file_name()?.to_str()?, names.iter().map(String::as_str))?;
    Some(folder.join(near).display().to_string())
}

/// A problem with a file as a whole.
pub(crate) fn about(path: &Path, message: impl Into<String>) -> Problem {
    let mut problem = Problem::error(message);
    problem.source = Some(Source::new(name(path), ""));
    problem
}

fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == STDIN
}

/// How a file is called in messages.
pub(crate) fn name(path: &Path) -> String {
    if is_stdin(path) { "<stdin>".to_owned() } else { path.display().to_string() }
}
