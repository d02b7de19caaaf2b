//! The signatures that are kept: those seen more than once, within a bound of memory.

use std::{hash::BuildHasher, sync::Arc};

use supercargo_framework::{fast::Claims, profile::Profile};
use supercargo_model::{Cluster, Name, Pod, PodSpec, changes::Moment};

use crate::{
    laps::{Lap, Laps},
    signature_state::{Scope, SignatureState},
};

type HashMap<K, V> = std::collections::HashMap<K, V, foldhash::fast::RandomState>;

/// About how much memory kept signatures may take.
const MEMORY_BYTES: usize = 256 * 1024 * 1024;
/// Columns of eight bytes that a signature has, roughly.
const COLUMNS: usize = 12;
/// How often a signature holds what is in its spec: the plugins' parts keep copies of what they need.
const COPIES_OF_SPEC: usize = 3;
const MIN_KEPT: usize = 8;
/// One that was not asked for while so many pods came is no longer in use.
const IN_USE_FOR: u64 = 1024;
const MAX_KEPT: usize = 1024;
/// How many specs are remembered as seen.
const REMEMBERED: usize = 16 * 1024;

/// The signatures.
#[derive(Default)]
pub(crate) struct SignatureCache {
    kept: Vec<Option<Kept>>,
    free: Vec<usize>,
    /// What the kept ones take together.
    bytes: usize,
    by_spec: HashMap<usize, Vec<usize>>,
    by_stem: HashMap<Stem, usize>,
    /// For signatures that are new: its memory stays warm when every pod is of another signature.
    scratch: Option<SignatureState>,
    /// When a spec came last, by its address, or a stem, by its hash. An address that is used again makes a signature kept too
    /// early, no more.
    seen: HashMap<usize, u64>,
    clock: u64,
    last: Last,
}

/// Where the signature is that was asked for last.
#[derive(Clone, Copy, Default)]
enum Last {
    Kept(usize),
    #[default]
    Scratch,
}

struct Kept {
    signature: SignatureState,
    used_at: u64,
    bytes: usize,
    /// How often everything had been invalidated when it was last found to be of no use.
    missed_at: Option<u64>,
    /// Where its pods have claims of their own.
    stem: Option<Stem>,
}

/// What pods have in common that differ in the names of their claims, as those of a StatefulSet do.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Stem {
    profile: usize,
    namespace: Name,
    spec: PodSpec,
}

/// What is known about the signature that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// Everything.
    UpToDate,
    /// What plugins are to its pods: nothing has been worked out from that, and it is not kept for the next of them.
    Compiled,
}

/// About how much memory a signature takes.
fn bytes(cluster: &Cluster, pod: &Pod) -> usize {
    cluster.columns().len() * COLUMNS * size_of::<f64>() + COPIES_OF_SPEC * pod.spec.bytes
}

fn address(pod: &Pod) -> usize {
    Arc::as_ptr(&pod.spec) as usize
}

impl SignatureCache {
    /// The signature of a pod, up to date; `None` if a plugin has no fast form for it.
    pub(crate) fn of(
        &mut self,
        profile: &Profile,
        index: usize,
        cluster: &Cluster,
        pod: &Arc<Pod>,
        scope: Scope,
        laps: &mut Laps<'_>,
    ) -> Option<&mut SignatureState> {
        let found = self.find_or_compile(profile, index, cluster, pod, scope, laps)?;
        let signature = self.last()?;
        if found == Found::Compiled {
            signature.catch_up(cluster, scope, pod, laps);
        }
        (!signature.has_failed()).then_some(signature)
    }

    /// Finds the signature of a pod, or compiles it; `None` if a plugin has no fast form for it.
    pub(crate) fn find_or_compile(
        &mut self,
        profile: &Profile,
        index: usize,
        cluster: &Cluster,
        pod: &Arc<Pod>,
        scope: Scope,
        laps: &mut Laps<'_>,
    ) -> Option<Found> {
        self.clock += 1;
        self.last = match self.find(index, pod) {
            Some(place) => Last::Kept(place),
            None => {
                // Where everything changes between two pods of a template, nothing that is kept of it is of use.
                let invalidations = cluster.changes().invalidations();
                let last =
                    if !self.is_new(address(pod), invalidations) && !self.is_crowded(bytes(cluster, pod)) {
                        Last::Kept(self.keep(profile, index, cluster, pod, None)?)
                    } else if let Some(place) = self.of_siblings(profile, index, cluster, pod) {
                        Last::Kept(place)
                    } else {
                        self.use_scratch(profile, index, cluster, pod)?;
                        Last::Scratch
                    };
                laps.lap(Lap::Prepare);
                last
            }
        };
        if let Last::Kept(place) = self.last {
            let kept = self.kept[place].as_mut()?;
            kept.used_at = self.clock;
            if kept.signature.catch_up(cluster, scope, pod, laps).is_some() {
                return Some(Found::UpToDate);
            }
            // Where everything changes between two pods of a template, what is worked out for one of them is of no use to the
            // next: the memory that is warm does as well.
            let invalidations = cluster.changes().invalidations();
            let comes_again = kept.missed_at.replace(invalidations) == Some(invalidations);
            let claims = kept.signature.claims();
            if comes_again || claims == Claims::Differ {
                kept.signature.reuse(profile, index, cluster, pod, claims)?;
                laps.lap(Lap::Prepare);
                kept.signature.catch_up(cluster, scope, pod, laps);
                return Some(Found::UpToDate);
            }
            self.use_scratch(profile, index, cluster, pod)?;
            self.last = Last::Scratch;
            laps.lap(Lap::Prepare);
        }
        Some(Found::Compiled)
    }

    /// The signature that was asked for last.
    pub(crate) fn last(&mut self) -> Option<&mut SignatureState> {
        match self.last {
            Last::Kept(place) => Some(&mut self.kept.get_mut(place)?.as_mut()?.signature),
            Last::Scratch => self.scratch.as_mut(),
        }
    }

    /// Follows the cluster back to a moment: it is as it was then, and its log still tells of what came and left since.
    pub(crate) fn go_back(&mut self, cluster: &Cluster, to: Moment) {
        let kept = self.kept.iter_mut().flatten().map(|kept| &mut kept.signature);
        kept.chain(&mut self.scratch).for_each(|signature| {
            signature.forget_room();
            signature.go_back(cluster, to);
        });
    }

    fn find(&self, index: usize, pod: &Pod) -> Option<usize> {
        // Pods of a template often come one after another.
        if let Last::Kept(place) = self.last
            && self.is_at(place, index, pod)
        {
            return Some(place);
        }
        let places = self.by_spec.get(&address(pod))?;
        places.iter().copied().find(|place| self.is_at(*place, index, pod))
    }

    fn is_at(&self, place: usize, index: usize, pod: &Pod) -> bool {
        matches!(self.kept.get(place), Some(Some(kept)) if kept.signature.is_of(index, pod))
    }

    /// The signature of pods that differ from this one in the names of their claims; `None` if it names none, or is the first.
    fn of_siblings(
        &mut self,
        profile: &Profile,
        index: usize,
        cluster: &Cluster,
        pod: &Arc<Pod>,
    ) -> Option<usize> {
        let spec = pod.spec.without_claim_names()?;
        let stem = Stem { profile: index, namespace: pod.namespace.clone(), spec };
        if let Some(place) = self.by_stem.get(&stem) {
            return Some(*place);
        }
        let hash = self.by_stem.hasher().hash_one(&stem);
        if self.is_new(hash as usize, 0) {
            return None;
        }
        self.keep(profile, index, cluster, pod, Some(stem))
    }

    /// Whether it has not come before, or in another age.
    fn is_new(&mut self, spec: usize, age: u64) -> bool {
        if self.seen.len() >= REMEMBERED {
            self.seen.clear();
        }
        self.seen.insert(spec, age) != Some(age)
    }

    fn use_scratch(
        &mut self,
        profile: &Profile,
        index: usize,
        cluster: &Cluster,
        pod: &Arc<Pod>,
    ) -> Option<()> {
        match &mut self.scratch {
            Some(scratch) => scratch.reuse(profile, index, cluster, pod, Claims::Same),
            None => {
                self.scratch = Some(SignatureState::new(profile, index, cluster, pod, Claims::Same)?);
                Some(())
            }
        }
    }

    fn keep(
        &mut self,
        profile: &Profile,
        index: usize,
        cluster: &Cluster,
        pod: &Arc<Pod>,
        stem: Option<Stem>,
    ) -> Option<usize> {
        let claims = if stem.is_some() { Claims::Differ } else { Claims::Same };
        let signature = SignatureState::new(profile, index, cluster, pod, claims)?;
        let bytes = bytes(cluster, pod);
        self.make_room(bytes);
        let place = self.free.pop().unwrap_or_else(|| {
            self.kept.push(None);
            self.kept.len() - 1
        });
        self.bytes += bytes;
        match &stem {
            Some(stem) => drop(self.by_stem.insert(stem.clone(), place)),
            None => self.by_spec.entry(address(pod)).or_default().push(place),
        }
        self.kept[place] = Some(Kept { signature, used_at: self.clock, bytes, missed_at: None, stem });
        Some(place)
    }

    fn has_room(&self, bytes: usize) -> bool {
        let count = self.kept.len() - self.free.len();
        count < MIN_KEPT || (count < MAX_KEPT && self.bytes + bytes <= MEMORY_BYTES)
    }

    /// Whether room could be made for one more only by forgetting another that is in use. Where more templates alternate than can be
    /// kept, keeping the next one in place of the last would help none of them.
    fn is_crowded(&self, bytes: usize) -> bool {
        let in_use = || {
            let oldest = self.kept[self.least_recently_used()].as_ref();
            oldest.is_some_and(|kept| self.clock - kept.used_at < IN_USE_FOR)
        };
        !self.has_room(bytes) && in_use()
    }

    /// Forgets those that were not used for longest, until there is room for one more.
    fn make_room(&mut self, bytes: usize) {
        loop {
            if self.has_room(bytes) {
                return;
            }
            let place = self.least_recently_used();
            let Some(old) = self.kept[place].take() else {
                return;
            };
            self.bytes -= old.bytes;
            self.free.push(place);
            self.forget(&old, place);
        }
    }

    fn least_recently_used(&self) -> usize {
        let kept = self.kept.iter().enumerate().filter_map(|(place, kept)| Some((place, kept.as_ref()?)));
        kept.min_by_key(|(_, kept)| kept.used_at).map_or(0, |(place, _)| place)
    }

    fn forget(&mut self, kept: &Kept, place: usize) {
        if let Some(stem) = &kept.stem {
            self.by_stem.remove(stem);
            return;
        }
        let address = address(kept.signature.pod());
        if let Some(places) = self.by_spec.get_mut(&address) {
            places.retain(|other| *other != place);
            if places.is_empty() {
                self.by_spec.remove(&address);
            }
        }
    }
}
