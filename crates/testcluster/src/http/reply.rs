//! Answers: objects, successes, refusals.

use bytes::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use hyper::{Response, StatusCode};
use serde_json::{Value, json};

use super::body::ResponseBody;
use crate::failure::StatusError;
use crate::object;
use crate::resource::Resource;

pub(super) const JSON: &str = "application/json";

pub(super) type Reply = Response<ResponseBody>;

pub(super) fn success(code: StatusCode, about: Option<(&Resource, &Value)>) -> Reply {
    let mut status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"});
    match about {
        Some((resource, value)) => {
            let mut details =
                json!({"name": object::name(value), "kind": resource.plural, "uid": object::uid(value)});
            if !resource.group.is_empty() {
                details["group"] = resource.group.into();
            }
            status["details"] = details;
        }
        None => status["code"] = code.as_u16().into(),
    }
    json_reply(code, &status)
}

pub(super) fn refusal(failure: &StatusError) -> Reply {
    let code = StatusCode::from_u16(failure.code()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut reply = json_reply(code, &failure.status());
    if let Some(seconds) = failure.retry_after_seconds() {
        reply.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    reply
}

pub(super) fn json_reply(code: StatusCode, value: &Value) -> Reply {
    reply(code, value.to_string())
}

pub(super) fn reply(code: StatusCode, text: impl Into<Bytes>) -> Reply {
    raw(code, JSON, ResponseBody::whole(text))
}

pub(super) fn raw(code: StatusCode, content_type: &'static str, body: ResponseBody) -> Reply {
    let mut reply = Response::new(body);
    *reply.status_mut() = code;
    reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    reply
}
