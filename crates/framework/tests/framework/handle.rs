//! What effects do when the API server has no time, is out of reach, or leaves it open what it did.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::{Value, json};
use supercargo_framework::{
    Status,
    handle::{ApiError, ApiFailure, ApiRequest, Handle, HandleRef, Verb, Work},
    offline::{ApiObjects, OfflineApi, OfflineHandle},
    points::PermitHandle,
    waiting::{WaitingPod, WaitingPods},
};
use supercargo_model::{ApiResource, Cluster, Key, Timestamp, testing::pod};

use ApiFailure::{Busy, Conflict, NotFound, NotLeading, NotSent, OutcomeUnknown, Refused, ServerError};

/// Fails as told, one request after another, and answers from then on. What it leaves open it has done.
#[derive(Default)]
struct Flaky {
    objects: ApiObjects,
    failures: VecDeque<Option<ApiFailure>>,
    asked: Vec<(Verb, i64)>,
}

impl OfflineApi for Flaky {
    fn answer(
        &mut self,
        _: &mut Arc<Cluster>,
        request: &ApiRequest,
        now: Timestamp,
    ) -> Result<Value, ApiError> {
        self.asked.push((request.verb, now.as_millisecond()));
        match self.failures.pop_front().flatten() {
            None => self.objects.answer(request),
            Some(failure) => {
                if failure == OutcomeUnknown {
                    self.objects.answer(request)?;
                }
                Err(ApiError::new(failure, "so it is"))
            }
        }
    }
}

/// What came of an effect, and what was asked for when, in milliseconds.
type Course = (Result<Value, ApiFailure>, Vec<(Verb, i64)>);

fn key() -> Key {
    Key::new("default", "p")
}

fn course<F>(failures: &[Option<ApiFailure>], effect: impl FnOnce(HandleRef) -> F) -> Course
where
    F: Future<Output = Result<Value, ApiError>> + Send + 'static,
{
    let handle = OfflineHandle::<Flaky>::default();
    let began = handle.now().as_millisecond();
    handle.with(|api, _| {
        api.objects.put("/api/v1/namespaces/default/pods/p", json!({"metadata": {"name": "p"}}));
        api.failures = failures.iter().copied().collect();
    });
    let (way, shared): (_, Arc<dyn Handle>) = (HandleRef::default(), Arc::new(handle.clone()));
    way.connect(&shared);
    let outcome = Arc::new(Mutex::new(None));
    let (told, effect) = (outcome.clone(), effect(way));
    handle.spawn(Work::Other, Box::pin(async move { *told.lock().unwrap() = Some(effect.await) }));
    handle.tasks().run_for(Duration::from_secs(60));
    let outcome = outcome.lock().unwrap().take().expect("it ends");
    let asked = handle.with(|api, _| std::mem::take(&mut api.asked));
    let asked = asked.into_iter().map(|(verb, at)| (verb, at - began)).collect();
    (outcome.map_err(|error| error.failure), asked)
}

fn times(course: &Course) -> (Option<ApiFailure>, Vec<i64>) {
    (course.0.as_ref().err().copied(), course.1.iter().map(|(_, at)| *at).collect())
}

#[test]
fn a_request_is_sent_again_while_it_cannot_have_been_done() {
    let patience = Duration::from_secs(3);
    // (failures, how it ends, when it is sent)
    let cases = [
        (vec![], None, vec![0]),
        // 200 × 1, then 200 × 2
        (vec![Busy(None), Busy(None)], None, vec![0, 200, 600]),
        (vec![Busy(Some(patience)), Busy(None)], None, vec![0, 3000, 3400]),
        (vec![NotSent, NotSent, NotSent], None, vec![0, 200, 600, 1200]),
        (vec![NotSent; 4], None, vec![0, 200, 600, 1200, 2000]),
        (vec![NotSent; 5], Some(NotSent), vec![0, 200, 600, 1200, 2000]),
        (vec![NotFound], Some(NotFound), vec![0]),
        (vec![Conflict], Some(Conflict), vec![0]),
        (vec![Refused], Some(Refused), vec![0]),
        (vec![NotLeading], Some(NotLeading), vec![0]),
        (vec![ServerError(Some(patience))], Some(ServerError(Some(patience))), vec![0]),
        (vec![NotSent, OutcomeUnknown], Some(OutcomeUnknown), vec![0, 200]),
    ];
    for (failures, ends, sent) in cases {
        let listed: Vec<_> = failures.iter().copied().map(Some).collect();
        let course = course(&listed, |way| async move {
            way.send(ApiRequest::new(Verb::Update, ApiResource::PODS, key(), json!({"metadata": {}}))).await
        });
        assert_eq!(times(&course), (ends, sent), "{failures:?}");
    }
}

#[test]
fn an_object_is_read_again_where_there_was_no_answer() {
    // (failures, how it ends, when it is read)
    let cases = [
        (vec![OutcomeUnknown, ServerError(None)], None, vec![0, 200, 400]),
        (vec![OutcomeUnknown; 5], Some(OutcomeUnknown), vec![0, 200, 400, 600, 800]),
        (vec![NotFound], Some(NotFound), vec![0]),
        (vec![Refused], Some(Refused), vec![0]),
    ];
    for (failures, ends, sent) in cases {
        let listed: Vec<_> = failures.iter().copied().map(Some).collect();
        let course = course(&listed, |way| async move { way.get_object(&ApiResource::PODS, &key()).await });
        assert_eq!(times(&course), (ends, sent), "{failures:?}");
    }
}

#[test]
fn a_change_is_looked_at_again_where_somebody_was_quicker_or_nobody_knows() {
    use Verb::{Get, Update};
    // (failures, how it ends, what is asked)
    let cases = [
        (vec![], None, vec![(Get, 0), (Update, 0)]),
        (vec![None, Some(Conflict)], None, vec![(Get, 0), (Update, 0), (Get, 200), (Update, 200)]),
        // It was done: there is nothing to change any more.
        (vec![None, Some(OutcomeUnknown)], None, vec![(Get, 0), (Update, 0), (Get, 200)]),
        (vec![None, Some(Refused)], Some(Refused), vec![(Get, 0), (Update, 0)]),
        (vec![Some(Refused)], Some(Refused), vec![(Get, 0)]),
        (
            [None, Some(Conflict)].repeat(5),
            Some(Conflict),
            (0..5).flat_map(|i| [(Get, i * 200), (Update, i * 200)]).collect(),
        ),
    ];
    for (failures, ends, asked) in cases {
        let course = course(&failures, |way| async move {
            way.bring_about(&ApiResource::PODS, &key(), |object| {
                let is_new = object["spec"]["done"].is_null();
                object["spec"]["done"] = true.into();
                Ok(is_new)
            })
            .await
        });
        assert_eq!((course.0.as_ref().err().copied(), course.1), (ends, asked), "{failures:?}");
        assert!(course.0.is_err() || course.0.is_ok_and(|object| object["spec"]["done"] == true));
    }
}

#[test]
fn an_object_that_may_have_been_made_is_looked_up() {
    use Verb::{Create, Get};
    // (failures, how it ends, what is asked); what is left open has been done.
    let cases = [
        (vec![], None, vec![Create]),
        (vec![Some(OutcomeUnknown)], None, vec![Create, Get]),
        // It was not made.
        (vec![Some(ServerError(None))], Some(ServerError(None)), vec![Create, Get]),
        (vec![Some(Conflict)], Some(Conflict), vec![Create]),
        (vec![Some(Refused)], Some(Refused), vec![Create]),
    ];
    for (failures, ends, asked) in cases {
        let course = course(&failures, |way| async move {
            way.create(&ApiResource::PODS, &Key::new("default", "new"), json!({"metadata": {"name": "new"}}))
                .await
        });
        let verbs: Vec<Verb> = course.1.iter().map(|(verb, _)| *verb).collect();
        assert_eq!((course.0.as_ref().err().copied(), verbs), (ends, asked), "{failures:?}");
        assert!(course.0.is_err() || course.0.is_ok_and(|object| object["metadata"]["name"] == "new"));
    }
}

#[test]
fn a_pod_goes_on_when_everybody_has_let_it() {
    let waiting = WaitingPods::default();
    let permits = ["one", "other"].map(|name| (name.into(), PermitHandle::default()));
    let pod = pod("p").pod();
    waiting.insert(WaitingPod { pod: pod.clone(), node: "n".into(), permits: permits.to_vec() });
    let said = || permits.each_ref().map(|(_, permit)| futures_now(permit.clone()));
    let [listed] = &waiting.list()[..] else { panic!("one pod waits") };
    assert_eq!((&*listed.pod.uid, &*listed.node), ("p", "n"));
    listed.allow("nobody");
    assert_eq!(said(), [None, None]);
    listed.allow("other");
    assert_eq!(said(), [None, Some(Ok(()))]);
    // What was said first holds.
    listed.reject("other", "too late");
    listed.allow("one");
    assert_eq!(said(), [Some(Ok(())), Some(Ok(()))]);
}

#[test]
fn a_pod_that_waits_is_refused_in_the_name_of_who_made_it_wait() {
    let waiting = WaitingPods::default();
    let permits = ["one", "other"].map(|name| (name.into(), PermitHandle::default()));
    let pod = pod("p").pod();
    waiting.insert(WaitingPod { pod: pod.clone(), node: "n".into(), permits: permits.to_vec() });
    assert!(waiting.get("another").is_none());
    let said = |permit: &PermitHandle| futures_now(permit.clone());
    waiting.get(&pod.uid).expect("it waits").reject("other", "too late");
    let refused = || Some(Err(Status::unschedulable("too late")));
    assert_eq!((said(&permits[0].1), said(&permits[1].1)), (None, refused()));
    // Of somebody whom it does not wait for, the first one takes the blame.
    waiting.get(&pod.uid).expect("it waits").reject("nobody", "too late");
    assert_eq!(said(&permits[0].1), refused());
    waiting.remove(&pod.uid);
    assert!(waiting.get(&pod.uid).is_none());
}

/// What a future has come to, if it has.
fn futures_now<F: Future + Unpin>(mut future: F) -> Option<F::Output> {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match std::pin::Pin::new(&mut future).poll(&mut context) {
        std::task::Poll::Ready(value) => Some(value),
        std::task::Poll::Pending => None,
    }
}
