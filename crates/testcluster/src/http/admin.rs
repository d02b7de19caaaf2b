//! `/testcluster/…`: faults, actions and the referee's record, for tests in other processes.
//!
//! - `GET`, `PUT`, `DELETE /testcluster/faults`: the [`FaultPlan`].
//! - `POST /testcluster/actions`: an [`ServerAction`].
//! - `GET /testcluster/bindings`, `/testcluster/violations`, `/testcluster/requests`: what has happened.

use hyper::{Method, StatusCode};
use serde_json::{Value, json};

use super::Server;
use super::asked::Asked;
use super::reply::{Reply, json_reply, refusal};
use crate::failure::StatusError;
use crate::faults::{FaultPlan, ServerAction};

pub(super) fn answer(server: &Server, asked: &Asked) -> Option<Reply> {
    let rest = asked.path.strip_prefix("/testcluster/")?;
    let answered = match (&asked.method, rest) {
        (&Method::GET, "faults") => Ok(json!(server.faults.plan())),
        (&Method::PUT, "faults") => decoded::<FaultPlan>(asked).map(|plan| {
            server.faults.set_plan(plan);
            json!(server.faults.plan())
        }),
        (&Method::DELETE, "faults") => {
            server.faults.set_plan(FaultPlan::default());
            Ok(json!(server.faults.plan()))
        }
        (&Method::POST, "actions") => decoded::<ServerAction>(asked).map(|action| {
            server.faults.act(action);
            json!(action)
        }),
        (&Method::GET, "bindings") => Ok(bindings(server)),
        (&Method::GET, "violations") => Ok(violations(server)),
        (&Method::GET, "requests") => Ok(requests(server)),
        (_, "faults" | "actions" | "bindings" | "violations" | "requests") => {
            Err(StatusError::method_not_allowed())
        }
        _ => Err(StatusError::no_such_path()),
    };
    Some(match answered {
        Ok(value) => json_reply(StatusCode::OK, &value),
        Err(failure) => refusal(&failure),
    })
}

fn decoded<T: serde::de::DeserializeOwned>(asked: &Asked) -> Result<T, StatusError> {
    serde_json::from_slice(&asked.body).map_err(|error| StatusError::bad_request(error.to_string()))
}

fn bindings(server: &Server) -> Value {
    let store = server.api.store();
    let list = store.referee.bindings().iter().map(|binding| {
        json!({
            "order": binding.order,
            "namespace": binding.namespace,
            "name": binding.name,
            "uid": binding.uid,
            "node": binding.node,
            "by": binding.by,
        })
    });
    list.collect()
}

fn violations(server: &Server) -> Value {
    server.api.store().referee.violations().iter().map(|violation| json!(format!("{violation:?}"))).collect()
}

fn requests(server: &Server) -> Value {
    let counts = server.requests.all().into_iter().map(|(group, count)| {
        json!({"verb": group.verb, "resource": group.resource, "userAgent": group.user_agent, "count": count})
    });
    counts.collect()
}
