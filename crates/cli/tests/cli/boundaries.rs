//! What must not know what: `live` and this command run plugins, and know none of them by name.

use std::{fs, path::Path};

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

fn sources(folder: &Path, found: &mut Vec<std::path::PathBuf>) {
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
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut files = Vec::new();
    for folder in ["live/src", "cli/src"] {
        sources(&crates.join(folder), &mut files);
    }
    assert!(files.len() > 50, "{} files", files.len());
    let registry = supercargo_plugins::registry();
    let mut named = Vec::new();
    for file in files {
        let path = file.strip_prefix(crates).unwrap().to_string_lossy().into_owned();
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
