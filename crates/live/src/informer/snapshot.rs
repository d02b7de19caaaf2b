//! The objects of a resource as they are now, for whoever wants the state and not its changes. Nothing but GET is sent.
//!
//! The pages of a list are of one moment; the lists of several resources are of moments that follow each other closely.

use std::time::Duration;

use supercargo_manifest::clip;
use supercargo_model::{Key, object::Object};

use super::{
    Resource,
    discovery::{self, Served},
    paths,
    wire::{self, Head},
};
use crate::world::{Reply, Request, Unanswered, World};

/// A page of a list is large, and so is its patience.
const LONGEST_PAGE: Duration = Duration::from_secs(120);
/// How often a page is asked for that a server was too busy for.
const MAX_TRIES: u32 = 4;
/// How long the first pause between two tries is; the next ones are longer.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// How often a list is begun anew that grew old before its last page; the last time it is asked for all at once.
const MAX_EXPIRED_LISTS: u32 = 2;

/// What a resource has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed<T> {
    /// What was made of its objects, in the server's order.
    pub items: Vec<T>,
    /// The version of the list: a watch from here on misses nothing.
    pub version: String,
}

/// Why a resource could not be listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotListed {
    /// The API server does not serve it.
    NotServed,
    /// We may not list it; what the server says about that.
    Forbidden(String),
    /// The server has no answer, or a bad one.
    Failed(String),
}

/// An object that makes no sense.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadableObject {
    /// Its name, as far as that can be read.
    pub key: Key,
    /// Which field is wrong, and how.
    pub reason: String,
}

/// Lists a resource page by page. `read` gets each object as the server sent it; after every page, `progress` how many there
/// are so far. If a list has to be begun anew, what was read of it before is dropped.
pub async fn list<T>(
    world: &dyn World,
    resource: &Resource,
    mut read: impl FnMut(&str) -> T,
    mut progress: impl FnMut(usize),
) -> Result<Listed<T>, NotListed> {
    for expired in 0..=MAX_EXPIRED_LISTS {
        let paged = expired < MAX_EXPIRED_LISTS;
        if let Some(listed) = pages(world, resource, paged, &mut read, &mut progress).await? {
            return Ok(listed);
        }
    }
    Err(NotListed::Failed("the server forgets lists before their last page".to_owned()))
}

/// An object of a resource, from the server's text.
pub fn object(text: &str, resource: &Resource) -> Result<Object, UnreadableObject> {
    wire::object(text, resource).map_err(|reason| {
        let head = Head::of_object(text.as_bytes(), resource.kind).unwrap_or_default();
        UnreadableObject { key: Key::new(&*head.namespace, &*head.name), reason: clip(&reason).into_owned() }
    })
}

/// All pages; `None` if the list grew old in between.
async fn pages<T>(
    world: &dyn World,
    resource: &Resource,
    paged: bool,
    read: &mut impl FnMut(&str) -> T,
    progress: &mut impl FnMut(usize),
) -> Result<Option<Listed<T>>, NotListed> {
    let mut items = Vec::new();
    let mut continue_from: Option<String> = None;
    loop {
        let request = paths::page(resource, continue_from.as_deref(), paged).within(LONGEST_PAGE);
        let reply = patiently(world, request).await?;
        if reply.status == 410 && continue_from.is_some() {
            return Ok(None);
        }
        if !reply.is_success() {
            return Err(refused(world, resource, &reply).await);
        }
        let page = serde_json::from_slice::<wire::Page<'_>>(&reply.body);
        let page = page.map_err(|error| NotListed::Failed(format!("a list that is no JSON: {error}")))?;
        items.extend(page.items.iter().flatten().map(|item| read(item.get())));
        progress(items.len());
        if page.metadata.continue_from.is_empty() {
            return Ok(Some(Listed { items, version: page.metadata.resource_version }));
        }
        continue_from = Some(page.metadata.continue_from);
    }
}

/// The answer to a request, which is repeated while the server is busy or in trouble.
async fn patiently(world: &dyn World, request: Request) -> Result<Reply, NotListed> {
    let mut pause = FIRST_PAUSE;
    for tries_left in (0..MAX_TRIES).rev() {
        let asked_to_wait = match world.send(request.clone()).await {
            Ok(Reply { status: 429 | 500.., retry_after, .. }) if tries_left > 0 => retry_after,
            Ok(reply) => return Ok(reply),
            Err(Unanswered::OutcomeUnknown(_)) if tries_left > 0 => None,
            // Nobody is there: that will hardly change within seconds.
            Err(Unanswered::NotSent(why) | Unanswered::OutcomeUnknown(why)) => {
                return Err(NotListed::Failed(why));
            }
        };
        world.sleep(asked_to_wait.unwrap_or(pause)).await;
        pause *= 2;
    }
    Err(NotListed::Failed("no answer".to_owned()))
}

async fn refused(world: &dyn World, resource: &Resource, reply: &Reply) -> NotListed {
    let said = format!("the server answered {}: {}", reply.status, reply.message());
    match reply.status {
        403 => NotListed::Forbidden(reply.message()),
        404 if !resource.required && discovery::served(world, resource).await == Served::No => {
            NotListed::NotServed
        }
        _ => NotListed::Failed(said),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use serde_json::{Value, json};
    use supercargo_model::Kind;

    use super::*;
    use crate::testing::{Answer, FakeWorld};

    type Outcome = Result<Listed<String>, NotListed>;

    /// Lists nodes of a server, by name; also the requests that it took.
    fn list_from(
        server: impl FnMut(&Request, Duration) -> Answer + Send + 'static,
    ) -> (Outcome, Vec<String>) {
        let world = FakeWorld::new(server);
        let outcome = Arc::new(Mutex::new(None));
        let (told, inner) = (outcome.clone(), world.clone());
        world.spawn(Box::pin(async move {
            let resource = Resource::of(Kind::CsiNode).unwrap();
            let name = |text: &str| {
                let item: Value = serde_json::from_str(text).unwrap();
                item["metadata"]["name"].as_str().unwrap().to_owned()
            };
            let listed = list(&*inner, &resource, name, |_| ()).await;
            *told.lock().unwrap() = Some(listed);
        }));
        world.run_for(Duration::from_secs(600));
        let requests = world.requests().into_iter().map(|(_, request)| request.to_string()).collect();
        (outcome.lock().unwrap().take().expect("it has ended"), requests)
    }

    fn page(names: &[&str], continue_from: &str) -> Answer {
        let items: Vec<Value> = names.iter().map(|name| json!({"metadata": {"name": name}})).collect();
        let metadata = json!({"resourceVersion": "7", "continue": continue_from});
        Answer::json(200, json!({"kind": "CSINodeList", "metadata": metadata, "items": items}))
    }

    fn listed(names: &[&str]) -> Outcome {
        Ok(Listed { items: names.iter().map(ToString::to_string).collect(), version: "7".to_owned() })
    }

    #[test]
    fn pages_are_put_together() {
        let (outcome, requests) = list_from(|request, _| {
            if request.path.contains("continue=x") { page(&["c"], "") } else { page(&["a", "b"], "x") }
        });
        assert_eq!(outcome, listed(&["a", "b", "c"]));
        let path = "GET /apis/storage.k8s.io/v1/csinodes?limit=500";
        assert_eq!(requests, [path.to_owned(), format!("{path}&continue=x")]);
    }

    #[test]
    fn a_list_that_grows_old_is_begun_anew_and_asked_for_at_once_in_the_end() {
        let (outcome, requests) = list_from(|request, _| match &*request.path {
            path if path.contains("continue") => Answer::json(410, json!({"message": "too old"})),
            path if path.contains("limit") => page(&["a"], "x"),
            _ => page(&["a", "b"], ""),
        });
        assert_eq!(outcome, listed(&["a", "b"]));
        assert_eq!(requests.len(), 5, "{requests:?}");
    }

    #[test]
    fn a_busy_server_is_asked_again_and_one_that_stays_busy_is_given_up() {
        let mut asked = 0;
        let (outcome, _) = list_from(move |_, _| {
            asked += 1;
            if asked < 3 { Answer::json(503, json!({"message": "busy"})) } else { page(&["a"], "") }
        });
        assert_eq!(outcome, listed(&["a"]));
        let (outcome, requests) = list_from(|_, _| Answer::json(503, json!({"message": "busy"})));
        assert_eq!(outcome, Err(NotListed::Failed("the server answered 503: busy".to_owned())));
        assert_eq!(requests.len(), MAX_TRIES as usize);
    }

    #[test]
    fn what_may_not_be_listed_and_what_is_not_served_are_told_apart() {
        let (outcome, _) = list_from(|_, _| Answer::json(403, json!({"message": "no"})));
        assert_eq!(outcome, Err(NotListed::Forbidden("no".to_owned())));
        let (outcome, _) = list_from(|request, _| match &*request.path {
            "/apis/storage.k8s.io/v1" => {
                Answer::json(200, json!({"resources": [{"name": "storageclasses"}]}))
            }
            _ => Answer::json(404, json!({"message": "not found"})),
        });
        assert_eq!(outcome, Err(NotListed::NotServed));
        // A proxy's 404 says nothing about the API server.
        let (outcome, _) = list_from(|_, _| Answer::json(404, json!({"message": "not found"})));
        assert_eq!(outcome, Err(NotListed::Failed("the server answered 404: not found".to_owned())));
    }

    #[test]
    fn an_object_that_makes_no_sense_is_named() {
        let text = r#"{"metadata":{"name":"n"},"spec":{"unschedulable":"perhaps"}}"#;
        let unreadable = object(text, &Resource::of(Kind::Node).unwrap()).unwrap_err();
        assert_eq!(unreadable.key, Key::new("", "n"));
        assert!(unreadable.reason.starts_with("spec.unschedulable: "), "{}", unreadable.reason);
    }
}
