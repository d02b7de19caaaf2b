//! Reviews: whose token this is, and who may do what.

use serde_json::{Value, json};

use super::Api;
use crate::access::{RequestAttributes, User};
use crate::failure::StatusError;
use crate::object::{at, items, text};
use crate::resource::{Resource, SELF_SUBJECT_ACCESS_REVIEWS, TOKEN_REVIEWS};

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
        answer["status"] = if resource.is(&TOKEN_REVIEWS) {
            match access.user_of(text(review, &["spec", "token"])) {
                Some(user) => json!({
                    "authenticated": true,
                    "user": {"username": user.name, "groups": user.groups},
                    "audiences": at(review, &["spec", "audiences"]),
                }),
                None => json!({"user": {}, "error": "invalid bearer token"}),
            }
        } else {
            let asked_about =
                if resource.is(&SELF_SUBJECT_ACCESS_REVIEWS) { caller.clone() } else { subject(review) };
            let allowed = access.allows(&asked_about, &action(review));
            json!({"allowed": allowed, "reason": if allowed { "a grant of the test cluster" } else { "" }})
        };
        Ok(answer)
    }
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
