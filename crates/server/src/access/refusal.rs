//! Why a request is not served, as a Kubernetes `Status` that kubectl and client libraries understand.

use axum::{
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use serde_json::json;

use super::reviewer::AccessRequest;

/// Why a request is not served.
#[derive(Debug)]
pub(crate) enum RequestRefusal {
    /// Nobody knows who this is.
    Unauthorized,
    /// The caller may not.
    Forbidden { message: String },
    /// Whether the caller may could not be found out.
    Unknown { path: String },
    /// The body is larger than is read.
    TooLarge { limit_bytes: usize },
    /// Others keep all connections busy.
    TooManyConnections,
    /// The API server has been asked too often on the caller's behalf.
    TooManyReviews,
}

impl RequestRefusal {
    pub(super) fn forbidden(request: &AccessRequest, reason: &str) -> Self {
        let AccessRequest { user, verb, path } = request;
        let mut message = format!("forbidden: User {:?} cannot {verb} path {path:?}", user.name);
        if !reason.is_empty() {
            message = format!("{message}: {reason}");
        }
        Self::Forbidden { message }
    }

    fn parts(self) -> (StatusCode, &'static str, String) {
        match self {
            Self::Unauthorized => (StatusCode::UNAUTHORIZED, "Unauthorized", "Unauthorized".into()),
            Self::Forbidden { message } => (StatusCode::FORBIDDEN, "Forbidden", message),
            Self::Unknown { path } => {
                let message = format!("access to path {path:?} could not be looked up at the API server");
                (StatusCode::INTERNAL_SERVER_ERROR, "InternalError", message)
            }
            Self::TooLarge { limit_bytes } => {
                let message = format!("the request's body is larger than {limit_bytes} bytes");
                (StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge", message)
            }
            Self::TooManyConnections => {
                let message = "all connections are busy: only health is served, try again later";
                (StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", message.into())
            }
            Self::TooManyReviews => {
                let message =
                    "the API server was asked about too many tokens or paths of yours: try again later";
                (StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", message.into())
            }
        }
    }
}

impl IntoResponse for RequestRefusal {
    fn into_response(self) -> Response {
        let (code, reason, message) = self.parts();
        let status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": message,
            "reason": reason,
            "code": code.as_u16(),
        });
        (code, [(header::CONTENT_TYPE, "application/json")], status.to_string()).into_response()
    }
}
