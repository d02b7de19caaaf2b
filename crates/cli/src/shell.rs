//! What a shell and `man` want to know about the command; both follow from the arguments as they are declared.

use std::io;

use clap_complete::Shell;

use crate::{
    failure::{Ending, Failure},
    output::Console,
};

/// A completion script.
pub(crate) fn completions(
    shell: Shell,
    mut command: clap::Command,
    console: &mut Console,
) -> Result<Ending, Failure> {
    let name = command.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, name, &mut script);
    console.bytes(&script)?;
    Ok(Ending::Well)
}

/// The manual page: the command, and in the same page each of its commands.
pub(crate) fn man(mut command: clap::Command, console: &mut Console) -> Result<Ending, Failure> {
    command.build();
    let mut page = Vec::new();
    let man = clap_mangen::Man::new(command.clone());
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_options_section(&mut page)?;
    for part in parts(&command) {
        page.extend(section(part)?.into_bytes());
    }
    man.render_extra_section(&mut page)?;
    man.render_version_section(&mut page)?;
    console.bytes(&page)?;
    Ok(Ending::Well)
}

/// A command as a section of the page, its own sections one level below.
fn section(command: clap::Command) -> io::Result<String> {
    let name = command.get_display_name().unwrap_or(command.get_name()).replace('-', " ");
    let man = clap_mangen::Man::new(command);
    let mut page = Vec::new();
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    let page = String::from_utf8_lossy(&page).replace(".SH ", ".SS ");
    Ok(format!(".SH \"{}\"\n{page}", name.to_uppercase()))
}

/// The commands that do something, wherever they stand.
fn parts(command: &clap::Command) -> Vec<clap::Command> {
    let children = command.get_subcommands().filter(|child| child.get_name() != "help");
    children
        .flat_map(|child| if child.has_subcommands() { parts(child) } else { vec![child.clone()] })
        .collect()
}
