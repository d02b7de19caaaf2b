//! Kubeconfigs as texts.

use super::*;

fn parsed(name: &str, text: &str) -> Result<Kubeconfig, Problems> {
    Kubeconfig::parse(&Source::new(name, text), Path::new("/etc/kube"))
}

const FIRST: &str = "\
apiVersion: v1
kind: Config
current-context: blue
contexts:
- name: blue
  context: {cluster: sea, user: anna, namespace: batch}
- name: bare
  context: {cluster: sea}
clusters:
- name: sea
  cluster: {server: 'https://sea:6443', certificate-authority: pki/ca.crt}
users:
- name: anna
  user: {tokenFile: /run/token}
";
const SECOND: &str = "\
current-context: green
contexts:
- name: blue
  context: {cluster: land, user: anna}
- name: green
  context: {cluster: land, user: anna}
clusters:
- name: land
  cluster: {server: 'https://land:6443', insecure-skip-tls-verify: true}
users:
- name: anna
  user: {username: anna, password: secret}
- name: bob
";

#[test]
fn the_first_file_holds_and_the_next_adds_to_it() {
    let mut merged = parsed("first", FIRST).unwrap();
    merged.merge(parsed("second", SECOND).unwrap());
    for (context, server, namespace, token_file) in [
        (None, "https://sea:6443", "batch", Some("/run/token")),
        (Some("blue"), "https://sea:6443", "batch", Some("/run/token")),
        // A user is taken as a whole: what the second file says about anna does not count.
        (Some("green"), "https://land:6443", "", Some("/run/token")),
        (Some("bare"), "https://sea:6443", "", None),
    ] {
        let chosen = merged.choose(context).unwrap_or_else(|problem| panic!("{problem}"));
        let user = chosen.user.as_ref();
        assert_eq!(chosen.cluster.spec.server, server, "{context:?}");
        assert_eq!(chosen.namespace, namespace, "{context:?}");
        assert_eq!(user.map(|user| user.spec.token_file.as_str()), token_file, "{context:?}");
        assert_eq!(user.map_or("", |user| &user.spec.username), "", "{context:?}");
    }
    let place = &merged.choose(None).unwrap().cluster.place;
    assert_eq!(place.file("pki/ca.crt"), Path::new("/etc/kube/pki/ca.crt"));
    assert_eq!(place.file("/pki/ca.crt"), Path::new("/pki/ca.crt"));
}

#[test]
fn nothing_and_null_are_kubeconfigs_too() {
    for text in ["", "# nothing\n", "{}", "contexts: null\nclusters:\nusers: []\n", "---\n---\n{}\n"] {
        assert!(parsed("empty", text).is_ok(), "{text:?}");
    }
    let two = parsed("two", "current-context: a\n---\ncurrent-context: b\n").unwrap();
    assert_eq!(two.current_context.unwrap().name, "a");
}

#[test]
fn what_is_wrong_in_a_text_is_told_with_its_place() {
    let cases = [
        ("a: [", "error: k:1:5: "),
        ("clusters: 5", "error: k:1:11: clusters: "),
        ("clusters:\n- cluster: {}\n", "error: k:2:3: clusters[0]: "),
        ("clusters:\n- {name: a}\n- {name: a}\n", "error: k:3:10: clusters[1].name: \"a\" is defined twice"),
        (
            "clusters:\n- name: a\n  cluster: {certificate-authority-data: '???'}\n",
            "error: k:3:41: clusters[0].cluster.certificate-authority-data: this is not base64\n",
        ),
        (
            "users:\n- name: a\n  user: {exec: {interactiveMode: Perhaps}}\n",
            "error: k:3:34: users[0].user.exec.interactiveMode: ",
        ),
        (
            "clusters:\n- name: a\n  cluster: {insecure-skip-tls-verify: 1}\n",
            "error: k:3:39: clusters[0].cluster.",
        ),
    ];
    for (text, begins) in cases {
        let Err(problems) = parsed("k", text) else { panic!("{text:?}") };
        assert!(problems.to_string().starts_with(begins), "{text:?}: {problems}");
    }
}

#[test]
fn no_error_shows_a_secret() {
    for (field, value) in [("client-key-data", "hush!"), ("token", "[hush!]"), ("password", "{hush!: 1}")] {
        let text = format!("users:\n- name: a\n  user: {{{field}: '?', {field}-x: 1}}\n");
        let text = text.replace("'?'", value);
        let Err(problems) = parsed("k", &text) else { panic!("{text:?}") };
        let told = problems.to_string();
        assert!(
            told.starts_with(&format!("error: k:3:{}: users[0].user.{field}: ", 12 + field.len())),
            "{told}"
        );
        assert!(!told.contains("hush"), "{told}");
    }
}

#[test]
fn a_name_that_is_not_there_is_told_with_those_that_are() {
    let contexts = |current: &str| {
        format!("{current}contexts:\n- name: blue\n  context: {{cluster: sea}}\n- name: green\n")
    };
    let clusters = "clusters:\n- name: see\n";
    let cases = [
        (contexts(""), None, "error: the kubeconfig has no current-context\nhint: choose one of blue, green"),
        (
            contexts("current-context: blu\n"),
            None,
            "error: k:1:18: current-context: there is no context \"blu\"\n  |\n1 | current-context: blu\n  |                  \
             ^^^\nhint: did you mean blue?",
        ),
        (
            contexts(""),
            Some("production"),
            "error: the kubeconfig has no context \"production\"\nhint: choose one of blue, green",
        ),
        (
            contexts(""),
            Some("blue"),
            "error: k:3:22: contexts[0].context.cluster: there is no cluster \"sea\"\n  |\n3 |   context: {cluster: sea}\n  \
             |                      ^^^\nhint: there are none at all: is this the right file?",
        ),
        (
            contexts("") + clusters,
            Some("blue"),
            "error: k:3:22: contexts[0].context.cluster: there is no cluster \"sea\"\n  |\n3 |   context: {cluster: sea}\n  \
             |                      ^^^\nhint: did you mean see?",
        ),
    ];
    for (text, context, expected) in cases {
        let Err(problem) = parsed("k", &text).unwrap().choose(context) else { panic!("{text}") };
        assert_eq!(problem.to_string(), expected);
    }
}
