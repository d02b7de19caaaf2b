//! A request, read to its end.

use std::io;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderName};
use hyper::{HeaderMap, Method, Request};
use serde_json::Value;
use supercargo_manifest::{Source, read};

use super::query::Query;
use super::view::View;
use crate::failure::StatusError;
use crate::resource::Resource;
use crate::schema::{is_protobuf, read_protobuf};

/// As much as an API server reads.
const BODY_BYTES_LIMIT: usize = 3 * 1024 * 1024;
/// How much is heard out before the connection is closed.
const PATIENCE_BYTES: usize = 64 * 1024 * 1024;
/// What came in, read to its end.
pub(super) struct Asked {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) query: Query,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl Asked {
    /// Reads a request to its end; an error is a connection that broke.
    pub(super) async fn read(request: Request<Incoming>) -> io::Result<Result<Self, StatusError>> {
        let (parts, body) = request.into_parts();
        let body = read_body(body).await?;
        Ok(body.map(|body| Self::whole(Request::from_parts(parts, body))))
    }

    /// A request whose body is there already.
    pub(super) fn whole(request: Request<Bytes>) -> Self {
        let (parts, body) = request.into_parts();
        Self {
            method: parts.method,
            path: parts.uri.path().to_owned(),
            query: Query::read(parts.uri.query()),
            headers: parts.headers,
            body,
        }
    }

    /// How the caller wants to see objects.
    pub(super) fn view(&self, resource: &'static Resource) -> View {
        View::new(resource, self.header(ACCEPT), self.query.text("includeObject") == "Object")
    }

    pub(super) fn header(&self, name: HeaderName) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// The body as a value: JSON, or YAML or protobuf where the header says so.
    pub(super) fn value(&self) -> Result<Value, StatusError> {
        let content_type = self.header(CONTENT_TYPE);
        if is_protobuf(content_type) {
            return read_protobuf(&self.body)
                .map_err(|why| StatusError::bad_request(format!("protobuf cannot be read: {why}")));
        }
        let text =
            str::from_utf8(&self.body).map_err(|_| StatusError::unsupported_media_type(content_type))?;
        if content_type.contains("cbor") {
            return Err(StatusError::unsupported_media_type(content_type));
        }
        if !content_type.contains("yaml") {
            return serde_json::from_str(text).map_err(|error| {
                StatusError::bad_request(format!("couldn't get version/kind; json parse error: {error}"))
            });
        }
        let wrong = |why: String| StatusError::bad_request(format!("error converting YAML to JSON: {why}"));
        let documents = read(&Source::new("body", text)).map_err(|problems| wrong(problems.to_string()))?;
        let document = documents.first().ok_or_else(|| wrong("there is no document".to_owned()))?;
        serde_json::from_str(&document.to_json()).map_err(|error| wrong(error.to_string()))
    }
}

/// Reads the body. What is too long is read on and thrown away, as a client listens only when it has spoken.
async fn read_body(mut body: Incoming) -> io::Result<Result<Bytes, StatusError>> {
    let mut read = BytesMut::new();
    let mut length = 0;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(io::Error::other)?;
        let Some(data) = frame.data_ref() else { continue };
        length += data.len();
        if length > PATIENCE_BYTES {
            return Err(io::Error::other("the client does not stop talking"));
        }
        if length <= BODY_BYTES_LIMIT {
            read.extend_from_slice(data);
        }
    }
    Ok(if length > BODY_BYTES_LIMIT {
        Err(StatusError::too_large(BODY_BYTES_LIMIT))
    } else {
        Ok(read.freeze())
    })
}
