//! One request: what it asks for, what goes wrong on purpose, and the answer.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::header::{ACCEPT, CONTENT_TYPE, USER_AGENT};
use hyper::{Method, Request, StatusCode};
use serde_json::Value;

use super::asked::Asked;
use super::authorize::{authorized, may_bind_claims};
use super::body::ResponseBody;
use super::path::{self, ResourcePath, Target};
use super::reply::{JSON, Reply, json_reply, raw, refusal, reply, success};
use super::view::View;
use super::watch::Watch;
use super::{Server, admin, discovery, web};
use crate::access::User;
use crate::api::{DeleteOptions, Listing, ObjectAddress, Patch, scale_of};
use crate::failure::StatusError;
use crate::faults::{Fault, RequestKind};
use crate::object::items;
use crate::patch::PatchKind;
use crate::resource::{PERSISTENT_VOLUME_CLAIMS, PODS, RESOURCE_CLAIMS, Resource, SERVICE_ACCOUNTS};
use crate::store::StoredObject;

/// Answers a request of a connection; an error closes it without an answer.
pub(super) async fn answer(server: Arc<Server>, request: Request<Incoming>) -> io::Result<Reply> {
    if let Err(foreign) = web::check(&request) {
        return Ok(refusal(&foreign));
    }
    match Asked::read(request).await? {
        Ok(asked) => answer_read(server, asked).await,
        Err(failure) => Ok(refusal(&failure)),
    }
}

/// Answers a request that has been read to its end.
pub(super) async fn answer_read(server: Arc<Server>, asked: Asked) -> io::Result<Reply> {
    match path::read(&asked.path, &server.api.served()) {
        None => Ok(refusal(&StatusError::no_such_path())),
        Some(Target::Other) => Ok(other(&server, &asked)),
        Some(Target::Resource(target)) => with_faults(server, asked, target).await,
    }
}

fn other(server: &Server, asked: &Asked) -> Reply {
    let found = admin::answer(server, asked)
        .or_else(|| discovery::answer(&asked.path, asked.header(ACCEPT), &server.api.served()));
    found.unwrap_or_else(|| refusal(&StatusError::no_such_path()))
}

async fn with_faults(server: Arc<Server>, asked: Asked, target: ResourcePath) -> io::Result<Reply> {
    let verb = verb(&asked, &target);
    let kind = RequestKind {
        verb,
        resource: target.resource.plural,
        subresource: &target.subresource,
        user_agent: asked.header(USER_AGENT),
    };
    server.requests.count(&kind);
    let fate = server.faults.fate(&kind);
    sleep_if(&server, fate.delay).await;
    let hung_up = || Err(io::Error::new(io::ErrorKind::ConnectionReset, "injected fault"));
    match fate.fault {
        Some(Fault::Answer { code, retry_after_seconds }) => {
            return Ok(refusal(&StatusError::injected(code, retry_after_seconds)));
        }
        Some(Fault::HangUp) => return hung_up(),
        _ => {}
    }
    let reply = respond(&server, &asked, &target, verb).unwrap_or_else(|failure| refusal(&failure));
    match fate.fault {
        Some(Fault::CommitThenAnswer { code }) => return Ok(refusal(&StatusError::injected(code, 0))),
        Some(Fault::CommitThenDelay { millis }) => sleep_if(&server, Duration::from_millis(millis)).await,
        Some(Fault::CommitThenHangUp) => return hung_up(),
        _ => {}
    }
    Ok(reply)
}

async fn sleep_if(server: &Server, delay: Duration) {
    if !delay.is_zero() {
        server.api.time.sleep(delay).await;
    }
}

fn verb(asked: &Asked, target: &ResourcePath) -> &'static str {
    let collection = target.name.is_empty();
    match asked.method {
        Method::GET if asked.query.is_true("watch") => "watch",
        Method::GET if collection => "list",
        Method::GET => "get",
        Method::POST => "create",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE if collection => "deletecollection",
        Method::DELETE => "delete",
        _ => "",
    }
}

fn respond(
    server: &Arc<Server>,
    asked: &Asked,
    target: &ResourcePath,
    verb: &str,
) -> Result<Reply, StatusError> {
    let user = authorized(server, asked, target, verb)?;
    let resource = target.resource;
    if resource.is_review() {
        return match verb {
            "create" => {
                Ok(json_reply(StatusCode::CREATED, &server.api.review(resource, &asked.value()?, &user)?))
            }
            _ => Err(StatusError::method_not_allowed()),
        };
    }
    if needs_a_container(&target.subresource) {
        server.api.get(ObjectAddress::new(resource, &target.namespace, &target.name))?;
        return Err(StatusError::nothing_runs(&target.name, &target.subresource));
    }
    match verb {
        "get" | "list" | "watch" => reading(server, asked, target, verb),
        "create" | "update" | "patch" => writing(server, asked, target, verb, &user),
        "delete" | "deletecollection" => deleting(server, asked, target, &user),
        _ => Err(StatusError::method_not_allowed()),
    }
}

/// Subresources of a pod that are about what runs in it.
fn needs_a_container(subresource: &str) -> bool {
    matches!(subresource, "log" | "exec" | "attach" | "portforward")
}

fn reading(
    server: &Arc<Server>,
    asked: &Asked,
    target: &ResourcePath,
    verb: &str,
) -> Result<Reply, StatusError> {
    let ResourcePath { resource, namespace, name, subresource } = target;
    let view = asked.view(resource);
    match verb {
        "get" if subresource == "scale" => {
            let object = server.api.get(ObjectAddress::new(resource, namespace, name))?;
            Ok(json_reply(StatusCode::OK, &scale_of(&object.value)))
        }
        "get" if matches!(subresource.as_str(), "" | "status" | "resize") => {
            let object = server.api.get(ObjectAddress::new(resource, namespace, name))?;
            Ok(reply(StatusCode::OK, view.object(&object)))
        }
        "list" => {
            let listing = server.api.list(resource, namespace, &asked.query.list_options(resource)?)?;
            Ok(reply(StatusCode::OK, view.list(&listing)))
        }
        "watch" if name.is_empty() => {
            let watch = Watch::new(server, view, namespace, &asked.query)?;
            Ok(raw(StatusCode::OK, JSON, ResponseBody::Lines(watch.lines())))
        }
        _ => Err(StatusError::method_not_allowed()),
    }
}

fn writing(
    server: &Server,
    asked: &Asked,
    target: &ResourcePath,
    verb: &str,
    user: &User,
) -> Result<Reply, StatusError> {
    let ResourcePath { resource, namespace, name, subresource } = target;
    let view = asked.view(resource);
    let place = ObjectAddress::new(resource, namespace, name);
    let mut caller = asked.query.caller(format!("{}/{}", user.name, asked.header(USER_AGENT)));
    caller.denied_claim_bindings = resource.is(&RESOURCE_CLAIMS) && !may_bind_claims(server, user, verb);
    if verb == "patch" {
        let content_type = asked.header(CONTENT_TYPE);
        let kind = PatchKind::of_content_type(content_type)
            .ok_or_else(|| StatusError::unsupported_media_type(content_type))?;
        let is_new = server.api.get(place).is_err();
        let object = server.api.patch(place, subresource, &Patch { kind, value: asked.value()? }, &caller)?;
        let code = if is_new { StatusCode::CREATED } else { StatusCode::OK };
        return Ok(written(view, subresource, code, &object));
    }
    let value = asked.value()?;
    match (verb, subresource.as_str()) {
        ("create", "binding") => {
            server.api.bind(place, &value, &caller)?;
            Ok(success(StatusCode::CREATED, None))
        }
        ("create", "eviction") => {
            server.api.evict(place, &value, &caller)?;
            Ok(success(StatusCode::CREATED, None))
        }
        ("create", "") if name.is_empty() => {
            let object = server.api.create(resource, namespace, value, &caller)?;
            Ok(reply(StatusCode::CREATED, view.object(&object)))
        }
        ("update", "" | "status" | "scale" | "resize") if !name.is_empty() => {
            let object = server.api.update(place, subresource, value, &caller)?;
            Ok(written(view, subresource, StatusCode::OK, &object))
        }
        _ => Err(StatusError::method_not_allowed()),
    }
}

fn written(view: View, subresource: &str, code: StatusCode, object: &StoredObject) -> Reply {
    if subresource == "scale" {
        json_reply(code, &scale_of(&object.value))
    } else {
        reply(code, view.object(object))
    }
}

fn deleting(
    server: &Server,
    asked: &Asked,
    target: &ResourcePath,
    user: &User,
) -> Result<Reply, StatusError> {
    let ResourcePath { resource, namespace, name, subresource } = target;
    if !subresource.is_empty() {
        return Err(StatusError::method_not_allowed());
    }
    let view = asked.view(resource);
    let body = if asked.body.is_empty() { Value::Null } else { asked.value()? };
    let mut options = DeleteOptions::read(&body);
    options.grace_period_seconds =
        options.grace_period_seconds.or_else(|| asked.query.grace_period_seconds());
    let mut caller = asked.query.caller(format!("{}/{}", user.name, asked.header(USER_AGENT)));
    caller.dry_run |= items(&body, &["dryRun"]).iter().any(|one| one == "All");
    if name.is_empty() {
        let list = asked.query.list_options(resource)?;
        let objects = server.api.delete_collection(resource, namespace, &list, &options, &caller)?;
        let version = server.api.store().version();
        let listing = Listing { objects, version, continues: String::new() };
        return Ok(reply(StatusCode::OK, view.list(&listing)));
    }
    let deleted = server.api.delete(ObjectAddress::new(resource, namespace, name), &options, &caller)?;
    if deleted.gone && !returns_deleted(resource) {
        return Ok(success(StatusCode::OK, Some((resource, &deleted.object.value))));
    }
    Ok(reply(StatusCode::OK, view.object(&deleted.object)))
}

/// Resources whose deletion is answered with the object rather than with a `Status`.
fn returns_deleted(resource: &Resource) -> bool {
    resource.is(&PODS) || resource.is(&PERSISTENT_VOLUME_CLAIMS) || resource.is(&SERVICE_ACCOUNTS)
}
