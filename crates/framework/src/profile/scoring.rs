//! PreScore, Score and NormalizeScore: how good the feasible nodes are.

use supercargo_model::{Cluster, Name, NodeInfo, Pod};

use super::{CycleError, Named, Profile, ScoreStep};
use crate::{
    points::{MAX_SCORE, MIN_SCORE, PreScoreOutcome, Prepared, ScoreInput},
    registry::Point,
    status::{Code, Status},
};

/// A plugin's scores of the feasible nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScoreColumn {
    /// The plugin.
    pub plugin: Name,
    /// How much it counts.
    pub weight: i32,
    /// As the plugin gave them.
    pub raw: Vec<i64>,
    /// In 0..=100.
    pub normalized: Vec<i64>,
}

/// What all plugins make of the feasible nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scores {
    /// A column for each plugin that scored, in the profile's order.
    pub columns: Vec<ScoreColumn>,
    /// The weighted sum for each node.
    pub totals: Vec<i64>,
}

impl Profile {
    /// Scores the feasible nodes: prepare, score, normalize, weigh and sum.
    pub fn score(&self, cluster: &Cluster, pod: &Pod, nodes: &[&NodeInfo]) -> Result<Scores, CycleError> {
        let failed = |failed: bool| failed.then_some(Code::Error);
        let prepared = self.timed_point(
            Point::PreScore,
            || self.prepare_scores(cluster, pod, nodes),
            |result| failed(result.is_err()),
        )?;
        let scores = || self.give_scores(&prepared, cluster, pod, nodes);
        self.timed_point(Point::Score, scores, |result| failed(result.is_err()))
    }

    fn give_scores(
        &self,
        prepared: &[Option<Prepared>],
        cluster: &Cluster,
        pod: &Pod,
        nodes: &[&NodeInfo],
    ) -> Result<Scores, CycleError> {
        let nothing = Prepared::nothing();
        let mut scores =
            Scores { columns: Vec::with_capacity(self.score.len()), totals: vec![0; nodes.len()] };
        for step in &self.score {
            let prepared = match step.prepared {
                None => &nothing,
                Some(index) => match &prepared[index] {
                    Some(prepared) => prepared,
                    None => continue,
                },
            };
            let input = ScoreInput { prepared, cluster, pod, nodes };
            let column = self.score_column(step, input)?;
            for (total, score) in scores.totals.iter_mut().zip(&column.normalized) {
                *total = total.saturating_add(score * i64::from(step.weight));
            }
            scores.columns.push(column);
        }
        Ok(scores)
    }

    /// A plugin's scores. Scoring and normalizing are taken time of apart, as kube-scheduler does.
    fn score_column(&self, step: &ScoreStep, input: ScoreInput<'_>) -> Result<ScoreColumn, CycleError> {
        let raw = self.timed_plugin(&step.name, Point::Score, || step.run(input), |_| Code::Error)?;
        let normalize = || step.normalize(input, &raw);
        let normalized = match (self.stopwatch.get(), &step.normalize) {
            (Some(stopwatch), Some(_)) => {
                let start = stopwatch.now();
                let normalized = normalize();
                let code = normalized.as_ref().err().map(|_| Code::Error);
                stopwatch.normalized(self.scheduler_name(), &step.name, code, stopwatch.now() - start);
                normalized?
            }
            _ => normalize()?,
        };
        Ok(ScoreColumn { plugin: step.name.clone(), weight: step.weight, raw, normalized })
    }

    fn prepare_scores(
        &self,
        cluster: &Cluster,
        pod: &Pod,
        nodes: &[&NodeInfo],
    ) -> Result<Vec<Option<Prepared>>, CycleError> {
        self.pre_score
            .iter()
            .map(|Named { name, plugin }| {
                match self.timed(name, Point::PreScore, || plugin.pre_score(cluster, pod, nodes)) {
                    Ok(PreScoreOutcome::Skip) => Ok(None),
                    Ok(PreScoreOutcome::Go(prepared)) => Ok(Some(prepared)),
                    Err(status) => {
                        let message = status.message();
                        Err(CycleError(format!("running PreScore plugin {name:?}: {message}")))
                    }
                }
            })
            .collect()
    }
}

impl ScoreStep {
    fn failed(&self, step: &str, status: &Status) -> CycleError {
        CycleError(format!("{step}: plugin {:?} failed with: {}", self.name, status.message()))
    }

    fn run(&self, input: ScoreInput<'_>) -> Result<Vec<i64>, CycleError> {
        let mut raw = vec![0; input.nodes.len()];
        let scored = self.plugin.score(input, &mut raw);
        scored.map_err(|status| self.failed("running Score plugins", &status))?;
        Ok(raw)
    }

    /// The scores in their range; one that is not is an error.
    fn normalize(&self, input: ScoreInput<'_>, raw: &[i64]) -> Result<Vec<i64>, CycleError> {
        let mut normalized = raw.to_vec();
        if let Some(normalize) = &self.normalize {
            (normalize.normalize(input, &mut normalized))
                .map_err(|status| self.failed("running Normalize on Score plugins", &status))?;
        }
        let invalid = (normalized.iter()).position(|s| !(MIN_SCORE..=MAX_SCORE).contains(s));
        if let Some(index) = invalid {
            return Err(CycleError(format!(
                "plugin {:?} gives node {:?} the score {}, which is not in {MIN_SCORE}..={MAX_SCORE} after normalizing",
                self.name,
                input.nodes[index].name(),
                normalized[index],
            )));
        }
        Ok(normalized)
    }
}
