//! What keeps a request from its answer, in words that help.

use std::{error::Error, io};

use hyper_util::client::legacy as client;

use crate::world::Unanswered;

/// Whether a request has left, as far as its error tells.
pub(super) fn unanswered(error: &client::Error, server: &str) -> Unanswered {
    let why = told(error, server);
    if error.is_connect() { Unanswered::NotSent(why) } else { Unanswered::OutcomeUnknown(why) }
}

/// An error in a user's words.
pub(super) fn told(error: &(dyn Error + 'static), server: &str) -> String {
    let io = causes(error).find_map(|cause| cause.downcast_ref::<io::Error>());
    match io.map(io::Error::kind) {
        Some(io::ErrorKind::ConnectionRefused) => format!("connection refused by {server}"),
        Some(io::ErrorKind::TimedOut) => format!("{server} cannot be reached (timed out)"),
        Some(io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable) => {
            format!("there is no way to {server} (network unreachable)")
        }
        Some(io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe | io::ErrorKind::UnexpectedEof) => {
            format!("{server} hung up")
        }
        _ => format!("{server}: {}", chain(error)),
    }
}

/// An error and its causes, each said once.
pub(super) fn chain(error: &(dyn Error + 'static)) -> String {
    let mut told = String::new();
    for cause in causes(error) {
        let said = cause.to_string();
        if !told.ends_with(&said) {
            told.push_str(if told.is_empty() { "" } else { ": " });
            told.push_str(&said);
        }
    }
    told
}

fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| error.source())
}
