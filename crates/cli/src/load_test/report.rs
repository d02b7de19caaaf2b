//! What a load test has shown: a table, what was promised and what came of it, and a plot.

use serde::Serialize;

use super::load::{Latency, Measured, Part, Sample, Size};
use crate::{
    chart::{self, Line, Panel},
    failure::Failure,
    output::{Console, Grid},
};

const FIRST_BINDING_WITHIN_SECONDS: f64 = 3.0;
const ANSWERED_WITHIN_MS: f64 = 1000.0;
/// A leader renews its lease every two seconds; this is how late it may be.
const RENEWED_EVERY_MS: f64 = 2000.0;
const LATE_BY_MS: f64 = 1000.0;
/// Memory that comes and goes with its allocator.
const FLAT_SHARE: f64 = 1.10;
const FLAT_MIB: f64 = 8.0;

/// What was measured, and what it means.
#[derive(Serialize)]
pub(super) struct Report {
    #[serde(flatten)]
    size: Size,
    parts: Vec<Part>,
    promises: Vec<Promise>,
    samples: Vec<Sample>,
}

/// What was promised, and what came of it.
#[derive(Serialize)]
struct Promise {
    what: &'static str,
    measured: String,
    limit: String,
    kept: bool,
}

impl Promise {
    fn new(what: &'static str, measured: f64, limit: f64, unit: &str) -> Self {
        let digits = usize::from(unit == "s");
        Self {
            what,
            measured: format!("{measured:.digits$} {unit}").trim().to_owned(),
            limit: format!("{limit:.digits$} {unit}").trim().to_owned(),
            kept: measured <= limit,
        }
    }
}

impl Report {
    pub(super) fn new(size: Size, measured: Measured) -> Self {
        let promises = promises(&measured);
        let Measured { samples, parts, .. } = measured;
        Self { size, parts, promises, samples }
    }

    /// Whether all that was promised was kept.
    pub(super) fn is_well(&self) -> bool {
        self.promises.iter().all(|promise| promise.kept)
    }

    pub(super) fn print(&self, console: &mut Console) -> Result<(), Failure> {
        let mut grid = Grid::new([
            "PART",
            ">SECONDS",
            ">BOUND",
            ">PER S",
            ">PEAK/S",
            ">P50 MS",
            ">P99 MS",
            ">MOST PENDING",
            ">MIB",
            ">PEAK MIB",
            ">LIVEZ MS",
            ">LEASE S",
        ]);
        for part in &self.parts {
            let samples = &self.samples[part.samples.clone()];
            let seconds = part.end_seconds - part.begin_seconds;
            let latency = |of: fn(&Latency) -> f64| {
                part.latency_ms
                    .as_ref()
                    .map_or_else(|| "–".to_owned(), |latency| format!("{:.0}", of(latency)))
            };
            grid.row([
                part.name.to_owned(),
                format!("{seconds:.1}"),
                part.bound.to_string(),
                format!("{:.0}", part.bound as f64 / seconds),
                format!("{:.0}", most(samples, |sample| sample.bound as f64)),
                latency(|latency| latency.p50),
                latency(|latency| latency.p99),
                format!("{:.0}", most(samples, |sample| sample.pending as f64)),
                samples.last().map_or(0, |sample| sample.resident_mib).to_string(),
                format!("{:.0}", most(samples, |sample| sample.resident_mib as f64)),
                format!("{:.0}", most(samples, |sample| sample.slowest_livez_ms)),
                format!("{:.1}", most(samples, |sample| sample.longest_without_renewal_ms) / 1000.0),
            ]);
        }
        console.grid(grid)?;
        console.line("")?;
        let mut grid = Grid::new(["PROMISED", ">MEASURED", ">AT MOST", ""]);
        for Promise { what, measured, limit, kept } in &self.promises {
            let kept = if *kept { "kept" } else { "broken" };
            grid.row([(*what).to_owned(), measured.clone(), limit.clone(), kept.to_owned()]);
        }
        console.grid(grid)?;
        Ok(())
    }

    /// The course of the measurements, as SVG.
    pub(super) fn plot(&self) -> String {
        let line = |name, value: &dyn Fn(&Sample) -> Option<f64>| Line {
            name,
            points: self
                .samples
                .iter()
                .filter_map(|sample| Some((sample.at_seconds, value(sample)?)))
                .collect(),
        };
        let panels = [
            Panel {
                title: "Pods bound in a second",
                lines: vec![line("bound", &|sample| Some(sample.bound as f64))],
            },
            Panel {
                title: "Pods that wait",
                lines: vec![line("pending", &|sample| Some(sample.pending as f64))],
            },
            Panel {
                title: "From creation to binding, seconds",
                lines: vec![
                    line("median", &|sample| Some(sample.latency_ms?.p50 / 1000.0)),
                    line("99 of 100 within", &|sample| Some(sample.latency_ms?.p99 / 1000.0)),
                ],
            },
            Panel {
                title: "Memory of the scheduler, MiB",
                lines: vec![line("resident", &|sample| Some(sample.resident_mib as f64))],
            },
            Panel {
                title: "Slowest answer of /livez, ms",
                lines: vec![line("livez", &|sample| Some(sample.slowest_livez_ms))],
            },
            Panel {
                title: "Longest without a renewal of the lease, seconds",
                lines: vec![line("lease", &|sample| Some(sample.longest_without_renewal_ms / 1000.0))],
            },
        ];
        let moments: Vec<(f64, &str)> =
            self.parts.iter().map(|part| (part.begin_seconds, part.name)).collect();
        let Size { nodes, pods, room, overload, .. } = self.size;
        let title = format!("{nodes} nodes: {pods} pods, then {} for {room} places", room * overload);
        chart::file(&title, &panels, &moments)
    }
}

fn most(samples: &[Sample], value: impl Fn(&Sample) -> f64) -> f64 {
    samples.iter().map(value).fold(0.0, f64::max)
}

fn promises(measured: &Measured) -> Vec<Promise> {
    let Measured { samples, parts, violations } = measured;
    let part = |name: &str| parts.iter().find(|part| part.name == name);
    let of = |name: &str| part(name).map_or(&[][..], |part| &samples[part.samples.clone()]);
    let first = |name: &str| part(name).and_then(|part| part.first_binding_seconds).unwrap_or(f64::INFINITY);
    let memory = |names: &[&str]| {
        names.iter().map(|name| most(of(name), |sample| sample.resident_mib as f64)).fold(0.0, f64::max)
    };
    let flat = |before: f64| (before * FLAT_SHARE + FLAT_MIB).floor();
    let at_first = of("churn").first().map_or(0.0, |sample| sample.resident_mib as f64);
    let late = most(samples, |sample| sample.longest_without_renewal_ms) - RENEWED_EVERY_MS;
    vec![
        Promise::new("first binding after a start", first("start"), FIRST_BINDING_WITHIN_SECONDS, "s"),
        Promise::new("first binding after a restart", first("restart"), FIRST_BINDING_WITHIN_SECONDS, "s"),
        Promise::new(
            "slowest answer of /livez",
            most(samples, |sample| sample.slowest_livez_ms),
            ANSWERED_WITHIN_MS,
            "ms",
        ),
        Promise::new("latest renewal of the lease, after 2 s", late.max(0.0), LATE_BY_MS, "ms"),
        Promise::new("memory under churn, as it began", memory(&["churn"]), flat(at_first), "MiB"),
        Promise::new(
            "memory in the second overload, as in the first",
            memory(&["overload again", "relief again"]),
            flat(memory(&["overload", "relief"])),
            "MiB",
        ),
        Promise::new("nodes over-committed, pods bound twice", violations.len() as f64, 0.0, ""),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(at_seconds: f64, resident_mib: u64) -> Sample {
        Sample {
            at_seconds,
            bound: 100,
            pending: 5,
            latency_ms: Some(Latency { p50: 10.0, p99: 20.0 }),
            resident_mib,
            slowest_livez_ms: 3.0,
            longest_without_renewal_ms: 2100.0,
        }
    }

    fn part(name: &'static str, number: usize, first_binding_seconds: Option<f64>) -> Part {
        let begin_seconds = number as f64;
        Part {
            name,
            begin_seconds,
            end_seconds: begin_seconds + 1.0,
            bound: 100,
            latency_ms: None,
            first_binding_seconds,
            samples: number..number + 1,
        }
    }

    fn measured(first_binding_seconds: f64, memory_at_last: u64) -> Measured {
        Measured {
            samples: vec![
                sample(0.5, 50),
                sample(1.5, 50),
                sample(2.5, 100),
                sample(3.5, memory_at_last),
                sample(4.5, 40),
            ],
            parts: vec![
                part("start", 0, Some(first_binding_seconds)),
                part("churn", 1, None),
                part("overload", 2, None),
                part("overload again", 3, None),
                part("restart", 4, Some(1.0)),
            ],
            violations: Vec::new(),
        }
    }

    const SIZE: Size = Size {
        nodes: 5,
        bound: 1,
        pods: 2,
        room: 1,
        overload: 10,
        churn_per_second: 1,
        hold: std::time::Duration::ZERO,
    };

    #[test]
    fn what_is_slow_or_grows_breaks_a_promise() {
        let broken = |measured| -> Vec<&'static str> {
            let report = Report::new(SIZE, measured);
            report.promises.iter().filter(|promise| !promise.kept).map(|promise| promise.what).collect()
        };
        assert_eq!(broken(measured(2.9, 118)), [""; 0]);
        assert_eq!(broken(measured(3.1, 118)), ["first binding after a start"]);
        assert_eq!(broken(measured(1.0, 119)), ["memory in the second overload, as in the first"]);
    }

    #[test]
    fn the_plot_has_a_line_for_everything() {
        let svg = Report::new(SIZE, measured(1.0, 100)).plot();
        assert_eq!(svg.matches("<polyline").count(), 7);
        assert!(svg.contains(">overload again<"));
    }
}
