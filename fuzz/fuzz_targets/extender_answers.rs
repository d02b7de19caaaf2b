//! Whatever extenders answer, a pod's decision is made of what they may say and nothing else, or fails and says why.
//!
//! A text is a line of options (`full`, `names`) and then answers, with an empty line between two of them: one for each
//! call, in turn. `503 busy` answers with that status, `broken` and `long` fail as the transport does, `hang` never comes.
#![no_main]

use std::{
    collections::HashSet,
    sync::{
        Arc, LazyLock,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use futures_util::{FutureExt, future::BoxFuture};
use libfuzzer_sys::fuzz_target;
use supercargo_config::{Configuration, Extender};
use supercargo_engine::{
    Decision, Outcome,
    extender_calls::{self, ExtenderAnswer, ExtenderCall, ExtenderFailure},
};
use supercargo_extender::{
    BindError, Clock, Extenders, NoWatcher, Originals, Reply, Strictness, Transport, TransportError, prepared,
};
use supercargo_framework::registry::Registry;
use supercargo_manifest::MAX_FOREIGN_TEXT_BYTES;
use supercargo_model::{
    Name, Pod,
    object::Object,
    testing::{Builder, cluster, node, pod},
};
use supercargo_plugins::registry;
use supercargo_scheduler::setup::{self, Overrides};

static REGISTRY: LazyLock<Registry> = LazyLock::new(registry);
static DEFAULTS: LazyLock<Configuration> =
    LazyLock::new(|| supercargo_config::default_configuration(&REGISTRY).expect("the defaults hold"));

/// How long a message may be: what an extender says, cut, and what is said around it.
const MAX_MESSAGE_BYTES: usize = MAX_FOREIGN_TEXT_BYTES + 512;

fuzz_target!(|text: &str| {
    let (options, answers) = text.split_once('\n').unwrap_or(("", text));
    let script: Arc<[String]> = answers.split("\n\n").map(str::to_owned).collect();
    let lenient = play(options, &script, Strictness::Lenient);
    let strict = play(options, &script, Strictness::Strict);
    // Up to the first answer that only the strict refuse, both are asked the same.
    for (lenient, strict) in lenient.iter().zip(&strict) {
        if lenient != strict {
            assert!(is_refused(strict), "strict: {strict:?}, lenient: {lenient:?}");
            break;
        }
    }
});

/// Decides a pod and binds it, and gives what extenders came to say.
fn play(options: &str, script: &Arc<[String]>, strictness: Strictness) -> Vec<ExtenderAnswer> {
    let extenders = extenders(options.contains("names"), script).with(strictness);
    let (objects, pod) = (objects(options.contains("full")), waiting());
    let mut originals = Originals::default();
    for object in objects.iter().cloned().map(Builder::object).chain([Object::Pod((*pod).clone())]) {
        originals.put(&object, prepared(r#"{"metadata":{}}"#));
    }
    let mut engine = setup::engine(cluster(objects), &DEFAULTS, &REGISTRY, Overrides::default())
        .expect("the defaults can be built");
    engine.set_extenders(supercargo_scheduler::roles(&extenders));
    let pod = engine.admit(pod);
    let (mut said, mut first) = (Vec::new(), None);
    let decision = extender_calls::decide_calling(&mut engine, &pod, |pod, call| {
        let call = extenders.prepare(pod, call.clone(), &originals);
        let (call, answer) = extenders.ask(call, &|| ()).now_or_never().expect("nobody waits");
        check_answer(&call, &answer, strictness);
        said.push(answer.clone());
        first.get_or_insert_with(|| (call, answer.clone()));
        answer
    });
    let decision = decision.expect("there is a profile for it");
    check_decision(&decision, first.as_ref());
    assert!(extenders.all().iter().all(|extender| extender.load() == 0), "no question is left over");
    bind(&extenders, &pod);
    said
}

fn waiting() -> Arc<Pod> {
    pod("p").priority(10).container(&[("cpu", "3")]).pod()
}

/// Nodes; with pods on them that leave no room, if they are to be full.
fn objects(full: bool) -> Vec<Builder> {
    let names = ["a", "b", "c"];
    let nodes = names.map(|name| node(name).allocatable("cpu", "4")).into_iter();
    let pods = names.iter().take(if full { 3 } else { 0 }).flat_map(|name| {
        let low = |part: u32| pod(&format!("{name}{part}")).container(&[("cpu", "2")]).on(name);
        [low(1), low(2)]
    });
    nodes.chain(pods).collect()
}

fn extenders(names_only: bool, script: &Arc<[String]>) -> Extenders {
    let extender = |url: &str, weight, ignorable| Extender {
        url_prefix: url.to_owned(),
        filter_verb: "filter".to_owned(),
        preempt_verb: "preempt".to_owned(),
        prioritize_verb: "prioritize".to_owned(),
        bind_verb: "bind".to_owned(),
        weight,
        http_timeout: Extender::DEFAULT_TIMEOUT,
        node_cache_capable: names_only,
        ignorable,
        ..Extender::default()
    };
    let all = [extender("http://one", 3, false), extender("http://two", i64::MAX, true)];
    let played = Arc::new(Played { script: script.clone(), next: AtomicUsize::new(0) });
    let way = |_: &Extender| Ok::<_, String>(played.clone() as Arc<dyn Transport>);
    Extenders::new(&all, way, Arc::new(Ticking(AtomicU64::new(0))), Arc::new(NoWatcher))
        .expect("there is a way")
}

/// Answers as written, one after the other, and then anew.
struct Played {
    script: Arc<[String]>,
    next: AtomicUsize,
}

impl Transport for Played {
    fn post(
        &self,
        _: &str,
        _: Vec<Bytes>,
        max_bytes: usize,
    ) -> BoxFuture<'static, Result<Reply, TransportError>> {
        let answer = &self.script[self.next.fetch_add(1, Ordering::Relaxed) % self.script.len()];
        let reply = match &**answer {
            "hang" => return Box::pin(std::future::pending()),
            "broken" => Err(TransportError::Broken("connection reset".to_owned())),
            "long" => Err(TransportError::TooLong),
            text => {
                let status =
                    text.split_once(' ').and_then(|(status, body)| Some((status.parse().ok()?, body)));
                let (status, body) = status.unwrap_or((200, text));
                assert!(body.len() <= max_bytes, "answers of this size are read");
                Ok(Reply { status, body: Bytes::from(body.to_owned()) })
            }
        };
        Box::pin(std::future::ready(reply))
    }
}

/// A second passes whenever somebody looks; who waits for it waits for an answer that never comes.
struct Ticking(AtomicU64);

impl Clock for Ticking {
    fn uptime(&self) -> Duration {
        Duration::from_secs(self.0.fetch_add(1, Ordering::Relaxed))
    }

    fn sleep(&self, _: Duration) -> BoxFuture<'static, ()> {
        Box::pin(std::future::ready(()))
    }
}

fn is_refused(answer: &ExtenderAnswer) -> bool {
    match answer {
        ExtenderAnswer::Filter(answer) => answer.as_ref().is_err_and(|trouble| trouble.invalid),
        ExtenderAnswer::Prioritize(answers) => {
            answers.iter().any(|answer| answer.as_ref().is_err_and(|trouble| trouble.invalid))
        }
        ExtenderAnswer::Preempt(_) => false,
    }
}

fn check_answer(call: &ExtenderCall, answer: &ExtenderAnswer, strictness: Strictness) {
    let strict = strictness == Strictness::Strict;
    match (call, answer) {
        (ExtenderCall::Filter { nodes, .. }, ExtenderAnswer::Filter(Ok(sieved))) => {
            let refused = || sieved.failed.iter().chain(&sieved.unresolvable);
            assert_eq!(sieved.passed.len(), nodes.len(), "{sieved:?}");
            assert!(!strict || refused().all(|(node, _)| nodes.contains(node)), "{sieved:?}");
            assert!(refused().all(|(_, why)| why.len() <= MAX_MESSAGE_BYTES), "reasons are cut");
        }
        (ExtenderCall::Prioritize { extenders, nodes }, ExtenderAnswer::Prioritize(answers)) => {
            assert_eq!(extenders.len(), answers.len(), "each has an answer");
            for points in answers.iter().flatten() {
                assert_eq!(points.len(), nodes.len(), "{points:?}");
                assert!(!strict || points.iter().all(|points| *points >= 0), "{points:?}");
            }
            answers.iter().filter_map(|answer| answer.as_ref().err()).for_each(check_trouble);
        }
        (ExtenderCall::Preempt { candidates, .. }, ExtenderAnswer::Preempt(Ok(proposals))) => {
            let named: HashSet<&Name> = proposals.iter().map(|proposal| &proposal.node).collect();
            assert_eq!(named.len(), proposals.len(), "a node is proposed once");
            assert!(named.iter().all(|node| candidates.iter().any(|candidate| candidate.node == **node)));
        }
        (ExtenderCall::Filter { .. }, ExtenderAnswer::Filter(Err(trouble)))
        | (ExtenderCall::Preempt { .. }, ExtenderAnswer::Preempt(Err(trouble))) => check_trouble(trouble),
        _ => panic!("{answer:?} is no answer to {call:?}"),
    }
}

fn check_trouble(trouble: &ExtenderFailure) {
    let ExtenderFailure { message, invalid } = trouble;
    assert!(!message.is_empty() && message.len() <= MAX_MESSAGE_BYTES, "{} bytes", message.len());
    assert!(!invalid || message.contains("http://"), "{message:?} names the extender");
}

fn check_decision(decision: &Decision, first: Option<&(ExtenderCall, ExtenderAnswer)>) {
    match &decision.outcome {
        Outcome::Scheduled { node } => {
            assert!(decision.feasible.contains(node) && decision.best.contains(node), "{decision:?}");
            // The first one counts: it is not ignorable.
            if let Some((ExtenderCall::Filter { nodes, .. }, ExtenderAnswer::Filter(Ok(sieved)))) = first {
                let mut passed = nodes.iter().zip(&sieved.passed).filter(|(_, passed)| **passed);
                assert!(passed.any(|(name, _)| name == node), "{node} was not let pass: {sieved:?}");
            }
        }
        Outcome::Error { message } => {
            assert!(!message.is_empty() && message.len() <= MAX_MESSAGE_BYTES, "{} bytes", message.len());
        }
        Outcome::Unschedulable | Outcome::Gated => {}
    }
    let victims: HashSet<&Name> = decision.victims().iter().map(|victim| &victim.uid).collect();
    assert_eq!(victims.len(), decision.victims().len(), "nobody is evicted twice: {decision:?}");
    if let Some(Ok(nomination)) = &decision.preemption {
        let there = |victim: &Arc<Pod>| victim.node.as_ref() == Some(&nomination.node);
        assert!(nomination.victims.iter().all(there), "{nomination:?}");
    }
}

fn bind(extenders: &Extenders, pod: &Pod) {
    let binder = extenders.binder_of(pod).expect("one binds");
    let bound = extenders.bind(binder, pod, "a").now_or_never().expect("nobody waits");
    if let Err((BindError::Refused(why) | BindError::Unknown(why), _)) = bound {
        assert!(!why.is_empty() && why.len() <= MAX_MESSAGE_BYTES, "{} bytes", why.len());
    }
}
