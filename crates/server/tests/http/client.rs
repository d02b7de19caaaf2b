//! A caller that writes its requests by hand, so that nothing about them is hidden.

use std::net::SocketAddr;

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::TcpStream,
};

/// An answer, taken apart.
#[derive(Debug)]
pub(crate) struct HttpAnswer {
    pub(crate) code: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl HttpAnswer {
    /// A header's value; empty if there is none.
    pub(crate) fn header(&self, name: &str) -> &str {
        let line = self
            .head
            .lines()
            .find(|line| line.split_once(':').is_some_and(|(other, _)| other.eq_ignore_ascii_case(name)));
        line.and_then(|line| line.split_once(": ")).map_or("", |(_, value)| value)
    }

    /// The reason in a Kubernetes `Status`.
    pub(crate) fn status(&self) -> (u16, String, String) {
        assert_eq!(self.header("content-type"), "application/json");
        let status: serde_json::Value = serde_json::from_str(&self.body).expect("a Status");
        assert_eq!(
            (status["kind"].as_str(), status["code"].as_u64()),
            (Some("Status"), Some(self.code.into()))
        );
        let text = |field: &str| status[field].as_str().expect(field).to_owned();
        (self.code, text("reason"), text("message"))
    }
}

/// `GET path` with these header lines.
pub(crate) async fn get(address: SocketAddr, path: &str, headers: &[&str]) -> HttpAnswer {
    let stream = TcpStream::connect(address).await.expect("it listens");
    get_over(stream, path, headers).await
}

/// The same, over a connection that is there already.
pub(crate) async fn get_over(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    path: &str,
    headers: &[&str],
) -> HttpAnswer {
    let headers: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
    send(stream, &format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}\r\n"))
        .await
}

/// Sends a text and reads to the end.
pub(crate) async fn send(mut stream: impl AsyncRead + AsyncWrite + Unpin, request: &str) -> HttpAnswer {
    stream.write_all(request.as_bytes()).await.expect("sent");
    read(stream).await
}

/// Reads an answer to the end of the connection.
pub(crate) async fn read(mut stream: impl AsyncRead + Unpin) -> HttpAnswer {
    let mut bytes = Vec::new();
    // A server that refuses a request may reset the connection after its answer.
    let _ = stream.read_to_end(&mut bytes).await;
    let text = String::from_utf8(bytes).expect("text");
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let code = head.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
    let body = if head.to_ascii_lowercase().contains("transfer-encoding: chunked") {
        chunks(body)
    } else {
        body.to_owned()
    };
    HttpAnswer { code, head: head.to_owned(), body }
}

fn chunks(mut rest: &str) -> String {
    let mut body = String::new();
    while let Some((size, after)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).expect("a chunk's size");
        body.push_str(&after[..size]);
        rest = &after[(size + 2).min(after.len())..];
    }
    body
}
