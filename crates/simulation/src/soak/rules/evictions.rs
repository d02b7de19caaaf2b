//! Evictions: for whom, of whom, and what came of them.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use serde_json::Value;

use super::{
    BoundPod, Eviction, OwnDecision, PreemptionPlan, ProcessView, Rules, SimulationRule, State, StoredClaim,
    text,
};

impl Rules {
    /// At rest: whoever evicted for a pod has placed it, unless something came in between.
    pub(in crate::soak) fn check_evictions(&self, waiting: &BTreeMap<String, i64>) {
        let state = self.state();
        let mut broken = Vec::new();
        for (process, view) in &state.processes {
            for (uid, nominations) in view.nominated.iter().filter(|(uid, _)| waiting.contains_key(*uid)) {
                let Some((at, node)) = nominations.last() else { continue };
                // Somebody at least as important may take what was made free.
                let priority = waiting[uid];
                let is_outdone =
                    |pod: &BoundPod| pod.node == *node && pod.at >= *at && pod.priority >= priority;
                // Nor could it know what it had not heard yet.
                let (nodes, pods) = (view.heard("nodes", *at), view.heard("pods", *at));
                let is_news = |pod: &BoundPod| pod.node == *node && pod.version > pods && pod.at < *at;
                let node_changed = state.nodes.get(node).and_then(|versions| versions.last());
                if node_changed.is_none_or(|(version, _)| *version > nodes)
                    || state.bound.values().any(|pod| is_outdone(pod) || is_news(pod))
                {
                    continue;
                }
                let victims: Vec<&str> = (state.evictions.iter())
                    .filter(|eviction| {
                        eviction.by == *process && eviction.node == *node && eviction.at >= *at
                    })
                    .map(|eviction| eviction.victim.as_str())
                    .collect();
                if !victims.is_empty() && state.last_disturbance < *at {
                    broken.push(format!(
                        "{process} evicted {} on {node} for pod {uid}, which still waits",
                        victims.join(", ")
                    ));
                }
            }
        }
        drop(state);
        broken.into_iter().for_each(|what| self.broken(SimulationRule::EvictionsUseful, what));
    }

    /// Nobody is evicted but for somebody more important, and nobody who was known to be leaving.
    pub(super) fn check_eviction(&self, process: &str, victim: &str) {
        let state = self.state();
        let Some(view) = state.processes.get(process) else { return };
        let last = view.decided.get(victim).and_then(|decided| decided.last());
        let is_in_nobodys_way =
            state.pending.contains(victim) && last.is_some_and(|decision| decision.node.is_none());
        let Some(pod) = state.bound.get(victim) else {
            drop(state);
            if is_in_nobodys_way {
                let what = format!("{process} evicts pod {victim}, which it knows to be on no node");
                self.broken(SimulationRule::EvictionsUseful, what);
            }
            return;
        };
        let claims =
            view.nominated.iter().flat_map(|(uid, claims)| claims.iter().map(move |claim| (uid, claim)));
        let here: Vec<_> = claims.filter(|(_, (_, node))| *node == pod.node).collect();
        let is_useful = here.iter().any(|(uid, _)| state.conduct.priority(uid) > pod.priority);
        let decided = here.iter().map(|(_, (at, _))| *at).max().unwrap_or_default();
        let was_leaving = state.conduct.is_leaving(victim, view.heard("pods", decided));
        let who = format!("{process} evicts {} from {}", pod.pod, pod.node);
        // If room was made for several at the same moment, it cannot be told for which of them this is.
        let mut preemptors = here.iter().filter(|(_, (at, _))| *at == decided).map(|(uid, _)| *uid);
        let needless = match (preemptors.next(), preemptors.next()) {
            (Some(uid), None) => state.needless.get(&(process.to_owned(), uid.clone(), decided)).cloned(),
            _ => None,
        };
        drop(state);
        if let Some(why) = needless {
            self.broken(SimulationRule::EvictionsUseful, format!("{who}, and {why}"));
        }
        if !is_useful {
            self.broken(SimulationRule::EvictionsUseful, format!("{who} for nobody more important"));
        }
        if was_leaving {
            self.broken(SimulationRule::EvictionsUseful, format!("{who}, and had heard that it leaves"));
        }
    }

    /// A pod keeps its claim to a node as long as the victims there are terminating, unless something came in between.
    pub(super) fn check_claim_is_over(&self, process: &str, uid: &str) {
        let state = self.state();
        let Some(view) = state.processes.get(process) else { return };
        let Some((at, node)) = view.nominated.get(uid).and_then(|nominations| nominations.last()) else {
            return;
        };
        let is_there = |victim: &str| state.bound.values().any(|pod| pod.pod == victim && pod.node == *node);
        let terminating = |eviction: &&Eviction| {
            eviction.by == *process
                && eviction.node == *node
                && eviction.at >= *at
                && is_there(&eviction.victim)
        };
        let victim = state.evictions.iter().find(terminating).map(|eviction| eviction.victim.clone());
        // It may have found another place, which came to nothing.
        let decided = view.decided.get(uid).into_iter().flatten();
        let was_placed = decided.into_iter().any(|decision| decision.at > *at && decision.node.is_some());
        // What happened to the node before, it may hear of only now.
        let heard = view.must_have_heard("nodes", *at);
        let is_another = state.node_changes.get(node).is_none_or(|changed| *changed > heard);
        let is_disturbed = state.last_disturbance >= *at || is_another;
        let is_spoilt = was_placed || is_disturbed || state.is_outdone(view, uid, node, *at);
        let what = victim
            .map(|victim| format!("{process} takes {node} from pod {uid}, and {victim} is still leaving it"));
        drop(state);
        if let Some(what) = what.filter(|_| !is_spoilt) {
            self.broken(SimulationRule::EvictionsUseful, what);
        }
    }

    /// At rest: nobody had pods evicted for it twice, unless something came in between.
    pub(in crate::soak) fn check_second_evictions(&self) {
        let state = self.state();
        let mut broken = Vec::new();
        for (process, view) in &state.processes {
            let evicted = |node: &str, from: Duration, to: Duration| {
                let mut evictions = state.evictions.iter();
                evictions.any(|one| one.by == *process && one.node == node && one.at >= from && one.at < to)
            };
            for (uid, nominations) in &view.nominated {
                for pair in nominations.windows(2) {
                    let [(first, node), (second, other)] = pair else { continue };
                    if state.last_disturbance < *first
                        && evicted(node, *first, *second)
                        && evicted(other, *second, Duration::MAX)
                        && !state.is_outdone(view, uid, node, *first)
                    {
                        broken.push(format!(
                            "{process} evicted on {node} and then on {other} for the same pod {uid}"
                        ));
                    }
                }
            }
        }
        drop(state);
        broken.into_iter().for_each(|what| self.broken(SimulationRule::EvictionsUseful, what));
    }
}

impl Rules {
    /// At rest: nobody was evicted who could have stayed, as far as amounts tell it. kube-scheduler, too, lets everybody stay
    /// who leaves enough, so that a run without faults evicts no fewer for the same pod on the same node.
    pub(in crate::soak) fn check_needs(&self) {
        let plans = std::mem::take(&mut self.state().plans);
        for ((process, preemptor, _), plan) in &plans {
            for victim in plan.victims.iter().filter(|victim| plan.could_stay(victim)) {
                let what = format!(
                    "{process} evicted {victim} for pod {preemptor}, which would have fitted beside it"
                );
                self.broken(SimulationRule::EvictionsUseful, what);
            }
        }
    }
}

impl PreemptionPlan {
    /// Whether there would have been enough with this victim still there, and the others gone.
    fn could_stay(&self, victim: &str) -> bool {
        let stays = |uid: &str| uid == victim || !self.victims.contains(uid);
        self.asked.iter().filter(|(_, asked)| **asked > 0).all(|(resource, asked)| {
            let there = self.there.iter().filter(|(uid, _)| stays(uid));
            let taken: i128 =
                there.filter_map(|(_, amounts)| amounts.get(resource)).copied().map(i128::from).sum();
            taken + i128::from(*asked) <= i128::from(self.given.get(resource).copied().unwrap_or(0))
        })
    }
}

impl State {
    /// A process decides to make room for a pod on a node.
    pub(super) fn room_is_made(&mut self, process: &str, uid: &str, node: &str, at: Duration) {
        if let Some(plan) = self.preemption_plan(process, uid, node, at) {
            self.plans.insert((process.to_owned(), uid.to_owned(), at), plan);
        }
        if let Some(why) = self.room_under_way(process, uid, at) {
            self.needless.insert((process.to_owned(), uid.to_owned(), at), why);
        }
    }

    /// A pod was stored: the node that its status names.
    pub(super) fn claim_is(&mut self, pod: &Value, version: u64, at: Duration) {
        let uid = text(pod, &["metadata", "uid"]);
        let node = Some(text(pod, &["status", "nominatedNodeName"])).filter(|node| !node.is_empty());
        if self.claims.get(uid).map(|claim| claim.node.as_deref()) != Some(node) {
            let claim = StoredClaim { version, at, node: node.map(str::to_owned) };
            self.claims.insert(uid.to_owned(), claim);
        }
    }

    /// Why nobody has to be evicted for a pod, as its scheduler could know: its status names a node, and somebody is leaving
    /// that for it. Whatever went wrong, also if another process began it, that is waited for, as in a run without faults;
    /// unless the claim was given up, the node has changed, or somebody at least as important has a claim to it.
    fn room_under_way(&self, process: &str, uid: &str, at: Duration) -> Option<String> {
        let view = self.processes.get(process)?;
        // Of others it cannot be told whether the node is still one for them.
        self.conduct.plain_demand(uid)?;
        let StoredClaim { version, at: stored, node } = self.claims.get(uid)?;
        let (node, heard) = (node.as_ref()?, view.must_have_heard("pods", at));
        if *version > heard || view.gave_up.get(uid).is_some_and(|given_up| given_up >= stored) {
            return None;
        }
        let earlier = |view: &ProcessView| {
            let claims = view.nominated.get(uid).into_iter().flatten();
            let claims = claims.filter(|(when, on)| *when < at && on == node);
            claims.map(|(when, _)| (*when, view.must_have_heard("nodes", *when))).max()
        };
        let (_, nodes_heard) = self.processes.values().filter_map(earlier).max()?;
        let nodes_heard = nodes_heard.min(view.must_have_heard("nodes", at));
        let priority = self.conduct.priority(uid);
        let is_rival = |(other, claims): (&String, &Vec<(Duration, String)>)| {
            let is_meant = other != uid && self.conduct.priority(other) >= priority;
            is_meant && claims.iter().any(|(_, on)| on == node)
        };
        let has_rivals = self.processes.values().any(|view| view.nominated.iter().any(is_rival));
        if has_rivals || self.node_changes.get(node).is_none_or(|changed| *changed > nodes_heard) {
            return None;
        }
        let leaves = |eviction: &&Eviction| {
            let victim = self.bound.get(&eviction.uid);
            victim.is_some_and(|victim| victim.node == *node && victim.priority < priority)
                && self.conduct.is_leaving(&eviction.uid, heard)
        };
        let victim = &self.evictions.iter().find(leaves)?.victim;
        Some(format!("{victim} is leaving {node} for the same pod {uid}"))
    }

    /// What was there when room was to be made; nothing where more than amounts counts, or where the process could not know
    /// what was there.
    fn preemption_plan(&self, process: &str, uid: &str, node: &str, at: Duration) -> Option<PreemptionPlan> {
        let view = self.processes.get(process)?;
        let asked = self.conduct.plain_demand(uid)?.clone();
        let is_claimed = |(other, claims): (&String, &Vec<(Duration, String)>)| {
            other != uid && claims.iter().any(|(_, on)| on == node)
        };
        let is_coming = |(other, decided): (&String, &Vec<OwnDecision>)| {
            let to = decided.last().and_then(|decision| decision.node.as_deref());
            to == Some(node) && !self.bound_by.contains_key(other)
        };
        let heard = view.heard("pods", at);
        let is_unheard = self.left.get(node).is_some_and(|left| *left > heard);
        if is_unheard || view.nominated.iter().any(is_claimed) || view.decided.iter().any(is_coming) {
            return None;
        }
        let there: Vec<(&String, &BoundPod)> =
            self.bound.iter().filter(|(_, pod)| pod.node == node).collect();
        if there.iter().any(|(_, pod)| !pod.is_plain || pod.version > heard) {
            return None;
        }
        let mut sizes = view.known_sizes(self.nodes.get(node), at).into_iter();
        let mut given = sizes.next()?.clone();
        for size in sizes {
            for (resource, amount) in &mut given {
                *amount = (*amount).min(size.get(resource).copied().unwrap_or(0));
            }
        }
        let there = there.into_iter().map(|(uid, pod)| (uid.clone(), pod.amounts.clone())).collect();
        Some(PreemptionPlan { asked, given, there, victims: BTreeSet::new() })
    }

    /// A process has evicted a pod from a node: for whom it made room there last. If these were several at the same moment, it
    /// cannot be told for which of them, and their plans are not judged.
    pub(super) fn is_evicted(&mut self, process: &str, victim: &str, node: &str) {
        let Some(view) = self.processes.get(process) else { return };
        let claims =
            view.nominated.iter().flat_map(|(uid, claims)| claims.iter().map(move |claim| (uid, claim)));
        let here: Vec<_> = claims.filter(|(_, (_, on))| on == node).collect();
        let Some(last) = here.iter().map(|(_, (at, _))| *at).max() else { return };
        let preemptors = here.iter().filter(|(_, (at, _))| *at == last);
        let keys: Vec<_> = preemptors.map(|(uid, _)| (process.to_owned(), (*uid).clone(), last)).collect();
        match &keys[..] {
            [key] => {
                if let Some(plan) = self.plans.get_mut(key) {
                    plan.victims.insert(victim.to_owned());
                }
            }
            several => several.iter().for_each(|key| drop(self.plans.remove(key))),
        }
    }

    /// Whether somebody at least as important as a pod has got, or is about to get, what was made free for it.
    fn is_outdone(&self, view: &ProcessView, uid: &str, node: &str, from: Duration) -> bool {
        let priority = self.conduct.priority(uid);
        let is_ahead = |pod: &BoundPod| pod.node == node && pod.at >= from && pod.priority >= priority;
        let is_nominated = |(other, claims): (&String, &Vec<(Duration, String)>)| {
            other != uid
                && self.conduct.priority(other) >= priority
                && claims.iter().any(|(at, on)| *at >= from && on == node)
        };
        self.bound.values().any(is_ahead) || view.nominated.iter().any(is_nominated)
    }
}
