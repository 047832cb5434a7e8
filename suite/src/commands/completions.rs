//! `kubeproof completions`: what a shell completes.

use std::io::Write;

use clap::CommandFactory as _;

use crate::args::low::{self, Cli};
use crate::error::Error;
use crate::exit_code::Exit;

/// Prints the completions for a shell.
pub(super) fn completions(completions: &low::Completions, out: &mut dyn Write) -> Result<Exit, Error> {
    // The generator panics where it cannot write, so it does not write to a pipe that may be closed.
    let mut script = Vec::new();
    clap_complete::generate(completions.shell, &mut Cli::command(), "kubeproof", &mut script);
    out.write_all(&script)?;
    Ok(Exit::CONFORMANT)
}
