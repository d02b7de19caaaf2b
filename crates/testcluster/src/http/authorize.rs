//! Who asks, and whether they may.

use hyper::header::{AUTHORIZATION, HeaderName};

use super::Server;
use super::asked::Asked;
use super::path::ResourcePath;
use crate::access::{RequestAttributes, User};
use crate::failure::StatusError;
use crate::resource::RESOURCE_CLAIMS;

fn user(server: &Server, asked: &Asked) -> Option<User> {
    match asked.header(AUTHORIZATION).strip_prefix("Bearer ") {
        Some(token) => server.api.access().user_of(token.trim()).cloned(),
        None => {
            let named = asked.header(HeaderName::from_static("x-remote-user"));
            Some(if named.is_empty() { User::anonymous() } else { User::named(named) })
        }
    }
}

/// Without enforcement everybody may do everything, under whatever name.
pub(super) fn authorized(
    server: &Server,
    asked: &Asked,
    target: &ResourcePath,
    verb: &str,
) -> Result<User, StatusError> {
    let user = user(server, asked);
    let access = server.api.access();
    if !access.is_enforced() {
        return Ok(user.unwrap_or_else(User::anonymous));
    }
    let user = user.ok_or_else(StatusError::unauthorized)?;
    let ResourcePath { resource, namespace, name, subresource } = target;
    let action = RequestAttributes {
        verb: verb.to_owned(),
        group: resource.group.to_owned(),
        resource: resource.plural.to_owned(),
        subresource: subresource.clone(),
        namespace: namespace.clone(),
        path: String::new(),
    };
    if access.allows(&user, &action) {
        return Ok(user);
    }
    let what = if subresource.is_empty() {
        resource.plural.to_owned()
    } else {
        format!("{}/{subresource}", resource.plural)
    };
    let place = if namespace.is_empty() {
        "at the cluster scope".to_owned()
    } else {
        format!("in the namespace {namespace:?}")
    };
    let why = format!(
        "User {:?} cannot {verb} resource {what:?} in API group {:?} {place}",
        user.name, resource.group
    );
    Err(StatusError::forbidden(resource, name, why))
}

/// Whether somebody may say what claims have got, and who uses them. It is asked about all namespaces at once.
pub(super) fn may_bind_claims(server: &Server, user: &User, verb: &str) -> bool {
    let access = server.api.access();
    let action = RequestAttributes {
        verb: verb.to_owned(),
        group: RESOURCE_CLAIMS.group.to_owned(),
        resource: RESOURCE_CLAIMS.plural.to_owned(),
        subresource: "binding".to_owned(),
        ..RequestAttributes::default()
    };
    !access.is_enforced() || access.allows(user, &action)
}
