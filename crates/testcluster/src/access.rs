//! Who has which token, and who may do what.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

/// The token that may do everything from the start.
pub const ADMIN_TOKEN: &str = "admin";
const MASTERS: &str = "system:masters";

/// Somebody who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// Such as `system:serviceaccount:kube-system:supercargo`.
    pub name: String,
    /// The groups that the user is in.
    pub groups: Vec<String>,
}

impl User {
    /// A user in no group.
    pub fn named(name: impl Into<String>) -> Self {
        Self { name: name.into(), groups: Vec::new() }
    }

    /// Whether this is the user's name, or that of one of the user's groups.
    fn is(&self, user_or_group: &str) -> bool {
        self.name == user_or_group || self.groups.iter().any(|group| group == user_or_group)
    }

    pub(crate) fn anonymous() -> Self {
        Self { name: "system:anonymous".to_owned(), groups: vec!["system:unauthenticated".to_owned()] }
    }
}

/// Something that somebody wants to do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestAttributes {
    /// Such as `get`, `list` or `create`.
    pub verb: String,
    /// The API group; empty is the core.
    pub group: String,
    /// Such as `pods`.
    pub resource: String,
    /// Such as `binding`.
    pub subresource: String,
    /// Empty is everywhere.
    pub namespace: String,
    /// A path that is no resource, such as `/metrics`; then all but the verb is empty.
    pub path: String,
}

/// A rule as roles have them: `*` is everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Rule {
    /// What may be done.
    pub verbs: Vec<String>,
    /// To what API groups.
    pub api_groups: Vec<String>,
    /// To what resources, such as `pods` or `pods/binding`.
    pub resources: Vec<String>,
    /// To what paths that are no resources; `/debug/*` is everything below.
    #[serde(rename = "nonResourceURLs")]
    pub non_resource_urls: Vec<String>,
    /// Only in this namespace, if one is given: a role rather than a cluster role.
    pub namespace: Option<String>,
}

impl Rule {
    fn allows(&self, action: &RequestAttributes) -> bool {
        let one_of = |list: &[String], wanted: &str| list.iter().any(|one| one == "*" || one == wanted);
        if !one_of(&self.verbs, &action.verb) {
            return false;
        }
        if !action.path.is_empty() {
            return self.non_resource_urls.iter().any(|url| match url.strip_suffix('*') {
                Some(prefix) => action.path.starts_with(prefix),
                None => *url == action.path,
            });
        }
        let resource = match action.subresource.as_str() {
            "" => action.resource.clone(),
            subresource => format!("{}/{subresource}", action.resource),
        };
        one_of(&self.api_groups, &action.group)
            && one_of(&self.resources, &resource)
            && self.namespace.as_ref().is_none_or(|namespace| *namespace == action.namespace)
    }
}

/// Tokens and grants. At first there is one token, [`ADMIN_TOKEN`], and its bearer may do everything.
#[derive(Debug)]
pub struct AccessRules {
    tokens: HashMap<String, User>,
    grants: Vec<(String, Rule)>,
    enforced: bool,
}

impl Default for AccessRules {
    fn default() -> Self {
        let admin = User { name: "admin".to_owned(), groups: vec![MASTERS.to_owned()] };
        Self { tokens: HashMap::from([(ADMIN_TOKEN.to_owned(), admin)]), grants: Vec::new(), enforced: false }
    }
}

impl AccessRules {
    /// Makes a token known.
    pub fn add_token(&mut self, token: impl Into<String>, user: User) {
        self.tokens.insert(token.into(), user);
    }

    /// Allows a user, or everybody in a group, what the rule says.
    pub fn grant(&mut self, user_or_group: impl Into<String>, rule: Rule) {
        self.grants.push((user_or_group.into(), rule));
    }

    /// Takes back everything that was granted to a user or group.
    pub fn revoke(&mut self, user_or_group: &str) {
        self.grants.retain(|(who, _)| who != user_or_group);
    }

    /// Whether requests to this server itself need a known token and a grant. At first they do not.
    pub fn enforce(&mut self, enforced: bool) {
        self.enforced = enforced;
    }

    pub(crate) fn is_enforced(&self) -> bool {
        self.enforced
    }

    pub(crate) fn user_of(&self, token: &str) -> Option<&User> {
        self.tokens.get(token)
    }

    /// The rules that are granted to the user.
    pub(crate) fn rules_of<'a>(&'a self, user: &'a User) -> impl Iterator<Item = &'a Rule> {
        self.grants.iter().filter(|(who, _)| user.is(who)).map(|(_, rule)| rule)
    }

    /// Whether the user may do everything: as a master, or because nobody has to say who they are.
    pub(crate) fn allows_everything(&self, user: &User) -> bool {
        user.is(MASTERS) || !self.enforced && *user == User::anonymous()
    }

    /// Whether the user may do it.
    pub fn allows(&self, user: &User, action: &RequestAttributes) -> bool {
        user.is(MASTERS) || self.rules_of(user).any(|rule| rule.allows(action))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn action(verb: &str, resource: &str, subresource: &str, namespace: &str) -> RequestAttributes {
        let own = str::to_owned;
        RequestAttributes {
            verb: own(verb),
            resource: own(resource),
            subresource: own(subresource),
            namespace: own(namespace),
            ..RequestAttributes::default()
        }
    }

    #[test]
    fn rules_allow_what_they_say_and_no_more() {
        let own = |list: &[&str]| list.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>();
        let rule = Rule {
            verbs: own(&["create"]),
            api_groups: own(&[""]),
            resources: own(&["pods/binding"]),
            non_resource_urls: own(&["/debug/*"]),
            namespace: Some("a".to_owned()),
        };
        let mut access = AccessRules::default();
        access.grant("crew", rule);
        let user = User { name: "x".to_owned(), groups: own(&["crew"]) };
        for (asked, allowed) in [
            (action("create", "pods", "binding", "a"), true),
            (action("create", "pods", "binding", "b"), false),
            (action("create", "pods", "", "a"), false),
            (action("get", "pods", "binding", "a"), false),
            (
                RequestAttributes {
                    verb: "create".to_owned(),
                    path: "/debug/x".to_owned(),
                    ..RequestAttributes::default()
                },
                true,
            ),
            (
                RequestAttributes {
                    verb: "create".to_owned(),
                    path: "/metrics".to_owned(),
                    ..RequestAttributes::default()
                },
                false,
            ),
        ] {
            assert_eq!(access.allows(&user, &asked), allowed, "{asked:?}");
        }
        assert!(!access.allows(&User::named("y"), &action("create", "pods", "binding", "a")));
        let admin = access.user_of(ADMIN_TOKEN).cloned().expect("the admin is known");
        assert!(access.allows(&admin, &action("delete", "nodes", "", "")));
        access.revoke("crew");
        assert!(!access.allows(&user, &action("create", "pods", "binding", "a")));
    }
}
