//! Calling a binding off that is under way.

use std::{
    future::poll_fn,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Poll, Waker},
};

use supercargo_model::Name;

use crate::{preemption::Rejection, status::Status};

/// Why a binding is called off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CalledOff {
    /// The pod has to go for a more important one, by the will of a plugin.
    Preempted(Name),
    /// Its deletion was asked for.
    Removed,
}

impl CalledOff {
    /// How a wait for permission ends that is called off, in kube-scheduler's words.
    pub fn on_permit(self) -> Rejection {
        match self {
            Self::Preempted(plugin) => Rejection { plugin, status: Status::error("preempted") },
            Self::Removed => Rejection { plugin: Name::default(), status: Status::unschedulable("removed") },
        }
    }

    /// The same while the first of the PreBind plugins that have something to do is at work.
    pub fn in_pre_bind(self, plugin: &str) -> String {
        let cause = match self {
            Self::Preempted(by) => format!("preempted by {by}"),
            Self::Removed => "removed".to_owned(),
        };
        format!("running PreBind plugin \"{plugin}\": {cause}")
    }
}

/// How far a binding has come, as far as calling it off is concerned.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Stage {
    /// It waits for a permission.
    Waiting,
    /// PreBind is at work.
    Preparing,
    /// The pod is bound next, or has been: nothing can be called off any more.
    Committed,
    CalledOff(CalledOff),
}

/// Whether a binding may go on. Clones are about the same binding.
#[derive(Clone)]
pub struct BindingSignal(Arc<Mutex<State>>);

struct State {
    stage: Stage,
    /// The binding, if it wants to know that it is called off.
    listener: Option<Waker>,
}

impl BindingSignal {
    /// For a binding that waits for a permission, or has something to prepare, or neither.
    pub fn new(waits: bool, prepares: bool) -> Self {
        let stage = match (waits, prepares) {
            (true, _) => Stage::Waiting,
            (false, true) => Stage::Preparing,
            (false, false) => Stage::Committed,
        };
        Self(Arc::new(Mutex::new(State { stage, listener: None })))
    }

    fn locked(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls the binding off; false if it is too late for that.
    pub fn call_off(&self, why: CalledOff) -> bool {
        self.go(&[Stage::Waiting, Stage::Preparing], Stage::CalledOff(why))
    }

    /// Calls the binding off if it waits for a permission.
    pub fn reject(&self, why: CalledOff) -> bool {
        self.go(&[Stage::Waiting], Stage::CalledOff(why))
    }

    /// The pod has its permission.
    pub fn permitted(&self) {
        self.go(&[Stage::Waiting], Stage::Preparing);
    }

    /// Whether the pod may be bound now; from here on the binding cannot be called off.
    pub fn commit(&self) -> Result<(), CalledOff> {
        self.go(&[Stage::Waiting, Stage::Preparing], Stage::Committed);
        match &self.locked().stage {
            Stage::CalledOff(why) => Err(why.clone()),
            _ => Ok(()),
        }
    }

    /// Whether it cannot be called off any more.
    pub fn is_committed(&self) -> bool {
        self.locked().stage == Stage::Committed
    }

    /// Ends when the binding is called off, if it ever is. Only the binding itself listens.
    pub async fn called_off(&self) -> CalledOff {
        poll_fn(|context| {
            let mut state = self.locked();
            match &state.stage {
                Stage::CalledOff(why) => Poll::Ready(why.clone()),
                _ => {
                    state.listener = Some(context.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }

    fn go(&self, from: &[Stage], to: Stage) -> bool {
        let mut state = self.locked();
        let goes = from.contains(&state.stage);
        if goes {
            state.stage = to;
        }
        let ends = matches!(state.stage, Stage::CalledOff(_));
        let listener = if ends { state.listener.take() } else { None };
        drop(state);
        if let Some(listener) = listener {
            listener.wake();
        }
        goes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_committed_cannot_be_called_off() {
        // (waits, prepares, called off before it commits)
        for (waits, prepares, called_off) in
            [(true, false, true), (true, true, true), (false, true, true), (false, false, false)]
        {
            let signal = BindingSignal::new(waits, prepares);
            assert_eq!(signal.clone().call_off(CalledOff::Preempted("P".into())), called_off);
            assert_eq!(signal.commit().is_err(), called_off);
            assert_eq!(signal.is_committed(), !called_off);
            let signal = BindingSignal::new(waits, prepares);
            assert_eq!(signal.commit(), Ok(()));
            assert!(signal.is_committed());
            assert!(!signal.call_off(CalledOff::Preempted("P".into())));
        }
    }

    #[test]
    fn only_who_waits_is_rejected() {
        let signal = BindingSignal::new(true, true);
        signal.permitted();
        assert!(!signal.reject(CalledOff::Removed));
        assert!(BindingSignal::new(true, true).reject(CalledOff::Removed));
    }
}
