//! Extenders: web services that take part in scheduling, by kube-scheduler's protocol (`k8s.io/kube-scheduler/extender/v1`).
//!
//! [`Extenders`] carries the cycle's questions to them and brings their answers back. It knows no clock but the one that
//! it is handed, and no network but its [`Transport`], so that all of it runs on virtual time in tests.
//!
//! Invariants:
//!
//! - An extender has one question at a time; whoever comes while it is busy waits, and holds up nobody else.
//! - What cannot be true (nodes that were not asked about, no JSON, too many bytes) never reaches a decision: it becomes a
//!   [`ExtenderFailure`](supercargo_engine::extender_calls::ExtenderFailure) that names the extender, or is passed over where kube-scheduler does
//!   that ([`Strictness`]).
//! - However long an answer is, and whatever its pieces: what is kept of it is bounded, and texts of it that are told are cut.
//! - The JSON of an object is prepared once for each of its versions, and only referred to from then on.

mod answer;
pub mod body;
mod breaker;
mod call;
mod client;
mod extenders;
mod originals;
mod repeats;
mod request;
#[cfg(feature = "testing")]
pub mod testing;
pub mod tls;

pub use answer::{Anomaly, Strictness};
pub use breaker::{FAILURES_IN_A_ROW, REST};
pub use call::{ANSWER_ALLOWANCE_BYTES, Call};
pub use client::{Http, Reply, Transport, TransportError};
pub use extenders::{BindError, CallVerb, Clock, Extender, Extenders, How, NoWatcher, Watcher};
pub use originals::{Originals, WantedOriginals, prepared};
pub use tls::{TrustsAnybody, Unusable};
