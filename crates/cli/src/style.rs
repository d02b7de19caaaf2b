//! Whether to use colour, and which.

use std::fmt::Display;

use anstream::{AutoStream, ColorChoice, stream::RawStream};
use anstyle::{AnsiColor, Style};
use clap::ValueEnum;

/// When to use colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal, unless NO_COLOR is set
    #[default]
    Auto,
    /// Even into a file or a pipe
    Always,
    /// Not at all
    Never,
}

impl Color {
    fn is_wanted(self, stream: &impl RawStream) -> bool {
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::Auto => AutoStream::choice(stream) != ColorChoice::Never,
        }
    }
}

/// The colours of one stream, by what they mean; all plain where colour is not wanted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Palette {
    pub(crate) heading: Style,
    pub(crate) good: Style,
    pub(crate) caution: Style,
    pub(crate) bad: Style,
    pub(crate) hint: Style,
    pub(crate) faint: Style,
}

impl Palette {
    pub(crate) fn new(color: Color, stream: &impl RawStream) -> Self {
        if !color.is_wanted(stream) {
            return Self::default();
        }
        Self {
            heading: Style::new().bold(),
            good: AnsiColor::Green.on_default(),
            caution: AnsiColor::Yellow.on_default(),
            bad: AnsiColor::Red.on_default().bold(),
            hint: AnsiColor::Cyan.on_default(),
            faint: Style::new().dimmed(),
        }
    }
}

/// A text in a style.
pub(crate) fn paint(style: Style, text: impl Display) -> String {
    format!("{style}{text}{style:#}")
}

/// Texts of others must not be able to steer the terminal they are shown on.
pub(crate) fn harmless(text: &str) -> String {
    let show = |c: char| if c.is_control() && c != '\n' { '\u{fffd}' } else { c };
    text.chars().map(show).collect()
}
