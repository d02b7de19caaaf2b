//! Whatever a caller sends, nobody sees what the API server did not allow, every connection ends, and health is answered.
//!
//! HTTP/1.1 is sent as it stands. After a line `h2`, the parts between empty lines are requests (`GET /path`, then headers),
//! sent as frames of HTTP/2; a part that begins with a zero byte is sent as it is.
#![no_main]

use std::{
    cell::LazyCell,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use libfuzzer_sys::fuzz_target;
use serde_json::json;
use supercargo_model::Timestamp;
use supercargo_server::{
    AccessControl, AccessDecision, AccessOptions, AccessRequest, BoxFuture, Clock, Configz, ConnectionLimits,
    Flags, Health, HealthCheck, Protected, Query, QueryAnswer, ReviewError, Reviewer, Routes, Statusz,
    UserInfo, fuzzing,
    metrics::{BuildInfo, Metrics, PodResources},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, duplex},
    runtime::{Builder, Runtime},
    time::timeout,
};

/// What only those may see whom the API server allows it.
const SECRET: &str = "for-your-eyes-only";
/// Longer than any connection may take.
const LONGEST: Duration = Duration::from_secs(2 * 3600);
/// What is on its way at once.
const PIPE_BYTES: usize = 64 * 1024;
const HTTP2: &[u8] = b"h2\n";
const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const SETTINGS_FRAME: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];

thread_local! {
    /// Time passes in it whenever everybody waits.
    static RUNTIME: LazyCell<Runtime> = LazyCell::new(|| {
        Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime")
    });
}

fuzz_target!(|bytes: &[u8]| {
    // Whoever writes it knows it, and may be quoted: methods in lower case, as the verbs of reviews are.
    if tells_secret(bytes) || tells_secret(&bytes.to_ascii_lowercase()) {
        return;
    }
    let reviewer = Arc::new(KnowsOne::default());
    let routes = routes(&reviewer);
    RUNTIME.with(|runtime| {
        let (answer, http2) = match bytes.strip_prefix(HTTP2) {
            Some(parts) => (runtime.block_on(send(&routes, frames(parts), true)), true),
            None => (runtime.block_on(send(&routes, bytes.to_vec(), false)), false),
        };
        check(&answer, http2, &reviewer);
        let health =
            runtime.block_on(send(&routes, b"GET /livez HTTP/1.1\r\nhost: a\r\n\r\n".to_vec(), false));
        let health = String::from_utf8_lossy(&health).into_owned();
        assert!(health.starts_with("HTTP/1.1 200 ") && health.ends_with("\r\n\r\nok"), "{health}");
    });
});

fn tells_secret(bytes: &[u8]) -> bool {
    bytes.windows(SECRET.len()).any(|part| part == SECRET.as_bytes())
}

fn check(answer: &[u8], http2: bool, reviewer: &KnowsOne) {
    let allowed = reviewer.allowed.load(Ordering::Relaxed);
    assert!(!tells_secret(answer) || allowed, "{}", String::from_utf8_lossy(answer));
    if http2 || answer.is_empty() {
        return;
    }
    let text = String::from_utf8_lossy(answer);
    let status = text.strip_prefix("HTTP/1.").and_then(|rest| rest.get(2..5)?.parse::<u16>().ok());
    let status = status.unwrap_or_else(|| panic!("an answer has a status: {text}"));
    // Our own mistakes would be 500; so is a look-up that failed.
    assert!(status != 500 || reviewer.failed.load(Ordering::Relaxed), "{text}");
}

/// Sends bytes over a connection, in two pieces, and reads all that comes back until the server closes it: this side never
/// does.
async fn send(routes: &Protected, bytes: Vec<u8>, http2: bool) -> Vec<u8> {
    let (client, server) = duplex(PIPE_BYTES);
    let (mut reader, mut writer) = tokio::io::split(client);
    let limits = ConnectionLimits::default();
    let exchange = async {
        let serve = fuzzing::serve(routes, &limits, server, http2);
        let write = async {
            let (first, second) = bytes.split_at(bytes.len() / 2);
            // A server that has heard enough closes the connection.
            let _ = writer.write_all(first).await;
            tokio::task::yield_now().await;
            let _ = writer.write_all(second).await;
        };
        let mut answer = Vec::new();
        let read = reader.read_to_end(&mut answer);
        let _ = tokio::join!(serve, write, read);
        answer
    };
    timeout(LONGEST, exchange).await.expect("a connection ends")
}

/// Frames of HTTP/2.
fn frames(parts: &[u8]) -> Vec<u8> {
    let mut frames = [HTTP2_PREFACE, SETTINGS_FRAME].concat();
    let mut stream = 1u32;
    for part in String::from_utf8_lossy(parts).split("\n\n") {
        if let Some(raw) = part.strip_prefix('\0') {
            frames.extend_from_slice(raw.as_bytes());
            continue;
        }
        let block = header_block(part);
        let length = u32::try_from(block.len()).expect("inputs are short");
        frames.extend_from_slice(&length.to_be_bytes()[1..]);
        // HEADERS, with END_HEADERS and END_STREAM.
        frames.extend_from_slice(&[1, 0x4 | 0x1]);
        frames.extend_from_slice(&stream.to_be_bytes());
        frames.extend_from_slice(&block);
        stream += 2;
    }
    frames
}

/// Headers as HPACK's literals, which need no table and no Huffman code.
fn header_block(request: &str) -> Vec<u8> {
    let mut lines = request.lines();
    let (method, path) = lines.next().and_then(|line| line.split_once(' ')).unwrap_or(("GET", "/livez"));
    let pseudo = [(":method", method), (":path", path), (":scheme", "https"), (":authority", "a")];
    let headers = lines.filter_map(|line| line.split_once(": "));
    let mut block = Vec::new();
    for (name, value) in pseudo.into_iter().chain(headers) {
        block.push(0);
        for text in [name, value] {
            put_length(text.len(), &mut block);
            block.extend_from_slice(text.as_bytes());
        }
    }
    block
}

/// A number with a prefix of seven bits.
fn put_length(length: usize, block: &mut Vec<u8>) {
    let Some(mut rest) = length.checked_sub(127) else { return block.push(length as u8) };
    block.push(127);
    while rest >= 128 {
        block.push((rest % 128) as u8 | 128);
        rest /= 128;
    }
    block.push(rest as u8);
}

fn routes(reviewer: &Arc<KnowsOne>) -> Protected {
    let metrics = Arc::new(Metrics::new(&BuildInfo::new("1.0", SECRET), Clock::system()));
    let configz = Configz::default();
    configz.set("configuration", json!({"secret": SECRET}));
    let readyz = vec![HealthCheck::ping(), HealthCheck::new("sees", || Ok(()))];
    let status = Statusz {
        started: Timestamp::UNIX_EPOCH,
        binary_version: SECRET.to_owned(),
        emulation_version: "1.36".to_owned(),
        paths: vec!["/configz"],
    };
    let pods = || {
        vec![PodResources {
            namespace: SECRET.to_owned(),
            requests: vec![("cpu".to_owned(), 1.0)],
            ..PodResources::default()
        }]
    };
    let answer = |query: Query| -> BoxFuture<'static, QueryAnswer> {
        let names: Vec<String> = query.all("pod").map(str::to_owned).collect();
        let json = json!({"secret": SECRET, "pods": names}).to_string();
        Box::pin(std::future::ready(QueryAnswer::Json(json.into())))
    };
    Routes::new(Health { readyz, ..Health::default() }, metrics, configz)
        .pod_resources(Arc::new(pods))
        .flagz(Flags::from([("secret".to_owned(), SECRET.to_owned())]))
        .statusz(status)
        .profiling()
        .answers("/supercargo/v1/explain", Arc::new(answer))
        .protected(AccessControl::new(reviewer.clone(), AccessOptions::default(), Clock::system()))
}

/// Knows the token `good`, whose owner may get everything; of `fails` and `hangs` it learns nothing.
#[derive(Default)]
struct KnowsOne {
    allowed: AtomicBool,
    failed: AtomicBool,
}

impl Reviewer for KnowsOne {
    fn review_token<'a>(&'a self, token: &'a str) -> BoxFuture<'a, Result<Option<UserInfo>, ReviewError>> {
        let user = |name: &str| Ok(Some(UserInfo { name: name.to_owned(), ..UserInfo::default() }));
        Box::pin(async move {
            match token {
                "good" | "unlucky" => user(token),
                "fails" => Err(ReviewError::new("connection refused")),
                "hangs" => std::future::pending().await,
                _ => Ok(None),
            }
        })
    }

    fn review_access<'a>(
        &'a self,
        request: &'a AccessRequest,
    ) -> BoxFuture<'a, Result<AccessDecision, ReviewError>> {
        Box::pin(async move {
            if request.user.name == "unlucky" {
                self.failed.store(true, Ordering::Relaxed);
                return Err(ReviewError::new("connection refused"));
            }
            let allowed = request.user.name == "good" && request.verb == "get";
            self.allowed.fetch_or(allowed, Ordering::Relaxed);
            Ok(AccessDecision { allowed, reason: String::new() })
        })
    }
}
