//! The command `kubeproof`.
//!
//! [`args`] parses and resolves the command line, [`commands`] execute it, and `main` converts the
//! result to an exit code.

mod args;
mod commands;
mod error;
mod exit_code;
mod signals;
mod table;

use std::io::{self, Write as _};
use std::process::ExitCode;

use crate::exit_code::Exit;

/// A run allocates millions of small JSON values on all threads. With the allocator of the system
/// it takes a third longer.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    match args::parse().and_then(commands::execute) {
        Ok(exit) => exit.into(),
        // The reader closed the pipe, for example in `kubeproof list | head`.
        Err(error) if error.is_broken_pipe() => Exit::CONFORMANT.into(),
        Err(error) => {
            // If standard error is closed too, the exit code must suffice.
            let _ = writeln!(io::stderr(), "error: {error}");
            error.exit().into()
        }
    }
}
