//! Calling a binding off that is under way.

use std::sync::Arc;

use supercargo_model::Name;
use tokio::sync::watch;

/// Why a binding is called off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CalledOff {
    /// The pod has to go for a more important one, by the will of a plugin.
    Preempted(Name),
    /// Its deletion was asked for.
    Removed,
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
pub(super) struct BindingSignal(Arc<watch::Sender<Stage>>);

impl BindingSignal {
    /// For a binding that waits for a permission, or has something to prepare, or neither.
    pub(super) fn new(waits: bool, prepares: bool) -> Self {
        let stage = match (waits, prepares) {
            (true, _) => Stage::Waiting,
            (false, true) => Stage::Preparing,
            (false, false) => Stage::Committed,
        };
        Self(Arc::new(watch::Sender::new(stage)))
    }

    /// Calls the binding off; false if it is too late for that.
    pub(super) fn call_off(&self, why: CalledOff) -> bool {
        self.go(&[Stage::Waiting, Stage::Preparing], Stage::CalledOff(why))
    }

    /// Calls the binding off if it waits for a permission.
    pub(super) fn reject(&self, why: CalledOff) -> bool {
        self.go(&[Stage::Waiting], Stage::CalledOff(why))
    }

    /// The pod has its permission.
    pub(super) fn permitted(&self) {
        self.go(&[Stage::Waiting], Stage::Preparing);
    }

    /// Whether the pod may be bound now; from here on the binding cannot be called off.
    pub(super) fn commit(&self) -> Result<(), CalledOff> {
        self.go(&[Stage::Waiting, Stage::Preparing], Stage::Committed);
        match &*self.0.borrow() {
            Stage::CalledOff(why) => Err(why.clone()),
            _ => Ok(()),
        }
    }

    /// Whether it cannot be called off any more.
    pub(super) fn is_committed(&self) -> bool {
        *self.0.borrow() == Stage::Committed
    }

    /// Ends when the binding is called off, if it ever is.
    pub(super) async fn called_off(&self) -> CalledOff {
        let mut stages = self.0.subscribe();
        loop {
            if let Stage::CalledOff(why) = &*stages.borrow_and_update() {
                return why.clone();
            }
            if stages.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    fn go(&self, from: &[Stage], to: Stage) -> bool {
        self.0.send_if_modified(|stage| {
            let goes = from.contains(stage);
            if goes {
                *stage = to;
            }
            goes
        })
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
            let signal = BindingSignal::new(waits, prepares);
            assert_eq!(signal.commit(), Ok(()));
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
