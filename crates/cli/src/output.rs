//! Where data and talk go, and how tables look.

use std::{
    env,
    fmt::Display,
    io::{self, BufWriter, IsTerminal, Stdout, Write},
};

use anstyle::Style;
use comfy_table::{CellAlignment, ContentArrangement, Table};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use supercargo_manifest::Problems;
use terminal_size::{Width, terminal_size_of};

use crate::style::{Color, Palette, harmless, paint};

/// How wide lines are where there is no terminal to ask.
const DEFAULT_WIDTH_COLUMNS: usize = 100;
/// Nothing can be read in less.
const MIN_WIDTH_COLUMNS: usize = 40;
/// Between two columns of a table.
pub(crate) const GAP_COLUMNS: u16 = 2;

/// How objects are written for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Structured {
    /// One a line.
    Json,
    /// With line breaks and indents.
    PrettyJson,
    /// One document each.
    Yaml,
}

/// Data goes to stdout, talk to stderr.
pub(crate) struct Console {
    out: BufWriter<Stdout>,
    /// The colours of stdout.
    pub(crate) palette: Palette,
    talk_palette: Palette,
    quiet: bool,
    /// How wide lines may be.
    pub(crate) width: usize,
}

impl Console {
    pub(crate) fn new(color: Color, quiet: bool) -> Self {
        Self {
            out: BufWriter::new(io::stdout()),
            palette: Palette::new(color, &io::stdout()),
            talk_palette: Palette::new(color, &io::stderr()),
            quiet,
            width: width(),
        }
    }

    /// Writes a line of data.
    pub(crate) fn line(&mut self, text: impl Display) -> io::Result<()> {
        writeln!(self.out, "{text}")
    }

    /// Writes an object for programs.
    pub(crate) fn structured(&mut self, how: Structured, object: &impl Serialize) -> io::Result<()> {
        match how {
            Structured::Json => self.line(serde_json::to_string(object)?),
            Structured::PrettyJson => self.line(serde_json::to_string_pretty(object)?),
            Structured::Yaml => {
                let value = serde_json::to_string(object)?.parse().map_err(io::Error::other)?;
                write!(self.out, "---\n{}", supercargo_config::to_yaml(&value))
            }
        }
    }

    /// Writes data as it is.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(bytes)
    }

    /// Writes a heading, with an empty line before it.
    pub(crate) fn heading(&mut self, text: impl Display) -> io::Result<()> {
        let style = self.palette.heading;
        writeln!(self.out, "\n{}", paint(style, text))
    }

    /// Writes a text of any length, broken into lines that begin with the indent.
    pub(crate) fn paragraph(&mut self, indent: &str, text: &str) -> io::Result<()> {
        self.hanging(indent, indent, text)
    }

    /// Writes a text of any length; the first line begins in its own way.
    pub(crate) fn hanging(&mut self, first: &str, indent: &str, text: &str) -> io::Result<()> {
        let options = textwrap::Options::new(self.width)
            .initial_indent(first)
            .subsequent_indent(indent)
            .break_words(false)
            .word_splitter(textwrap::WordSplitter::NoHyphenation);
        let text = harmless(text);
        for line in textwrap::wrap(&text, options) {
            writeln!(self.out, "{line}")?;
        }
        Ok(())
    }

    /// Writes a table.
    pub(crate) fn grid(&mut self, grid: Grid) -> io::Result<()> {
        let heading = self.palette.heading;
        for (style, line) in grid.lines(self.width, heading) {
            writeln!(self.out, "{}", paint(style, line))?;
        }
        Ok(())
    }

    /// Makes sure that all data is written.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// Whether talk may be more than errors, and there is somebody to watch it.
    pub(crate) fn may_show_progress(&self) -> bool {
        !self.quiet && io::stderr().is_terminal()
    }

    /// Says something that is good to know.
    pub(crate) fn note(&mut self, text: impl Display) {
        if !self.quiet {
            self.talk(&format!("note: {text}"));
        }
    }

    /// Tells what is wrong.
    pub(crate) fn problems(&mut self, problems: &Problems) {
        self.talk(&problems.to_string());
    }

    /// Tells what is worth a look.
    pub(crate) fn warnings(&mut self, warnings: &Problems) {
        if !self.quiet && !warnings.is_empty() {
            self.talk(&warnings.to_string());
        }
    }

    fn talk(&mut self, text: &str) {
        // Data that was written before is shown before; if that fails, the data tells.
        let _ = self.out.flush();
        let mut stderr = io::stderr().lock();
        for line in text.lines() {
            let line = harmless(line);
            let painted = match self.first_word(&line) {
                Some((style, word)) => format!("{}{}", paint(style, word), &line[word.len()..]),
                None => line,
            };
            // There is nobody left to tell that telling failed.
            let _ = writeln!(stderr, "{painted}");
        }
    }

    fn first_word(&self, line: &str) -> Option<(Style, &'static str)> {
        let palette = &self.talk_palette;
        [
            (palette.bad, "error:"),
            (palette.caution, "warning:"),
            (palette.hint, "hint:"),
            (palette.faint, "note:"),
        ]
        .into_iter()
        .find(|(_, word)| line.starts_with(word))
    }
}

/// How wide lines may be: as COLUMNS says, or as the terminal is.
fn width() -> usize {
    let told = env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let seen = || terminal_size_of(io::stdout()).map(|(Width(columns), _)| usize::from(columns));
    told.or_else(seen).unwrap_or(DEFAULT_WIDTH_COLUMNS).max(MIN_WIDTH_COLUMNS)
}

/// A table without lines, as kubectl prints them.
pub(crate) struct Grid {
    table: Table,
    /// How each line looks, as long as no cell is broken.
    styles: Vec<Style>,
    header_height: usize,
    indent: &'static str,
}

impl Grid {
    /// A table with these columns; a name that begins with `>` belongs to a column of numbers.
    pub(crate) fn new<'h>(header: impl IntoIterator<Item = &'h str>) -> Self {
        let header: Vec<&str> = header.into_iter().collect();
        let mut table = Table::new();
        table.load_style(comfy_table::presets::NOTHING);
        table.set_header(header.iter().map(|name| name.trim_start_matches('>')));
        for (name, column) in header.iter().zip(table.column_iter_mut()) {
            column.set_padding((0, GAP_COLUMNS));
            if name.starts_with('>') {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        Self { table, styles: Vec::new(), header_height: height(header.iter().copied()), indent: "" }
    }

    /// Long cells are broken so that the table fits the width of the terminal. Its rows are plain.
    pub(crate) fn fitting(mut self) -> Self {
        self.table.set_content_arrangement(ContentArrangement::Dynamic);
        self
    }

    /// The table stands further in.
    pub(crate) fn indented(mut self, indent: &'static str) -> Self {
        self.indent = indent;
        self
    }

    /// Adds a row.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.styled_row(Style::new(), cells);
    }

    /// Adds a row that looks different.
    pub(crate) fn styled_row(&mut self, style: Style, cells: impl IntoIterator<Item = String>) {
        let cells: Vec<String> = cells.into_iter().map(|cell| harmless(&cell)).collect();
        let lines = height(cells.iter().map(String::as_str));
        self.styles.extend(std::iter::repeat_n(style, lines));
        self.table.add_row(cells);
    }

    fn lines(mut self, width: usize, heading: Style) -> Vec<(Style, String)> {
        // The gap after the last column is cut off, so it may stand out.
        let room = width + usize::from(GAP_COLUMNS) - self.indent.len();
        self.table.set_width(u16::try_from(room).unwrap_or(u16::MAX));
        if !matches!(self.table.content_arrangement(), ContentArrangement::Disabled) {
            self.styles.clear();
        }
        let header = std::iter::repeat_n(heading, self.header_height);
        let styles = header.chain(self.styles).chain(std::iter::repeat(Style::new()));
        let lines = self.table.lines().map(|line| format!("{}{}", self.indent, line.trim_end()));
        styles.zip(lines).collect()
    }
}

fn height<'c>(cells: impl Iterator<Item = &'c str>) -> usize {
    cells.map(|cell| cell.split('\n').count()).max().unwrap_or(1)
}

/// Some names, and how many more there are.
pub(crate) fn listed(names: &[String], most: usize) -> String {
    let shown = names.iter().take(most).map(String::as_str);
    let more = (names.len() > most).then(|| format!("… and {} more", names.len() - most));
    shown.chain(more.as_deref()).collect::<Vec<_>>().join(", ")
}

/// Shows on stderr how far a long piece of work is, if there is a terminal to watch it on.
pub(crate) struct Progress(ProgressBar);

impl Progress {
    pub(crate) fn new(length: usize, unit: &'static str, console: &Console) -> Self {
        if !console.may_show_progress() {
            return Self(ProgressBar::hidden());
        }
        let template = format!("{{bar:40}} {{pos}}/{{len}} {unit}, {{eta}} left");
        let style = ProgressStyle::with_template(&template).unwrap_or_else(|_| ProgressStyle::default_bar());
        Self(ProgressBar::new(length as u64).with_style(style))
    }

    pub(crate) fn step(&self) {
        self.0.inc(1);
    }

    pub(crate) fn at(&self, position: usize) {
        self.0.set_position(position as u64);
    }

    pub(crate) fn finish(&self) {
        self.0.finish_and_clear();
    }
}

/// Says on stderr what is being done while nobody knows for how long, if there is a terminal to watch it on.
pub(crate) struct Spinner(ProgressBar);

impl Spinner {
    pub(crate) fn new(console: &Console) -> Self {
        Self(if console.may_show_progress() { ProgressBar::new_spinner() } else { ProgressBar::hidden() })
    }

    pub(crate) fn say(&self, what: String) {
        self.0.set_message(what);
        self.0.tick();
    }

    pub(crate) fn finish(&self) {
        self.0.finish_and_clear();
    }
}
