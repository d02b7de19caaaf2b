//! The questions that are put to the API server, and what it answers.

use std::{collections::BTreeMap, fmt, future::Future, pin::Pin};

use super::answers::ReviewKey;

/// A future behind a pointer.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Puts questions to the API server.
pub trait Reviewer: Send + Sync + 'static {
    /// TokenReview: whose token this is; `None` if it is nobody's.
    fn review_token<'a>(&'a self, token: &'a str) -> BoxFuture<'a, Result<Option<UserInfo>, ReviewError>>;

    /// SubjectAccessReview with `nonResourceAttributes`: whether this is allowed.
    fn review_access<'a>(
        &'a self,
        request: &'a AccessRequest,
    ) -> BoxFuture<'a, Result<AccessDecision, ReviewError>>;
}

/// Who calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserInfo {
    /// The name.
    pub name: String,
    /// A name that is never given twice; often empty.
    pub uid: String,
    /// The groups the user is in.
    pub groups: Vec<String>,
    /// What else the API server said, to be handed back with the question about access.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl UserInfo {
    /// Somebody without credentials.
    pub fn anonymous() -> Self {
        Self {
            name: "system:anonymous".into(),
            groups: vec!["system:unauthenticated".into()],
            ..Self::default()
        }
    }

    /// With the group that everybody with credentials is in.
    pub(super) fn authenticated(mut self) -> Self {
        const AUTHENTICATED: &str = "system:authenticated";
        if !self.groups.iter().any(|group| group == AUTHENTICATED) {
            self.groups.push(AUTHENTICATED.into());
        }
        self
    }
}

/// Whether a user may do something with a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessRequest {
    /// Who.
    pub user: UserInfo,
    /// The HTTP method in lower case.
    pub verb: String,
    /// The path, without a query.
    pub path: String,
}

impl AccessRequest {
    pub(super) fn key(&self) -> ReviewKey {
        let UserInfo { name, uid, groups, extra } = &self.user;
        let counts = format!("{} {}", groups.len(), extra.len());
        let extra = extra.iter().flat_map(|(name, values)| {
            [name.clone(), values.len().to_string()].into_iter().chain(values.iter().cloned())
        });
        let mut words = vec![self.verb.clone(), self.path.clone(), name.clone(), uid.clone(), counts];
        words.extend(groups.iter().cloned());
        words.extend(extra);
        ReviewKey::of(words.iter().map(String::as_str))
    }
}

/// What the API server says about access.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessDecision {
    /// Whether it is allowed.
    pub allowed: bool,
    /// Why, if it says so.
    pub reason: String,
}

/// A question that got no answer.
#[derive(Clone, Debug)]
pub struct ReviewError(String);

impl ReviewError {
    /// What went wrong; it is logged, and not told to the caller. It must not contain the token.
    pub fn new(what: impl Into<String>) -> Self {
        Self(what.into())
    }
}

impl fmt::Display for ReviewError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ReviewError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(groups: &[&str], extra: &[(&str, &[&str])]) -> AccessRequest {
        let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
        let extra = extra.iter().map(|(name, values)| ((*name).to_owned(), words(values))).collect();
        let user = UserInfo { name: "ann".into(), groups: words(groups), extra, ..UserInfo::default() };
        AccessRequest { user, verb: "get".into(), path: "/metrics".into() }
    }

    #[test]
    fn users_that_differ_anywhere_have_answers_of_their_own() {
        let requests = [
            request(&["a", "b"], &[]),
            request(&["ab"], &[]),
            request(&["a"], &[]),
            request(&["a"], &[("b", &[])]),
            request(&[], &[("a", &["b"])]),
            request(&[], &[("a", &[]), ("b", &[])]),
        ];
        for (place, one) in requests.iter().enumerate() {
            for other in &requests[place + 1..] {
                assert!(one.key() != other.key(), "{one:?} and {other:?}");
            }
        }
    }
}
