//! What must not know what: `live` and this command run plugins, and know none of them by name; the core does no I/O; crates
//! use each other as ARCHITECTURE.md says.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

/// Files that may name plugins, and why.
const EXEMPT: &[(&str, &str)] = &[
    (
        "cli/src/dynamic_scoring.rs",
        "`supercargo dynamic-scoring` and `--dynamic-scoring` are about that plugin",
    ),
    ("cli/src/arguments.rs", "names that command"),
    ("cli/src/lib.rs", "runs that command"),
    ("cli/src/objects.rs", "takes that flag"),
    ("cli/src/bench.rs", "workloads have the names of kube-scheduler's benchmarks"),
    ("cli/src/run/feature_gates.rs", "feature gates of Kubernetes that have plugins' names in theirs"),
];

/// The crates that do no I/O, and know neither the time nor chance.
const CORE: &[&str] = &["cel", "manifest", "model", "framework", "plugins", "config", "engine"];

/// What others wrote that the core may use: none of it does I/O as it is used here.
const PURE: &[&str] =
    &["foldhash", "futures-util", "jiff", "pulp", "regex", "saphyr-parser", "serde", "serde_json"];

/// What of the standard library reaches the world.
const WORLDLY: &[&str] = &[
    "env",
    "fs",
    "hash::RandomState",
    "io",
    "net",
    "os",
    "process",
    "thread",
    "time::Instant",
    "time::SystemTime",
];

/// What does so without a path of the standard library.
const WORLDLY_CALLS: &[&str] = &[
    "println!",
    "eprintln!",
    "print!",
    "eprint!",
    "dbg!",
    "Timestamp::now",
    "Zoned::now",
    "TimeZone::system",
];

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && name != "tests" {
            sources(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") && name != "tests.rs" {
            found.push(path);
        }
    }
}

/// `VolumeBinding` as modules are named: `volume_binding`.
fn in_snake_case(name: &str) -> String {
    let mut written = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !written.is_empty() {
            written.push('_');
        }
        written.extend(letter.to_lowercase());
    }
    written
}

#[test]
fn neither_live_nor_the_command_names_a_plugin() {
    let crates = crates();
    let mut files = Vec::new();
    for folder in ["live/src", "cli/src"] {
        sources(&crates.join(folder), &mut files);
    }
    assert!(files.len() > 50, "{} files", files.len());
    let registry = supercargo_plugins::registry();
    let mut named = Vec::new();
    for file in files {
        let path = file.strip_prefix(&crates).unwrap().to_string_lossy().into_owned();
        if EXEMPT.iter().any(|(exempt, _)| *exempt == path) {
            continue;
        }
        // A field of a pod's status ends like the name of a plugin.
        let text = fs::read_to_string(&file).unwrap().replace("nominatedNodeName", "");
        for plugin in registry.iter() {
            let name = plugin.name();
            let module = format!("{}::", in_snake_case(name));
            let lines = text.lines().filter(|line| line.contains(name) || line.contains(&module));
            named.extend(lines.map(|line| format!("{path}: {}", line.trim())));
        }
    }
    assert!(named.is_empty(), "plugins are named in\n{}", named.join("\n"));
}

/// A text's code: without comments, and without the tests at its end.
fn code(text: &str) -> String {
    let before_tests = text.split("#[cfg(test)]").next().unwrap_or_default();
    before_tests.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

/// All paths that begin with the prefix, with the lists of `use` spelled out: `{fs, time::{self, Instant}}` is `fs`, `time::self`
/// and `time::Instant`.
fn paths_below(prefix: &str, code: &str) -> BTreeSet<String> {
    let mut paths = BTreeSet::new();
    for (at, _) in code.match_indices(prefix) {
        let part_of_a_name = |letter: char| letter.is_alphanumeric() || letter == '_';
        if !code[..at].ends_with(part_of_a_name) {
            spell_out("", &code[at + prefix.len()..], &mut paths);
        }
    }
    paths
}

/// The rest of the text behind the path.
fn spell_out<'t>(before: &str, text: &'t str, paths: &mut BTreeSet<String>) -> &'t str {
    let mut rest = text.trim_start();
    if let Some(list) = rest.strip_prefix('{') {
        rest = list.trim_start();
        while !rest.is_empty() && !rest.starts_with('}') {
            let next = spell_out(before, rest, paths).trim_start();
            rest = next.strip_prefix(',').unwrap_or(next).trim_start();
            assert!(rest.len() < text.len(), "no path: {text:.60}");
        }
        return rest.get(1..).unwrap_or_default();
    }
    let end = rest.find(|letter: char| !letter.is_alphanumeric() && letter != '_' && letter != '*');
    let (segment, behind) = rest.split_at(end.unwrap_or(rest.len()));
    let path = if before.is_empty() { segment.to_owned() } else { format!("{before}::{segment}") };
    match behind.strip_prefix("::") {
        Some(deeper)
            if deeper.starts_with(|letter: char| letter.is_alphabetic() || "{*".contains(letter)) =>
        {
            spell_out(&path, deeper, paths)
        }
        _ => {
            paths.insert(path);
            match behind.trim_start().strip_prefix("as ") {
                Some(renamed) => {
                    renamed.trim_start_matches(|letter: char| letter.is_alphanumeric() || letter == '_')
                }
                None => behind,
            }
        }
    }
}

/// What of a text reaches the world.
fn worldly(text: &str) -> Vec<String> {
    let code = code(text);
    let is_worldly = |path: &String| {
        WORLDLY.iter().any(|worldly| path == worldly || path.starts_with(&format!("{worldly}::")))
            // All of a module, or the module itself, which may then be anything of it.
            || ["*", "time::self", "time::*", "time", "hash::*"].contains(&path.as_str())
    };
    let by_path =
        paths_below("std::", &code).into_iter().filter(is_worldly).map(|path| format!("std::{path}"));
    let calls = WORLDLY_CALLS.iter().filter(|call| code.contains(**call));
    by_path.chain(calls.map(|call| (*call).to_owned())).collect()
}

#[test]
fn what_reaches_the_world_is_found() {
    // (code, what is found)
    let cases = [
        ("use std::fs;", "std::fs"),
        (
            "use std::{\n    collections::{BTreeMap, BTreeSet},\n    fs::File as F,\n    sync::Arc,\n};",
            "std::fs::File",
        ),
        ("use std::{sync::Arc, time::{Duration, Instant}};", "std::time::Instant"),
        ("use std::time::{self, Duration};", "std::time::self"),
        ("let now = std::time::SystemTime::now();", "std::time::SystemTime::now"),
        ("std::thread::sleep(span)", "std::thread::sleep"),
        ("let map = HashMap::<u8, u8, std::hash::RandomState>::default();", "std::hash::RandomState"),
        ("use std::*;", "std::*"),
        ("let at = jiff::Timestamp::now();", "Timestamp::now"),
        ("use std::{time::Duration, sync::Arc};", ""),
        ("// std::fs\nuse std::{fmt, task::{Context, Poll}};", ""),
        ("fn a() {}\n#[cfg(test)]\nmod tests {\n    use std::fs;\n}", ""),
    ];
    for (code, found) in cases {
        assert_eq!(worldly(code).join(" "), found, "{code}");
    }
}

#[test]
fn the_core_does_no_io() {
    let crates = crates();
    let mut files = Vec::new();
    CORE.iter().for_each(|name| sources(&crates.join(name).join("src"), &mut files));
    assert!(files.len() > 150, "{} files", files.len());
    let mut found = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let path = file.strip_prefix(&crates).unwrap().display();
        found.extend(worldly(&text).into_iter().map(|what| format!("{path}: {what}")));
    }
    assert!(found.is_empty(), "the core reaches the world in\n{}", found.join("\n"));
}

/// What a crate is built with, its tests aside.
fn dependencies(name: &str) -> BTreeSet<String> {
    let text = fs::read_to_string(crates().join(name).join("Cargo.toml")).unwrap();
    let mut dependencies = BTreeSet::new();
    let mut section = "";
    for line in text.lines().map(str::trim).filter(|line| !line.starts_with('#')) {
        if line.starts_with('[') {
            section = line;
            let known = ["[dependencies]", "[dev-dependencies]"].contains(&section);
            assert!(known || !section.contains("dependencies"), "{name}: what does {section} hold?");
        } else if let (true, Some((dependency, _))) = (section == "[dependencies]", line.split_once('=')) {
            dependencies.insert(dependency.trim().trim_end_matches(".workspace").to_owned());
        }
    }
    dependencies
}

/// Which crates of ours each uses, by the table in ARCHITECTURE.md.
fn architecture() -> BTreeMap<String, BTreeSet<String>> {
    let text = fs::read_to_string(crates().join("../ARCHITECTURE.md")).unwrap();
    let (_, table) = text.split_once("\n| crate | uses |").expect("the table of crates");
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    rows.map(|row| {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let uses = cells[2].split(", ").map(|name| name.trim_matches('`').to_owned());
        (cells[1].trim_matches('`').to_owned(), uses.filter(|name| !name.is_empty()).collect())
    })
    .collect()
}

#[test]
fn crates_use_each_other_as_the_architecture_says() {
    let architecture = architecture();
    let folders =
        fs::read_dir(crates()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert_eq!(folders.collect::<BTreeSet<_>>(), architecture.keys().cloned().collect());
    for (name, uses) in &architecture {
        let (ours, others): (BTreeSet<String>, BTreeSet<String>) =
            dependencies(name).into_iter().partition(|name| name.starts_with("supercargo-"));
        let ours: BTreeSet<String> = ours.iter().map(|name| name.replace("supercargo-", "")).collect();
        assert_eq!(&ours, uses, "what {name} uses: its Cargo.toml, and ARCHITECTURE.md");
        if CORE.contains(&&**name) {
            let outside: Vec<&String> = uses.iter().filter(|used| !CORE.contains(&&***used)).collect();
            assert!(outside.is_empty(), "{name} is of the core, and uses {outside:?}, which is not");
            let unknown: Vec<&String> = others.iter().filter(|used| !PURE.contains(&&***used)).collect();
            assert!(unknown.is_empty(), "{name} is of the core: do {unknown:?} do no I/O?");
        }
    }
}

/// The lines of a section of a crate's manifest.
fn section<'a>(manifest: &'a str, name: &str) -> Vec<&'a str> {
    let lines = manifest.lines().skip_while(|line| line.trim() != format!("[{name}]")).skip(1);
    lines.take_while(|line| !line.starts_with('[')).collect()
}

/// The switches of known bugs (`framework::bugs`) are for the simulation alone, and nothing but tests needs the simulation.
#[test]
fn known_bugs_can_be_switched_on_in_the_simulation_alone() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let (mut switched_on, mut shipped) = (Vec::new(), Vec::new());
    for entry in fs::read_dir(crates).unwrap() {
        let folder = entry.unwrap().path();
        let Ok(manifest) = fs::read_to_string(folder.join("Cargo.toml")) else { continue };
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        if manifest.contains("\"bugs\"") || manifest.contains("/bugs\"") {
            switched_on.push(name.clone());
        }
        let needs = |section: Vec<&str>| section.iter().any(|line| line.starts_with("supercargo-simulation"));
        if needs(section(&manifest, "dependencies")) || needs(section(&manifest, "build-dependencies")) {
            shipped.push(name);
        }
    }
    assert_eq!(switched_on, ["simulation"]);
    assert!(shipped.is_empty(), "the simulation is needed by {shipped:?}");
}
