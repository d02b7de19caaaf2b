//! The table of nodes and plugins.

use supercargo_sim::explanation::{Explanation, NodeScores, PluginPoints};

use super::Shown;
use crate::{
    failure::Failure,
    output::{Console, GAP_COLUMNS, Grid},
};

const INDENT: &str = "  ";
const CHOSEN: &str = "*";
const TIED: &str = "=";

pub(super) fn print(explanation: &Explanation, shown: Shown, console: &mut Console) -> Result<(), Failure> {
    let nodes = &explanation.nodes[..explanation.nodes.len().min(shown.nodes)];
    let left_out = explanation.report.feasible.len() - nodes.len();
    console.heading("Scores: normalized × weight = points")?;
    print_table(explanation, nodes, weighted, console)?;
    if left_out > 0 {
        console.line(format!(
            "{INDENT}… and {left_out} more nodes with lower or equal totals (--all shows them)"
        ))?;
    }
    if shown.raw {
        console.heading("Raw scores, before they are normalized")?;
        print_table(explanation, nodes, |points| points.raw.to_string(), console)?;
    }
    Ok(())
}

fn weighted(points: &PluginPoints) -> String {
    format!("{}×{}={}", points.normalized, points.weight, points.points)
}

/// Plugins side by side, as many as fit; the others below, with the nodes again.
fn print_table(
    explanation: &Explanation,
    nodes: &[NodeScores],
    cell: impl Fn(&PluginPoints) -> String,
    console: &mut Console,
) -> Result<(), Failure> {
    let gap = usize::from(GAP_COLUMNS);
    let names = widest(nodes.iter().map(|node| node.name.clone()));
    let frame = INDENT.len() + CHOSEN.len() + gap + names + gap + "TOTAL".len();
    let room = console.width.saturating_sub(frame);
    let cell = |node: &NodeScores, plugin: &str| node.plugins.get(plugin).map(&cell).unwrap_or_default();
    let columns: Vec<Column<'_>> = (explanation.score_plugins.iter())
        .map(|plugin| Column {
            title: plugin.name.clone(),
            cells: nodes.iter().map(|node| cell(node, &plugin.name)).collect(),
            plugin: &plugin.name,
        })
        .collect();
    for (number, part) in parts(columns, room).iter().enumerate() {
        if number > 0 {
            console.line("")?;
        }
        console.grid(table(explanation, nodes, part, console))?;
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

fn table(explanation: &Explanation, nodes: &[NodeScores], columns: &[Column<'_>], console: &Console) -> Grid {
    let titles: Vec<&str> = columns.iter().map(|column| column.title.as_str()).collect();
    let height = titles.iter().map(|title| title.split('\n').count()).max().unwrap_or(1);
    let above = |title: &str| "\n".repeat(height - title.split('\n').count());
    let mut header = vec![String::new(), format!("{}NODE", above(""))];
    header.extend(titles.iter().map(|title| format!(">{}{title}", above(title))));
    header.push(format!(">{}TOTAL", above("")));
    let mut grid = Grid::new(header.iter().map(String::as_str)).indented(INDENT);
    let report = &explanation.report;
    for (row, node) in nodes.iter().enumerate() {
        let chosen = report.placed.as_ref() == Some(&node.name);
        let mark = match (chosen, report.best.contains(&node.name)) {
            (true, _) => CHOSEN,
            (false, true) => TIED,
            (false, false) => "",
        };
        let mut cells = vec![mark.to_owned(), node.name.clone()];
        cells.extend(columns.iter().map(|column| column.cells[row].clone()));
        cells.push(node.total.to_string());
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

/// The plugins that could score, and skipped this pod.
pub(super) fn print_silent(explanation: &Explanation, console: &mut Console) -> Result<(), Failure> {
    if !explanation.skipped_plugins.is_empty() {
        let names = explanation.skipped_plugins.join(", ");
        console.paragraph(INDENT, &format!("Plugins that skipped this pod: {names}."))?;
    }
    Ok(())
}

/// Which nodes share the highest total, and how one of them was chosen.
pub(super) fn print_tie(explanation: &Explanation, console: &mut Console) -> Result<(), Failure> {
    let report = &explanation.report;
    let (Some(node), Some(first)) = (&report.placed, explanation.nodes.first()) else {
        return Ok(());
    };
    let total = first.total;
    console.line("")?;
    let text = match (&report.best[..], &*explanation.tie_break) {
        ([_], _) => {
            format!("{CHOSEN} {node} alone has the highest total, {total}{}.", lead(explanation, total))
        }
        (best, "Random") => format!(
            "{CHOSEN} chosen, {TIED} tied: {} nodes share the highest total, {total}: {}. {node} was drawn from them by \
             this cycle's seed, {}.",
            best.len(),
            best.join(", "),
            report.seed.unwrap_or_default()
        ),
        (best, _) => format!(
            "{CHOSEN} chosen, {TIED} tied: {} nodes share the highest total, {total}: {}. {node} is the first of them in \
             the order of nodes, as the configuration wants it.",
            best.len(),
            best.join(", ")
        ),
    };
    console.paragraph(INDENT, &text)?;
    Ok(())
}

fn lead(explanation: &Explanation, total: i64) -> String {
    match explanation.nodes.iter().find(|node| node.total < total) {
        Some(second) => format!(", {} ahead of the next", total.saturating_sub(second.total)),
        None => String::new(),
    }
}
