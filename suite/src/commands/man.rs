//! `kubeproof man`: prints manual pages.

use std::io::Write;

use crate::args;
use crate::error::Error;
use crate::exit_code::Exit;

/// Prints the page of the program, or of one of its commands.
pub(super) fn man(command: Option<&str>, out: &mut dyn Write) -> Result<Exit, Error> {
    let mut program = args::definition();
    // Building adds global options and full names to the commands.
    program.build();
    let page = match command {
        None => program,
        Some(name) => {
            let found = program.find_subcommand(name).cloned();
            let page = found.ok_or_else(|| {
                let names = program.get_subcommands().map(clap::Command::get_name);
                Error::unknown("command", name, names, "`kubeproof help` prints all commands")
            })?;
            page.display_name(format!("kubeproof-{name}"))
        }
    };
    clap_mangen::Man::new(page).render(out)?;
    Ok(Exit::CONFORMANT)
}
