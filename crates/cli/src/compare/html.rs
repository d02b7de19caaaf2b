//! A comparison as one HTML page: nothing is loaded from elsewhere, and no script runs.

use std::fmt::Write;

use supercargo_sim::{compare::MeasureChange, measures::Sample};

use super::{
    Compared,
    texts::{node, rows},
};
use crate::chart::{Line, Scale, chart, escaped};

const MAX_MOVED: usize = 200;
const STYLE: &str = include_str!("report.css");

pub(super) fn page(compared: &Compared) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <title>Comparison: {subject}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n\
         <h1>What the configuration changes</h1>\n<p class=\"subject\">{subject}, seed {seed}</p>\n\
         <p class=\"verdict\">{verdict}</p>\n{legend}{charts}{table}{moves}</main>\n</body>\n</html>\n",
        subject = escaped(&compared.subject),
        seed = compared.seed,
        verdict = escaped(&compared.verdict()),
        legend = legend(compared),
        charts = charts(compared),
        table = table(compared),
        moves = moves(compared),
    )
}

fn legend(compared: &Compared) -> String {
    let item = |(n, name): (usize, &String)| {
        format!("<li><span class=\"key key-{n}\"></span>{}</li>\n", escaped(name))
    };
    let items: String = compared.names.iter().enumerate().map(item).collect();
    format!("<ul class=\"legend\">\n{items}</ul>\n")
}

/// A measure of the resource with this place in the list.
type OfResource = fn(&Sample, usize) -> f64;

fn charts(compared: &Compared) -> String {
    if compared.replays.iter().any(|replay| replay.samples.len() < 2) {
        return String::new();
    }
    let mut all = String::from("<section class=\"charts\">\n");
    for (i, resource) in compared.measures()[0].resources.iter().enumerate() {
        let name = &resource.resource;
        let of_resource: [(String, OfResource); 3] = [
            (format!("Utilisation of {name}"), |sample, i| sample.resources[i].utilisation),
            (format!("Fragmentation of {name}"), |sample, i| sample.resources[i].fragmentation),
            (format!("Imbalance of {name}"), |sample, i| sample.resources[i].imbalance),
        ];
        for (title, value) in of_resource {
            figure(&mut all, &title, compared, |sample| value(sample, i), Scale::Percent);
        }
    }
    figure(&mut all, "Pending pods", compared, |sample| sample.pending as f64, Scale::Number);
    figure(&mut all, "Nodes in use", compared, |sample| sample.nodes_in_use as f64, Scale::Number);
    all.push_str("</section>\n");
    all
}

fn figure(out: &mut String, title: &str, compared: &Compared, value: impl Fn(&Sample) -> f64, scale: Scale) {
    let lines = compared.names.iter().zip(&compared.replays).map(|(name, replay)| Line {
        name,
        points: replay.samples.iter().map(|sample| (sample.at_seconds, value(sample))).collect(),
    });
    let lines: Vec<Line<'_>> = lines.collect();
    // Writing to a String cannot fail.
    let _ = writeln!(
        out,
        "<figure><figcaption>{}</figcaption>\n{}</figure>",
        escaped(title),
        chart(title, &lines, scale)
    );
}

fn table(compared: &Compared) -> String {
    let header: String =
        compared.names.iter().map(|name| format!("<th class=\"n\">{}</th>", escaped(name))).collect();
    let mut all =
        format!("<h2>Measures</h2>\n<div class=\"wide\"><table>\n<tr><th>measure</th>{header}</tr>\n");
    for row in rows(compared) {
        let cells: String = (0..row.values.len())
            .map(|i| {
                let (value, difference, verdict) = row.cell(i);
                let class = match verdict {
                    MeasureChange::Better => "n better",
                    MeasureChange::Worse => "n worse",
                    MeasureChange::Same | MeasureChange::Different => "n",
                };
                let difference = difference.map(|d| format!("<small>{}</small>", escaped(&d)));
                format!("<td class=\"{class}\">{}{}</td>", escaped(&value), difference.unwrap_or_default())
            })
            .collect();
        let name = escaped(&row.name());
        let _ = writeln!(
            all,
            "<tr><td><code>{name}</code> <span class=\"what\">{}</span></td>{cells}</tr>",
            escaped(row.kind.what)
        );
    }
    all.push_str("</table></div>\n");
    all
}

fn moves(compared: &Compared) -> String {
    let mut all = String::new();
    for (name, moves) in compared.names.iter().zip(&compared.moves).skip(1).filter(|(_, m)| m.count() > 0) {
        let _ = writeln!(
            all,
            "<h2>What moves under {}</h2>\n<p>{} pods go to another node, {} are newly placed, {} no longer.</p>\n\
             <details><summary>Pods</summary><div class=\"wide\"><table>\n<tr><th>pod</th><th>from</th><th>to</th></tr>",
            escaped(name),
            moves.other_node.len(),
            moves.newly_placed.len(),
            moves.newly_pending.len()
        );
        for moved in moves.all().take(MAX_MOVED) {
            let cells = [moved.pod.to_string(), node(&moved.from), node(&moved.to)];
            let cells = cells.map(|cell| format!("<td>{}</td>", escaped(&cell))).concat();
            let _ = writeln!(all, "<tr>{cells}</tr>");
        }
        all.push_str("</table></div>\n");
        if moves.count() > MAX_MOVED {
            let _ = writeln!(all, "<p>… and {} more.</p>", moves.count() - MAX_MOVED);
        }
        all.push_str("</details>\n");
    }
    all
}
