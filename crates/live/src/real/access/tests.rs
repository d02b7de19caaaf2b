//! Where the server is looked for, and what is wrong with what is found.

use std::fs;

use tempfile::TempDir;

use super::*;

/// A folder with files, and an environment.
struct Machine {
    folder: TempDir,
    variables: Vec<(&'static str, OsString)>,
}

impl Machine {
    fn new(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        Self { folder, variables: Vec::new() }
    }

    fn with(mut self, name: &'static str, value: impl Into<OsString>) -> Self {
        self.variables.push((name, value.into()));
        self
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn find(&self, access: &RestConfig) -> Result<Target, Unreachable> {
        let environment = |name: &str| {
            self.variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone())
        };
        find(access, &environment)
    }

    /// What is found through a kubeconfig of this name, as server and namespace; or what is wrong, with the folder's
    /// name cut out.
    fn told(&self, access: RestConfig) -> String {
        match self.find(&access) {
            Ok(target) => format!("{} {:?}", target.server, target.namespace),
            Err(error) => error.to_string().replace(&format!("{}/", self.folder.path().display()), ""),
        }
    }
}

fn kubeconfig(server: &str) -> String {
    format!(
        "current-context: c\ncontexts:\n- name: c\n  context: {{cluster: c, namespace: batch}}\nclusters:\n- name: c\n  cluster: {{server: {server}}}\n"
    )
}

#[test]
fn files_of_the_environment_go_before_the_home_folder() {
    let (one, two) =
        (kubeconfig("https://one"), kubeconfig("https://two").replace("current-context: c\n", ""));
    let machine =
        Machine::new(&[("one", &one), ("two", &two), (".kube/config", &kubeconfig("https://home"))]);
    let home = machine.folder.path().as_os_str().to_owned();
    let list = |names: &[&str]| std::env::join_paths(names.iter().map(|name| machine.path(name))).unwrap();
    let lists =
        [list(&["one"]), list(&["two", "one"]), list(&["missing", "one"]), list(&["missing", "gone"])];
    let machine = machine.with("HOME", home);
    assert_eq!(machine.told(RestConfig::default()), "https://home/ \"batch\"");
    let context = RestConfig { context: Some("c".to_owned()), ..RestConfig::default() };
    assert_eq!(machine.told(context), "https://home/ \"batch\"");
    let expected = [
        "https://one/ \"batch\"",
        "https://two/ \"batch\"",
        "https://one/ \"batch\"",
        "no cluster to work for: KUBECONFIG names missing, gone, and nothing is there\nhint: name a kubeconfig with \
         --kubeconfig or KUBECONFIG, or a server with --master",
    ];
    let mut machine = machine.with("KUBECONFIG", "");
    for (list, expected) in lists.into_iter().zip(expected) {
        machine.variables.pop();
        machine = machine.with("KUBECONFIG", list);
        assert_eq!(machine.told(RestConfig::default()), expected);
    }
    let master = RestConfig { master: Some("10.0.0.1:8080".to_owned()), ..RestConfig::default() };
    assert_eq!(machine.told(master.clone()), "http://10.0.0.1:8080/ \"\"");
    let kubeconfig = Some(machine.path("one"));
    assert_eq!(machine.told(RestConfig { kubeconfig, ..master }), "http://10.0.0.1:8080/ \"batch\"");
}

#[test]
fn nowhere_to_go_is_told() {
    let machine = Machine::new(&[]);
    assert_eq!(
        machine.told(RestConfig::default()),
        "no cluster to work for: not in a pod, KUBECONFIG is not set, and there is no ~/.kube/config\nhint: name a \
         kubeconfig with --kubeconfig or KUBECONFIG, or a server with --master"
    );
    let senseless = RestConfig { master: Some("ftp://x".to_owned()), ..RestConfig::default() };
    assert_eq!(
        machine.told(senseless),
        "the master's address makes no sense: ftp://x\nhint: write it like https://10.0.0.1:6443"
    );
}

/// A kubeconfig in which cluster and user are as given.
fn with(cluster: &str, user: &str) -> String {
    format!(
        "current-context: c\ncontexts:\n- name: c\n  context: {{cluster: c, user: u}}\nclusters:\n- name: c\n  cluster: {cluster}\nusers:\n- name: u\n  user: {user}\n"
    )
}

#[test]
fn the_scheme_follows_from_the_rest() {
    for (cluster, expected) in [
        ("{server: 'a:8080'}", "http://a:8080/ \"\""),
        ("{server: 'a:6443', insecure-skip-tls-verify: true}", "https://a:6443/ \"\""),
        ("{server: 'https://a/k8s/x'}", "https://a/k8s/x \"\""),
    ] {
        let machine = Machine::new(&[("k", &with(cluster, "{}"))]);
        assert_eq!(
            machine.told(RestConfig { kubeconfig: Some(machine.path("k")), ..RestConfig::default() }),
            expected
        );
    }
}

#[test]
fn what_cannot_be_used_is_told_with_its_place() {
    let https = "{server: 'https://a'}";
    let exec = |rest: &str| format!("{{exec: {{{rest}}}}}");
    let v1 = "apiVersion: client.authentication.k8s.io/v1";
    let cases = [
        ("{}", "{}", "7:12: clusters[0].cluster.server: the cluster \"c\" has no server", "write it like"),
        (
            "{server: 'x://'}",
            "{}",
            "7:21: clusters[0].cluster.server: the server's address makes no",
            "write it",
        ),
        (
            "{server: 'https://a', insecure-skip-tls-verify: true, certificate-authority: ca}",
            "{}",
            "7:60: clusters[0].cluster.insecure-skip-tls-verify: there is an authority to trust",
            "remove insecure-skip-tls-verify",
        ),
        (
            "{server: 'https://a', certificate-authority: gone}",
            "{}",
            "7:57: clusters[0].cluster.certificate-authority: gone cannot be read: No such file",
            "certificates and keys are PEM texts",
        ),
        (
            "{server: 'https://a', certificate-authority-data: bm90aGluZw==}",
            "{}",
            "7:62: clusters[0].cluster.certificate-authority-data: there is no certificate among",
            "certificates and keys are PEM texts",
        ),
        (
            "{server: 'https://a', tls-server-name: 'a b'}",
            "{}",
            "7:51: clusters[0].cluster.tls-server-name: invalid dns name",
            "write a host name",
        ),
        (
            "{server: 'https://a', proxy-url: 'socks5://p'}",
            "{}",
            "7:45: clusters[0].cluster.proxy-url: a proxy by socks5 is not supported",
            "use a proxy by http://",
        ),
        (
            https,
            "{client-certificate: c}",
            "10:9: users[0].user.client-key: there is a client certificate and no key to it",
            "give both",
        ),
        (
            https,
            "{client-key-data: aHVzaA==}",
            "10:9: users[0].user.client-certificate: there is a key and no client certificate",
            "give both",
        ),
        (
            https,
            "{client-certificate: gone, client-key: gone}",
            "10:30: users[0].user.client-certificate: gone cannot be read",
            "certificates and keys",
        ),
        (
            https,
            "{auth-provider: {name: oidc}}",
            "10:25: users[0].user.auth-provider: the auth provider \"oidc\" is not supported",
            "use a credential plugin",
        ),
        (
            https,
            "{username: a, token: hush}",
            "10:30: users[0].user.token: there is a token, and a user's name and password\nhint: keep one",
            "keep one of them",
        ),
        (
            https,
            "{tokenFile: gone}",
            "10:21: users[0].user.tokenFile: gone: No such file",
            "the file holds the token",
        ),
        (
            https,
            "{tokenFile: blank}",
            "10:21: users[0].user.tokenFile: blank: there is no token in it",
            "the file",
        ),
        (
            https,
            "{as-groups: [g]}",
            "10:9: users[0].user.as: whom to act as is not said",
            "name the user with as",
        ),
        (https, &exec(v1), "10:16: users[0].user.exec.command: the credential plugin has no command", ""),
        (
            https,
            &exec("command: x"),
            "10:16: users[0].user.exec.apiVersion: the credential plugin has no apiVersion",
            "set it to client.authentication.k8s.io/v1, if",
        ),
        (
            https,
            &exec("command: x, apiVersion: client.authentication.k8s.io/v1alpha1"),
            "10:41: users[0].user.exec.apiVersion: credential plugins of client.authentication.k8s.io/v1alpha1 are not",
            "set it to client.authentication.k8s.io/v1, if",
        ),
    ];
    for (cluster, user, begins, hint) in cases {
        let text = with(cluster, user);
        let machine = Machine::new(&[("k", &text), ("blank", " \n")]);
        let told = machine.told(RestConfig { kubeconfig: Some(machine.path("k")), ..RestConfig::default() });
        assert!(told.starts_with(&format!("k:{begins}")), "{cluster} {user}: {told}");
        assert!(hint.is_empty() || told.contains(&format!("\nhint: {hint}")), "{told}");
        assert!(!told.contains("hush"), "{told}");
    }
}
