//! What holds for every text.

use proptest::prelude::*;
use supercargo_config::{diff, load, migrate};
use supercargo_manifest::Source;

use crate::load_v1;

/// Words that make a text look like a configuration, so that more than the reader is tried.
const WORDS: [&str; 24] = [
    "profiles",
    "plugins",
    "multiPoint",
    "score",
    "filter",
    "queueSort",
    "enabled",
    "disabled",
    "name",
    "weight",
    "pluginConfig",
    "args",
    "extenders",
    "managedResources",
    "NodeResourcesFit",
    "PodTopologySpread",
    "scoringStrategy",
    "'*'",
    "0",
    "-1",
    "'1'",
    "null",
    "percentageOfNodesToScore",
    "schedulerName",
];

fn lines() -> impl Strategy<Value = String> {
    let word = || prop::sample::select(&WORDS[..]);
    let line = (0..5_usize, prop::bool::ANY, word(), prop::option::of(word())).prop_map(
        |(indent, item, key, value)| {
            let dash = if item { "- " } else { "" };
            format!("{}{dash}{key}: {}\n", "  ".repeat(indent), value.unwrap_or_default())
        },
    );
    prop::collection::vec(line, 0..12).prop_map(|lines| lines.concat())
}

fn plugin_set() -> impl Strategy<Value = String> {
    let registry = supercargo_plugins::registry();
    let mut names: Vec<String> = registry.iter().map(|plugin| plugin.name().to_owned()).collect();
    names.extend(["'*'", "NoSuchPlugin"].map(str::to_owned));
    let entry =
        (prop::sample::select(names), prop::option::of(-1..4_i32)).prop_map(|(name, weight)| match weight {
            Some(weight) => format!("{{name: {name}, weight: {weight}}}"),
            None => format!("{{name: {name}}}"),
        });
    let list = prop::collection::vec(entry, 0..4).prop_map(|entries| entries.join(", "));
    let point = prop::sample::select(vec!["multiPoint", "score", "preScore", "filter", "bind"]);
    (point, list.clone(), list)
        .prop_map(|(point, on, off)| format!("{point}: {{enabled: [{on}], disabled: [{off}]}}"))
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in ".*") {
        let source = Source::new("x", text);
        let _ = load(&source, &supercargo_plugins::registry());
        let _ = migrate(&source, &supercargo_plugins::registry());
    }

    #[test]
    fn no_lines_make_it_panic(lines in lines(), version in prop::sample::select(vec!["v1", "v1beta1", "v1alpha2", "v1alpha1"])) {
        let text = format!("apiVersion: kubescheduler.config.k8s.io/{version}\nkind: KubeSchedulerConfiguration\n{lines}");
        let source = Source::new("x", text);
        if let Err(problems) = load(&source, &supercargo_plugins::registry()) {
            prop_assert!(problems.has_errors(), "{}", problems);
        }
        let _ = migrate(&source, &supercargo_plugins::registry());
        let policy = Source::new("x", format!("kind: Policy\n{lines}"));
        let _ = migrate(&policy, &supercargo_plugins::registry());
    }

    #[test]
    fn what_is_written_out_means_the_same(set in plugin_set(), qps in -2.0..90.0_f32, burst in 0..200_u32) {
        let connection = format!("clientConnection: {{qps: {qps}, burst: {burst}}}");
        if let Ok(loaded) = load_v1(&format!("{connection}\nprofiles: [{{plugins: {{{set}}}}}]\n")) {
            let registry = supercargo_plugins::registry();
            let text = loaded.configuration.to_yaml(&registry);
            let again = load(&Source::new("again.yaml", &*text), &registry);
            let again = again.map_err(|problems| TestCaseError::fail(format!("{text}\n{problems}")))?;
            prop_assert_eq!(again.configuration.effective(), loaded.configuration.effective());
            prop_assert_eq!(&again.configuration.client_connection, &loaded.configuration.client_connection);
            prop_assert!(diff(&loaded.configuration, &again.configuration, &registry).is_empty());
        }
    }
}
