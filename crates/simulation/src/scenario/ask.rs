//! Asks the test cluster's API server in the same process, as its administrator.

use bytes::Bytes;
use http::header;
use http_body_util::BodyExt;
use serde_json::Value;
use supercargo_testcluster::ApiServer;

/// What stands for an answer that never came.
pub(super) const NO_ANSWER: u16 = 503;

/// Sends a request; the status and the answer. Null is no body.
pub fn ask(
    server: &ApiServer,
    method: &str,
    path: &str,
    content_type: &str,
    body: Value,
) -> impl Future<Output = (u16, Value)> + Send + use<> {
    let body = if body.is_null() { Bytes::new() } else { body.to_string().into() };
    let request = http::Request::builder()
        .method(method)
        .uri(path)
        .header(header::ACCEPT, "application/json")
        .header(header::CONTENT_TYPE, content_type)
        .body(body);
    let server = server.clone();
    async move {
        let Ok(request) = request else { return (400, Value::Null) };
        let Ok(answer) = server.answer(request).await else { return (NO_ANSWER, Value::Null) };
        let status = answer.status().as_u16();
        match answer.into_body().collect().await {
            Ok(body) => (status, serde_json::from_slice(&body.to_bytes()).unwrap_or_default()),
            Err(_) => (NO_ANSWER, Value::Null),
        }
    }
}
