//! `supercargo docs`: the documents of this version, without a network.

use std::{
    env,
    io::{self, Write},
    process::{Command, Stdio},
};

use clap::Args;
use supercargo_manifest::{Problem, nearest};

use crate::{
    failure::{Ending, Failure},
    output::{Console, Grid},
};

/// What shows a page if nobody has said otherwise.
const PAGER: &str = "less";

/// What `docs` is told.
#[derive(Args)]
pub(crate) struct Options {
    /// The page; without it, the list of all pages
    page: Option<String>,

    /// Open the page in $PAGER rather than print it
    #[arg(long, requires = "page")]
    open: bool,
}

/// A document: its name, and its text in Markdown.
struct Page {
    name: &'static str,
    text: &'static str,
}

// `static PAGES: &[Page]`: docs/, and the documents that stand beside what they are about, by name.
include!(concat!(env!("OUT_DIR"), "/pages.rs"));

impl Page {
    /// What its first heading says.
    fn title(&self) -> &'static str {
        let heading = self.text.lines().find_map(|line| line.strip_prefix("# "));
        heading.unwrap_or(self.name)
    }
}

/// Lists the pages, or shows one.
pub(crate) fn run(options: &Options, console: &mut Console) -> Result<Ending, Failure> {
    let Some(name) = &options.page else { return list(console) };
    let page = find(name)?;
    if options.open {
        return open(page);
    }
    console.bytes(page.text.as_bytes())?;
    Ok(Ending::Well)
}

fn list(console: &mut Console) -> Result<Ending, Failure> {
    let mut grid = Grid::new(["PAGE", "WHAT IT IS ABOUT"]);
    for page in PAGES {
        grid.row([page.name.to_owned(), page.title().to_owned()]);
    }
    console.grid(grid)?;
    console.note("`supercargo docs PAGE` prints a page, and with `--open` shows it in $PAGER");
    Ok(Ending::Well)
}

fn find(name: &str) -> Result<&'static Page, Problem> {
    let wanted = name.strip_suffix(".md").unwrap_or(name);
    PAGES.iter().find(|page| page.name == wanted).ok_or_else(|| {
        let hint = match nearest(wanted, PAGES.iter().map(|page| page.name)) {
            Some(near) => format!("did you mean {near}?"),
            None => "`supercargo docs` lists all pages".to_owned(),
        };
        Problem::error(format!("there is no page {name:?}")).hint(hint)
    })
}

/// Hands the page to the pager, and waits until it has been read.
fn open(page: &Page) -> Result<Ending, Failure> {
    let pager = env::var("PAGER").ok().filter(|pager| !pager.trim().is_empty()).unwrap_or(PAGER.to_owned());
    let cannot = |error: io::Error| {
        Problem::error(format!("cannot run the pager {pager:?}: {error}"))
            .hint("set PAGER to another, or leave out --open")
    };
    let mut words = pager.split_whitespace();
    let mut child = Command::new(words.next().unwrap_or(PAGER))
        .args(words)
        .stdin(Stdio::piped())
        .spawn()
        .map_err(cannot)?;
    if let Some(mut stdin) = child.stdin.take() {
        // A pager that is left before the end is read no further.
        let _ = stdin.write_all(page.text.as_bytes());
    }
    let status = child.wait().map_err(cannot)?;
    Ok(if status.success() { Ending::Well } else { Ending::Incomplete })
}
