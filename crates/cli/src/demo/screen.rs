//! How the demo looks: a few lines that are drawn again and again on a terminal, one a second in a pipe.

use std::{collections::VecDeque, fmt::Write, time::Duration};

use anstyle::{Ansi256Color, Color, Style};

use super::story::StoryLine;
use crate::{
    output::Console,
    style::{harmless, paint},
};

/// From an empty node to a full one.
const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// The colours of the same levels: blue, green, yellow, red.
const LEVEL_COLOURS: [u8; 8] = [24, 30, 36, 42, 148, 220, 208, 196];
const MAX_CELLS: usize = 64;
const SHOWN_LINES: usize = 8;
const KEPT_RATES: usize = 40;

/// What is shown of a moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct DemoFigures {
    pub(super) at: Duration,
    pub(super) created: usize,
    pub(super) bound: usize,
    /// Decisions a second.
    pub(super) rate: f64,
    pub(super) p50_microseconds: Option<f64>,
    pub(super) p99_microseconds: Option<f64>,
    pub(super) zones: Vec<ZoneLoad>,
    pub(super) waiting: usize,
    /// Who waits, and why.
    pub(super) waits: Vec<(String, String)>,
}

/// How loaded the nodes of a zone are.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ZoneLoad {
    pub(super) name: String,
    /// The part of the cpu that is taken, node by node.
    pub(super) loads: Vec<f64>,
    pub(super) pods: usize,
}

impl ZoneLoad {
    fn mean(&self) -> f64 {
        self.loads.iter().sum::<f64>() / self.loads.len().max(1) as f64
    }

    /// The zone and how full it is.
    pub(super) fn summary(&self) -> String {
        format!("{} {:.0} %", self.name, 100.0 * self.mean())
    }
}

/// Draws, or writes lines.
pub(super) struct DemoScreen {
    /// On a terminal: how many lines were drawn the last time.
    drawn: Option<usize>,
    title: String,
    rates: VecDeque<f64>,
    /// How many lines of the story were written.
    told: usize,
}

impl DemoScreen {
    pub(super) fn new(title: String, on_terminal: bool) -> Self {
        Self { drawn: on_terminal.then_some(0), title, rates: VecDeque::new(), told: 0 }
    }

    /// How often there is something to show.
    pub(super) fn interval(&self) -> Duration {
        if self.drawn.is_some() { Duration::from_millis(250) } else { Duration::from_secs(1) }
    }

    /// Shows a moment, with the last lines of the story, of which there were `told` in all.
    pub(super) fn show(
        &mut self,
        figures: &DemoFigures,
        story: &VecDeque<StoryLine>,
        told: usize,
        console: &mut Console,
    ) -> std::io::Result<()> {
        self.rates.push_back(figures.rate);
        if self.rates.len() > KEPT_RATES {
            self.rates.pop_front();
        }
        match self.drawn {
            Some(before) => {
                let lines = self.lines(figures, story, console);
                let mut text = if before > 0 { format!("\x1b[{before}A") } else { String::new() };
                for line in &lines {
                    // To the end of the line nothing is left of what was there.
                    writeln!(text, "\r{line}\x1b[K").expect("a string takes everything");
                }
                text.push_str("\x1b[J");
                self.drawn = Some(lines.len());
                console.bytes(text.as_bytes())?;
            }
            None => {
                self.write_story(story, told, console)?;
                console.line(plain_line(figures))?;
            }
        }
        console.flush()
    }

    /// What was not told yet, a line each.
    fn write_story(
        &mut self,
        story: &VecDeque<StoryLine>,
        told: usize,
        console: &mut Console,
    ) -> std::io::Result<()> {
        let new = (told - self.told).min(story.len());
        self.told = told;
        for line in story.iter().skip(story.len() - new) {
            console.line(format!(
                "{}{}",
                if line.is_chapter { "== " } else { "   " },
                harmless(&line.text)
            ))?;
        }
        Ok(())
    }

    fn lines(&self, figures: &DemoFigures, story: &VecDeque<StoryLine>, console: &Console) -> Vec<String> {
        let (width, palette) = (console.width.saturating_sub(1), console.palette);
        let in_colour = palette.heading != Style::new();
        let cells = width.saturating_sub(30).clamp(10, MAX_CELLS);
        let mut lines = vec![paint(palette.heading, cut(&self.title, width)), String::new()];
        for zone in &figures.zones {
            let bar = levels(&buckets(&zone.loads, cells), in_colour);
            lines.push(format!(
                "  {:<8} {bar} {:>3.0} %  {:>6} pods",
                cut(&zone.name, 8),
                100.0 * zone.mean(),
                zone.pods
            ));
        }
        lines.push(String::new());
        let most = self.rates.iter().copied().fold(1.0, f64::max);
        let rates: Vec<f64> = self.rates.iter().map(|rate| rate / most).collect();
        lines.push(cut_painted(
            format!(
                "  {:>6.0} decisions a second  p50 {}  p99 {}  {} pods bound  ",
                figures.rate,
                microseconds(figures.p50_microseconds),
                microseconds(figures.p99_microseconds),
                figures.bound
            ),
            &rates,
            width,
            in_colour,
        ));
        lines.push(format!("  {:>6} pods wait", figures.waiting));
        for (pod, why) in &figures.waits {
            lines.push(paint(
                palette.faint,
                cut(&format!("         {}: {}", harmless(pod), harmless(why)), width),
            ));
        }
        lines.push(String::new());
        for line in story.iter().skip(story.len().saturating_sub(SHOWN_LINES)) {
            let text = format!(
                "  {:>3} s  {}{}",
                line.at.as_secs(),
                if line.is_chapter { "" } else { "  " },
                harmless(&line.text)
            );
            let style = if line.is_chapter { palette.heading } else { palette.good };
            lines.push(paint(style, cut(&text, width)));
        }
        lines
    }
}

fn plain_line(figures: &DemoFigures) -> String {
    let zones: Vec<String> = figures.zones.iter().map(ZoneLoad::summary).collect();
    format!(
        "{:>4} s: {} pods created, {} bound, {:.0} decisions a second (p50 {}, p99 {}), {} wait; {}",
        figures.at.as_secs(),
        figures.created,
        figures.bound,
        figures.rate,
        microseconds(figures.p50_microseconds),
        microseconds(figures.p99_microseconds),
        figures.waiting,
        zones.join(", ")
    )
}

/// A time as people read it.
pub(super) fn microseconds(time: Option<f64>) -> String {
    match time {
        None => "–".to_owned(),
        Some(time) if time < 1000.0 => format!("{time:.0} µs"),
        Some(time) => format!("{:.1} ms", time / 1000.0),
    }
}

/// The means of as many parts as there is room for; all nodes, if they fit.
fn buckets(loads: &[f64], most: usize) -> Vec<f64> {
    let count = loads.len().min(most);
    let bucket = |i: usize| {
        let part = &loads[i * loads.len() / count..(i + 1) * loads.len() / count];
        part.iter().sum::<f64>() / part.len() as f64
    };
    (0..count).map(bucket).collect()
}

/// A character for each part, as high and as hot as it is full.
fn levels(parts: &[f64], in_colour: bool) -> String {
    let mut text = String::new();
    for part in parts {
        let level = ((part.clamp(0.0, 1.0) * 8.0) as usize).min(7);
        let style = Style::new().fg_color(Some(Color::Ansi256(Ansi256Color(LEVEL_COLOURS[level]))));
        match in_colour {
            true => text.push_str(&paint(style, LEVELS[level])),
            false => text.push(LEVELS[level]),
        }
    }
    text
}

fn cut(text: &str, width: usize) -> String {
    text.chars().take(width).collect()
}

/// A text with levels behind it, as many as there is room for.
fn cut_painted(text: String, parts: &[f64], width: usize, in_colour: bool) -> String {
    let room = width.saturating_sub(text.chars().count());
    let shown = &parts[parts.len().saturating_sub(room)..];
    format!("{}{}", cut(&text, width), levels(shown, in_colour))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_share_a_character_where_there_is_no_room_for_each() {
        assert_eq!(buckets(&[0.0, 1.0, 0.5], 8), [0.0, 1.0, 0.5]);
        // Two nodes a character: (0 + 1) / 2 and (0.5 + 1) / 2.
        assert_eq!(buckets(&[0.0, 1.0, 0.5, 1.0], 2), [0.5, 0.75]);
        assert_eq!(levels(&[0.0, 0.5, 1.0], false), "▁▅█");
        assert_eq!(buckets(&[], 8), Vec::<f64>::new());
    }

    #[test]
    fn times_are_told_in_their_own_unit() {
        for (time, expected) in [(None, "–"), (Some(12.4), "12 µs"), (Some(1500.0), "1.5 ms")] {
            assert_eq!(microseconds(time), expected);
        }
    }

    #[test]
    fn a_line_in_a_pipe_has_all_figures() {
        let zones = vec![ZoneLoad { name: "zone-a".into(), loads: vec![0.2, 0.4], pods: 7 }];
        let figures = DemoFigures {
            at: Duration::from_secs(3),
            created: 150,
            bound: 149,
            rate: 50.0,
            p50_microseconds: Some(8.0),
            p99_microseconds: Some(90.0),
            zones,
            waiting: 1,
            waits: Vec::new(),
        };
        let expected = "   3 s: 150 pods created, 149 bound, 50 decisions a second (p50 8 µs, p99 90 µs), 1 wait; zone-a 30 %";
        assert_eq!(plain_line(&figures), expected);
    }
}
