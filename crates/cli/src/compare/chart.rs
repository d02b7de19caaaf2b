//! Line charts as SVG, without a script.

use std::fmt::Write;

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 220.0;
const LEFT: f64 = 52.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 26.0;
/// A line for each value that is marked at the side.
const STEPS: u32 = 4;

/// A line of a chart.
pub(super) struct Line<'l> {
    pub(super) name: &'l str,
    /// Time in seconds, and the value then.
    pub(super) points: Vec<(f64, f64)>,
}

/// How values are written at the side.
#[derive(Clone, Copy)]
pub(super) enum Scale {
    Percent,
    Number,
}

/// A chart over time. Line `n` has the class `line-n`.
pub(super) fn chart(title: &str, lines: &[Line<'_>], scale: Scale) -> String {
    let points = || lines.iter().flat_map(|line| &line.points);
    let (begin, end) =
        points().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), (x, _)| (a.min(*x), b.max(*x)));
    if end <= begin {
        return String::new();
    }
    let highest = round_up(points().map(|(_, y)| *y).fold(0.0, f64::max));
    let x = |at: f64| LEFT + (at - begin) / (end - begin) * (WIDTH - LEFT - RIGHT);
    let y = |value: f64| HEIGHT - BOTTOM - value / highest * (HEIGHT - TOP - BOTTOM);
    let mut svg = format!(
        "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">\n",
        super::html::escaped(title)
    );
    for step in 0..=STEPS {
        let value = highest * f64::from(step) / f64::from(STEPS);
        let at = y(value);
        // Writing to a String cannot fail.
        let _ = writeln!(
            svg,
            "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>\
             <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            WIDTH - RIGHT,
            LEFT - 6.0,
            at + 4.0,
            written(value, scale)
        );
    }
    for (at, anchor) in [(begin, "start"), (begin + (end - begin) / 2.0, "middle"), (end, "end")] {
        let text = crate::traces::span(at - begin);
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"{anchor}\">{text}</text>",
            x(at),
            HEIGHT - 8.0
        );
    }
    for (n, line) in lines.iter().enumerate() {
        let path: Vec<String> =
            line.points.iter().map(|(at, value)| format!("{:.1},{:.1}", x(*at), y(*value))).collect();
        let _ = writeln!(
            svg,
            "<polyline class=\"line-{n}\" points=\"{}\"><title>{}</title></polyline>",
            path.join(" "),
            super::html::escaped(line.name)
        );
    }
    svg.push_str("</svg>\n");
    svg
}

fn written(value: f64, scale: Scale) -> String {
    match scale {
        Scale::Percent => format!("{:.1} %", 100.0 * value).replace(".0 %", " %"),
        Scale::Number => format!("{value:.1}").replace(".0", ""),
    }
}

/// The next number that is easy to read: 1, 2 or 5 with zeros.
fn round_up(value: f64) -> f64 {
    if value <= 0.0 {
        return 1.0;
    }
    let magnitude = 10_f64.powf(value.log10().floor());
    let steps = [1.0, 2.0, 4.0, 5.0, 8.0, 10.0].map(|step| step * magnitude);
    steps.into_iter().find(|step| *step >= value * 0.999_999).unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_goes_from_side_to_side() {
        let line = Line { name: "a<b", points: vec![(0.0, 0.0), (10.0, 0.7)] };
        let svg = chart("use", &[line], Scale::Percent);
        // 0.7 of 0.8: the top is at 10, the bottom at 194, so 194 − 184 × 0.875 = 33.
        assert!(svg.contains("points=\"52.0,194.0 628.0,33.0\""), "{svg}");
        assert!(svg.contains("a&lt;b") && svg.contains(">80 %<"), "{svg}");
        assert_eq!(chart("nothing", &[], Scale::Number), "");
    }

    #[test]
    fn sides_end_in_round_numbers() {
        for (value, top) in [(0.03, 0.04), (1.0, 1.0), (130.0, 200.0), (0.0, 1.0)] {
            assert!((round_up(value) - top).abs() < 1e-9, "{value}: {}", round_up(value));
        }
    }
}
