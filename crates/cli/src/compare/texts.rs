//! A comparison as tables, as Markdown and as JSON.

use std::fmt::Write;

use serde_json::{Value, json};
use supercargo_sim::{
    compare::{MeasureChange, MovedPod, judge, shown, shown_difference},
    measures::{MeasureKind, Unit},
};

use super::Compared;
use crate::{
    failure::Failure,
    output::{Console, Grid},
};

/// How many of the pods that moved are listed.
const MAX_MOVED: usize = 20;

/// A measure under each of the configurations.
pub(super) struct Row {
    pub(super) kind: &'static MeasureKind,
    pub(super) resource: Option<String>,
    pub(super) values: Vec<f64>,
}

impl Row {
    pub(super) fn name(&self) -> String {
        match &self.resource {
            Some(resource) => format!("{}[{resource}]", self.kind.name),
            None => self.kind.name.to_owned(),
        }
    }

    /// The value of a configuration, with the difference from the first if there is one.
    pub(super) fn cell(&self, index: usize) -> (String, Option<String>, MeasureChange) {
        let (first, value) = (self.values[0], self.values[index]);
        let verdict = judge(self.kind, first, value);
        let differs = index > 0 && verdict != MeasureChange::Same;
        let difference = differs.then(|| shown_difference(self.kind.unit, value - first));
        (shown(self.kind.unit, value), difference, verdict)
    }
}

/// All measures, side by side.
pub(super) fn rows(compared: &Compared) -> Vec<Row> {
    let all: Vec<_> = compared.measures().into_iter().map(|measures| measures.all()).collect();
    let row =
        |(i, (kind, resource, _)): (usize, &(&'static MeasureKind, Option<&supercargo_model::Name>, f64))| {
            Row {
                kind,
                resource: resource.map(|resource| resource.to_string()),
                values: all.iter().map(|measures| measures[i].2).collect(),
            }
        };
    all[0].iter().enumerate().map(row).collect()
}

pub(super) fn print_tables(compared: &Compared, console: &mut Console) -> Result<(), Failure> {
    let header = std::iter::once("MEASURE".to_owned());
    let header: Vec<String> = header.chain(compared.names.iter().map(|name| format!(">{name}"))).collect();
    let mut grid = Grid::new(header.iter().map(String::as_str));
    for row in rows(compared) {
        let cells = (0..row.values.len()).map(|i| match row.cell(i) {
            (value, Some(difference), verdict) => format!("{value} ({difference}{})", mark(verdict)),
            (value, None, _) => value,
        });
        grid.row(std::iter::once(row.name()).chain(cells));
    }
    console.grid(grid)?;
    for (name, moves) in compared.names.iter().zip(&compared.moves).skip(1) {
        if moves.count() == 0 {
            continue;
        }
        console.heading(format!("WHAT MOVES UNDER {name}"))?;
        console.line(format!(
            "{} to another node, {} newly placed, {} no longer",
            moves.other_node.len(),
            moves.newly_placed.len(),
            moves.newly_pending.len()
        ))?;
        let mut grid = Grid::new(["POD", "FROM", "TO"]);
        for moved in moves.all().take(MAX_MOVED) {
            grid.row([moved.pod.to_string(), node(&moved.from), node(&moved.to)]);
        }
        console.grid(grid)?;
        if moves.count() > MAX_MOVED {
            console.line(format!("… and {} more; all of them with -o json", moves.count() - MAX_MOVED))?;
        }
    }
    console.heading("VERDICT")?;
    Ok(console.paragraph("", &compared.verdict())?)
}

fn mark(verdict: MeasureChange) -> &'static str {
    match verdict {
        MeasureChange::Better => ", better",
        MeasureChange::Worse => ", worse",
        MeasureChange::Same | MeasureChange::Different => "",
    }
}

pub(super) fn node(node: &Option<supercargo_model::Name>) -> String {
    node.as_ref().map_or_else(|| "none".to_owned(), |node| node.to_string())
}

pub(super) fn markdown(compared: &Compared) -> String {
    let mut text = format!("**{}**\n\n", escaped(&compared.verdict()));
    let columns = compared.names.iter().map(|name| escaped(name)).collect::<Vec<_>>().join(" | ");
    // Writing to a String cannot fail.
    let _ = writeln!(text, "| measure | {columns} |");
    let _ = writeln!(text, "|---|{}", "---:|".repeat(compared.names.len()));
    for row in rows(compared) {
        let cells = (0..row.values.len()).map(|i| match row.cell(i) {
            (value, Some(difference), MeasureChange::Better) => format!("**{value}** ({difference}, better)"),
            (value, Some(difference), verdict) => format!("{value} ({difference}{})", mark(verdict)),
            (value, None, _) => value,
        });
        let cells = cells.collect::<Vec<_>>().join(" | ");
        let _ = writeln!(text, "| `{}` | {cells} |", row.name());
    }
    for (name, moves) in compared.names.iter().zip(&compared.moves).skip(1) {
        let _ = writeln!(
            text,
            "\nUnder {}: {} pods go to another node, {} are newly placed, {} no longer.",
            escaped(name),
            moves.other_node.len(),
            moves.newly_placed.len(),
            moves.newly_pending.len()
        );
    }
    text
}

fn escaped(text: &str) -> String {
    text.replace('|', "\\|").replace('*', "\\*").replace('_', "\\_")
}

pub(super) fn json(compared: &Compared) -> Result<String, Failure> {
    let moved = |moved: &MovedPod| json!({"pod": moved.pod.to_string(), "from": moved.from, "to": moved.to});
    let configurations = compared.names.iter().zip(&compared.replays).zip(&compared.moves);
    let configurations = configurations.map(|((name, replay), moves)| {
        json!({
            "name": name,
            "measures": replay.measures,
            "overTime": replay.samples,
            "moves": {
                "otherNode": moves.other_node.iter().map(moved).collect::<Vec<Value>>(),
                "newlyPlaced": moves.newly_placed.iter().map(moved).collect::<Vec<Value>>(),
                "newlyPending": moves.newly_pending.iter().map(moved).collect::<Vec<Value>>(),
            },
        })
    });
    let rows = rows(compared).into_iter().map(|row| {
        let unit = match row.kind.unit {
            Unit::Count => "count",
            Unit::Seconds => "seconds",
            Unit::Share => "share",
        };
        json!({"measure": row.name(), "unit": unit, "values": row.values})
    });
    let all = json!({
        "verdict": compared.verdict(),
        "seed": compared.seed.to_string(),
        "measures": rows.collect::<Vec<Value>>(),
        "configurations": configurations.collect::<Vec<Value>>(),
    });
    Ok(serde_json::to_string(&all).map_err(std::io::Error::from)?)
}
