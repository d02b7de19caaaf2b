//! Certificates: made, given, exchanged, and the callers' own.

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper_util::rt::{TokioExecutor, TokioIo};
use supercargo_extender::{TrustsAnybody, testing::CertificateAuthority};
use supercargo_server::{
    Certificate, CipherSuites, ConnectionLimits, ConnectionSecurity, NamedCertificate, Port, Server,
    ServerOptions, TlsOptions, TlsVersion,
};
use tokio::{io::AsyncReadExt, net::TcpStream, time::timeout};
use tokio_rustls::{
    TlsConnector,
    client::TlsStream,
    rustls::{
        self, ClientConfig, RootCertStore,
        crypto::ring,
        pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject},
        version::{TLS12, TLS13},
    },
};

use crate::{
    client::{get_over, read},
    setup::Setup,
};

const SOON: Duration = Duration::from_secs(5);

fn builder() -> rustls::ConfigBuilder<ClientConfig, rustls::WantsVerifier> {
    let versions = [&TLS12, &TLS13];
    ClientConfig::builder_with_provider(ring::default_provider().into())
        .with_protocol_versions(&versions)
        .unwrap()
}

fn curious() -> ClientConfig {
    builder()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(TrustsAnybody(ring::default_provider().into())))
        .with_no_client_auth()
}

fn speaking(protocol: &[u8]) -> ClientConfig {
    let mut config = curious();
    config.alpn_protocols = vec![protocol.to_vec()];
    config
}

async fn connect(address: SocketAddr, config: ClientConfig) -> std::io::Result<TlsStream<TcpStream>> {
    connect_to("localhost", address, config).await
}

async fn connect_to(
    name: &'static str,
    address: SocketAddr,
    config: ClientConfig,
) -> std::io::Result<TlsStream<TcpStream>> {
    let stream = TcpStream::connect(address).await?;
    TlsConnector::from(Arc::new(config)).connect(ServerName::try_from(name).unwrap(), stream).await
}

async fn shown(address: SocketAddr) -> CertificateDer<'static> {
    shown_to("localhost", address).await
}

async fn shown_to(name: &'static str, address: SocketAddr) -> CertificateDer<'static> {
    let stream = connect_to(name, address, curious()).await.expect("a handshake");
    stream.get_ref().1.peer_certificates().expect("certificates")[0].clone().into_owned()
}

/// A directory that goes away with the test.
struct Directory(PathBuf);

impl Directory {
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("supercargo-server-{test}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn tls(options: TlsOptions) -> Setup {
    Setup { security: ConnectionSecurity::Tls(options), ..Setup::default() }
}

fn given(directory: &Directory, (certificate, key): &(String, String)) -> Certificate {
    Certificate::Files {
        certificate: directory.write("tls.crt", certificate),
        key: directory.write("tls.key", key),
    }
}

async fn fails_to_start(options: TlsOptions) -> String {
    let security = ConnectionSecurity::Tls(options);
    let address = std::net::Ipv4Addr::LOCALHOST.into();
    let (port, limits) = (Port::Ephemeral, ConnectionLimits::default());
    let options = ServerOptions { address, port, security, share_port: false, limits };
    Server::bind(options).await.err().expect("an error").to_string()
}

#[tokio::test]
async fn without_files_a_certificate_is_made() {
    let server = tls(TlsOptions::default()).start().await;
    let mut roots = RootCertStore::empty();
    roots.add(shown(server.address).await).unwrap();
    // It is believed by whoever has been given it, and holds for `localhost`.
    let config = builder().with_root_certificates(roots).with_no_client_auth();
    let stream = connect(server.address, config).await.expect("a handshake");
    assert_eq!(get_over(stream, "/healthz", &[]).await.body, "ok");
}

#[tokio::test]
async fn a_made_certificate_can_be_kept() {
    let directory = Directory::new("kept");
    let options = TlsOptions {
        certificate: Certificate::SelfSigned { directory: Some(directory.0.join("certs")) },
        ..TlsOptions::default()
    };
    let first = shown(tls(options.clone()).start().await.address).await;
    assert_eq!(shown(tls(options).start().await.address).await, first);
    assert_private(&directory.0.join("certs/kube-scheduler.key"));
}

#[cfg(unix)]
fn assert_private(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
}

#[cfg(not(unix))]
fn assert_private(_: &Path) {}

#[tokio::test]
async fn given_certificates_are_shown_and_followed() {
    let (directory, authority) = (Directory::new("followed"), CertificateAuthority::default());
    let options = TlsOptions {
        certificate: given(&directory, &authority.issue("one", "localhost", &[])),
        reload_every: Duration::from_millis(10),
        ..TlsOptions::default()
    };
    let server = tls(options).start().await;
    let config = builder().with_root_certificates(authority.roots()).with_no_client_auth();
    let stream = connect(server.address, config).await.expect("a handshake");
    assert_eq!(get_over(stream, "/healthz", &[]).await.body, "ok");

    let before = shown(server.address).await;
    directory.write("tls.crt", "not a certificate");
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(shown(server.address).await, before, "what cannot be used changes nothing");

    let (certificate, key) = authority.issue("two", "localhost", &[]);
    directory.write("tls.crt", &certificate);
    directory.write("tls.key", &key);
    let wanted = CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap();
    timeout(SOON, async { while shown(server.address).await != wanted {} })
        .await
        .expect("the new one is shown");
}

#[tokio::test]
async fn files_that_do_not_serve_are_told_at_the_start() {
    let (directory, authority) = (Directory::new("unusable"), CertificateAuthority::default());
    let (one, other) = (authority.issue("one", "localhost", &[]), authority.issue("other", "localhost", &[]));
    let with = |pair| TlsOptions { certificate: given(&directory, &pair), ..TlsOptions::default() };
    let error = fails_to_start(with((one.0.clone(), other.1))).await;
    assert!(error.contains("tls.crt: ") && error.contains("hint: "), "{error}");
    let error = fails_to_start(with((String::new(), one.1.clone()))).await;
    assert!(error.contains("tls.crt: there is no certificate in it"), "{error}");
    let error = fails_to_start(with((one.0, "x".into()))).await;
    assert!(error.contains("tls.key: "), "{error}");

    let nowhere = Some(directory.0.join("ca.crt"));
    let error = fails_to_start(TlsOptions { client_ca_file: nowhere, ..TlsOptions::default() }).await;
    assert!(error.contains("ca.crt: ") && error.contains("hint: "), "{error}");
}

#[tokio::test]
async fn http2_is_spoken_with_those_who_ask_for_it() {
    let server = tls(TlsOptions::default()).start().await;
    let stream = connect(server.address, speaking(b"h2")).await.expect("a handshake");
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let get = |path: &str| {
        let uri = format!("https://localhost{path}");
        hyper::Request::get(uri).body(Empty::<Bytes>::new()).unwrap()
    };
    let answer = sender.send_request(get("/healthz")).await.unwrap();
    assert_eq!(answer.into_body().collect().await.unwrap().to_bytes(), "ok");
    assert_eq!(sender.send_request(get("/metrics")).await.unwrap().status(), 403);

    let mut large = get("/healthz");
    large.headers_mut().insert("x-large", "a".repeat(64 * 1024).parse().unwrap());
    match sender.send_request(large).await {
        Ok(answer) => assert_eq!(answer.status(), 431),
        Err(error) => assert!(!error.is_timeout(), "{error}"),
    }

    let config = speaking(b"http/1.1");
    let stream = connect(server.address, config).await.expect("a handshake");
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));
    assert_eq!(get_over(stream, "/healthz", &[]).await.code, 200);
}

#[tokio::test]
async fn an_http2_connection_without_requests_is_shown_the_door() {
    let limits =
        ConnectionLimits { header_timeout: Duration::from_millis(50), ..ConnectionLimits::default() };
    let server = Setup { limits, ..tls(TlsOptions::default()) }.start().await;
    let config = speaking(b"h2");
    let mut stream = connect(server.address, config).await.expect("a handshake");
    let mut rest = Vec::new();
    let _ = timeout(SOON, stream.read_to_end(&mut rest)).await.expect("closed");
}

#[tokio::test]
async fn a_handshake_that_takes_too_long_is_ended() {
    let limits =
        ConnectionLimits { handshake_timeout: Duration::from_millis(50), ..ConnectionLimits::default() };
    let server = Setup { limits, ..tls(TlsOptions::default()) }.start().await;
    let silent = TcpStream::connect(server.address).await.unwrap();
    timeout(SOON, read(silent)).await.expect("closed");
}

#[tokio::test]
async fn old_versions_are_not_spoken() {
    let old = || {
        let builder = ClientConfig::builder_with_provider(ring::default_provider().into());
        let builder = builder.with_protocol_versions(&[&TLS12]).unwrap();
        builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(TrustsAnybody(ring::default_provider().into())))
            .with_no_client_auth()
    };
    let server = tls(TlsOptions::default()).start().await;
    assert!(connect(server.address, old()).await.is_ok(), "1.2 is, unless told otherwise");
    let newer = TlsOptions { min_version: TlsVersion::V13, ..TlsOptions::default() };
    let server = tls(newer).start().await;
    assert!(connect(server.address, old()).await.is_err());
}

#[tokio::test]
async fn a_client_certificate_says_who_calls() {
    let (directory, authority) = (Directory::new("clients"), CertificateAuthority::default());
    let ca = directory.write("ca.crt", &authority.pem());
    let server = tls(TlsOptions { client_ca_file: Some(ca), ..TlsOptions::default() }).start().await;
    let as_caller = |(certificate, key): (String, String)| {
        let chain = vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()];
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
        let builder = builder()
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(TrustsAnybody(ring::default_provider().into())));
        connect(server.address, builder.with_client_auth_cert(chain, key).unwrap())
    };

    let stream =
        as_caller(authority.issue("prometheus", "localhost", &["monitoring"])).await.expect("a handshake");
    assert_eq!(get_over(stream, "/whoami", &[]).await.body, "prometheus");
    let asked = server.reviewer.accesses_asked.lock().unwrap()[0].user.clone();
    assert_eq!(asked.groups, ["monitoring", "system:authenticated"]);

    let stream =
        as_caller(authority.issue("admin", "localhost", &["system:masters"])).await.expect("a handshake");
    assert_eq!(get_over(stream, "/whoami", &[]).await.body, "admin");

    let stream = as_caller(authority.issue("", "localhost", &["monitoring"])).await.expect("a handshake");
    assert_eq!(get_over(stream, "/whoami", &[]).await.code, 403, "without a name it speaks for nobody");

    let stream = connect(server.address, curious()).await.expect("a certificate is not demanded");
    assert_eq!(get_over(stream, "/healthz", &[]).await.body, "ok");

    // With TLS 1.3 the caller learns of the refusal only when it reads.
    let refused = match as_caller(CertificateAuthority::default().issue(
        "prometheus",
        "localhost",
        &["system:masters"],
    ))
    .await
    {
        Ok(stream) => get_over(stream, "/whoami", &[]).await.code == 0,
        Err(_) => true,
    };
    assert!(refused, "a stranger's certificate is not believed");
}

#[tokio::test]
async fn names_have_certificates_of_their_own() {
    let (directory, authority) = (Directory::new("names"), CertificateAuthority::default());
    let der =
        |(certificate, _): &(String, String)| CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap();
    let pairs = ["default", "pattern", "found"].map(|name| authority.issue(name, "localhost", &[]));
    let file = |name: &str, text: &str| directory.write(name, text);
    let named = |place: usize, names: &[&str]| NamedCertificate {
        certificate: file(&format!("{place}.crt"), &pairs[place].0),
        key: file(&format!("{place}.key"), &pairs[place].1),
        names: names.iter().map(|&name| name.to_owned()).collect(),
    };
    let options = TlsOptions {
        certificate: given(&directory, &pairs[0]),
        named_certificates: vec![named(1, &["*.example.com", "one.example.net"]), named(2, &[])],
        ..TlsOptions::default()
    };
    let address = tls(options).start().await.address;
    for (name, place) in [
        ("a.example.com", 1),
        ("a.b.example.com", 0),
        ("one.example.net", 1),
        ("two.example.net", 0),
        // The name that is in the certificate itself.
        ("localhost", 2),
    ] {
        assert!(shown_to(name, address).await == der(&pairs[place]), "{name}");
    }
}

#[tokio::test]
async fn offers_can_be_limited() {
    let suite = "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384".to_owned();
    let (cipher_suites, _) = CipherSuites::named(std::slice::from_ref(&suite)).unwrap();
    let options = TlsOptions { cipher_suites, http2: false, ..TlsOptions::default() };
    let server = tls(options).start().await;
    let mut config = ClientConfig::builder_with_provider(ring::default_provider().into())
        .with_protocol_versions(&[&TLS12])
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(TrustsAnybody(ring::default_provider().into())))
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let stream = connect(server.address, config).await.expect("a handshake");
    let session = stream.get_ref().1;
    assert_eq!(format!("{:?}", session.negotiated_cipher_suite().unwrap().suite()), suite);
    assert_eq!(session.alpn_protocol(), Some(&b"http/1.1"[..]));
}
