//! The command `kubeproof`.
//!
//! Here a command's end becomes an exit code, and nothing else happens: what was typed is in [`args`], what is done about
//! it in [`commands`].

mod args;
mod commands;
mod error;
mod exit_code;
mod signals;
mod table;

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::Parser as _;

use crate::args::low::Cli;
use crate::exit_code::Exit;

/// A run makes and drops millions of small JSON values on all threads; the system's allocator takes a third longer for it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    match commands::dispatch(Cli::parse()) {
        Ok(exit) => exit.into(),
        // `kubeproof list | head` is well.
        Err(error) if error.is_broken_pipe() => Exit::CONFORMANT.into(),
        Err(error) => {
            // Where standard error is gone too, the exit code has to do.
            let _ = writeln!(io::stderr(), "error: {error}");
            error.exit().into()
        }
    }
}
