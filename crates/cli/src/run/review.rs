//! Asks the API server who a caller is, and what they may do.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};
use supercargo_live::world::{ContentType, Method, Request, SharedWorld};
use supercargo_server::{AccessDecision, AccessRequest, BoxFuture, ReviewError, Reviewer, UserInfo};

/// Reviews by the API server, or by one for each kind of question.
pub(super) struct ByApiServer {
    /// `--authentication-kubeconfig`: who tells whose token it is.
    pub(super) authentication: SharedWorld,
    /// `--authorization-kubeconfig`: who tells what is allowed.
    pub(super) authorization: SharedWorld,
}

impl ByApiServer {
    async fn ask<T: for<'d> Deserialize<'d>>(
        world: &SharedWorld,
        group: &str,
        kind: &str,
        spec: Value,
    ) -> Result<T, ReviewError> {
        let body = json!({"apiVersion": format!("{group}/v1"), "kind": kind, "spec": spec});
        let path = format!("/apis/{group}/v1/{}s", kind.to_lowercase());
        let request = Request::new(Method::Post, path, ContentType::Json, body.to_string().into());
        let reply = world.send(request).await.map_err(|error| ReviewError::new(error.to_string()))?;
        if !reply.is_success() {
            return Err(ReviewError::new(format!("{kind}: {} {}", reply.status, reply.message())));
        }
        #[derive(Deserialize)]
        struct Answer<T> {
            status: T,
        }
        let answer: Result<Answer<T>, _> = serde_json::from_slice(&reply.body);
        answer.map(|answer| answer.status).map_err(|error| ReviewError::new(format!("{kind}: {error}")))
    }
}

#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
struct TokenStatus {
    authenticated: bool,
    user: Named,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Named {
    username: String,
    uid: String,
    groups: Vec<String>,
    extra: BTreeMap<String, Vec<String>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct AccessStatus {
    allowed: bool,
    reason: String,
}

impl Reviewer for ByApiServer {
    fn review_token<'a>(&'a self, token: &'a str) -> BoxFuture<'a, Result<Option<UserInfo>, ReviewError>> {
        Box::pin(async move {
            let spec = json!({"token": token});
            let status: TokenStatus =
                Self::ask(&self.authentication, "authentication.k8s.io", "TokenReview", spec).await?;
            let Named { username, uid, groups, extra } = status.user;
            Ok(status.authenticated.then_some(UserInfo { name: username, uid, groups, extra }))
        })
    }

    fn review_access<'a>(
        &'a self,
        request: &'a AccessRequest,
    ) -> BoxFuture<'a, Result<AccessDecision, ReviewError>> {
        Box::pin(async move {
            let AccessRequest { user, verb, path } = request;
            let spec = json!({
                "user": user.name, "uid": user.uid, "groups": user.groups, "extra": user.extra,
                "nonResourceAttributes": {"path": path, "verb": verb},
            });
            let (world, group) = (&self.authorization, "authorization.k8s.io");
            let status: AccessStatus = Self::ask(world, group, "SubjectAccessReview", spec).await?;
            Ok(AccessDecision { allowed: status.allowed, reason: status.reason })
        })
    }
}
