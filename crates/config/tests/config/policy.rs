//! The legacy policy.

use supercargo_config::{load, migrate};
use supercargo_manifest::Source;

/// Translates a policy, and checks that the translation can be used.
fn migrated(policy: &str) -> String {
    let migrated = migrate(&Source::new("policy.json", policy), &supercargo_plugins::registry())
        .unwrap_or_else(|problems| panic!("{policy}\n{problems}"));
    let loaded = load(&Source::new("migrated.yaml", &*migrated.yaml), &supercargo_plugins::registry());
    let loaded = loaded.unwrap_or_else(|problems| panic!("{}\n{problems}", migrated.yaml));
    assert!(
        loaded.warnings.iter().all(|warning| warning.path.starts_with("extenders")),
        "{}",
        loaded.warnings
    );
    match migrated.warnings.is_empty() {
        true => migrated.yaml,
        false => format!("{}\n{}", migrated.yaml, migrated.warnings),
    }
}

#[test]
fn nothing_said() {
    insta::assert_snapshot!("policy_nothing_said", migrated(r#"{"apiVersion": "v1", "kind": "Policy"}"#));
}

#[test]
fn as_the_examples_had_it() {
    insta::assert_snapshot!("policy_example", migrated(include_str!("../data/policy.json")));
}

#[test]
fn labels_and_services() {
    insta::assert_snapshot!(
        "policy_labels",
        migrated(
            r#"
kind: Policy
apiVersion: v1
predicates:
- name: MatchNodeSelector
- name: RequireRegion
  argument: {labelsPresence: {labels: [region], presence: true}}
- name: NotRetiring
  argument: {labelsPresence: {labels: [retiring], presence: false}}
priorities:
- name: PreferSsd
  weight: 3
  argument: {labelPreference: {label: ssd, presence: true}}
- name: SpreadByRack
  weight: 2
  argument: {serviceAntiAffinity: {label: rack}}
- name: MostRequestedPriority
  weight: 1
- name: LeastRequestedPriority
  weight: 2
- name: EqualPriority
  weight: 1
"#
        )
    );
}

#[test]
fn what_is_wrong_is_told() {
    let policies = [
        "kind: Policy\npredicates:\n- name: PodFitsResource\npriorities:\n- name: LeastRequestPriority\n  weight: 1\n",
        "kind: Policy\npriorities:\n- name: LeastRequestedPriority\n",
        "kind: Policy\npredicates:\n- name: TogetherInRack\n  argument:\n    serviceAffinity:\n      labels: [rack]\n",
        "kind: Policy\npredicate:\n- name: HostName\n",
        "kind: Policy\nextenders:\n- urlprefix: http://x\n  filterverbs: f\n",
        "kind: Policy\npriorities:\n- name: Mine\n  weight: 1\n  argument: {}\n",
    ];
    let registry = supercargo_plugins::registry();
    let reports = policies
        .map(|policy| migrate(&Source::new("policy.yaml", policy), &registry).expect_err(policy).to_string());
    insta::assert_snapshot!("policy_errors", reports.join("\n\n----\n\n"));
}
