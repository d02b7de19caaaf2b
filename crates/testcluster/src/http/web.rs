//! Web pages. A browser lets any page send requests to this machine, and a name that somebody else owns may stand for this
//! machine's address; so whoever sends something here has to know whom it talks to.

use std::net::IpAddr;

use hyper::header::{HOST, ORIGIN};
use hyper::{Request, Uri};

use crate::failure::StatusError;

/// Refuses what a page of elsewhere sends, or somebody who takes us for another host.
pub(super) fn check<B>(request: &Request<B>) -> Result<(), StatusError> {
    let header = |name| request.headers().get(name).map(|value| value.to_str().unwrap_or_default());
    let host = match request.uri().authority() {
        Some(authority) => Some(authority.as_str()),
        None => header(HOST),
    };
    if let Some(host) = host.filter(|host| !is_loopback(host)) {
        return Err(StatusError::foreign(format!("the host {host:?} is not this machine's loopback")));
    }
    match header(ORIGIN) {
        Some(origin) if host.is_none_or(|host| origin != format!("http://{host}")) => {
            Err(StatusError::foreign(format!("a page of {origin:?} may not send requests here")))
        }
        _ => Ok(()),
    }
}

/// Whether a host, perhaps with a port, is this machine and nobody else.
fn is_loopback(host: &str) -> bool {
    let uri = format!("http://{host}/").parse::<Uri>().ok();
    uri.as_ref().and_then(Uri::host).is_some_and(|name| {
        let address = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        name.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_and_origins() {
        let allowed = |host: Option<&str>, origin: Option<&str>| {
            let mut request = Request::builder().uri("/api");
            for (name, value) in [(HOST, host), (ORIGIN, origin)] {
                if let Some(value) = value {
                    request = request.header(name, value);
                }
            }
            check(&request.body(()).unwrap()).is_ok()
        };
        for host in ["127.0.0.1:8001", "localhost:8001", "LOCALHOST", "[::1]:80", "127.8.8.8"] {
            assert!(allowed(Some(host), None), "{host}");
            assert!(allowed(Some(host), Some(&format!("http://{host}"))), "{host}");
        }
        for host in
            ["evil.example", "evil.example:8001", "localhost.evil.example", "10.0.0.1", "", "127.0.0.1@x"]
        {
            assert!(!allowed(Some(host), None), "{host}");
        }
        for origin in
            ["http://evil.example", "null", "http://localhost:3000", "https://127.0.0.1:8001", "\u{e9}"]
        {
            assert!(!allowed(Some("127.0.0.1:8001"), Some(origin)), "{origin}");
        }
        assert!(allowed(None, None), "who is in the same process names nobody");
        assert!(!allowed(None, Some("http://evil.example")));
    }
}
