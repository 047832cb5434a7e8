//! `kubeproof man`: manual pages.

use std::io::Write;

use clap::CommandFactory as _;

use crate::args::low::{self, Cli};
use crate::error::Error;
use crate::exit_code::Exit;

/// Prints the page of the program, or of one of its commands.
pub(super) fn man(man: &low::Man, out: &mut dyn Write) -> Result<Exit, Error> {
    let mut program = Cli::command();
    // Names and options of the whole reach the commands only when it is built.
    program.build();
    let page = match &man.command {
        None => program,
        Some(name) => {
            let found = program.find_subcommand(name).cloned();
            let page = found.ok_or_else(|| {
                Error::unknown("command", name, program.get_subcommands().map(clap::Command::get_name))
            })?;
            page.display_name(format!("kubeproof-{name}"))
        }
    };
    clap_mangen::Man::new(page).render(out)?;
    Ok(Exit::CONFORMANT)
}
