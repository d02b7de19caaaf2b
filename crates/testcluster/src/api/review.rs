//! Reviews: whose token this is, and who may do what.

use serde_json::{Value, json};

use super::Api;
use crate::access::{AccessRules, RequestAttributes, User};
use crate::failure::StatusError;
use crate::object::{at, items, text};
use crate::resource::{
    Resource, SELF_SUBJECT_ACCESS_REVIEWS, SELF_SUBJECT_REVIEWS, SELF_SUBJECT_RULES_REVIEWS, TOKEN_REVIEWS,
};

impl Api {
    /// Answers a review; `caller` is who asks.
    pub(crate) fn review(
        &self,
        resource: &Resource,
        review: &Value,
        caller: &User,
    ) -> Result<Value, StatusError> {
        super::admission::is_of_kind(resource, review)?;
        let mut answer = review.clone();
        answer["apiVersion"] = resource.api_version().into();
        answer["kind"] = resource.kind.into();
        let access = self.access();
        answer["status"] = match resource {
            tokens if tokens.is(&TOKEN_REVIEWS) => whose_token(&access, review),
            own if own.is(&SELF_SUBJECT_REVIEWS) => json!({"userInfo": user_info(caller)}),
            own if own.is(&SELF_SUBJECT_RULES_REVIEWS) => rules(&access, caller, review),
            own if own.is(&SELF_SUBJECT_ACCESS_REVIEWS) => {
                let allowed = access.allows_everything(caller) || access.allows(caller, &action(review));
                verdict(allowed)
            }
            _ => verdict(access.allows(&subject(review), &action(review))),
        };
        Ok(answer)
    }
}

fn verdict(allowed: bool) -> Value {
    json!({"allowed": allowed, "reason": if allowed { "a grant of the test cluster" } else { "" }})
}

fn user_info(user: &User) -> Value {
    json!({"username": user.name, "groups": user.groups})
}

fn whose_token(access: &AccessRules, review: &Value) -> Value {
    match access.user_of(text(review, &["spec", "token"])) {
        Some(user) => json!({
            "authenticated": true,
            "user": user_info(user),
            "audiences": at(review, &["spec", "audiences"]),
        }),
        None => json!({"user": {}, "error": "invalid bearer token"}),
    }
}

/// What the user may do in a namespace.
fn rules(access: &AccessRules, user: &User, review: &Value) -> Value {
    let (mut resources, mut paths) = (Vec::new(), Vec::new());
    if access.allows_everything(user) {
        resources.push(json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}));
        paths.push(json!({"verbs": ["*"], "nonResourceURLs": ["*"]}));
    }
    let here = text(review, &["spec", "namespace"]);
    let granted =
        access.rules_of(user).filter(|rule| rule.namespace.as_deref().is_none_or(|only| only == here));
    for rule in granted {
        if !rule.resources.is_empty() {
            resources.push(
                json!({"verbs": rule.verbs, "apiGroups": rule.api_groups, "resources": rule.resources}),
            );
        }
        if !rule.non_resource_urls.is_empty() {
            paths.push(json!({"verbs": rule.verbs, "nonResourceURLs": rule.non_resource_urls}));
        }
    }
    json!({"resourceRules": resources, "nonResourceRules": paths, "incomplete": false})
}

fn subject(review: &Value) -> User {
    let groups = items(review, &["spec", "groups"]).iter().filter_map(Value::as_str);
    User { name: text(review, &["spec", "user"]).to_owned(), groups: groups.map(str::to_owned).collect() }
}

fn action(review: &Value) -> RequestAttributes {
    let part = |key: &str| text(review, &["spec", "resourceAttributes", key]).to_owned();
    let non_resource = |key: &str| text(review, &["spec", "nonResourceAttributes", key]).to_owned();
    if at(review, &["spec", "nonResourceAttributes"]).is_some() {
        return RequestAttributes {
            verb: non_resource("verb"),
            path: non_resource("path"),
            ..RequestAttributes::default()
        };
    }
    RequestAttributes {
        verb: part("verb"),
        group: part("group"),
        resource: part("resource"),
        subresource: part("subresource"),
        namespace: part("namespace"),
        path: String::new(),
    }
}
