//! Line charts as SVG, without a script: parts of a page that says how they look, or a file of their own.

use std::fmt::Write;

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 220.0;
const LEFT: f64 = 52.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 26.0;
/// A line for each value that is marked at the side.
const STEPS: u32 = 4;
/// Above each chart of a file: what it shows, and which line is which.
const CAPTION: f64 = 34.0;
/// How charts look in a file of their own, light or dark as the reader's page is.
const STYLE: &str = include_str!("chart.css");

/// A line of a chart.
pub(crate) struct Line<'l> {
    pub(crate) name: &'l str,
    /// Time in seconds, and the value then.
    pub(crate) points: Vec<(f64, f64)>,
}

/// How values are written at the side.
#[derive(Clone, Copy)]
pub(crate) enum Scale {
    Percent,
    Number,
}

/// A chart of a file.
pub(crate) struct Panel<'p> {
    pub(crate) title: &'p str,
    pub(crate) lines: Vec<Line<'p>>,
}

/// Texts of others must not become markup.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// A chart over time. Line `n` has the class `line-n`.
pub(crate) fn chart(title: &str, lines: &[Line<'_>], scale: Scale) -> String {
    let Some(frame) = Frame::around(lines.iter()) else { return String::new() };
    format!(
        "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">\n{}</svg>\n",
        escaped(title),
        frame.drawn(lines, scale)
    )
}

/// A file with charts one below the other, over the same time. Moments are marked in all of them, and named in the first.
pub(crate) fn file(title: &str, panels: &[Panel<'_>], moments: &[(f64, &str)]) -> String {
    let Some(whole) = Frame::around(panels.iter().flat_map(|panel| &panel.lines)) else {
        return String::new();
    };
    let first = 2.0 * CAPTION;
    let height = first + panels.len() as f64 * (HEIGHT + CAPTION);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" \
         role=\"img\" aria-label=\"{title}\">\n<style>\n{STYLE}</style>\n\
         <rect class=\"page\" width=\"{WIDTH}\" height=\"{height}\"/>\n\
         <text class=\"title\" x=\"12\" y=\"24\">{title}</text>\n",
        title = escaped(title)
    );
    for (n, (at, name)) in moments.iter().enumerate() {
        // Writing to a String cannot fail.
        let _ = writeln!(
            svg,
            "<line class=\"moment\" x1=\"{0:.1}\" x2=\"{0:.1}\" y1=\"{1}\" y2=\"{height}\"/>\
             <text class=\"moment\" x=\"{2:.1}\" y=\"{3}\">{4}</text>",
            whole.x(*at),
            first - 10.0,
            whole.x(*at) + 3.0,
            // Neighbours on different heights, for they may be long.
            if n.is_multiple_of(2) { first - 14.0 } else { first - 2.0 },
            escaped(name)
        );
    }
    for (n, panel) in panels.iter().enumerate() {
        let top = first + n as f64 * (HEIGHT + CAPTION);
        let values = panel.lines.iter().flat_map(|line| &line.points).map(|(_, value)| *value);
        let frame = Frame { highest: round_up(values.fold(0.0, f64::max)), ..whole };
        let _ = write!(svg, "<g transform=\"translate(0, {top})\">\n{}", caption(panel));
        let _ = writeln!(
            svg,
            "<g transform=\"translate(0, {CAPTION})\">\n{}</g>\n</g>",
            frame.drawn(&panel.lines, Scale::Number)
        );
    }
    svg.push_str("</svg>\n");
    svg
}

/// What a chart shows, and which line is which.
fn caption(panel: &Panel<'_>) -> String {
    let key = |(n, line): (usize, &Line<'_>)| {
        format!("<tspan class=\"key-{n}\" dx=\"12\">━ {}</tspan>", escaped(line.name))
    };
    let keys: String = match &panel.lines[..] {
        [_] => String::new(),
        lines => lines.iter().enumerate().map(key).collect(),
    };
    format!("<text class=\"caption\" x=\"12\" y=\"24\">{}{keys}</text>\n", escaped(panel.title))
}

/// What a chart has room for: from a time to another, up to a value.
#[derive(Clone, Copy)]
struct Frame {
    begin: f64,
    end: f64,
    highest: f64,
}

impl Frame {
    /// `None` where there is no time to show.
    fn around<'l>(lines: impl Iterator<Item = &'l Line<'l>>) -> Option<Self> {
        let nothing = Self { begin: f64::INFINITY, end: f64::NEG_INFINITY, highest: 0.0 };
        let around = lines.flat_map(|line| &line.points).fold(nothing, |frame, (x, y)| Self {
            begin: frame.begin.min(*x),
            end: frame.end.max(*x),
            highest: frame.highest.max(*y),
        });
        (around.end > around.begin).then(|| Self { highest: round_up(around.highest), ..around })
    }

    fn x(&self, at: f64) -> f64 {
        LEFT + (at - self.begin) / (self.end - self.begin) * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, value: f64) -> f64 {
        HEIGHT - BOTTOM - value / self.highest * (HEIGHT - TOP - BOTTOM)
    }

    fn drawn(&self, lines: &[Line<'_>], scale: Scale) -> String {
        let mut svg = String::new();
        for step in 0..=STEPS {
            let value = self.highest * f64::from(step) / f64::from(STEPS);
            let at = self.y(value);
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
        let middle = self.begin + (self.end - self.begin) / 2.0;
        for (at, anchor) in [(self.begin, "start"), (middle, "middle"), (self.end, "end")] {
            let text = crate::traces::span(at - self.begin);
            let _ = writeln!(
                svg,
                "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"{anchor}\">{text}</text>",
                self.x(at),
                HEIGHT - 8.0
            );
        }
        for (n, line) in lines.iter().enumerate() {
            let point = |(at, value): &(f64, f64)| format!("{:.1},{:.1}", self.x(*at), self.y(*value));
            let path: Vec<String> = line.points.iter().map(point).collect();
            let _ = writeln!(
                svg,
                "<polyline class=\"line-{n}\" points=\"{}\"><title>{}</title></polyline>",
                path.join(" "),
                escaped(line.name)
            );
        }
        svg
    }
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
    fn a_file_has_its_charts_over_the_same_time() {
        let line = |name, points: &[(f64, f64)]| Line { name, points: points.to_vec() };
        let panels = [
            Panel { title: "memory & more", lines: vec![line("MB", &[(0.0, 5.0), (10.0, 10.0)])] },
            Panel { title: "time", lines: vec![line("p50", &[(5.0, 1.0)]), line("p99", &[(5.0, 2.0)])] },
        ];
        let svg = file("load", &panels, &[(5.0, "half")]);
        assert!(svg.starts_with("<svg xmlns=") && svg.ends_with("</svg>\n"), "{svg}");
        assert_eq!(svg.matches("<polyline").count(), 3, "{svg}");
        // Half of the time is half way from 52 to 628, in both charts and for the mark.
        assert!(svg.contains("points=\"340.0,102.0\"") && svg.contains("x1=\"340.0\""), "{svg}");
        assert!(svg.contains("memory &amp; more") && svg.contains("━ p99"), "{svg}");
        assert_eq!(file("nothing", &[], &[]), "");
    }

    #[test]
    fn sides_end_in_round_numbers() {
        for (value, top) in [(0.03, 0.04), (1.0, 1.0), (130.0, 200.0), (0.0, 1.0)] {
            assert!((round_up(value) - top).abs() < 1e-9, "{value}: {}", round_up(value));
        }
    }
}
