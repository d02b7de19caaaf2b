//! `supercargo tune`: searches a configuration that is better by an objective, and says how sure that is.

use std::{
    fs,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use supercargo_framework::registry::Registry;
use supercargo_manifest::Problem;
use supercargo_sim::{
    measures::PodMix,
    tune::{Objective, SearchLimits, SearchResult, Tuner},
};
use tokio_util::sync::CancellationToken;

use crate::{
    failure::{Ending, Failure},
    input,
    objects::{read_configuration, tell_extenders},
    output::{Console, Grid, Progress},
    run::{runtime, stop_on_signal},
    traces,
};

#[derive(clap::Args)]
pub(crate) struct Options {
    /// The trace: what `supercargo record` writes, packed or not; several files of one recording in their order
    #[arg(long, required = true, value_delimiter = ',', value_name = "FILE")]
    trace: Vec<PathBuf>,

    /// What is wanted, such as "minimize fragmentation + 0.5 * imbalance[cpu], pending_p99 <= 60"
    #[arg(long, value_name = "EXPR")]
    objective: String,

    /// The KubeSchedulerConfiguration to begin with; without one, kube-scheduler's defaults
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// How long to search and judge; Ctrl-C ends the search with the best so far
    #[arg(long, value_name = "DURATION", default_value = "60s")]
    time: supercargo_config::Duration,

    /// Try so many candidates at most
    #[arg(long, value_name = "N")]
    candidates: Option<usize>,

    /// What the search and ties go by
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    /// Where the configuration is written; without it, to stdout
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub(crate) fn run(options: &Options, console: &mut Console, registry: &Registry) -> Result<Ending, Failure> {
    let base = read_configuration(options.config.as_ref(), console, registry)?;
    tell_extenders(&base, console);
    let trace = traces::trace(&options.trace, &base.declared(registry), console)?;
    let mix = PodMix::of(&trace);
    let objective = Objective::parse(&options.objective, &mix.resources)?;
    let mut tuner = Tuner::new(&trace, mix, &base, registry, &objective, options.seed)?;
    let stop = stops_on_signal()?;
    let time = options.time.to_std().ok_or_else(|| Problem::error("--time must not be negative"))?;
    let limits = SearchLimits { time, candidates: options.candidates, stop: &stop };
    let bar = Progress::new(1000, "‰ of the time", console);
    let found = tuner.run(&limits, |progress| bar.at(progress.permille));
    bar.finish();
    let found = found?;
    if stop.load(Ordering::Relaxed) {
        console.note("the search was ended; this is the best so far");
    }
    report(&found, &objective, options, console)?;
    if !found.is_confirmed {
        return Ok(Ending::Found);
    }
    let text = written(&found, &objective, registry);
    match &options.out {
        None => console.bytes(text.as_bytes())?,
        Some(path) => {
            let written = fs::write(path, text);
            written.map_err(|error| input::about(path, format!("cannot write this: {error}")))?;
            console.note(format!("wrote {}", path.display()));
        }
    }
    Ok(Ending::Well)
}

/// Set by the first signal; the second ends the process.
fn stops_on_signal() -> Result<Arc<AtomicBool>, Problem> {
    let (stop, runtime) = (Arc::new(AtomicBool::new(false)), runtime()?);
    let stopped = stop.clone();
    // It ends with the process.
    std::thread::spawn(move || {
        runtime.block_on(async {
            let asked = CancellationToken::new();
            let signals = tokio::spawn(stop_on_signal(asked.clone()));
            asked.cancelled().await;
            stopped.store(true, Ordering::Relaxed);
            // The second signal ends the process there.
            let _ = signals.await;
        });
    });
    Ok(stop)
}

fn percent(share: f64) -> String {
    format!("{:+.2} %", 100.0 * share).replace('-', "−")
}

/// Talk, so that a configuration on stdout stays one.
fn report(
    found: &SearchResult,
    objective: &Objective,
    options: &Options,
    console: &mut Console,
) -> Result<(), Failure> {
    let to_stdout = options.out.is_none() && found.is_confirmed;
    let lines = lines(found, objective, options.config.is_some());
    for line in lines {
        if to_stdout {
            console.note(line);
        } else {
            console.line(line)?;
        }
    }
    if to_stdout {
        return Ok(());
    }
    console.heading("EACH PART, JUDGED WITH WHAT WAS FOUND ON THE OTHERS")?;
    let mut grid = Grid::new(["PART", ">PODS", ">BEFORE", ">AFTER", ">GAIN", ">BY SEED"]);
    for (i, part) in found.held_back.iter().enumerate() {
        let mean = part.gains.iter().sum::<f64>() / part.gains.len().max(1) as f64;
        let by_seed: Vec<String> = part.gains.iter().map(|gain| percent(*gain)).collect();
        grid.row([
            (i + 1).to_string(),
            part.pods.to_string(),
            format!("{:.5}", part.base),
            format!("{:.5}", part.found),
            percent(mean),
            by_seed.join(", "),
        ]);
    }
    console.grid(grid)?;
    console.line("")?;
    Ok(())
}

fn lines(found: &SearchResult, objective: &Objective, has_base: bool) -> Vec<String> {
    let parts = found.held_back.len();
    let runs: Vec<f64> = found.held_back.iter().flat_map(|part| part.gains.clone()).collect();
    let better_runs = runs.iter().filter(|gain| **gain > 0.0).count();
    let gains = &found.gains;
    let base = if has_base { "the base" } else { "the defaults" };
    let mut lines = vec![
        format!("objective: {}", objective.text),
        format!("{} candidates tried on {parts} parts of the trace", found.candidates),
        format!(
            "on parts held back: better than {base} in {} of {parts}, and in {better_runs} of {} runs paired by seed; gain \
             {} ± {} (mean and standard deviation over the parts)",
            gains.wins(),
            runs.len(),
            percent(gains.mean()),
            percent(gains.deviation()).trim_start_matches('+'),
        ),
    ];
    for (i, part) in found.held_back.iter().enumerate().filter(|(_, part)| !part.broken.is_empty()) {
        lines.push(format!("part {} breaks {}", i + 1, part.broken.join(", ")));
    }
    if found.is_confirmed {
        lines.push(format!(
            "confirmed: with 95 % confidence the gain is at least {} (Student's t over the parts)",
            percent(gains.at_least())
        ));
        lines.push(format!("recommended: {}", found.changes.join("; ")));
        lines.push(format!("its gain over all parts: {}", percent(found.best_gains.mean())));
    } else {
        lines.push(format!(
            "not confirmed: nothing is recommended, and nothing is written; {base} stay{} as good as what was found",
            if has_base { "s" } else { "" }
        ));
    }
    lines
}

/// The configuration in full, headed by why it is as it is.
fn written(found: &SearchResult, objective: &Objective, registry: &Registry) -> String {
    let mut text = format!(
        "# Found by supercargo tune for: {}\n# Gain on held-back parts of the trace: {} on average, at least {} with 95 % \
         confidence.\n",
        objective.text.replace('\n', " "),
        percent(found.gains.mean()),
        percent(found.gains.at_least())
    );
    for change in &found.changes {
        text.push_str(&format!("# {change}\n"));
    }
    text + &found.best.to_yaml(registry)
}
