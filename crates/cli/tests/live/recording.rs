//! `supercargo record` and `snapshot` beside a running scheduler, and what a replay makes of the recording.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
};

use serde_json::{Value, json};

use crate::{
    draft::{node, pod},
    process::wait_until,
    stage::Stage,
};

fn supercargo(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_supercargo")).args(arguments).output().expect("the binary starts")
}

/// A recording that is under way.
pub(crate) struct Recording {
    child: Child,
    log: PathBuf,
}

impl Recording {
    pub(crate) fn start(stage: &Stage, folder: &Path, begun: &str) -> Self {
        let log = folder.join("record.log");
        let child = Command::new(env!("CARGO_BIN_EXE_supercargo"))
            .args(["record", "--master", &stage.cluster().url(), "-o"])
            .arg(folder.join("trace.jsonl.gz"))
            .stdout(Stdio::null())
            .stderr(fs::File::create(&log).expect("a log"))
            .spawn()
            .expect("the binary starts");
        let recording = Self { child, log };
        wait_until("the recording has begun", || recording.log().contains(begun));
        recording
    }

    fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// As Ctrl-C does.
    pub(crate) fn end(mut self) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-INT", &pid]).status().expect("kill").success());
        let ended = self.child.wait().expect("it ends");
        assert!(ended.success(), "{}", self.log());
        assert!(self.log().contains("recorded "), "{}", self.log());
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
    }
}

fn replay(stage: &Stage, folder: &Path) -> Vec<Value> {
    let configuration = folder.join("config.yaml");
    let text = format!(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\ntieBreak: first\n\
         profiles: [{{schedulerName: {}}}]\n",
        stage.name
    );
    fs::write(&configuration, text).expect("a file");
    let (trace, configuration) = (folder.join("trace.jsonl.gz"), configuration.display().to_string());
    let ran = supercargo(&[
        "replay",
        "--trace",
        &trace.display().to_string(),
        "--config",
        &configuration,
        "-o",
        "json",
        "-q",
    ]);
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let text = String::from_utf8(ran.stdout).expect("text");
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

#[test]
fn a_recording_of_the_running_scheduler_replays_to_the_same_placements() {
    let (stage, folder) = (Stage::in_memory(), tempfile::tempdir().expect("a folder"));
    stage.make_all([node("a").cpu("4"), node("b").cpu("8"), node("c").cpu("16")]);
    let recording = Recording::start(&stage, folder.path(), "recording ");
    let _scheduler = stage.scheduler_with("tieBreak: first", &[]);
    let env = json!([{"name": "PASSWORD", "value": "hidden"}]);
    for (i, cpu) in ["9", "5", "1", "1", "2", "1", "1", "1"].into_iter().enumerate() {
        let name = format!("p{i}");
        stage.make(pod(&name).cpu(cpu).with("/spec/containers/0/env", env.clone()));
        stage.wait_until_bound(&name);
    }
    // 9 of c's 16 and 5 of b's 8 are taken: there is no room for 8 until the first goes.
    stage.make(pod("waits").cpu("8"));
    stage.wait_until_rejected("waits");
    stage.client.delete(&stage.pod_path("p0"));
    stage.wait_until_bound("waits");
    // The last change is seen before the recording ends.
    std::thread::sleep(std::time::Duration::from_millis(300));
    recording.end();

    let lines = replay(&stage, folder.path());
    let (summary, pods) = lines.split_last().expect("lines");
    assert_eq!(pods.len(), 9, "{pods:?}");
    for pod in pods {
        assert!(pod["node"].is_string(), "{pod}");
        assert_eq!(pod["node"], pod["recordedNode"], "{pod}");
    }
    assert_eq!(summary["summary"]["recorded"]["sameNode"], 9);
    assert!(pods[8]["pendingSeconds"].as_f64().is_some_and(|waited| waited > 0.0), "{}", pods[8]);
}

#[test]
fn a_recording_is_continued_with_what_has_changed_and_keeps_no_environment() {
    let (stage, folder) = (Stage::in_memory(), tempfile::tempdir().expect("a folder"));
    stage.make_all([node("a"), node("b")]);
    let env = json!([{"name": "PASSWORD", "value": "hidden"}]);
    stage.make(pod("stays").with("/spec/containers/0/env", env));
    stage.make(pod("goes"));
    Recording::start(&stage, folder.path(), "recording ").end();
    stage.client.delete(&stage.pod_path("goes"));
    stage.make(pod("comes"));
    Recording::start(&stage, folder.path(), "going on with ").end();

    let mut text = String::new();
    let file = fs::File::open(folder.path().join("trace.jsonl.gz")).expect("the recording");
    std::io::Read::read_to_string(&mut flate2::read::MultiGzDecoder::new(file), &mut text).expect("whole");
    assert!(!text.contains("hidden") && !text.contains("PASSWORD"), "{text}");
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let of_pods = |line: &&Value| line["object"]["kind"] == "Pod" || line["kind"] == "Pod";
    let told: Vec<(String, String)> = (lines.iter().filter(of_pods))
        .map(|line| {
            let name = line["name"].as_str().or(line["object"]["metadata"]["name"].as_str());
            (line["op"].as_str().unwrap_or_default().to_owned(), name.unwrap_or_default().to_owned())
        })
        .collect();
    let told: Vec<(&str, &str)> = told.iter().map(|(op, name)| (op.as_str(), name.as_str())).collect();
    assert_eq!(told[..2].iter().filter(|(op, _)| *op == "add").count(), 2, "{told:?}");
    assert_eq!(told[2..], [("delete", "goes"), ("add", "comes")]);
}

#[test]
fn a_snapshot_is_a_cluster() {
    let (stage, folder) = (Stage::in_memory(), tempfile::tempdir().expect("a folder"));
    stage.make(node("a"));
    stage.make(pod("p").with("/spec/containers/0/command", json!(["hidden"])));
    let path = folder.path().join("cluster.json.gz").display().to_string();
    let ran = supercargo(&["snapshot", "--master", &stage.cluster().url(), "-o", &path]);
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let configuration = folder.path().join("config.yaml");
    let text = format!(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles: [{{schedulerName: {}}}]\n",
        stage.name
    );
    fs::write(&configuration, text).expect("a file");
    let configuration = configuration.display().to_string();
    let ran = supercargo(&["simulate", "--cluster", &path, "--config", &configuration, "-o", "json", "-q"]);
    let line: Value = serde_json::from_slice(&ran.stdout).expect("one pod");
    assert_eq!(line["best"], json!([stage.node_name("a")]), "{line}");
    let plain = supercargo(&["snapshot", "--master", &stage.cluster().url(), "-q"]);
    assert!(!String::from_utf8_lossy(&plain.stdout).contains("hidden"));
}

#[test]
fn nobody_there_is_an_error() {
    let ran = supercargo(&["record", "--master", "http://127.0.0.1:1", "-o", "/dev/null/trace.jsonl.gz"]);
    assert_eq!(ran.status.code(), Some(2));
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("trace.jsonl.gz").display().to_string();
    let ran = supercargo(&["record", "--master", "http://127.0.0.1:1", "-o", &path]);
    assert_eq!(ran.status.code(), Some(2));
    assert!(
        String::from_utf8_lossy(&ran.stderr).contains("cannot reach"),
        "{}",
        String::from_utf8_lossy(&ran.stderr)
    );
}
