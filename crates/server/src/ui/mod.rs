//! The page that shows a scheduler in a browser: plain files that are part of the binary, and load nothing from elsewhere.
//!
//! The page reads `/supercargo/v1/…` and changes nothing. Its addresses are relative, so that it works behind
//! `kubectl proxy` as well.

use axum::{
    Router,
    extract::{Path, Request},
    http::{HeaderValue, StatusCode, header, uri::Authority},
    middleware::Next,
    response::{IntoResponse, Response},
    routing::get,
};

/// Where the page is.
pub const PAGE_PATH: &str = "/ui/";

/// What the page may do: run and show its own files, ask its own server. Texts never become markup or code.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
     img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
     require-trusted-types-for 'script'; trusted-types 'none'";

const HTML: &str = "text/html; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const PICTURE: &str = "image/svg+xml";

/// A file of the page: its name, its type, and itself.
type PageFile = (&'static str, &'static str, &'static str);

const INDEX: PageFile = ("", HTML, include_str!("index.html"));
const FILES: [PageFile; 13] = [
    ("icon.svg", PICTURE, include_str!("icon.svg")),
    ("style.css", STYLE, include_str!("style.css")),
    ("main.js", SCRIPT, include_str!("main.js")),
    ("api.js", SCRIPT, include_str!("api.js")),
    ("dom.js", SCRIPT, include_str!("dom.js")),
    ("words.js", SCRIPT, include_str!("words.js")),
    ("paint.js", SCRIPT, include_str!("paint.js")),
    ("rescore.js", SCRIPT, include_str!("rescore.js")),
    ("cluster.js", SCRIPT, include_str!("cluster.js")),
    ("queue.js", SCRIPT, include_str!("queue.js")),
    ("decision.js", SCRIPT, include_str!("decision.js")),
    ("now.js", SCRIPT, include_str!("now.js")),
    ("configuration.js", SCRIPT, include_str!("configuration.js")),
];

/// These routes, and the page.
pub(crate) fn with_page(router: Router) -> Router {
    router
        // Relative: whoever is between may have put something before the path.
        .route("/ui", get(async || (StatusCode::PERMANENT_REDIRECT, [(header::LOCATION, "ui/")])))
        .route(PAGE_PATH, get(async || served(&INDEX)))
        .route("/ui/{file}", get(file))
}

async fn file(Path(name): Path<String>) -> Response {
    match FILES.iter().find(|(known, ..)| *known == name) {
        Some(file) => served(file),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

fn served((_, content_type, text): &PageFile) -> Response {
    let headers = [
        (header::CONTENT_TYPE, *content_type),
        (header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_FRAME_OPTIONS, "DENY"),
    ];
    (headers, *text).into_response()
}

/// Lets only those requests pass that were made to this machine by its own name. Otherwise a web page could have its own
/// name point here, and read what is meant for whoever sits at this machine.
pub(crate) async fn only_by_local_name(request: Request, next: Next) -> Response {
    let host = request.headers().get(header::HOST).map(HeaderValue::to_str);
    let authority = match host {
        Some(Ok(host)) => host.parse::<Authority>().ok(),
        Some(Err(_)) => None,
        None => request.uri().authority().cloned(),
    };
    if authority.is_some_and(|authority| is_local(&authority)) {
        return next.run(request).await;
    }
    (StatusCode::FORBIDDEN, "ask by the name of this machine: localhost, 127.0.0.1 or [::1]\n")
        .into_response()
}

fn is_local(authority: &Authority) -> bool {
    let host = authority.host().trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever a script or the document refers to is there, and lies beside it.
    #[test]
    fn files_refer_to_each_other_and_to_nothing_else() {
        for (name, _, text) in FILES.iter().chain([&INDEX]) {
            for mark in ["from \"", "src=\"", "href=\"", "url(\""] {
                for (at, _) in text.match_indices(mark) {
                    let reference = text[at + mark.len()..].split('"').next().unwrap_or_default();
                    if reference.starts_with('#') {
                        continue;
                    }
                    let reference = reference.trim_start_matches("./");
                    assert!(FILES.iter().any(|(known, ..)| *known == reference), "{name}: {reference}");
                }
            }
            for forbidden in ["innerHTML", "outerHTML", "eval(", "document.write", "http://", "https://"] {
                let allowed = text.matches("http://www.w3.org/2000/svg").count();
                let found = text.matches(forbidden).count();
                assert!(found <= if forbidden == "http://" { allowed } else { 0 }, "{name}: {forbidden}");
            }
        }
    }

    #[test]
    fn only_names_of_this_machine_are_local() {
        for (host, expected) in [
            ("localhost:8002", true),
            ("127.0.0.1", true),
            ("127.0.0.7:1", true),
            ("[::1]:8002", true),
            ("localhost.evil.example", false),
            ("10.0.0.1:8002", false),
            ("evil.example:8002", false),
        ] {
            assert_eq!(is_local(&host.parse().unwrap()), expected, "{host}");
        }
    }
}
