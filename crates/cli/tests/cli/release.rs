//! What `deploy/release` makes, with a stand-in for the static binary that takes minutes to build.

use std::{collections::BTreeSet, fs, os::unix::fs::PermissionsExt, path::Path, process::Command};

use serde_json::Value;

use crate::invocation::project;

/// What a command prints; it must succeed.
fn said(command: &str, arguments: &[&str], folder: &Path) -> String {
    let output = Command::new(command).args(arguments).current_dir(folder).output();
    let output = output.unwrap_or_else(|error| panic!("{command}: {error}"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{command} {arguments:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap())
        .unwrap_or_else(|error| panic!("{path:?}: {error}"))
}

#[test]
fn a_release_has_all_of_its_parts_and_they_fit() {
    let folder = tempfile::tempdir().expect("a folder");
    let (stub, out) = (folder.path().join("supercargo"), folder.path().join("out"));
    fs::write(&stub, format!("#!/bin/sh\nexec {} \"$@\"\n", env!("CARGO_BIN_EXE_supercargo"))).unwrap();
    fs::set_permissions(&stub, fs::Permissions::from_mode(0o755)).unwrap();
    let (binary, target) = (stub.display().to_string(), out.display().to_string());
    said("bash", &["deploy/release", "--binary", &binary, &target], &project());

    let version = env!("CARGO_PKG_VERSION");
    let archive = format!("supercargo-{version}-x86_64-unknown-linux-musl");
    let expected = [
        "SHA256SUMS".to_owned(),
        format!("supercargo-{version}-chart.tgz"),
        format!("supercargo-{version}-manifests.tar.gz"),
        format!("{archive}.tar.gz"),
        format!("supercargo-{version}.cdx.json"),
        format!("supercargo-{version}.image.tar"),
        "supercargo.krew.yaml".to_owned(),
    ];
    let made: BTreeSet<String> = fs::read_dir(&out)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    assert_eq!(made, expected.clone().into());
    said("sha256sum", &["--check", "--strict", "SHA256SUMS"], &out);

    let packed = said("tar", &["-tzf", &format!("{archive}.tar.gz")], &out);
    for file in ["supercargo", "kubectl-supercargo", "LICENSE", "man/supercargo.1", "completions/_supercargo"]
    {
        assert!(packed.lines().any(|line| line == format!("{archive}/{file}")), "{file} is not in\n{packed}");
    }
    check_image(&out.join(format!("supercargo-{version}.image.tar")), &fs::read(&stub).unwrap());
    check_bill(&json(&out.join(format!("supercargo-{version}.cdx.json"))));
    let sums = fs::read_to_string(out.join("SHA256SUMS")).unwrap();
    let sum = sums
        .lines()
        .find(|line| line.ends_with(&format!("{archive}.tar.gz")))
        .unwrap()
        .split(' ')
        .next()
        .unwrap();
    assert!(
        fs::read_to_string(out.join("supercargo.krew.yaml")).unwrap().contains(&format!("sha256: {sum}"))
    );
}

/// Every blob is what its name says, each is referred to, and there is nothing in the image but the command.
fn check_image(image: &Path, binary: &[u8]) {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    said("tar", &["-xf", &image.display().to_string()], at);
    let blobs = at.join("blobs/sha256");
    let names: Vec<String> = fs::read_dir(&blobs)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    for name in &names {
        assert!(said("sha256sum", &[name], &blobs).starts_with(name), "{name}");
    }
    let blob = |digest: &Value| blobs.join(digest.as_str().unwrap().strip_prefix("sha256:").unwrap());
    let manifest = json(&blob(&json(&at.join("index.json"))["manifests"][0]["digest"]));
    let config = json(&blob(&manifest["config"]["digest"]));
    assert_eq!(config["config"]["Entrypoint"][0], "/usr/local/bin/supercargo");
    assert_eq!(config["config"]["User"], "65532:65532");
    assert_eq!((manifest["layers"].as_array().unwrap().len(), names.len()), (1, 3));
    let layer = blob(&manifest["layers"][0]["digest"]);
    said("tar", &["-xzf", &layer.display().to_string()], at);
    let files = said("tar", &["-tzf", &layer.display().to_string()], at);
    let files: Vec<&str> = files.lines().filter(|line| !line.ends_with('/')).collect();
    assert_eq!(files, ["usr/local/bin/supercargo"]);
    assert_eq!(fs::read(at.join(files[0])).unwrap(), binary);
    assert_eq!(json(&at.join("manifest.json"))[0]["Layers"].as_array().unwrap().len(), 1);
}

/// It lists what deploy/bill-of-materials.txt lists, each with where it comes from.
fn check_bill(bill: &Value) {
    let name = |entry: &Value| {
        format!("{} v{}", entry["name"].as_str().unwrap(), entry["version"].as_str().unwrap())
    };
    let mut listed: BTreeSet<String> = bill["components"].as_array().unwrap().iter().map(name).collect();
    listed.insert(name(&bill["metadata"]["component"]));
    let text = fs::read_to_string(project().join("deploy/bill-of-materials.txt")).unwrap();
    assert_eq!(listed, text.lines().map(str::to_owned).collect());
    for entry in bill["components"].as_array().unwrap() {
        let is_ours = entry["name"].as_str().unwrap().starts_with("supercargo");
        assert!(is_ours || entry["hashes"][0]["content"].is_string(), "{entry}");
        assert!(entry["licenses"][0]["expression"].is_string(), "{entry}");
    }
    assert_eq!(bill["dependencies"].as_array().unwrap().len(), listed.len());
}
