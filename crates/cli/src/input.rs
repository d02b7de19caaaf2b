//! Reads files, folders and stdin.

use std::{
    fs,
    io::{self, Read},
    os::unix::fs::FileTypeExt,
    path::{Path, PathBuf},
};

use flate2::read::MultiGzDecoder;
use supercargo_manifest::{Location, Problem, Problems, Source};

/// Stands for stdin on the command line.
const STDIN: &str = "-";
/// The largest file that is read.
const MAX_FILE_BYTES: u64 = 4 << 30;
/// How large packed files may become: this much, and so many times what they are. Objects shrink to a thirtieth or so.
const ALWAYS_UNPACKED_BYTES: u64 = 64 << 20;
const MAX_UNPACKED_RATIO: u64 = 64;
const UNPACKED_AT_ONCE_BYTES: u64 = 8 << 20;
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
    let bytes = read(path).map_err(|error| unreadable(path, &error))?;
    let (bytes, cut) = unpacked(path, bytes)?;
    match cut {
        Some(error) => Err(about(path, format!("cannot unpack this: {error}"))),
        None => as_text(path, bytes),
    }
}

/// The whole lines of a file that may have been cut off while it was written, and whether it was.
pub(crate) fn whole_lines(path: &Path) -> Result<(Source, bool), Problem> {
    whole_lines_of(path, read(path).map_err(|error| unreadable(path, &error))?)
}

/// The same for what a file holds.
pub(crate) fn whole_lines_of(path: &Path, bytes: Vec<u8>) -> Result<(Source, bool), Problem> {
    let (mut bytes, cut) = unpacked(path, bytes)?;
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
fn unpacked(path: &Path, bytes: Vec<u8>) -> Result<(Vec<u8>, Option<io::Error>), Problem> {
    if !bytes.starts_with(&GZIP_MAGIC) {
        return Ok((bytes, None));
    }
    unpacked_within(&bytes, most_unpacked_bytes).map_err(|TooLarge| too_large(path))
}

/// How large what is packed may become.
pub(crate) fn most_unpacked_bytes(packed: &[u8]) -> u64 {
    packed.len() as u64 * MAX_UNPACKED_RATIO + ALWAYS_UNPACKED_BYTES
}

/// What is packed becomes larger than it may.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooLarge;

pub(crate) fn too_large(path: &Path) -> Problem {
    let why = "it becomes far too large; unpack it with gunzip if that is as it should be";
    about(path, format!("cannot unpack this: {why}"))
}

/// What is packed, within bounds: a small file must not fill the memory. It is seen early on if it would.
fn unpacked_within(
    bytes: &[u8],
    most_unpacked_bytes: impl Fn(&[u8]) -> u64,
) -> Result<(Vec<u8>, Option<io::Error>), TooLarge> {
    let mut decoder = MultiGzDecoder::new(bytes);
    let mut unpacked = Vec::new();
    loop {
        let before = unpacked.len();
        let cut = (&mut decoder).take(UNPACKED_AT_ONCE_BYTES).read_to_end(&mut unpacked).err();
        let packed = &bytes[..bytes.len() - decoder.get_ref().len()];
        if unpacked.len() as u64 > most_unpacked_bytes(packed) {
            return Err(TooLarge);
        }
        if cut.is_some() || unpacked.len() == before {
            return Ok((unpacked, cut));
        }
    }
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
        return read_within(io::stdin().lock(), MAX_FILE_BYTES);
    }
    let kind = fs::metadata(path)?.file_type();
    if kind.is_char_device() && !is_standard_input(path) || kind.is_block_device() {
        return Err(io::Error::other("it is a device, and a file is needed"));
    }
    read_within(fs::File::open(path)?, MAX_FILE_BYTES)
}

/// Another name of what this process is given.
fn is_standard_input(path: &Path) -> bool {
    path.starts_with("/dev/stdin") || path.starts_with("/dev/fd") || path.starts_with("/proc/self/fd")
}

fn read_within(from: impl Read, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::other(format!("it is larger than {most} bytes")));
    }
    Ok(bytes)
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

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::{Compression, write::GzEncoder};

    use super::*;

    #[test]
    fn what_is_packed_is_unpacked_up_to_a_bound() {
        let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
        packer.write_all(&[b'x'; 5000]).unwrap();
        let packed = packer.finish().unwrap();
        assert_eq!(unpacked_within(&packed, |_| 5000).unwrap().0.len(), 5000);
        assert_eq!(unpacked_within(&packed, |_| 4999).unwrap_err(), TooLarge);
    }

    #[test]
    fn a_bomb_is_seen_before_it_is_unpacked() {
        let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
        packer.write_all(&vec![b' '; 32 << 20]).unwrap();
        let packed = packer.finish().unwrap();
        // 128 times the same, one after another: 4 GiB in half a megabyte and more.
        let bomb = packed.repeat(128);
        let seen = std::cell::Cell::new(0);
        let most = |packed: &[u8]| {
            seen.set(seen.get() + 1);
            most_unpacked_bytes(packed)
        };
        assert_eq!(unpacked_within(&bomb, most).unwrap_err(), TooLarge);
        // 64 MiB, and 64 times what was packed of it: little more.
        assert!((8..20).contains(&seen.get()), "{} times 8 MiB were unpacked", seen.get());
    }

    #[test]
    fn what_never_ends_is_not_read() {
        assert!(read_within(io::repeat(b'x'), 1000).is_err());
        assert_eq!(read_within(&[b'x'; 1000][..], 1000).unwrap().len(), 1000);
    }
}
