//! The documents are true: what they show of the command is what it prints, their links lead somewhere, every command and
//! every plugin is in them, and the metrics that they name exist.
//!
//! A fenced block that is marked `console` shows commands after `$ ` and below each what it printed, both streams together,
//! with the exit code if it is not 0. Each is run by a shell in the folder of the project. `UPDATE_DOCS=1 cargo test -p supercargo
//! --test cli documents` writes what is printed now.

use std::{
    collections::BTreeSet,
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::invocation::{project, supercargo};

/// What users read: the pages of `docs/`, and those that lead there.
fn pages() -> Vec<PathBuf> {
    let folder = fs::read_dir(project().join("docs")).expect("docs/");
    let mut pages: Vec<PathBuf> = folder
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .collect();
    pages.extend(["README.md", "deploy/README.md"].map(|path| project().join(path)));
    pages.sort();
    pages
}

/// All documents, also those that stand beside a crate and are run by its own tests.
fn documents() -> Vec<PathBuf> {
    let beside = [
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
        "crates/wasm/ABI.md",
        "examples/guest-assemblyscript/README.md",
        "examples/plugins/README.md",
        "examples/plugins/TUTORIAL.md",
    ];
    let mut all = pages();
    all.extend(beside.map(|path| project().join(path)));
    all
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// What a shell prints when it runs a line in the folder of the project.
fn printed(line: &str) -> String {
    let binary = Path::new(env!("CARGO_BIN_EXE_supercargo")).parent().expect("a folder");
    let path = env::var("PATH").unwrap_or_default();
    let output = Command::new("bash")
        .args(["-c", &format!("set -o pipefail; {{ {line}\n}} 2>&1")])
        .current_dir(project())
        .env("PATH", format!("{}:{path}", binary.display()))
        .env("COLUMNS", "100")
        .env("NO_COLOR", "1")
        .output()
        .expect("a shell");
    let mut text = String::from_utf8(output.stdout).expect("text");
    if output.status.code() != Some(0) {
        text.push_str(&format!("[exit code {}]\n", output.status.code().unwrap_or(-1)));
    }
    text
}

/// The document with what its commands print now, and how many commands there are.
fn with_output_of_now(text: &str) -> (String, usize) {
    let (mut now, mut commands) = (String::new(), 0);
    let mut in_console = false;
    for line in text.split_inclusive('\n') {
        let content = line.trim_end();
        match (in_console, content) {
            (false, "```console") => in_console = true,
            (true, "```") => in_console = false,
            (true, _) => {
                if let Some(command) = content.strip_prefix("$ ") {
                    commands += 1;
                    now.push_str(line);
                    now.push_str(&printed(command));
                }
                continue;
            }
            _ => {}
        }
        now.push_str(line);
    }
    (now, commands)
}

#[test]
fn what_they_show_is_what_is_printed() {
    let mut commands = 0;
    for path in pages() {
        let text = read(&path);
        let (now, run) = with_output_of_now(&text);
        commands += run;
        if env::var_os("UPDATE_DOCS").is_some() && now != text {
            fs::write(&path, &now).expect("the document can be written");
        }
        let stale = text.lines().zip(now.lines()).find(|(written, printed)| written != printed);
        let is_updated = env::var_os("UPDATE_DOCS").is_some();
        assert!(
            is_updated || text == now,
            "{} is stale: UPDATE_DOCS=1 cargo test -p supercargo --test cli documents; first difference: {stale:#?}",
            path.display()
        );
    }
    assert!(commands >= 20, "only {commands} commands are shown");
}

/// The targets of links, without what is in code.
fn links(text: &str) -> Vec<String> {
    let mut targets = Vec::new();
    let mut in_code = false;
    for line in text.lines() {
        if line.starts_with("```") {
            in_code = !in_code;
        }
        let parts = line.split("](").skip(1).filter(|_| !in_code);
        targets.extend(parts.filter_map(|rest| rest.split_once(')')).map(|(target, _)| target.to_owned()));
    }
    targets
}

/// The anchor that a heading gets on the pages of a forge.
fn anchor(heading: &str) -> String {
    let kept = heading.to_lowercase();
    let kept = kept.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[test]
fn their_links_lead_somewhere() {
    let (mut broken, mut checked) = (Vec::new(), 0);
    for path in documents() {
        let text = read(&path);
        for target in links(&text).into_iter().filter(|target| !target.contains("://")) {
            let (file, heading) = target.split_once('#').unwrap_or((&target, ""));
            let linked = if file.is_empty() { path.clone() } else { path.with_file_name(file) };
            let exists = linked.exists();
            let leads = heading.is_empty()
                || exists
                    && read(&linked)
                        .lines()
                        .filter(|line| line.starts_with('#'))
                        .any(|line| anchor(line.trim_start_matches('#').trim()) == heading);
            checked += 1;
            if !exists || !leads {
                broken.push(format!("{}: {target}", path.display()));
            }
        }
    }
    assert!(broken.is_empty(), "links that lead nowhere: {broken:#?}");
    assert!(checked >= 40, "only {checked} links were found");
}

#[test]
fn every_command_is_explained() {
    let page = read(&project().join("docs/commands.md"));
    let help = supercargo("--help").stdout;
    let commands = help.split("Commands:\n").nth(1).and_then(|rest| rest.split("\n\n").next());
    let names: Vec<&str> = commands
        .expect("a list of commands")
        .lines()
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .collect();
    assert!(names.len() > 20, "{names:?}");
    for name in names {
        assert!(page.contains(&format!("\n## {name}\n")), "docs/commands.md has no section on {name}");
    }
}

#[test]
fn every_plugin_is_explained() {
    let page = read(&project().join("docs/scoring.md"));
    for plugin in supercargo_plugins::registry().iter().map(|plugin| plugin.name()) {
        assert!(page.contains(&format!("`{plugin}`")), "docs/scoring.md does not mention {plugin}");
    }
}

/// The metrics that the server's own list has.
pub(crate) fn known_metrics() -> BTreeSet<String> {
    let golden = read(&project().join("crates/server/tests/golden/metrics.txt"));
    golden.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
}

/// The names of metrics in a text, as far as their first word tells; without what histograms append.
pub(crate) fn metrics_in(text: &str) -> BTreeSet<String> {
    let prefixes =
        ["scheduler_", "supercargo_", "process_", "leader_election_", "rest_client_", "kubernetes_health"];
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let names = words.filter(|word| prefixes.iter().any(|prefix| word.starts_with(prefix)));
    let base = |word: &str| {
        let ending = ["_bucket", "_sum", "_count"].into_iter().find(|ending| word.ends_with(ending));
        word[..word.len() - ending.map_or(0, str::len)].to_owned()
    };
    names.map(base).collect()
}

#[test]
fn the_metrics_that_they_name_exist() {
    let known = known_metrics();
    let mut named = 0;
    for path in pages() {
        for name in metrics_in(&read(&path)) {
            // `supercargo_…` stands for all of them, and the crate for guests is no metric.
            let is_known = known.contains(&name) || name.ends_with('_') || name == "supercargo_guest";
            assert!(is_known, "{}: there is no metric {name}", path.display());
            named += 1;
        }
    }
    assert!(named >= 30, "only {named} metrics are named");
}
