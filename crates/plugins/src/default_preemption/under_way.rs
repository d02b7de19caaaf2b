//! Who waits for whom: the victims that were told to go, and the pods that they go for.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use supercargo_framework::bugs::{self, Bug};
use supercargo_model::{Key, Name, Pod};

/// The preemptions that are under way.
#[derive(Default)]
pub(super) struct UnderWay(Mutex<State>);

#[derive(Default)]
struct State {
    /// The pods that are not tried meanwhile, by uid.
    preemptors: BTreeSet<Name>,
    victims: ExpectedVictims,
    /// The pods that wait for the victims of others, by the node that those are on.
    bystanders: HashMap<Name, BTreeSet<Name>>,
}

/// Who may be tried again when a preemption has ended.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Released {
    /// Those that were held back for the same victims.
    pub(super) preemptors: Vec<Name>,
    /// Those that were tried in vain meanwhile. If nobody left, no event tells them.
    pub(super) bystanders: BTreeSet<Name>,
}

impl UnderWay {
    /// A pod is not tried until its victims are seen leaving a node.
    pub(super) fn begin(&self, preemptor: &Name, node: &Name, victims: &[Arc<Pod>]) {
        let mut state = self.locked();
        let State { preemptors, victims: expected, .. } = &mut *state;
        preemptors.insert(preemptor.clone());
        expected.expect(preemptor, node, victims);
    }

    /// Whether a pod has to wait.
    pub(super) fn holds(&self, preemptor: &str) -> bool {
        self.locked().preemptors.contains(preemptor)
    }

    /// Whether a victim is expected to leave a node. A pod that asks waits for it, and is told if that comes to nothing.
    pub(super) fn expects_on(&self, node: &str, asking: &Name) -> bool {
        let mut state = self.locked();
        let expected = state.victims.by_node.contains_key(node);
        if expected {
            state.bystanders.entry(node.into()).or_default().insert(asking.clone());
        }
        expected
    }

    /// A pod leaves, or has left: if no other victim is expected to leave its node, those that wait for the room may be
    /// tried again. These are they.
    pub(super) fn leaves(&self, victim: &Key) -> Vec<Name> {
        if bugs::is_on(Bug::LeavingVictimsUnseen) {
            return Vec::new();
        }
        let mut state = self.locked();
        let node = state.victims.node_of.get(victim).cloned();
        let released = state.victims.leaves(victim);
        for preemptor in &released {
            state.preemptors.remove(preemptor);
        }
        // That the victims are gone is an event, and tells those who only looked on.
        if let Some(node) = node.filter(|node| !state.victims.by_node.contains_key(node)) {
            state.bystanders.remove(&node);
        }
        released
    }

    /// Whatever is seen on a node, a pod may be tried again; and with it others, whom no event tells.
    pub(super) fn end(&self, preemptor: &Name, node: &str) -> Released {
        let mut state = self.locked();
        let preemptors = state.victims.forget(preemptor);
        for other in &preemptors {
            state.preemptors.remove(other);
        }
        state.preemptors.remove(preemptor);
        Released { preemptors, bystanders: state.bystanders.remove(node).unwrap_or_default() }
    }

    /// How many pods and nodes something is kept for.
    pub(super) fn len(&self) -> usize {
        let State { preemptors, victims, bystanders } = &*self.locked();
        preemptors.len() + victims.by_node.len() + victims.node_of.len() + bystanders.len()
    }

    fn locked(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The victims whose deletion the watch has not shown yet: by the node that they are on, and the pod that they go for.
///
/// A node's preemptors wait for all of its victims, whomever those go for: pods of the same priority count each other as
/// there already, so that one that is tried too early finds its room taken and evicts somebody else.
#[derive(Default)]
struct ExpectedVictims {
    by_node: HashMap<Name, BTreeMap<Name, BTreeSet<Key>>>,
    node_of: HashMap<Key, Name>,
}

impl ExpectedVictims {
    fn expect(&mut self, preemptor: &Name, node: &Name, victims: &[Arc<Pod>]) {
        self.forget(preemptor);
        let keys: BTreeSet<Key> = victims.iter().map(|victim| victim.key()).collect();
        self.node_of.extend(keys.iter().map(|victim| (victim.clone(), node.clone())));
        self.by_node.entry(node.clone()).or_default().insert(preemptor.clone(), keys);
    }

    /// A pod leaves. The pods that wait for nobody on its node any more.
    fn leaves(&mut self, victim: &Key) -> Vec<Name> {
        let Some(node) = self.node_of.remove(victim) else { return Vec::new() };
        for victims in self.by_node.get_mut(&node).into_iter().flat_map(BTreeMap::values_mut) {
            victims.remove(victim);
        }
        self.finished(&node)
    }

    /// A pod waits no longer. The others that wait for nobody on its node any more.
    fn forget(&mut self, preemptor: &Name) -> Vec<Name> {
        let Some(node) = self.by_node.iter().find(|(_, group)| group.contains_key(preemptor)) else {
            return Vec::new();
        };
        let node = node.0.clone();
        let group = self.by_node.entry(node.clone()).or_default();
        let victims = group.remove(preemptor).unwrap_or_default();
        for victim in victims.iter().filter(|victim| !group.values().any(|others| others.contains(victim))) {
            self.node_of.remove(victim);
        }
        self.finished(&node)
    }

    fn finished(&mut self, node: &Name) -> Vec<Name> {
        let is_finished = |group: &mut BTreeMap<Name, BTreeSet<Key>>| group.values().all(BTreeSet::is_empty);
        match self.by_node.get_mut(node).is_some_and(is_finished) {
            true => self.by_node.remove(node).unwrap_or_default().into_keys().collect(),
            false => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use supercargo_model::testing::pod;

    use super::*;

    fn victim(name: &str) -> Arc<Pod> {
        pod(name).pod()
    }

    #[test]
    fn those_who_waited_for_the_same_node_are_told_when_a_preemption_is_given_up() {
        let (under_way, node) = (UnderWay::default(), "n".into());
        let (first, second): (Name, Name) = ("first".into(), "second".into());
        under_way.begin(&first, &node, &[victim("a")]);
        under_way.begin(&second, &node, &[victim("b")]);
        under_way.leaves(&victim("a").key());
        assert!(under_way.holds(&first), "the other's victim is still there");
        assert_eq!(under_way.end(&second, &node).preemptors, std::slice::from_ref(&first));
        assert!(!under_way.holds(&first) && !under_way.holds(&second));
    }

    #[test]
    fn a_victim_is_expected_until_it_leaves() {
        let (under_way, node) = (UnderWay::default(), "n".into());
        under_way.begin(&"first".into(), &node, &[victim("a")]);
        let looks_on = "second".into();
        assert!(under_way.expects_on("n", &looks_on) && !under_way.expects_on("other", &looks_on));
        under_way.leaves(&victim("a").key());
        assert!(!under_way.expects_on("n", &looks_on));
        assert!(under_way.locked().bystanders.is_empty(), "the victim's deletion tells them");
    }

    #[test]
    fn whoever_looked_on_is_told_when_a_preemption_comes_to_nothing() {
        let (under_way, node, looks_on) = (UnderWay::default(), "n".into(), Name::from("second"));
        under_way.begin(&"first".into(), &node, &[victim("a")]);
        assert!(under_way.expects_on("n", &looks_on));
        // The preemptor itself is not among those to be told: whoever ends its preemption has it at hand.
        let released = under_way.end(&"first".into(), &node);
        assert_eq!(released, Released { preemptors: vec![], bystanders: [looks_on].into() });
        assert_eq!(under_way.end(&"first".into(), &node), Released::default());
    }
}
