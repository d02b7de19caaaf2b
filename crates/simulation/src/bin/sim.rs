//! Soaks the whole scheduler: seed after seed, each a cluster's life under faults on virtual time.
//!
//! Exit code 1 and the history of a shortened run when a rule is broken; 2 if what was asked for makes no sense.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{self, IsTerminal, Write},
    path::{Path, PathBuf},
    process::ExitCode,
    sync::{
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc::{self, RecvTimeoutError},
    },
    thread,
    time::{Duration, Instant},
};

use clap::Parser;
use supercargo_framework::bugs::{self, Bug};
use supercargo_simulation::soak::{
    BrokenRule, LifeOutcome, Plan, SimulationRule, SoakTally, paced_plan, plan, run, run_untold, shrink,
    soak_registry, with_devices,
};

/// A fifth of the time goes into memory that is taken and given back.
#[global_allocator]
static MEMORY: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How often progress is told to somebody who looks on.
const TELLS_EVERY: Duration = Duration::from_secs(2);
/// How often it is told where nobody does, and written to the file that counts.
const KEEPS_EVERY: Duration = Duration::from_secs(60);
/// How many seeds that find a bug are told.
const ENOUGH_SEEDS: usize = 3;

/// Runs the whole scheduler under faults on virtual time, and checks that the rules hold.
#[derive(Parser)]
#[command(name = "cargo sim")]
struct Arguments {
    /// Simulate so many hours of cluster time
    #[arg(long, default_value_t = 10.0)]
    hours: f64,
    /// Begin with this seed, and go on with the next ones
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Run this one seed only, and print its history
    #[arg(long)]
    only: bool,
    /// Run a plan from a file (JSON) rather than one drawn from a seed, and print its history
    #[arg(long, value_name = "FILE")]
    plan: Option<PathBuf>,
    /// Write the shortened plan of the first failure to a file
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Do not stop at the first broken rule; list the seeds that break one
    #[arg(long)]
    keep_going: bool,
    /// Let things happen up to so many times slower than they were drawn: 1, 10, 60 or 600; each cluster has a pace of its own
    #[arg(long, value_name = "TIMES", default_value_t = 60)]
    slowest_pace: u64,
    /// Let there be devices in every cluster, with drivers that come late, vanish and come back, and claims to them
    #[arg(long)]
    devices: bool,
    /// Let nothing go wrong in the same clusters: to compare what is evicted
    #[arg(long)]
    without_faults: bool,
    /// Switch a known bug on, to see that it is found
    #[arg(long, value_name = "NAME", value_parser = bug)]
    bug: Option<Bug>,
    /// Tell which of so many seeds, from --seed on, find each known bug (or the one of --bug)
    #[arg(long, value_name = "SEEDS", default_value_t = 0)]
    find_bugs: u64,
    /// Of those, only seeds whose plan (JSON) contains this text, or several
    #[arg(long, value_name = "TEXT")]
    having: Vec<String>,
    /// Add what was simulated to the counts in a file (JSON)
    #[arg(long, value_name = "FILE")]
    tally: Option<PathBuf>,
    /// Print the counts of such a file as the table of docs/reliability.md, and do nothing else
    #[arg(long, value_name = "FILE")]
    figures: Option<PathBuf>,
    /// Threads; 0 is one for each processor
    #[arg(long, default_value_t = 0)]
    jobs: usize,
}

fn bug(name: &str) -> Result<Bug, String> {
    let found = Bug::ALL.iter().find(|bug| bug.name() == name).copied();
    found.ok_or_else(|| {
        let known: Vec<String> =
            Bug::ALL.iter().map(|bug| format!("  {}: {}", bug.name(), bug.what())).collect();
        format!("there are these:\n{}", known.join("\n"))
    })
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    // A panic is a broken rule, told with its seed; here is where it was.
    std::panic::set_hook(Box::new(|panic| {
        if let Some(location) = panic.location() {
            let _ = writeln!(io::stderr(), "\na panic at {location}");
        }
    }));
    let done = match arguments.find_bugs {
        0 => bugs::with(arguments.bug, || soak(&arguments)),
        seeds => find_bugs(&arguments, seeds),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            let _ = writeln!(io::stderr(), "error: {error}");
            ExitCode::from(2)
        }
    }
}

fn soak(arguments: &Arguments) -> io::Result<bool> {
    if let Some(file) = &arguments.figures {
        write!(io::stdout(), "{}", read_tally(file)?)?;
        return Ok(true);
    }
    if let Some(file) = &arguments.plan {
        let text = fs::read_to_string(file)
            .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", file.display())))?;
        let plan: Plan = serde_json::from_str(&text)
            .map_err(|error| io::Error::other(format!("{}: {error}", file.display())))?;
        return tell(&plan, &run(&plan, &soak_registry()));
    }
    if arguments.only {
        let plan = plan_of(arguments, arguments.seed);
        return tell(&plan, &run(&plan, &soak_registry()));
    }
    let Some((seed, rule)) = run_seeds(arguments)? else { return Ok(true) };
    let registry = soak_registry();
    writeln!(io::stderr(), "seed {seed} breaks rule {rule}; shortening it …")?;
    let shortened = shrink(&plan_of(arguments, seed), rule, |plan| first_rule(&run_untold(plan, &registry)));
    if let Some(file) = &arguments.save {
        fs::write(file, serde_json::to_string_pretty(&shortened).unwrap_or_default())?;
    }
    tell(&shortened, &run(&shortened, &registry))?;
    let pace = arguments.slowest_pace;
    writeln!(io::stderr(), "replay the whole of it: cargo sim --slowest-pace {pace} --only --seed {seed}")?;
    Ok(false)
}

/// The plan of a seed; known bugs are looked for where time passes quickly.
fn plan_of(arguments: &Arguments, seed: u64) -> Plan {
    let plan = match arguments.bug {
        Some(_) => plan(seed),
        None => paced_plan(seed, arguments.slowest_pace),
    };
    let plan = if arguments.devices && !plan.setup.devices { with_devices(plan) } else { plan };
    if arguments.without_faults { plan.without_faults() } else { plan }
}

fn first_rule(outcome: &LifeOutcome) -> Option<SimulationRule> {
    outcome.violations.first().map(|violation| violation.rule)
}

/// Prints for each bug the first seeds that find it, of those that break nothing without it, and the rules that they break;
/// and the line for `tests/bugs.rs`.
fn find_bugs(arguments: &Arguments, seeds: u64) -> io::Result<bool> {
    let registry = soak_registry();
    let wanted: Vec<Bug> = arguments.bug.map_or_else(|| Bug::ALL.to_vec(), |bug| vec![bug]);
    let rules = |seed, bug| {
        let outcome = bugs::with(bug, || run(&plan(seed), &registry));
        outcome.violations.into_iter().map(|violation| violation.rule).collect::<BTreeSet<SimulationRule>>()
    };
    let mut sound: BTreeMap<u64, bool> = BTreeMap::new();
    let mut all_found = true;
    for bug in wanted {
        let (mut found, mut tried, name) = (Vec::new(), 0, bug.name());
        let is_meant = |seed: &u64| {
            let plan = serde_json::to_string(&plan(*seed)).unwrap_or_default();
            arguments.having.iter().all(|text| plan.contains(text))
        };
        for seed in (arguments.seed..arguments.seed + seeds).filter(is_meant) {
            tried += 1;
            let broken = rules(seed, Some(bug));
            if !broken.is_empty() && *sound.entry(seed).or_insert_with(|| rules(seed, None).is_empty()) {
                writeln!(io::stdout(), "# {name} {seed} {broken:?}")?;
                found.push((seed, broken));
            }
            if found.len() == ENOUGH_SEEDS {
                break;
            }
        }
        writeln!(io::stdout(), "# {name}: {} of {tried}", found.len())?;
        all_found &= !found.is_empty();
        if let Some((seed, Some(rule))) = found.first().map(|(seed, rules)| (seed, rules.first())) {
            writeln!(io::stdout(), "    {}: {name} from {seed} within 3 by {rule:?};", in_snake_case(name))?;
        }
    }
    Ok(all_found)
}

/// `BindsAnyUid` as functions are named: `binds_any_uid`.
fn in_snake_case(name: &str) -> String {
    let mut written = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !written.is_empty() {
            written.push('_');
        }
        written.extend(letter.to_lowercase());
    }
    written
}

/// Prints what happened; whether all rules held.
fn tell(plan: &Plan, outcome: &LifeOutcome) -> io::Result<bool> {
    let mut out = io::stdout().lock();
    writeln!(out, "{}", serde_json::to_string(plan).unwrap_or_default())?;
    for line in &outcome.lines {
        writeln!(out, "{line}")?;
    }
    let time = outcome.cluster_time.as_secs();
    writeln!(
        out,
        "{time} s of cluster time, {} bindings, fingerprint {:016x}",
        outcome.bindings,
        outcome.fingerprint()
    )?;
    for violation in &outcome.violations {
        writeln!(out, "BROKEN {violation}")?;
    }
    Ok(outcome.violations.is_empty())
}

/// Runs seeds side by side until enough time has passed in them; the first that breaks a rule, if one does. What is told and
/// counted is the same however many threads there are: seeds in their order, up to the one that makes it enough.
fn run_seeds(arguments: &Arguments) -> io::Result<Option<(u64, SimulationRule)>> {
    let jobs = match arguments.jobs {
        0 => thread::available_parallelism().map_or(1, usize::from),
        jobs => jobs,
    };
    let (next, stop) = (AtomicU64::new(arguments.seed), AtomicBool::new(false));
    let (done, finished) = mpsc::channel();
    let work = |done: mpsc::Sender<(u64, SoakTally, Option<BrokenRule>)>| {
        let registry = soak_registry();
        while !stop.load(Ordering::Relaxed) {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            let plan = plan_of(arguments, seed);
            let outcome = bugs::with(arguments.bug, || run_untold(&plan, &registry));
            let mut tally = SoakTally::default();
            tally.add(&plan, &outcome);
            // Whoever counts may have had enough.
            let _ = done.send((seed, tally, outcome.violations.into_iter().next()));
        }
    };
    let mut soak = Progress::new(arguments)?;
    let kept = thread::scope(|scope| {
        let work = &work;
        for done in std::iter::repeat_n(done, jobs) {
            scope.spawn(move || work(done));
        }
        let mut early = BTreeMap::new();
        let kept = 'counted: loop {
            match finished.recv_timeout(KEEPS_EVERY) {
                Ok((seed, tally, broken)) => drop(early.insert(seed, (tally, broken))),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break Ok(()),
            }
            while let Some((tally, broken)) = early.remove(&soak.seed) {
                soak.count(&tally, broken);
                if soak.is_over() {
                    break 'counted Ok(());
                }
            }
            if let Err(error) = soak.keep_now_and_then() {
                break Err(error);
            }
        };
        stop.store(true, Ordering::Relaxed);
        kept
    });
    kept?;
    soak.tell("\n");
    soak.keep()?;
    Ok(soak.failed)
}

/// How far a soak is.
struct Progress<'a> {
    arguments: &'a Arguments,
    /// The seed that is counted next.
    seed: u64,
    tally: SoakTally,
    /// What the file had counted before.
    before: SoakTally,
    failed: Option<(u64, SimulationRule)>,
    began: Instant,
    told: Instant,
    kept: Instant,
}

impl<'a> Progress<'a> {
    fn new(arguments: &'a Arguments) -> io::Result<Self> {
        let before = match arguments.tally.as_deref().map(read_tally) {
            Some(Err(error)) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Some(Ok(before)) => before,
            _ => SoakTally::default(),
        };
        let (seed, tally, now) = (arguments.seed, SoakTally::default(), Instant::now());
        Ok(Self { arguments, seed, tally, before, failed: None, began: now, told: now, kept: now })
    }

    fn count(&mut self, tally: &SoakTally, broken: Option<BrokenRule>) {
        self.tally.merge(tally);
        if let Some(violation) = broken {
            let _ = writeln!(io::stderr(), "seed {}: {violation}", self.seed);
            self.failed.get_or_insert((self.seed, violation.rule));
        }
        self.seed += 1;
    }

    fn is_over(&self) -> bool {
        let stops = self.failed.is_some() && !self.arguments.keep_going;
        stops || self.tally.hours() >= self.arguments.hours
    }

    /// Tells and writes down how far it is, for whoever looks on, and against the day when it is ended.
    fn keep_now_and_then(&mut self) -> io::Result<()> {
        let (every, end) = if io::stderr().is_terminal() { (TELLS_EVERY, "\r") } else { (KEEPS_EVERY, "\n") };
        if self.told.elapsed() > every {
            self.told = Instant::now();
            self.tell(end);
        }
        if self.kept.elapsed() > KEEPS_EVERY {
            self.kept = Instant::now();
            self.keep()?;
        }
        Ok(())
    }

    /// Writes what was counted so far to the file.
    fn keep(&self) -> io::Result<()> {
        let Some(file) = &self.arguments.tally else { return Ok(()) };
        let mut all = self.before.clone();
        all.merge(&self.tally);
        let half_written = file.with_extension("tmp");
        fs::write(&half_written, serde_json::to_string_pretty(&all).unwrap_or_default() + "\n")?;
        fs::rename(half_written, file)
    }

    fn tell(&self, end: &str) {
        let SoakTally { seeds, broken, .. } = self.tally;
        let (hours, took) = (self.tally.hours(), self.began.elapsed().as_secs_f64());
        let next = self.seed;
        let _ = write!(
            io::stderr(),
            "{hours:.0} hours in {seeds} seeds, {broken} broken, {took:.0} s, next is {next}{end}"
        );
    }
}

fn read_tally(file: &Path) -> io::Result<SoakTally> {
    let named = |error: &dyn std::fmt::Display| format!("{}: {error}", file.display());
    let text = fs::read_to_string(file).map_err(|error| io::Error::new(error.kind(), named(&error)))?;
    serde_json::from_str(&text).map_err(|error| io::Error::other(named(&error)))
}
