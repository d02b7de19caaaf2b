//! How the command is linked, what it knows about itself, and the documents that it brings along.

use std::{
    env,
    fmt::Write,
    fs, io,
    path::{Path, PathBuf},
    process::Command,
};

/// Documents that stand beside what they are about, and the names of their pages.
const ELSEWHERE: [(&str, &str); 4] = [
    ("abi", "crates/wasm/ABI.md"),
    ("deploy", "deploy/README.md"),
    ("security", "SECURITY.md"),
    ("tutorial", "examples/plugins/TUTORIAL.md"),
];

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=RUSTC_LINKER");
    let is_release = env::var("PROFILE").as_deref() == Ok("release");
    if is_linked_by_lld() && is_release {
        // Code that is not optimised has very many functions that are alike to the byte: keeping one of each saves a fifth of the binary.
        println!("cargo::rustc-link-arg-bins=-Wl,--icf=all");
        if is_quick_build() && loads_packed_relocations() {
            // A tenth of what is left.
            println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
        }
        if is_quick_build() {
            // Where to find how to unwind: a panic aborts.
            println!("cargo::rustc-link-arg-bins=-Wl,--no-eh-frame-hdr");
        }
    }
    println!("cargo::rustc-env=SUPERCARGO_COMMIT={}", commit(is_release).unwrap_or_default());
    println!("cargo::rustc-env=SUPERCARGO_RUST={}", rust_version().unwrap_or_default());
    println!("cargo::rustc-env=SUPERCARGO_TARGET={}", env::var("TARGET").unwrap_or_default());
    write_pages(&project())
}

/// Rust brings lld along for this target, unless somebody has chosen another linker.
fn is_linked_by_lld() -> bool {
    let target = env::var("TARGET").unwrap_or_default();
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    let chosen = env::var_os("RUSTC_LINKER").is_some() || flags.contains("link");
    target == "x86_64-unknown-linux-gnu" && !chosen
}

/// Of the profile to try things with, for this machine; what is released (`dist`) has to start with older C libraries too.
fn is_quick_build() -> bool {
    env::var("OPT_LEVEL").as_deref() == Ok("0")
}

/// Whether this machine's C library loads them: glibc from 2.36 on.
fn loads_packed_relocations() -> bool {
    let Some(text) = said(Command::new("getconf").arg("GNU_LIBC_VERSION")) else { return false };
    let numbers = text.trim_start_matches("glibc ").split('.');
    let version: Vec<u32> = numbers.map_while(|number| number.parse().ok()).collect();
    version.as_slice() >= [2, 36].as_slice()
}

/// The commit that is built: as the environment says, or as git does. Only where it is released: a commit of one's own would
/// otherwise have the command built anew.
fn commit(is_release: bool) -> Option<String> {
    println!("cargo::rerun-if-env-changed=SUPERCARGO_COMMIT");
    if let Ok(commit) = env::var("SUPERCARGO_COMMIT") {
        return Some(commit);
    }
    if !is_release {
        return None;
    }
    // The second changes with every commit, the first only with the branch; a path that is not there would be a change each time.
    for file in ["HEAD", "logs/HEAD"] {
        let path = project().join(git(&["rev-parse", "--git-path", file])?);
        if path.exists() {
            println!("cargo::rerun-if-changed={}", path.display());
        }
    }
    git(&["rev-parse", "HEAD"])
}

fn git(arguments: &[&str]) -> Option<String> {
    said(Command::new("git").arg("-C").arg(project()).args(arguments))
}

fn rust_version() -> Option<String> {
    let version = said(Command::new(env::var_os("RUSTC")?).arg("--version"))?;
    version.split_whitespace().nth(1).map(str::to_owned)
}

/// What a command prints, if it is there and succeeds.
fn said(command: &mut Command) -> Option<String> {
    let output = command.output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}

fn project() -> PathBuf {
    Path::new(&env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default()).join("../..")
}

/// Writes the table of pages that `docs` includes.
fn write_pages(project: &Path) -> io::Result<()> {
    let docs = project.join("docs");
    println!("cargo::rerun-if-changed={}", docs.display());
    let mut pages: Vec<(String, PathBuf)> =
        ELSEWHERE.iter().map(|(name, path)| ((*name).to_owned(), project.join(path))).collect();
    for entry in fs::read_dir(docs)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "md")
            && let Some(name) = path.file_stem().and_then(|name| name.to_str())
        {
            pages.push((name.to_owned(), path));
        }
    }
    pages.sort();
    let mut table = String::from("static PAGES: &[Page] = &[\n");
    for (name, path) in pages {
        let path = path.canonicalize()?;
        writeln!(table, "    Page {{ name: {name:?}, text: include_str!({path:?}) }},")
            .map_err(io::Error::other)?;
    }
    table.push_str("];\n");
    fs::write(Path::new(&env::var_os("OUT_DIR").unwrap_or_default()).join("pages.rs"), table)
}
