//! The table of nodes and plugins.

use std::cmp::Reverse;

use supercargo_config::{ProfileConfiguration, TieBreak};
use supercargo_engine::Decision;
use supercargo_framework::{profile::ScoreColumn, registry::Point};

use crate::{
    failure::Failure,
    output::{Console, GAP_COLUMNS, Grid},
};

/// How many nodes are shown, unless all are asked for.
const MAX_NODES: usize = 30;
const INDENT: &str = "  ";
const CHOSEN: &str = "*";
const TIED: &str = "=";

pub(super) fn print(
    decision: &Decision,
    raw: bool,
    all_nodes: bool,
    console: &mut Console,
) -> Result<(), Failure> {
    let mut nodes: Vec<usize> = (0..decision.feasible.len()).collect();
    nodes.sort_by_key(|i| (Reverse(decision.scores.totals[*i]), &decision.feasible[*i]));
    if !all_nodes {
        nodes.truncate(MAX_NODES);
    }
    let left_out = decision.feasible.len() - nodes.len();

    console.heading("Scores: normalized × weight = points")?;
    print_table(decision, &nodes, weighted, console)?;
    if left_out > 0 {
        console.line(format!(
            "{INDENT}… and {left_out} more nodes with lower or equal totals (--all-nodes shows them)"
        ))?;
    }
    if raw {
        console.heading("Raw scores, before they are normalized")?;
        print_table(decision, &nodes, |column, i| column.raw[i].to_string(), console)?;
    }
    Ok(())
}

fn weighted(column: &ScoreColumn, i: usize) -> String {
    let (score, weight) = (column.normalized[i], column.weight);
    format!("{score}×{weight}={}", score.saturating_mul(i64::from(weight)))
}

/// Plugins side by side, as many as fit; the others below, with the nodes again.
fn print_table(
    decision: &Decision,
    nodes: &[usize],
    cell: impl Fn(&ScoreColumn, usize) -> String,
    console: &mut Console,
) -> Result<(), Failure> {
    let gap = usize::from(GAP_COLUMNS);
    let names = widest(nodes.iter().map(|i| decision.feasible[*i].to_string()));
    let frame = INDENT.len() + CHOSEN.len() + gap + names + gap + "TOTAL".len();
    let room = console.width.saturating_sub(frame);
    let columns: Vec<Column<'_>> = (decision.scores.columns.iter())
        .map(|scores| Column {
            title: scores.plugin.to_string(),
            cells: nodes.iter().map(|i| cell(scores, *i)).collect(),
            plugin: &scores.plugin,
        })
        .collect();
    for (number, part) in parts(columns, room).iter().enumerate() {
        if number > 0 {
            console.line("")?;
        }
        console.grid(table(decision, nodes, part, console))?;
    }
    Ok(())
}

/// A plugin and what it gave, as it is shown.
struct Column<'p> {
    plugin: &'p str,
    title: String,
    cells: Vec<String>,
}

impl Column<'_> {
    /// How much room it takes, with the gap before the next.
    fn width(&self) -> usize {
        let title = self.title.split('\n').map(str::to_owned);
        widest(title.chain(self.cells.iter().cloned())) + usize::from(GAP_COLUMNS)
    }
}

/// Columns in groups that fit. Where not all fit beside each other, their titles are broken.
fn parts(mut columns: Vec<Column<'_>>, room: usize) -> Vec<Vec<Column<'_>>> {
    if columns.iter().map(Column::width).sum::<usize>() <= room {
        return vec![columns];
    }
    for column in &mut columns {
        column.title = broken(column.plugin);
    }
    let mut parts: Vec<Vec<Column<'_>>> = Vec::new();
    let mut used = 0;
    for column in columns {
        used += column.width();
        match parts.last_mut() {
            Some(part) if used <= room => part.push(column),
            _ => {
                used = column.width();
                parts.push(vec![column]);
            }
        }
    }
    parts
}

fn table(decision: &Decision, nodes: &[usize], columns: &[Column<'_>], console: &Console) -> Grid {
    let titles: Vec<&str> = columns.iter().map(|column| column.title.as_str()).collect();
    let height = titles.iter().map(|title| title.split('\n').count()).max().unwrap_or(1);
    let above = |title: &str| "\n".repeat(height - title.split('\n').count());
    let mut header = vec![String::new(), format!("{}NODE", above(""))];
    header.extend(titles.iter().map(|title| format!(">{}{title}", above(title))));
    header.push(format!(">{}TOTAL", above("")));
    let mut grid = Grid::new(header.iter().map(String::as_str)).indented(INDENT);
    for (row, i) in nodes.iter().enumerate() {
        let name = &decision.feasible[*i];
        let chosen = decision.node() == Some(name);
        let mark = match (chosen, decision.best.contains(name)) {
            (true, _) => CHOSEN,
            (false, true) => TIED,
            (false, false) => "",
        };
        let mut cells = vec![mark.to_owned(), name.to_string()];
        cells.extend(columns.iter().map(|column| column.cells[row].clone()));
        cells.push(decision.scores.totals[*i].to_string());
        let style = if chosen { console.palette.good } else { anstyle::Style::new() };
        grid.styled_row(style, cells);
    }
    grid
}

fn widest(texts: impl Iterator<Item = String>) -> usize {
    texts.map(|text| text.chars().count()).max().unwrap_or(0)
}

/// A plugin's name, word under word, so that the column need not be wide.
fn broken(name: &str) -> String {
    let mut broken = String::new();
    let mut before_is_lower = false;
    for c in name.chars() {
        if c.is_uppercase() && before_is_lower {
            broken.push('\n');
        }
        before_is_lower = c.is_lowercase();
        broken.push(c);
    }
    broken
}

/// The plugins that could score, but had nothing to say about this pod.
pub(super) fn print_silent(
    decision: &Decision,
    profile: Option<&ProfileConfiguration>,
    console: &mut Console,
) -> Result<(), Failure> {
    let choices = profile.map_or(&[][..], |profile| profile.at(Point::Score));
    let spoke = |name: &str| decision.scores.columns.iter().any(|column| &*column.plugin == name);
    let silent: Vec<&str> =
        choices.iter().map(|choice| &*choice.plugin).filter(|name| !spoke(name)).collect();
    if !silent.is_empty() {
        console.paragraph(INDENT, &format!("Plugins that skipped this pod: {}.", silent.join(", ")))?;
    }
    Ok(())
}

/// Which nodes share the highest total, and how one of them was chosen.
pub(super) fn print_tie(
    decision: &Decision,
    tie_break: TieBreak,
    console: &mut Console,
) -> Result<(), Failure> {
    let (Some(node), Some(total)) = (decision.node(), decision.best_total()) else {
        return Ok(());
    };
    let mut best: Vec<&str> = decision.best.iter().map(|name| &**name).collect();
    best.sort_unstable();
    console.line("")?;
    let text = match (&best[..], tie_break) {
        ([_], _) => format!("{CHOSEN} {node} alone has the highest total, {total}{}.", lead(decision, total)),
        (_, TieBreak::Random) => format!(
            "{CHOSEN} chosen, {TIED} tied: {} nodes share the highest total, {total}: {}. {node} was drawn from them by \
             this cycle's seed, {}.",
            best.len(),
            best.join(", "),
            decision.seed
        ),
        (_, TieBreak::First) => format!(
            "{CHOSEN} chosen, {TIED} tied: {} nodes share the highest total, {total}: {}. {node} is the first of them in \
             the order of nodes, as the configuration wants it.",
            best.len(),
            best.join(", ")
        ),
    };
    console.paragraph(INDENT, &text)?;
    Ok(())
}

fn lead(decision: &Decision, total: i64) -> String {
    let second = decision.scores.totals.iter().filter(|other| **other < total).max();
    match second {
        Some(second) => format!(", {} ahead of the next", total.saturating_sub(*second)),
        None => String::new(),
    }
}
