//! The command line in two stages: `low` parses the text, and [`high`] resolves it into the values
//! that the commands use.

mod command_line;
mod config_file;
pub(crate) mod high;
mod layers;
mod low;
mod rerun_command;

use std::io::{self, Write as _};

use clap::{CommandFactory as _, Parser as _};

use crate::error::Error;

/// Where arguments come from beside the command line.
const SOURCES: &str = "kubeproof.toml or KUBEPROOF_ variables";

/// Parses and resolves the command line, with the options of the configuration file and the
/// environment. Prints help or a syntax error and exits, as clap does.
pub(crate) fn parse() -> Result<high::Command, Error> {
    let given: Vec<_> = std::env::args_os().collect();
    let words = layers::expand(given.clone(), std::env::vars_os(), &mut definition())?;
    let added = words.len() - given.len();
    let cli = low::Cli::try_parse_from(&words).unwrap_or_else(|error| {
        if added > 0 && error.use_stderr() {
            let _ = writeln!(io::stderr(), "note: {added} arguments are from {SOURCES}");
        }
        error.exit()
    });
    high::Command::resolve(cli, &command_line::of(&words))
}

/// Returns the definition of the command line, for completions and manual pages.
pub(crate) fn definition() -> clap::Command {
    low::Cli::command()
}
