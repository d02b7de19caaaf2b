//! TLS and proxies, against servers of our own.

use std::{fs, path::Path, sync::Arc};

use supercargo_extender::testing::CertificateAuthority;
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        ServerConfig,
        crypto::ring,
        pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
        server::WebPkiClientVerifier,
    },
};

use super::*;
use crate::{
    real::{RealWorld, RestConfig},
    world::{Request, Unanswered, World},
};

/// A server that asks for a client certificate and answers with a digest of the one that it was shown. Its address.
async fn server(authority: &CertificateAuthority, name: &str) -> String {
    let provider = Arc::new(ring::default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(authority.roots()), provider.clone())
        .allow_unauthenticated()
        .build()
        .unwrap();
    let (certificate, key) = authority.issue(name, name, &[]);
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier)
        .with_single_cert(
            vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()],
            PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap(),
        )
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("https://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(mut stream) = acceptor.accept(stream).await else { return };
                let mut buffer = vec![0; 65536];
                while let Ok(1..) = stream.read(&mut buffer).await {
                    let certificates = stream.get_ref().1.peer_certificates();
                    let shown = certificates.map_or("nobody".to_owned(), |chain| digest(&chain[0]));
                    let status = if certificates.is_some() { "200 OK" } else { "401 Unauthorized" };
                    let length = shown.len();
                    let answer = format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\n\r\n{shown}");
                    let _ = stream.write_all(answer.as_bytes()).await;
                }
            });
        }
    });
    address
}

/// Short enough to be compared.
fn digest(certificate: &[u8]) -> String {
    certificate
        .iter()
        .fold(0_u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(*byte)))
        .to_string()
}

fn digest_of_pem(pem: &str) -> String {
    digest(&CertificateDer::from_pem_slice(pem.as_bytes()).unwrap())
}

struct Files(TempDir);

impl Files {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.0.path().join(name), text).unwrap();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    async fn open(&self, cluster: &str, user: &str) -> Result<RealWorld, String> {
        let text = format!(
            "{{current-context: c, contexts: [{{name: c, context: {{cluster: c, user: u}}}}], clusters: [{{name: c, cluster: \
             {cluster}}}], users: [{{name: u, user: {user}}}]}}"
        );
        self.write("kubeconfig", &text);
        let access = RestConfig { kubeconfig: Some(self.path("kubeconfig")), ..RestConfig::default() };
        RealWorld::open(&access).await.map_err(|error| error.to_string())
    }
}

async fn answer(world: &RealWorld) -> Result<(u16, String), Unanswered> {
    let reply = world.send(Request::get("/")).await?;
    Ok((reply.status, String::from_utf8_lossy(&reply.body).into_owned()))
}

#[tokio::test]
async fn a_client_certificate_is_shown_to_a_server_that_is_trusted() {
    let authority = CertificateAuthority::default();
    let address = server(&authority, "127.0.0.1").await;
    let files = Files::new();
    files.write("ca.crt", &authority.pem());
    let (certificate, key) = authority.issue("anna", "anna", &[]);
    files.write("anna.crt", &certificate);
    files.write("anna.key", &key);
    let cluster = format!("{{server: '{address}', certificate-authority: ca.crt}}");
    let data = |text: &str| supercargo_manifest::Base64::of(text.as_bytes()).as_str().to_owned();
    let by_data =
        format!("{{client-certificate-data: {}, client-key-data: {}}}", data(&certificate), data(&key));
    for user in ["{client-certificate: anna.crt, client-key: anna.key}", &by_data] {
        let world = files.open(&cluster, user).await.unwrap();
        assert_eq!(answer(&world).await.unwrap(), (200, digest_of_pem(&certificate)));
    }
    let anonymous = files.open(&cluster, "{}").await.unwrap();
    assert_eq!(answer(&anonymous).await.unwrap(), (401, "nobody".to_owned()));
    let insecure = format!("{{server: '{address}', insecure-skip-tls-verify: true}}");
    assert_eq!(answer(&files.open(&insecure, "{}").await.unwrap()).await.unwrap().0, 401);

    files.write("ca.crt", &CertificateAuthority::default().pem());
    let stranger = files.open(&cluster, "{}").await.unwrap();
    let refused = answer(&stranger).await;
    let Err(Unanswered::NotSent(why)) = &refused else { panic!("{refused:?}") };
    assert!(why.contains("invalid peer certificate"), "{why}");
}

#[tokio::test]
async fn a_key_of_another_certificate_is_told_with_its_place() {
    let authority = CertificateAuthority::default();
    let files = Files::new();
    files.write("anna.crt", &authority.issue("anna", "anna", &[]).0);
    files.write("bob.key", &authority.issue("bob", "bob", &[]).1);
    let user = "{client-certificate: anna.crt, client-key: bob.key}";
    let Err(error) = files.open("{server: 'https://a'}", user).await else { panic!() };
    assert!(error.contains("users[0].user.client-certificate: the client's key does not fit"), "{error}");
}

#[tokio::test]
async fn a_server_may_bear_another_name() {
    let authority = CertificateAuthority::default();
    let address = server(&authority, "kubernetes.example.com").await;
    let files = Files::new();
    files.write("ca.crt", &authority.pem());
    let cluster = |name: &str| {
        format!("{{server: '{address}', certificate-authority: ca.crt, tls-server-name: '{name}'}}")
    };
    for (name, is_accepted) in [("kubernetes.example.com", true), ("", false), ("example.com", false)] {
        let world = files.open(&cluster(name), "{}").await.unwrap();
        assert_eq!(answer(&world).await.is_ok(), is_accepted, "{name}");
    }
}

#[tokio::test]
async fn certificates_are_looked_at_again() {
    let authority = CertificateAuthority::default();
    let address = server(&authority, "127.0.0.1").await;
    let files = Files::new();
    let issue = |name: &str| {
        let (certificate, key) = authority.issue(name, name, &[]);
        files.write("crt", &certificate);
        files.write("key", &key);
        digest_of_pem(&certificate)
    };
    let first = issue("first");
    files.write("ca.crt", &authority.pem());
    let file = |name: &str| Pem::File(files.path(name));
    let tls = Tls {
        trusted: Trusted::Authorities(file("ca.crt")),
        identity: Some((file("crt"), file("key"))),
        server_name: None,
    };
    let connections = Connections::new(tls, None, &Credential::default()).unwrap();
    let ask = async |credential: &Credential| {
        let request = http::Request::get(&address).body(Full::default()).unwrap();
        let response = connections.client(credential).request(request).await.unwrap();
        let body = http_body_util::BodyExt::collect(response.into_body()).await.unwrap().to_bytes();
        String::from_utf8_lossy(&body).into_owned()
    };
    let nothing = Credential::default();
    assert_eq!(ask(&nothing).await, first);
    let second = issue("second");
    assert_eq!(ask(&nothing).await, first, "not before a minute is over");
    connections.state().looked -= LOOK_AGAIN;
    assert_eq!(ask(&nothing).await, second);
    let third = issue("third");
    connections.refused(&nothing);
    assert_eq!(ask(&nothing).await, third, "at once, if the server refuses the last one");
    files.write("key", "half a k");
    connections.refused(&nothing);
    assert_eq!(ask(&nothing).await, third, "what cannot be read changes nothing");

    let (certificate, key) = authority.issue("plugin", "plugin", &[]);
    let identity = Some(Identity { certificate: certificate.clone().into(), key: key.into() });
    let given = Credential { identity, ..Credential::default() };
    assert_eq!(ask(&given).await, digest_of_pem(&certificate), "what a plugin gives goes before files");
}

#[tokio::test]
async fn a_proxy_is_asked_to_connect_us() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let proxy = listener.local_addr().unwrap();
    let asked = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut buffer = vec![0; 4096];
        let read = stream.read(&mut buffer).await.unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
        let asked = String::from_utf8_lossy(&buffer[..read]).into_owned();
        let _ = stream.read(&mut buffer).await.unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").await.unwrap();
        asked
    });
    let cluster = format!("{{server: 'http://far.example.com:8080', proxy-url: 'http://me:pw@{proxy}'}}");
    let world = Files::new().open(&cluster, "{}").await.unwrap();
    assert_eq!(answer(&world).await.unwrap(), (200, "{}".to_owned()));
    let asked = asked.await.unwrap();
    assert!(asked.starts_with("CONNECT far.example.com:8080 HTTP/1.1\r\n"), "{asked}");
    // base64 of "me:pw"
    assert!(asked.contains("Basic bWU6cHc="), "{asked}");
}

#[tokio::test]
async fn a_plugin_in_a_kubeconfig_signs_requests() {
    let files = Files::new();
    let script = "#!/bin/sh\necho '{apiVersion: client.authentication.k8s.io/v1beta1, kind: ExecCredential, status: {token: abc}}'\n";
    files.write("plugin", script);
    make_executable(&files.path("plugin"));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = listener.local_addr().unwrap();
    let asked = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut buffer = vec![0; 4096];
        let read = stream.read(&mut buffer).await.unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").await.unwrap();
        String::from_utf8_lossy(&buffer[..read]).into_owned()
    });
    let user = "{as: bob, exec: {apiVersion: client.authentication.k8s.io/v1beta1, command: ./plugin, interactiveMode: Never}}";
    let world = files.open(&format!("{{server: 'http://{server}'}}"), user).await.unwrap();
    assert_eq!(answer(&world).await.unwrap().0, 200);
    let asked = asked.await.unwrap();
    assert!(
        asked.contains("authorization: Bearer abc\r\n") && asked.contains("impersonate-user: bob\r\n"),
        "{asked}"
    );

    files.write("plugin", "#!/bin/sh\necho 'log in first' >&2\nexit 1\n");
    let Err(error) = files.open("{server: 'http://a'}", user).await else { panic!() };
    assert!(
        error.starts_with("the credentials for http://a cannot be used: the credential plugin"),
        "{error}"
    );
    assert!(error.contains("log in first\nhint: look at the kubeconfig's"), "{error}");
}

fn make_executable(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}
