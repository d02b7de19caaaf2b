//! Reports as people see them: readable without colour, and everything at once.

use std::{fs, path::Path};

use supercargo_config::load;
use supercargo_manifest::{Problems, Source};

use crate::load_v1;

/// What is said about each file of a folder of the data, by the file's name.
fn reports(folder: &str) -> Vec<(String, Problems)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(folder);
    let entries = fs::read_dir(&folder).expect("the folder is there");
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("it can be read").file_name().display().to_string()).collect();
    names.sort();
    let report = |name: String| {
        let text = fs::read_to_string(folder.join(&name)).expect("it is a text");
        let problems = match load(&Source::new(&*name, text), &supercargo_plugins::registry()) {
            Ok(loaded) => loaded.warnings,
            Err(problems) => problems,
        };
        (name.trim_end_matches(".yaml").to_owned(), problems)
    };
    names.into_iter().map(report).collect()
}

#[test]
fn what_is_wrong_is_told() {
    let reports = reports("wrong");
    assert!(reports.len() >= 20, "there are {} reports", reports.len());
    for (name, problems) in reports {
        assert!(problems.has_errors(), "{name} is accepted");
        insta::assert_snapshot!(format!("wrong__{name}"), problems.to_string());
    }
}

#[test]
fn what_is_a_pitfall_is_told_with_a_way_out() {
    for (name, problems) in reports("pitfalls") {
        assert!(!problems.is_empty() && !problems.has_errors(), "{name}\n{problems}");
        assert!(problems.iter().all(|problem| problem.hint.is_some()), "{problems}");
        insta::assert_snapshot!(format!("pitfall__{name}"), problems.to_string());
    }
}

#[test]
fn ordinary_configurations_are_not_warned_about() {
    for lines in [
        "",
        "percentageOfNodesToScore: 50\n",
        "profiles: [{plugins: {score: {enabled: [{name: NodeAffinity, weight: 5}]}}}]\n",
        "profiles: [{plugins: {score: {disabled: [{name: ImageLocality}]}}}]\n",
        "profiles: [{plugins: {score: {disabled: [{name: '*'}], enabled: [{name: ImageLocality}]}}}]\n",
        "extenders: [{urlPrefix: 'http://x', filterVerb: f, nodeCacheCapable: true}]\n",
        "extenders: [{urlPrefix: 'http://x', bindVerb: b}]\n",
    ] {
        let loaded = load_v1(lines).unwrap_or_else(|problems| panic!("{lines}\n{problems}"));
        assert!(loaded.warnings.is_empty(), "{lines}\n{}", loaded.warnings);
    }
}

#[test]
fn other_headers() {
    let headers = [
        "kind: KubeSchedulerConfiguration\n",
        "apiVersion: kubescheduler.config.k8s.io/v1\n",
        "apiVersion: kubescheduler.config.k8s.io/v2\nkind: KubeSchedulerConfiguration\n",
        "apiVersion: v1\nkind: KubeSchedulerConfiguration\n",
        "apiVersion: v1\nkind: Policy\n",
        "apiVersion: v1\nkind: ConfigMap\n",
        "- a\n- b\n",
        "",
        "profiles: [\n",
    ];
    let reports = headers.map(|text| {
        let result = load(&Source::new("config.yaml", text), &supercargo_plugins::registry());
        result.expect_err(text).to_string()
    });
    insta::assert_snapshot!("other_headers", reports.join("\n\n----\n\n"));
}

#[test]
fn a_flood_of_mistakes_is_told_in_part() {
    let fields: String = (0..20_000).map(|i| format!("field{i}: 1\n")).collect();
    let problems = load_v1(&fields).expect_err("there are no such fields");
    assert_eq!(problems.len(), 1000);
    let plugins: String = (0..3000).map(|i| format!("{{name: NoSuch{i}}}, ")).collect();
    let plugins = format!("profiles: [{{plugins: {{score: {{enabled: [{plugins}]}}}}}}]\n");
    let problems = load_v1(&plugins).expect_err("there are no such plugins");
    assert_eq!(problems.len(), 3000);
    assert!(problems.to_string().ends_with("… and 2950 more"), "{problems}");
}

#[test]
fn a_second_document_is_not_read() {
    let loaded = load_v1("---\nparallelism: 5\n").expect("the first document is complete");
    assert_eq!(loaded.configuration.parallelism, 16);
    assert_eq!(loaded.warnings.len(), 1, "{}", loaded.warnings);
}
