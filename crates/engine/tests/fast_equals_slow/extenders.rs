//! Pods that extenders have a say about: the same questions and the same choice on both paths, whatever the extenders answer and
//! whatever happens to the cluster while they do.

use std::sync::Arc;

use supercargo_engine::{
    Engine, Placement,
    extender_calls::{
        CycleStep, ExtenderAnswer, ExtenderAnswers, ExtenderCall, ExtenderFailure, ExtenderRole, PlaceStep,
        Sieved,
    },
};
use supercargo_model::{Name, Pod, testing::Random};

use crate::{SHAPES, Scene, engine, events::event, objects::pod};

const RUNS: u64 = 90;
const STEPS: usize = 60;

fn roles(random: &mut Random) -> Vec<ExtenderRole> {
    let role = |random: &mut Random, i: usize| ExtenderRole {
        name: format!("http://extender-{i}").into(),
        filters: !random.chance(3),
        weight: (!random.chance(3)).then(|| 1 + random.below(3) as i32),
        ignorable: random.chance(2),
        ..ExtenderRole::default()
    };
    (0..1 + random.below(3)).map(|i| role(random, i)).collect()
}

fn failure(random: &mut Random) -> Option<ExtenderFailure> {
    let invalid = random.chance(2);
    random.chance(12).then(|| ExtenderFailure { message: "out of order".to_owned(), invalid })
}

fn sieved(random: &mut Random, nodes: &[Name]) -> Sieved {
    let strict = 1 + random.below(6);
    let mut sieved = Sieved { passed: vec![true; nodes.len()], ..Sieved::default() };
    for (passed, node) in sieved.passed.iter_mut().zip(nodes).filter(|_| strict < 5) {
        *passed = !random.chance(strict);
        match random.below(3) {
            _ if *passed => {}
            0 => drop(sieved.failed.insert(node.clone(), "no gpu".to_owned())),
            1 => drop(sieved.unresolvable.insert(node.clone(), "never".to_owned())),
            _ => {}
        }
    }
    sieved
}

fn points(random: &mut Random, nodes: &[Name]) -> Vec<i64> {
    let most = if random.chance(20) { usize::MAX / 2 } else { 11 };
    nodes.iter().map(|_| random.below(most) as i64).collect()
}

fn answer(random: &mut Random, call: &ExtenderCall) -> ExtenderAnswer {
    match call {
        ExtenderCall::Filter { nodes, .. } => {
            ExtenderAnswer::Filter(failure(random).map_or_else(|| Ok(sieved(random, nodes)), Err))
        }
        ExtenderCall::Prioritize { extenders, nodes } => {
            let mut one = || failure(random).map_or_else(|| Ok(points(random, nodes)), Err);
            ExtenderAnswer::Prioritize(extenders.iter().map(|_| one()).collect())
        }
        ExtenderCall::Preempt { .. } => ExtenderAnswer::Preempt(Ok(Vec::new())),
    }
}

/// One decides on the fast path, the other on the full one; both see the same.
struct Attempt<'a> {
    fast: &'a mut Engine,
    slow: &'a mut Engine,
    answers: [ExtenderAnswers; 2],
}

impl Attempt<'_> {
    /// What is to be asked next. At the end: nothing, and whether the choice was made on the fast path.
    fn step(&mut self, pod: &Arc<Pod>, at: &str) -> Result<ExtenderCall, bool> {
        let fast = self.fast.place_with(pod, &mut self.answers[0]).expect("a profile for the pod");
        let slow = self.slow.decide_with(pod, &mut self.answers[1]).expect("a profile for the pod");
        assert_eq!(self.fast.inspect().next_start(), self.slow.inspect().next_start(), "{at}");
        match (fast, slow) {
            (PlaceStep::Call(fast), CycleStep::Call(slow)) => {
                assert_eq!(fast, slow, "{at}");
                Ok(fast)
            }
            (PlaceStep::Placed(placement), CycleStep::Decided(slow)) => {
                assert_eq!(placement.node(), slow.node(), "{at}");
                match placement {
                    Placement::On { total, ties, feasible, .. } => {
                        let expected = (slow.best_total(), slow.best.len(), slow.feasible.len());
                        assert_eq!((Some(total), ties, feasible), expected, "{at}");
                        Err(true)
                    }
                    Placement::Decided(decided) => {
                        assert_eq!(decided.message(), slow.message(), "{at}");
                        assert_eq!(decided.failure(), slow.failure(), "{at}");
                        Err(false)
                    }
                }
            }
            (fast, slow) => panic!("{at}: {fast:?}, but {slow:?}"),
        }
    }
}

/// Attempts, and how many of them ended on the fast path.
fn run(seed: u64) -> (usize, usize) {
    let scene = Scene { preempts: false, ..Scene::of(seed) };
    let mut random = Random(!seed);
    let roles = roles(&mut random);
    let (mut fast, mut slow) = (engine(seed, &scene, roles.clone()), engine(seed, &scene, roles.clone()));
    let templates: Vec<Pod> =
        (0..SHAPES).map(|i| pod(&mut random, &format!("t{i}"), scene.one_in_has_volumes())).collect();
    let waiting: Vec<Arc<Pod>> = templates.iter().map(|pod| fast.admit(Arc::new(pod.clone()))).collect();
    let (mut attempts, mut on_fast_path, mut serial) = (0, 0, 0);
    for step in 0..STEPS {
        let pod = &waiting[random.below(SHAPES)];
        let mut attempt = Attempt { fast: &mut fast, slow: &mut slow, answers: Default::default() };
        let at = format!("seed {seed}, step {step}");
        loop {
            match attempt.step(pod, &at) {
                Ok(call) => {
                    let answered = answer(&mut random, &call);
                    for answers in &mut attempt.answers {
                        answers.add(&roles, call.clone(), answered.clone());
                    }
                }
                Err(was_fast) => {
                    on_fast_path += usize::from(was_fast);
                    break;
                }
            }
            // Something happens while the extender thinks, or does not.
            if random.chance(3) {
                let (mut same, mut twin_serial) = (Random(random.0), serial);
                event(&mut random, attempt.fast, &templates, &mut serial, &scene);
                event(&mut same, attempt.slow, &templates, &mut twin_serial, &scene);
            }
        }
        attempts += 1;
        let (mut same, mut twin_serial) = (Random(random.0), serial);
        event(&mut random, &mut fast, &templates, &mut serial, &scene);
        event(&mut same, &mut slow, &templates, &mut twin_serial, &scene);
    }
    (attempts, on_fast_path)
}

#[test]
fn extenders_are_asked_the_same_and_the_same_comes_of_it() {
    if let Ok(seed) = std::env::var("SUPERCARGO_SEED") {
        run(seed.parse().expect("a number"));
        return;
    }
    let (mut attempts, mut on_fast_path) = (0, 0);
    for seed in 0..RUNS {
        let (more, fast) = run(seed);
        attempts += more;
        on_fast_path += fast;
    }
    assert_eq!(attempts, RUNS as usize * STEPS);
    assert!(on_fast_path > attempts / 4, "only {on_fast_path} of {attempts} attempts ended on the fast path");
}
