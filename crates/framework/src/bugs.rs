//! Known bugs that can be switched on, to prove that the simulation finds them. Only with the feature `bugs`, which only the
//! simulation's crate turns on: everywhere else each question is the constant `false`, and nothing of it is left.

#[cfg(feature = "bugs")]
use std::cell::Cell;

macro_rules! bugs {
    ($($(#[doc = $what:literal])+ $bug:ident,)*) => {
        /// A bug that was made before, here or in other schedulers.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Bug {
            $($(#[doc = $what])+ $bug,)*
        }

        impl Bug {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$bug,)*];

            /// Its name.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$bug => stringify!($bug),)*
                }
            }

            /// What goes wrong.
            pub fn what(self) -> &'static str {
                match self {
                    $(Self::$bug => concat!($($what),+).trim_ascii(),)*
                }
            }
        }
    };
}

bugs! {
    /// That the watch shows a pod which we have bound wakes nobody.
    OwnBindingWakesNobody,
    /// A pod loses its claim to a node while its victims are still terminating.
    NominationDroppedEarly,
    /// A kind that may not be listed counts as read.
    ForbiddenCountsAsSynced,
    /// Nobody is tried while a few pods wait for their volumes.
    WaitingPodsUseUpTheLimit,
    /// A binding does not wait for a status that is being written.
    StatusAfterBinding,
    /// A binding that got no answer, or a 5xx, counts as failed.
    UnknownOutcomeIsFailure,
    /// The lease is not asked for, neither before a decision nor before its binding is sent.
    BindsWithoutLease,
    /// A binding does not name the pod's uid.
    BindsAnyUid,
    /// What happens while a pod is being scheduled is not remembered for it.
    EventInFlightLost,
    /// A new list does not tell which objects are gone.
    RelistForgetsDeletions,
    /// A version that the server has forgotten is asked for again and again.
    GoneIsNotRelisted,
    /// That a pod's status names the claims which were made for it is not told.
    MadeClaimsUnseen,
    /// An object that was made anew while nobody watched is taken for the old one.
    RecreatedIsOld,
    /// A pod that could not be bound stays on its node in our books.
    ReservationLeaked,
    /// A pod that is gone keeps its claim to a node.
    DeletedPodKeepsNomination,
    /// That a claim to a node is given up wakes nobody.
    DroppedClaimWakesNobody,
    /// A pod that changes while it is being scheduled or bound stays as it was.
    UpdateWhileSchedulingLost,
    /// That a pod's last gate is opened is not noticed.
    GateOpenedUnseen,
    /// Pods that are kept back after an error never come back by themselves.
    BackoffNeverOver,
    /// Pods of other schedulers are not counted.
    ForeignPodsNotCounted,
    /// That somebody else binds a pod which we have assumed elsewhere ends the process.
    ForeignBindingAborts,
    /// A pod on a node that is not known ends the process.
    UnknownNodeAborts,
    /// A pod takes no room before the watch shows it on its node.
    AssumedPodNotCounted,
    /// A pod whose victims are still terminating evicts them again, or others.
    VictimsEvictedAgain,
    /// Pods are evicted for others that are no more important.
    EqualsAreEvicted,
    /// That victims leave is not noticed by the pod that waits for them.
    LeavingVictimsUnseen,
    /// A pod that is skipped or gone is still waited for as being scheduled.
    DoneForgotten,
    /// Why a pod was not placed is kept when it is gone.
    FailureKept,
    /// What a status is to say is kept when its pod is gone.
    StatusKept,
    /// Each failed attempt leaves a task behind.
    TaskLeaked,
    /// A lease is taken while somebody else's still holds.
    LeaseStolenEarly,
    /// How long a lease holds is told by the clocks of different machines.
    LeaseByWallClock,
    /// A leader goes on after its lease has run out.
    LeaseKeptAfterDeadline,
    /// Nodes that an extender refused are not waited for.
    ExtenderRefusalForgotten,
    /// An extender that does not answer is waited for without end.
    ExtenderWaitedForEver,
    /// A volume counts as written whose write got no answer.
    UnansweredVolumeWriteIsDone,
    /// What was promised to a pod that could not be bound stays given away.
    AssumedVolumeNotRestored,
    /// A cycle without any node ends the process.
    NoNodesPanics,
    /// That a host port becomes free is not noticed.
    FreedPortUnseen,
    /// That a taint is taken away is not noticed.
    RemovedTaintUnseen,
    /// That a namespace's labels change is not noticed.
    NamespaceLabelsUnseen,
    /// A node that is smaller than what it holds has room without end.
    FreeRoomWraps,
    /// Nobody is tried while a more important pod waits in vain.
    HopelessPodHoldsUpOthers,
    /// A pod's status tells why another was not placed.
    MessageOfAnotherPod,
    /// A new leader decides before its watch has shown what the last one had seen when it gave the lease back.
    HandOverNotAwaited,
    /// The lease is given back before the watch has shown all bindings that were made under it.
    ReleasedBeforeShown,
    /// Whoever is less important is evicted, also if there would be enough without.
    NobodyReprieved,
    /// A server that asks for an hour of patience is not asked again for an hour.
    PatienceWithoutEnd,
    /// A pod on a node that cannot be read as a whole holds nothing there.
    UnreadablePodNotCounted,
    /// Devices that were chosen for a claim are free for others until the watch shows them in it.
    ChosenDevicesNotKept,
    /// A scheduler that starts does not heed the claims to nodes that statuses tell of.
    ClaimsForgottenAtStart,
    /// A victim whose binding has failed meanwhile is evicted all the same.
    EvictedWhereverTheyAre,
}

#[cfg(feature = "bugs")]
thread_local! {
    static ON: Cell<Option<Bug>> = const { Cell::new(None) };
}

/// Whether a bug is switched on, in this thread.
#[cfg(feature = "bugs")]
pub fn is_on(bug: Bug) -> bool {
    ON.get() == Some(bug)
}

/// No bug is: the feature is off.
#[cfg(not(feature = "bugs"))]
#[inline(always)]
pub const fn is_on(_: Bug) -> bool {
    false
}

/// Does something with one bug switched on in this thread, or with none.
#[cfg(feature = "bugs")]
pub fn with<T>(bug: Option<Bug>, done: impl FnOnce() -> T) -> T {
    /// Switches back, also when what is done ends in a panic.
    struct Before(Option<Bug>);
    impl Drop for Before {
        fn drop(&mut self) {
            ON.set(self.0);
        }
    }
    let _before = Before(ON.replace(bug));
    done()
}

#[cfg(all(test, feature = "bugs"))]
mod tests {
    use super::*;

    #[test]
    fn a_bug_is_on_for_as_long_as_it_is_asked_for() {
        assert!(!is_on(Bug::BindsAnyUid));
        with(Some(Bug::BindsAnyUid), || {
            assert!(is_on(Bug::BindsAnyUid) && !is_on(Bug::NoNodesPanics));
            with(None, || assert!(!is_on(Bug::BindsAnyUid)));
            assert!(is_on(Bug::BindsAnyUid));
        });
        assert!(!is_on(Bug::BindsAnyUid));
    }
}
