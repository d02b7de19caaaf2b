//! Several files after one flag: `--cluster nodes.yaml pods.yaml` means `--cluster nodes.yaml --cluster pods.yaml`.
//!
//! A parser cannot tell a further file from the pod that `explain` is about, so a flag takes one value; here the flag is
//! written before each word that follows it and names a file.

use std::{ffi::OsString, path::Path};

/// The flags that files may follow.
const FLAGS: [&str; 2] = ["--cluster", "--pods"];

/// Writes the flag before each further file. A word that is no file stays what it is.
pub(crate) fn repeated(arguments: &[OsString], is_file: impl Fn(&Path) -> bool) -> Vec<OsString> {
    let mut written: Vec<OsString> = Vec::with_capacity(arguments.len());
    let mut flag: Option<&OsString> = None;
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let text = argument.to_string_lossy();
        if FLAGS.contains(&&*text) {
            flag = Some(argument);
            written.push(argument.clone());
            written.extend(arguments.next().cloned());
            continue;
        }
        flag = flag.filter(|_| !text.starts_with('-') && is_file(Path::new(argument)));
        written.extend(flag.cloned());
        written.push(argument.clone());
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_follow_a_flag_get_the_flag() {
        for (given, wanted) in [
            ("simulate --cluster a b --pods c d", "simulate --cluster a --cluster b --pods c --pods d"),
            ("simulate --cluster a -o json", "simulate --cluster a -o json"),
            ("simulate --cluster a --quiet b", "simulate --cluster a --quiet b"),
            ("explain web --cluster a b", "explain web --cluster a --cluster b"),
            ("explain --cluster a web", "explain --cluster a web"),
            ("explain --cluster a b web", "explain --cluster a --cluster b web"),
            ("explain --cluster a web b", "explain --cluster a web b"),
            ("explain --cluster a web --pods b c", "explain --cluster a web --pods b --pods c"),
            ("simulate --cluster", "simulate --cluster"),
        ] {
            let words = |text: &str| -> Vec<OsString> {
                std::iter::once("supercargo").chain(text.split(' ')).map(OsString::from).collect()
            };
            let is_file = |path: &Path| path.to_str().is_some_and(|name| "abcd".contains(name));
            assert_eq!(repeated(&words(given), is_file), words(wanted), "{given}");
        }
    }
}
