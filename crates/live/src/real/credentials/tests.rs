//! Credentials, and plugins that are shell scripts.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use tempfile::TempDir;

use super::{exec::ExecConfig, *};

const V1: &str = "client.authentication.k8s.io/v1";

fn shown(credential: &Credential) -> &str {
    credential.header.as_ref().map_or("", |value| value.to_str().unwrap())
}

#[tokio::test]
async fn fixed_credentials_are_written_into_requests() {
    for (credentials, expected) in [
        (Credentials::none(), ""),
        (Credentials::token(" abc\n").unwrap(), "Bearer abc"),
        // base64 of "me:pass word"
        (Credentials::basic("me", "pass word").unwrap(), "Basic bWU6cGFzcyB3b3Jk"),
    ] {
        let credential = credentials.current().await.unwrap();
        let mut headers = HeaderMap::new();
        credentials.sign(&credential, &mut headers);
        let written = headers.get(header::AUTHORIZATION);
        assert_eq!(written.map_or("", |value| value.to_str().unwrap()), expected);
        assert!(written.is_none_or(HeaderValue::is_sensitive));
        credentials.refused(&credential);
        assert_eq!(credentials.current().await.unwrap(), credential, "there is no other");
    }
    assert!(Credentials::token("a\nb").is_err());
}

#[test]
fn whom_we_act_as_is_told_in_headers() {
    let extra = BTreeMap::from([
        ("example.com/Reason Why".to_owned(), vec!["one".to_owned(), "two".to_owned()]),
        ("scopes".to_owned(), vec!["all".to_owned()]),
    ]);
    let groups = ["dev".to_owned(), "ops".to_owned()];
    let acting = Impersonated { user: "anna", uid: "42", groups: &groups, extra: Some(&extra) };
    let credentials = Credentials::none().acting_as(&acting).unwrap();
    let mut headers = HeaderMap::new();
    credentials.sign(&Credential::default(), &mut headers);
    let written: Vec<_> =
        headers.iter().map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())).collect();
    assert_eq!(
        written,
        [
            "impersonate-user: anna",
            "impersonate-uid: 42",
            "impersonate-group: dev",
            "impersonate-group: ops",
            "impersonate-extra-example.com%2freason%20why: one",
            "impersonate-extra-example.com%2freason%20why: two",
            "impersonate-extra-scopes: all",
        ]
    );
    let broken = Impersonated { user: "a\nb", ..Impersonated::default() };
    assert!(Credentials::none().acting_as(&broken).is_err());
}

#[test]
fn a_token_file_is_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("token");
    fs::write(&path, "one\n").unwrap();
    let file = TokenFile::open(path.clone()).unwrap();
    fs::write(&path, "two\n").unwrap();
    assert_eq!(shown(&file.current()), "Bearer one", "not before a minute is over");
    file.known.lock().unwrap().1 -= READ_AGAIN;
    assert_eq!(shown(&file.current()), "Bearer two");

    fs::write(&path, "three").unwrap();
    file.read_again();
    assert_eq!(shown(&file.current()), "Bearer three", "at once, if the server refuses the last one");
    for unusable in ["", "a\nb"] {
        fs::write(&path, unusable).unwrap();
        file.read_again();
        assert_eq!(shown(&file.current()), "Bearer three", "{unusable:?}");
    }
    fs::remove_file(&path).unwrap();
    file.read_again();
    assert_eq!(shown(&file.current()), "Bearer three");
}

/// A plugin that runs the script, and counts how often in a file beside it.
struct Script {
    folder: TempDir,
    settings: ExecConfig,
}

impl Script {
    fn new(script: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let command = folder.path().join("plugin");
        let script = format!("#!/bin/sh\ncd {}\necho x >> runs\n{script}\n", folder.path().display());
        fs::write(&command, script).unwrap();
        fs::set_permissions(&command, fs::Permissions::from_mode(0o755)).unwrap();
        let settings = ExecConfig {
            api_version: V1.to_owned(),
            command,
            args: vec!["first".to_owned(), "second argument".to_owned()],
            env: vec![("FLAVOUR".to_owned(), "sweet".to_owned())],
            install_hint: String::new(),
            interactive: false,
            cluster: None,
        };
        Self { folder, settings }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }
}

fn runs(folder: &Path) -> usize {
    fs::read_to_string(folder.join("runs")).unwrap_or_default().lines().count()
}

fn says(status: &str) -> String {
    format!("echo '{{\"apiVersion\":\"{V1}\",\"kind\":\"ExecCredential\",\"status\":{status}}}'")
}

#[tokio::test]
async fn a_plugin_is_told_what_it_needs_and_believed() {
    let script = format!(
        "printf '%s|%s|%s|%s' \"$1\" \"$2\" \"$FLAVOUR\" \"$KUBERNETES_EXEC_INFO\" > told\n{}",
        says(r#"{"token":"abc"}"#)
    );
    let mut script = Script::new(&script);
    script.settings.cluster = Some(serde_json::json!({"server": "https://a"}));
    let folder = script.path().to_owned();
    let plugin = Credentials::plugin(ExecPlugin::new(script.settings));
    for _ in 0..3 {
        assert_eq!(shown(&plugin.current().await.unwrap()), "Bearer abc");
    }
    assert_eq!(runs(&folder), 1, "a credential without an end holds");
    let told = fs::read_to_string(folder.join("told")).unwrap();
    let info = format!(
        r#"{{"apiVersion":"{V1}","kind":"ExecCredential","spec":{{"cluster":{{"server":"https://a"}},"interactive":false}}}}"#
    );
    assert_eq!(told, format!("first|second argument|sweet|{info}"));

    plugin.refused(&plugin.current().await.unwrap());
    plugin.refused(&Arc::default());
    let (one, two) = tokio::join!(plugin.current(), plugin.current());
    assert!(one.is_ok() && two.is_ok());
    assert_eq!(runs(&folder), 2, "a refused one is renewed, once for all who wait");
}

#[tokio::test]
async fn a_credential_that_ends_is_renewed() {
    for (end, expected) in [("2001-01-01T00:00:00Z", 3), ("2999-01-01T00:00:00Z", 1)] {
        let script = Script::new(&says(&format!(r#"{{"token":"abc","expirationTimestamp":"{end}"}}"#)));
        let folder = script.path().to_owned();
        let plugin = Credentials::plugin(ExecPlugin::new(script.settings));
        for _ in 0..3 {
            plugin.current().await.unwrap();
        }
        assert_eq!(runs(&folder), expected, "{end}");
    }
}

#[tokio::test]
async fn a_plugin_may_give_a_client_certificate() {
    let script = Script::new(&says(r#"{"clientCertificateData":"cert","clientKeyData":"key","token":null}"#));
    let credential = Credentials::plugin(ExecPlugin::new(script.settings)).current().await.unwrap();
    let identity = Identity { certificate: b"cert".to_vec(), key: b"key".to_vec() };
    assert_eq!((credential.identity.as_ref(), shown(&credential)), (Some(&identity), ""));
}

#[tokio::test]
async fn what_a_plugin_does_wrong_is_told_without_its_secrets() {
    let beta = says(r#"{"token":"hush"}"#).replace("/v1", "/v1beta1");
    for (script, expected) in [
        ("echo 'please log in' >&2; exit 3".to_owned(), "failed (exit status: 3): please log in"),
        ("exit 1".to_owned(), "failed (exit status: 1)"),
        ("true".to_owned(), "gave nothing"),
        ("echo 'hush: ['".to_owned(), ":1:8: "),
        (says("5"), ":1:"),
        (
            beta,
            "was asked for an ExecCredential of client.authentication.k8s.io/v1, and gave ExecCredential of client.authentication.k8s.io/v1beta1",
        ),
        (
            "echo '{}'".to_owned(),
            "was asked for an ExecCredential of client.authentication.k8s.io/v1, and gave  of ",
        ),
        (says("{}"), "gave neither a token nor a client certificate"),
        (says("null"), "gave neither a token nor a client certificate"),
        (says(r#"{"clientKeyData":"hush"}"#), "gave a client certificate without its key"),
        (says(r#"{"token":"hush","expirationTimestamp":"soon"}"#), ":1:"),
        (says(r#"{"token":"hush\u0007"}"#), "gave a token that cannot be sent"),
    ] {
        let made = Script::new(&script);
        let name = format!("the credential plugin {}", made.settings.command.display());
        let plugin = Credentials::plugin(ExecPlugin::new(made.settings));
        let error = plugin.current().await.unwrap_err();
        let rest = error.strip_prefix(&name).unwrap_or_else(|| panic!("{error}"));
        assert!(rest.trim_start().starts_with(expected), "{script}: {error}");
        assert!(!error.contains("hush"), "{error}");
    }
}

#[tokio::test]
async fn a_plugin_that_is_not_there_is_told_with_its_hint() {
    for (hint, expected) in
        [("", "install it, or put it into PATH"), ("brew install it\n", "brew install it")]
    {
        let mut script = Script::new("");
        script.settings.command = "no-such-plugin-anywhere".into();
        script.settings.install_hint = hint.to_owned();
        let error = Credentials::plugin(ExecPlugin::new(script.settings)).current().await.unwrap_err();
        assert_eq!(
            error,
            format!("the credential plugin no-such-plugin-anywhere is not there\nhint: {expected}")
        );
    }
}
