//! Finds candidates on some parts of a trace, and judges them on the others.

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use supercargo_config::Configuration;
use supercargo_framework::registry::Registry;
use supercargo_manifest::{Problem, Problems};
use supercargo_model::random::Random;

use super::{Gains, Objective, TuningCandidate, blocks::blocks, space::Space};
use crate::{
    measures::{Measures, PodMix},
    replay::{ReplayOptions, replay},
    trace::Trace,
};

/// Into how many parts a trace is cut.
const PARTS: usize = 5;
/// Seeds that what was found is judged with: ties are broken in another way by each.
const SEEDS: u64 = 3;
/// A part with fewer pods shows nothing.
const MIN_PODS_OF_PART: usize = 10;
/// The best so many are built upon.
const PARENTS: usize = 4;
/// What is kept of the time for judging, at least.
const JUDGING_SHARE: f64 = 0.1;
/// Broken constraints weigh more than any gain.
const BROKEN: f64 = 1e6;
/// The samples over time are of no interest here, but for the extremes.
const SAMPLES: u32 = 20;

/// When the search ends.
pub struct SearchLimits<'l> {
    /// All of it takes about so long.
    pub time: Duration,
    /// So many candidates are tried at most.
    pub candidates: Option<usize>,
    /// Set by whoever wants it to end now, with what has been found so far.
    pub stop: &'l AtomicBool,
}

/// How far it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SearchProgress {
    /// Candidates that were tried.
    pub candidates: usize,
    /// How much of the time has passed, in thousandths.
    pub permille: usize,
}

/// A part that was held back while a candidate was found on the others.
#[derive(Clone, Debug)]
pub struct HeldBack {
    /// How many pods come in it, those that run at its beginning included.
    pub pods: usize,
    /// What the base came to, the mean over seeds.
    pub base: f64,
    /// What the candidate came to.
    pub found: f64,
    /// The gain as a share of the base, by seed.
    pub gains: Vec<f64>,
    /// Constraints that the candidate breaks.
    pub broken: Vec<String>,
}

/// What was found.
#[derive(Debug)]
pub struct SearchResult {
    /// How many candidates were tried.
    pub candidates: usize,
    /// Each part, judged with what was found on the others.
    pub held_back: Vec<HeldBack>,
    /// The gains of these, the mean over seeds.
    pub gains: Gains,
    /// The best of all over all parts, with its gain in each.
    pub best: Configuration,
    /// What it changes.
    pub changes: Vec<String>,
    /// Its gains in all parts. It has been chosen by these: they prove nothing by themselves.
    pub best_gains: Gains,
    /// Whether the parts that were held back confirm it.
    pub is_confirmed: bool,
}

/// Searches over one trace, from one base.
pub struct Tuner<'t> {
    space: Space<'t>,
    registry: &'t Registry,
    mix: PodMix,
    parts: Vec<Trace>,
    objective: &'t Objective,
    seed: u64,
    known: HashMap<(TuningCandidate, usize, u64), Value>,
    tried: HashSet<TuningCandidate>,
    /// How long a replay of a part takes.
    pace: Duration,
}

/// What a candidate came to on a part.
#[derive(Clone, Debug)]
struct Value {
    cost: f64,
    excess: f64,
    broken: Vec<String>,
}

impl Value {
    fn of(objective: &Objective, measures: &Measures) -> Self {
        Self {
            cost: objective.cost(measures),
            excess: objective.excess(measures),
            broken: objective.broken(measures).into_iter().map(str::to_owned).collect(),
        }
    }
}

/// A candidate on a part with a seed.
type Job = (TuningCandidate, usize, u64);

impl<'t> Tuner<'t> {
    /// Ready to search.
    ///
    /// # Errors
    ///
    /// If the trace is too short to hold parts of it back.
    pub fn new(
        trace: &Trace,
        mix: PodMix,
        base: &Configuration,
        registry: &'t Registry,
        objective: &'t Objective,
        seed: u64,
    ) -> Result<Self, Problems> {
        let pods = trace.pods();
        if pods < PARTS * MIN_PODS_OF_PART {
            let least = PARTS * MIN_PODS_OF_PART;
            let message =
                format!("{pods} pods are too few to hold parts of the trace back: it takes {least}");
            return Err(Problem::error(message).hint("record for longer").into());
        }
        Ok(Self {
            space: Space::new(base, registry, &mix.resources),
            registry,
            mix,
            parts: blocks(trace, PARTS),
            objective,
            seed,
            known: HashMap::new(),
            tried: HashSet::new(),
            pace: Duration::ZERO,
        })
    }

    /// Searches until the limits, and judges.
    ///
    /// # Errors
    ///
    /// If the base itself cannot be replayed.
    pub fn run(
        &mut self,
        limits: &SearchLimits<'_>,
        mut progress: impl FnMut(SearchProgress),
    ) -> Result<SearchResult, Problems> {
        let began = Instant::now();
        let (base, seed) = (self.space.base(), self.seed);
        let everywhere = |candidate: &TuningCandidate| -> Vec<Job> {
            (0..PARTS).map(|part| (candidate.clone(), part, seed)).collect()
        };
        let jobs = everywhere(&base);
        self.run_jobs(jobs, None)?;
        let mut random = Random(self.seed);
        // What is tried whatever the trace is the same for all splits.
        let mut populations: Vec<Vec<TuningCandidate>> = vec![vec![base.clone()]; PARTS];
        let mut queue: Vec<Vec<(usize, TuningCandidate)>> = self
            .space
            .first()
            .into_iter()
            .map(|first| (0..PARTS).map(|s| (s, first.clone())).collect())
            .collect();
        queue.reverse();
        while !self.is_over(limits, began) {
            let round = queue.pop().unwrap_or_else(|| self.children(&populations, &mut random));
            let jobs = round.iter().flat_map(|(split, candidate)| {
                let training = (0..PARTS).filter(move |part| part != split);
                training.map(move |part| (candidate.clone(), part, seed))
            });
            let jobs: Vec<Job> = jobs.collect();
            self.run_jobs(jobs, Some((limits, began)))?;
            for (split, candidate) in round {
                self.tried.insert(candidate.clone());
                if self.training_score(&candidate, split).is_some() {
                    populations[split].push(candidate);
                }
            }
            let permille =
                (1000.0 * began.elapsed().as_secs_f64() / limits.time.as_secs_f64().max(0.001)) as usize;
            progress(SearchProgress { candidates: self.tried.len(), permille: permille.min(1000) });
        }
        let winners: Vec<TuningCandidate> =
            (0..PARTS).map(|split| self.best_of(&populations[split], split)).collect();
        self.judge(&winners)
    }

    /// Whether there is only time left to judge.
    fn is_over(&self, limits: &SearchLimits<'_>, began: Instant) -> bool {
        let judging = PARTS as u32 * (2 * SEEDS as u32 + 8);
        let threads = u32::try_from(threads()).unwrap_or(1);
        let kept = limits.time.mul_f64(JUDGING_SHARE).max(self.pace * judging / threads);
        limits.stop.load(Ordering::Relaxed)
            || limits.candidates.is_some_and(|most| self.tried.len() >= most)
            || began.elapsed() + kept.min(limits.time / 2) >= limits.time
    }

    /// One new candidate for each split, from the best on its training parts.
    fn children(
        &self,
        populations: &[Vec<TuningCandidate>],
        random: &mut Random,
    ) -> Vec<(usize, TuningCandidate)> {
        let mut round = Vec::new();
        for (split, population) in populations.iter().enumerate() {
            let mut ranked: Vec<(f64, &TuningCandidate)> = (population.iter())
                .filter_map(|candidate| Some((self.training_score(candidate, split)?, candidate)))
                .collect();
            ranked.sort_by(|(one, _), (other, _)| one.total_cmp(other));
            ranked.truncate(PARENTS);
            let known: HashSet<&TuningCandidate> = population.iter().collect();
            // A small space may have been seen in full.
            let tries = (0..20).map(|_| {
                let place = random.below(ranked.len()).min(random.below(ranked.len()));
                self.space.mutated(ranked[place].1, random)
            });
            round.extend(tries.into_iter().find(|child| !known.contains(child)).map(|child| (split, child)));
        }
        round
    }

    /// How a candidate does on the parts that a split trains on; the lower, the better.
    fn training_score(&self, candidate: &TuningCandidate, split: usize) -> Option<f64> {
        self.score(candidate, (0..PARTS).filter(|part| *part != split))
    }

    fn score(&self, candidate: &TuningCandidate, parts: impl Iterator<Item = usize>) -> Option<f64> {
        let scores: Option<Vec<f64>> = parts
            .map(|part| {
                let value = self.known.get(&(candidate.clone(), part, self.seed))?;
                Some(BROKEN * value.excess - self.gain(candidate, part, self.seed)?)
            })
            .collect();
        scores.map(|scores| scores.iter().sum::<f64>() / scores.len() as f64)
    }

    /// The gain over the base as a share of what the base comes to.
    fn gain(&self, candidate: &TuningCandidate, part: usize, seed: u64) -> Option<f64> {
        let base = self.known.get(&(self.space.base(), part, seed))?.cost;
        let found = self.known.get(&(candidate.clone(), part, seed))?.cost;
        let scale = if base.abs() > 1e-9 { base.abs() } else { 1.0 };
        Some((base - found) / scale)
    }

    fn best_of(&self, population: &[TuningCandidate], split: usize) -> TuningCandidate {
        let scored = population.iter().filter_map(|c| Some((self.training_score(c, split)?, c)));
        let best = scored.min_by(|(one, _), (other, _)| one.total_cmp(other));
        best.map_or_else(|| self.space.base(), |(_, candidate)| candidate.clone())
    }

    /// Judges what was found on each split where it has not been seen, and chooses among them.
    fn judge(&mut self, winners: &[TuningCandidate]) -> Result<SearchResult, Problems> {
        let seeds = self.seed..self.seed + SEEDS;
        let mut jobs: Vec<Job> = Vec::new();
        for (part, winner) in winners.iter().enumerate() {
            for seed in seeds.clone() {
                jobs.extend([(self.space.base(), part, seed), (winner.clone(), part, seed)]);
            }
            jobs.extend((0..PARTS).map(|other| (winner.clone(), other, self.seed)));
        }
        self.run_jobs(jobs, None)?;
        let held_back: Vec<HeldBack> = winners
            .iter()
            .enumerate()
            .map(|(part, winner)| self.held_back(part, winner, seeds.clone()))
            .collect();
        let mean = |gains: &[f64]| gains.iter().sum::<f64>() / gains.len().max(1) as f64;
        let gains = Gains(held_back.iter().map(|part| mean(&part.gains)).collect());
        let best = self.simplified(self.best_everywhere(winners))?;
        let best_gains = (0..PARTS).map(|part| self.gain(&best, part, self.seed).unwrap_or(0.0));
        let best_gains = Gains(best_gains.collect());
        let keeps = held_back.iter().all(|part| part.broken.is_empty());
        let is_confirmed = keeps
            && !best.is_base()
            && gains.are_real()
            && best_gains.wins() + 1 >= PARTS
            && self.excess_everywhere(&best) == 0.0;
        Ok(SearchResult {
            candidates: self.tried.len(),
            held_back,
            gains,
            changes: self.space.describe(&best),
            best: self.space.configuration(&best)?,
            best_gains,
            is_confirmed,
        })
    }

    fn held_back(&self, part: usize, winner: &TuningCandidate, seeds: std::ops::Range<u64>) -> HeldBack {
        let costs = |candidate: &TuningCandidate| -> f64 {
            let costs = seeds.clone().filter_map(|seed| self.known.get(&(candidate.clone(), part, seed)));
            costs.map(|value| value.cost).sum::<f64>() / SEEDS as f64
        };
        let values = seeds.clone().filter_map(|seed| self.known.get(&(winner.clone(), part, seed)));
        let mut broken: Vec<String> = values.flat_map(|value| value.broken.clone()).collect();
        broken.sort();
        broken.dedup();
        HeldBack {
            pods: self.parts[part].pods(),
            base: costs(&self.space.base()),
            found: costs(winner),
            gains: seeds.clone().filter_map(|seed| self.gain(winner, part, seed)).collect(),
            broken,
        }
    }

    fn best_everywhere(&self, winners: &[TuningCandidate]) -> TuningCandidate {
        let scored = winners.iter().filter_map(|c| Some((self.score(c, 0..PARTS)?, c)));
        let best = scored.min_by(|(one, _), (other, _)| one.total_cmp(other));
        best.map_or_else(|| self.space.base(), |(_, candidate)| candidate.clone())
    }

    fn excess_everywhere(&self, candidate: &TuningCandidate) -> f64 {
        let values = (0..PARTS).filter_map(|part| self.known.get(&(candidate.clone(), part, self.seed)));
        values.map(|value| value.excess).sum()
    }

    /// Takes changes back that gain nothing, so that what is recommended is as small as it can be.
    fn simplified(&mut self, mut best: TuningCandidate) -> Result<TuningCandidate, Problems> {
        while let Some(score) = self.score(&best, 0..PARTS) {
            let (simpler, seed) = (self.space.simpler(&best), self.seed);
            let jobs = simpler.iter().flat_map(|c| (0..PARTS).map(move |part| (c.clone(), part, seed)));
            let jobs: Vec<Job> = jobs.collect();
            self.run_jobs(jobs, None)?;
            let as_good =
                |c: &TuningCandidate| self.score(c, 0..PARTS).is_some_and(|simple| simple <= score + 1e-9);
            match simpler.into_iter().find(as_good) {
                Some(simple) => best = simple,
                None => break,
            }
        }
        Ok(best)
    }

    /// Replays what is not known yet, on all cores, until the limits if there are any.
    fn run_jobs(
        &mut self,
        jobs: Vec<Job>,
        until: Option<(&SearchLimits<'_>, Instant)>,
    ) -> Result<(), Problems> {
        let mut asked = HashSet::new();
        let is_new = |job: &Job| !self.known.contains_key(job) && asked.insert(job.clone());
        let jobs: Vec<Job> = jobs.into_iter().filter(is_new).collect();
        if jobs.is_empty() {
            return Ok(());
        }
        let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        let began = Instant::now();
        let over = || until.is_some_and(|(limits, began)| self.is_over(limits, began));
        let work = || {
            while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)).filter(|_| !over()) {
                let value = self.value(job);
                if let Ok(mut done) = done.lock() {
                    done.push((job.clone(), value));
                }
            }
        };
        let threads = threads().min(jobs.len());
        thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
        let done = done.into_inner().unwrap_or_default();
        let count = u32::try_from(done.len()).unwrap_or(u32::MAX).max(1);
        self.pace = self.pace.max(began.elapsed() * u32::try_from(threads).unwrap_or(1) / count);
        for (job, value) in done {
            self.known.insert(job, value?);
        }
        Ok(())
    }

    fn value(&self, (candidate, part, seed): &Job) -> Result<Value, Problems> {
        let configuration = self.space.configuration(candidate)?;
        let options = ReplayOptions { seed: *seed, samples: SAMPLES, ..ReplayOptions::default() };
        let replayed =
            replay(&self.parts[*part], &self.mix, (&configuration, self.registry), options, || {})?;
        Ok(Value::of(self.objective, &replayed.measures))
    }
}

fn threads() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}
