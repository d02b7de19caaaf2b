//! PreFilter and Filter: which nodes are feasible.

use std::collections::BTreeSet;

use supercargo_model::{Cluster, Name, NodeInfo, Pod};

use super::{CycleError, Named, Profile, rejection};
use crate::{
    points::{PreFilter, PreFilterOutcome, Prepared},
    preemption::{FilterState, Nominations, Rejection},
    registry::Point,
    status::{Code, Status, Verdict},
};

/// What came of the PreFilter plugins, if none refused the pod.
pub struct PreFiltered {
    /// What they prepared.
    pub state: FilterState,
    /// The only nodes worth looking at; `None` for all.
    pub nodes: Option<BTreeSet<Name>>,
    /// The plugins that narrowed the nodes to those.
    pub narrowed_by: BTreeSet<Name>,
    /// What is said of every other node.
    pub others: Status,
}

/// How PreFilter can end.
pub enum PreFilterEnd {
    /// The nodes are looked at next.
    Go(PreFiltered),
    /// The pod is refused for every node.
    Rejected {
        /// By whom, and why. The plugin's name is empty where several narrowed the nodes to none.
        rejection: Rejection,
        /// The plugins that had narrowed the nodes until then.
        narrowed_by: BTreeSet<Name>,
        /// What was prepared until then.
        state: FilterState,
    },
}

impl Profile {
    /// Runs all PreFilter plugins.
    pub fn pre_filter(&self, cluster: &Cluster, pod: &Pod) -> Result<PreFilterEnd, CycleError> {
        let mut state = FilterState(Vec::with_capacity(self.pre_filter.len()));
        let mut nodes: Option<BTreeSet<Name>> = None;
        let mut narrowed_by = BTreeSet::new();
        let mut refused = None;
        for Named { name, plugin } in &self.pre_filter {
            match self.timed(name, Point::PreFilter, || plugin.pre_filter(cluster, pod)) {
                Ok(PreFilterOutcome::Skip) => state.0.push(None),
                Ok(PreFilterOutcome::Go { nodes: only, prepared }) => {
                    state.0.push(Some(prepared));
                    if let Some(only) = only {
                        narrowed_by.insert(name.clone());
                        nodes = Some(match nodes {
                            None => only,
                            Some(nodes) => &nodes & &only,
                        });
                    }
                    if nodes.as_ref().is_some_and(BTreeSet::is_empty) {
                        let rejection = narrowed_to_nothing(&narrowed_by);
                        return Ok(PreFilterEnd::Rejected { rejection, narrowed_by, state });
                    }
                }
                Err(status) if matches!(status.code, Code::Error | Code::Pending) => {
                    let message = status.message();
                    return Err(CycleError(format!("running PreFilter plugin {name:?}: {message}")));
                }
                Err(status) => {
                    state.0.push(None);
                    let ends_here = status.code == Code::UnschedulableAndUnresolvable;
                    refused = Some(rejection(name, status));
                    if ends_here {
                        // Nothing but this plugin's mind can change the outcome.
                        narrowed_by.clear();
                        break;
                    }
                }
            }
        }
        Ok(match refused {
            Some(rejection) => PreFilterEnd::Rejected { rejection, narrowed_by, state },
            None => PreFilterEnd::Go(PreFiltered {
                state,
                others: others_status(nodes.is_some(), &narrowed_by),
                nodes,
                narrowed_by,
            }),
        })
    }

    /// Whether all filters agree to a node.
    pub fn filter(
        &self,
        state: &FilterState,
        cluster: &Cluster,
        pod: &Pod,
        node: &NodeInfo,
    ) -> Result<(), Rejection> {
        let nothing = Prepared::nothing();
        for step in &self.filter {
            let Some(prepared) = state.of(step.prepared, &nothing) else { continue };
            let verdict =
                self.timed(&step.name, Point::Filter, || step.plugin.filter(prepared, cluster, pod, node));
            if let Err(mut status) = verdict {
                if status.code == Code::Error {
                    let message = status.message();
                    status = Status::error(format!("running {:?} filter plugin: {message}", step.name));
                }
                return Err(rejection(&step.name, status));
            }
        }
        Ok(())
    }

    /// As [`Self::filter`]; and if more important pods are nominated to the node, also as if they ran there.
    pub fn filter_with_nominated(
        &self,
        state: &FilterState,
        cluster: &Cluster,
        nominations: &Nominations,
        pod: &Pod,
        node: &NodeInfo,
    ) -> Result<(), Rejection> {
        let with_nominated = self.with_nominated(state, nominations, pod, node);
        if let Some((state, node)) = with_nominated.map_err(|status| rejection(&"".into(), status))? {
            self.filter(&state, cluster, pod, &node)?;
        }
        self.filter(state, cluster, pod, node)
    }

    /// The node, and what was prepared, as if the more important pods that are nominated to it ran there; `None` without such.
    pub(super) fn with_nominated(
        &self,
        state: &FilterState,
        nominations: &Nominations,
        pod: &Pod,
        node: &NodeInfo,
    ) -> Result<Option<(FilterState, NodeInfo)>, Status> {
        let mut ahead = nominations.ahead_of(pod, node.name()).peekable();
        if ahead.peek().is_none() {
            return Ok(None);
        }
        let (mut state, mut with_them) = (state.clone(), node.clone());
        for other in ahead {
            with_them.add_pod(other.clone());
            self.tell_added(&mut state, pod, other, &with_them)?;
        }
        Ok(Some((state, with_them)))
    }

    pub(super) fn tell_added(
        &self,
        state: &mut FilterState,
        pod: &Pod,
        added: &Pod,
        node: &NodeInfo,
    ) -> Verdict {
        self.tell(state, |plugin, prepared| plugin.add_pod(prepared, pod, added, node))
    }

    pub(super) fn tell(
        &self,
        state: &mut FilterState,
        tell: impl Fn(&dyn PreFilter, &mut Prepared) -> Verdict,
    ) -> Verdict {
        for (named, prepared) in self.pre_filter.iter().zip(&mut state.0) {
            if let Some(prepared) = prepared {
                tell(&*named.plugin, prepared)?;
            }
        }
        Ok(())
    }
}

fn list(names: &BTreeSet<Name>) -> String {
    let names: Vec<&str> = names.iter().map(|name| &**name).collect();
    names.join(" ")
}

fn narrowed_to_nothing(by: &BTreeSet<Name>) -> Rejection {
    let message = if by.len() == 1 {
        format!("node(s) didn't satisfy plugin {}", list(by))
    } else {
        format!("node(s) didn't satisfy plugin(s) [{}] simultaneously", list(by))
    };
    rejection(&"".into(), Status::unresolvable(message))
}

pub(super) fn others_status(narrowed: bool, by: &BTreeSet<Name>) -> Status {
    if narrowed {
        Status::unresolvable(format!("node(s) didn't satisfy plugin(s) [{}]", list(by)))
    } else {
        Status::new(Code::UnschedulableAndUnresolvable, [])
    }
}

impl FilterState {
    /// What a filter reads; `None` if its plugin skipped itself.
    pub(super) fn of<'a>(&'a self, index: Option<usize>, nothing: &'a Prepared) -> Option<&'a Prepared> {
        match index {
            None => Some(nothing),
            Some(index) => self.0.get(index)?.as_ref(),
        }
    }
}
