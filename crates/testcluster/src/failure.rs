//! What an API server answers when it refuses: a `Status` object with a code, a reason and details.

use std::error::Error;
use std::fmt;

use serde_json::{Map, Value, json};

use crate::resource::Resource;

/// A refusal, in the shape and the words of an API server.
#[derive(Clone, Debug, PartialEq)]
pub struct StatusError {
    code: u16,
    reason: &'static str,
    message: String,
    details: Map<String, Value>,
}

impl StatusError {
    fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self { code, reason, message: message.into(), details: Map::new() }
    }

    fn about(mut self, resource: &Resource, name: &str) -> Self {
        self.put_detail("name", name);
        self.put_detail("group", resource.group);
        self.put_detail("kind", resource.plural);
        self
    }

    fn put_detail(&mut self, key: &str, value: &str) {
        if !value.is_empty() {
            self.details.insert(key.to_owned(), value.into());
        }
    }

    /// The HTTP status code.
    pub fn code(&self) -> u16 {
        self.code
    }

    /// The reason in one word, such as `NotFound`.
    pub fn reason(&self) -> &'static str {
        self.reason
    }

    /// The sentence for people.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// After how many seconds the caller should try again, if it was told.
    pub fn retry_after_seconds(&self) -> Option<u64> {
        self.details.get("retryAfterSeconds").and_then(Value::as_u64)
    }

    /// The `Status` object.
    pub fn status(&self) -> Value {
        let mut status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "code": self.code,
        });
        if !self.reason.is_empty() {
            status["reason"] = self.reason.into();
        }
        if !self.details.is_empty() {
            status["details"] = Value::Object(self.details.clone());
        }
        status
    }

    pub(crate) fn not_found(resource: &Resource, name: &str) -> Self {
        let message = format!("{} {name:?} not found", resource.qualified());
        Self::new(404, "NotFound", message).about(resource, name)
    }

    pub(crate) fn no_such_path() -> Self {
        Self::new(404, "NotFound", "the server could not find the requested resource")
    }

    pub(crate) fn already_exists(resource: &Resource, name: &str) -> Self {
        let message = format!("{} {name:?} already exists", resource.qualified());
        Self::new(409, "AlreadyExists", message).about(resource, name)
    }

    pub(crate) fn conflict(resource: &Resource, name: &str, why: impl fmt::Display) -> Self {
        let message = format!("Operation cannot be fulfilled on {} {name:?}: {why}", resource.qualified());
        Self::new(409, "Conflict", message).about(resource, name)
    }

    pub(crate) fn modified_meanwhile(resource: &Resource, name: &str) -> Self {
        let why =
            "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(resource, name, why)
    }

    /// A binding that cannot be: the subresource is part of the resource's name there.
    pub(crate) fn binding_conflict(name: &str, why: impl fmt::Display) -> Self {
        let message = format!("Operation cannot be fulfilled on pods/binding {name:?}: {why}");
        let mut failure = Self::new(409, "Conflict", message);
        failure.put_detail("name", name);
        failure.put_detail("kind", "pods/binding");
        failure
    }

    /// What is wrong with a field: `field` is its path, `kind` the machine's word for the trouble.
    pub(crate) fn invalid(resource: &Resource, name: &str, cause: StatusCause<'_>) -> Self {
        let StatusCause { kind, field, trouble } = cause;
        let group = if resource.group.is_empty() { String::new() } else { format!(".{}", resource.group) };
        let message = format!("{}{group} {name:?} is invalid: {field}: {trouble}", resource.kind);
        let mut failure = Self::new(422, "Invalid", message);
        failure.put_detail("name", name);
        failure.put_detail("group", resource.group);
        failure.put_detail("kind", resource.kind);
        failure
            .details
            .insert("causes".to_owned(), json!([{"reason": kind, "message": trouble, "field": field}]));
        failure
    }

    pub(crate) fn expired(asked: u64, oldest: u64) -> Self {
        Self::new(410, "Expired", format!("too old resource version: {asked} ({oldest})"))
    }

    pub(crate) fn version_too_large(asked: u64, newest: u64) -> Self {
        let message = format!("Too large resource version: {asked}, current: {newest}");
        let mut failure = Self::new(504, "Timeout", format!("Timeout: {message}"));
        let cause = json!({"reason": "ResourceVersionTooLarge", "message": "Too large resource version"});
        failure.details.insert("causes".to_owned(), json!([cause]));
        failure.details.insert("retryAfterSeconds".to_owned(), 1.into());
        failure
    }

    pub(crate) fn continue_expired() -> Self {
        let message = "The provided continue parameter is too old to display a consistent list result. \
                       You must start a new list without the continue parameter.";
        Self::new(410, "Expired", message)
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    /// What only a container could answer.
    pub(crate) fn nothing_runs(pod: &str, subresource: &str) -> Self {
        let what = match subresource {
            "log" => "there are no logs",
            "portforward" => "no port is listened on",
            _ => "there is no process to talk to",
        };
        Self::bad_request(format!(
            "pod {pod:?}: {what}: in this test cluster nothing runs, pods only pretend to"
        ))
    }

    pub(crate) fn unauthorized() -> Self {
        Self::new(401, "Unauthorized", "Unauthorized")
    }

    pub(crate) fn forbidden(resource: &Resource, name: &str, why: impl fmt::Display) -> Self {
        let message = format!("{} {name:?} is forbidden: {why}", resource.qualified());
        Self::new(403, "Forbidden", message).about(resource, name)
    }

    pub(crate) fn foreign(message: String) -> Self {
        Self::new(403, "Forbidden", message)
    }

    pub(crate) fn method_not_allowed() -> Self {
        Self::new(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")
    }

    pub(crate) fn too_large(limit_bytes: usize) -> Self {
        let message = format!("Request entity is too large: limit is {limit_bytes}");
        Self::new(413, "RequestEntityTooLarge", message)
    }

    pub(crate) fn unsupported_media_type(given: &str) -> Self {
        let message = format!(
            "the body of the request was in an unknown format: {given:?} (hint: the test cluster reads JSON, YAML \
             and Kubernetes' protobuf)"
        );
        Self::new(415, "UnsupportedMediaType", message)
    }

    pub(crate) fn too_many_requests(message: impl Into<String>, retry_after_seconds: u64) -> Self {
        let mut failure = Self::new(429, "TooManyRequests", message);
        if retry_after_seconds > 0 {
            failure.details.insert("retryAfterSeconds".to_owned(), retry_after_seconds.into());
        }
        failure
    }

    pub(crate) fn disruption_budget(message: String) -> Self {
        let text = "Cannot evict pod as it would violate the pod's disruption budget.";
        let mut failure = Self::new(429, "TooManyRequests", text);
        failure
            .details
            .insert("causes".to_owned(), json!([{"reason": "DisruptionBudget", "message": message}]));
        failure
    }

    pub(crate) fn internal(message: impl Into<String>) -> Self {
        let message = message.into();
        let mut failure = Self::new(500, "InternalError", format!("Internal error occurred: {message}"));
        failure.details.insert("causes".to_owned(), json!([{"message": message}]));
        failure
    }

    pub(crate) fn stored_with_version() -> Self {
        let message = "resourceVersion should not be set on objects to be created";
        Self::new(500, "", message)
    }

    /// A refusal that a test has asked for.
    pub(crate) fn injected(code: u16, retry_after_seconds: u64) -> Self {
        match code {
            409 => Self::new(
                409,
                "Conflict",
                "Operation cannot be fulfilled: the object has been modified; please apply your changes \
                 to the latest version and try again (injected fault)",
            ),
            429 => Self::too_many_requests(
                "the server has received too many requests and has asked us to try again later (injected fault)",
                retry_after_seconds,
            ),
            503 => Self::new(
                503,
                "ServiceUnavailable",
                "the server is currently unable to handle the request (injected fault)",
            ),
            504 => Self::new(
                504,
                "Timeout",
                "Timeout: request did not complete within the allotted timeout (injected fault)",
            ),
            500 => Self::internal("injected fault"),
            _ => Self::new(code, "", "injected fault"),
        }
    }
}

/// One thing that is wrong with an object.
pub(crate) struct StatusCause<'a> {
    pub(crate) kind: &'static str,
    pub(crate) field: &'a str,
    pub(crate) trouble: String,
}

impl<'a> StatusCause<'a> {
    pub(crate) fn required(field: &'a str, hint: &str) -> Self {
        let trouble =
            if hint.is_empty() { "Required value".to_owned() } else { format!("Required value: {hint}") };
        Self { kind: "FieldValueRequired", field, trouble }
    }

    pub(crate) fn bad_value(field: &'a str, value: impl fmt::Debug, why: &str) -> Self {
        Self { kind: "FieldValueInvalid", field, trouble: format!("Invalid value: {value:?}: {why}") }
    }

    pub(crate) fn forbidden(field: &'a str, why: &str) -> Self {
        Self { kind: "FieldValueForbidden", field, trouble: format!("Forbidden: {why}") }
    }
}

impl fmt::Display for StatusError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({} {})", self.message, self.code, self.reason)
    }
}

impl Error for StatusError {}
