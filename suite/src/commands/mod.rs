//! What each command does. A command writes to the output it is given and ends with an exit code.

mod clean;
mod completions;
mod coverage;
mod explain;
mod lint;
mod lint_api;
mod list;
mod man;
mod report;
mod run;
mod schema;
mod self_test;
mod serve;

use std::io::{self, Write};
use std::panic::resume_unwind;
use std::thread;

use tokio::runtime::Builder;

use crate::args::low::{Cli, Command};
use crate::error::Error;
use crate::exit_code::Exit;

/// Enough for the watches of a run with `--load 10` and for the bundled server at their other end.
const FILES: u64 = 1 << 14;

/// For each thread: bodies may be nested, and what reads and judges them follows them down.
const STACK: usize = 8 << 20;

const DEEP_STACK: usize = 64 << 20;

/// Does what was asked for.
pub(crate) fn dispatch(cli: Cli) -> Result<Exit, Error> {
    let mut out = io::BufWriter::new(io::stdout());
    let exit = match cli.command {
        Command::Run(run) => on_runtime(run::run(&run, cli.color)),
        Command::Serve(serve) => on_runtime(serve::serve(&serve)),
        Command::SelfTest(asked) => on_runtime(self_test::self_test(&asked, &mut out)),
        Command::Clean(asked) => on_runtime(clean::clean(&asked, &mut out)),
        Command::List(list) => list::list(&list, &mut out),
        Command::Explain(explain) => on_runtime(explain::explain(&explain, &mut out)),
        Command::Coverage(coverage) => coverage::coverage(&coverage, &mut out),
        Command::Lint(lint) => lint::lint(&lint, cli.color, &mut out),
        Command::LintApi(lint) => on_deep_stack(|| lint_api::lint_api(&lint, cli.color)),
        Command::Report(report) => report::report(&report, cli.color, &mut out),
        Command::Schema(schema) => schema::schema(&schema, &mut out),
        Command::Completions(completions) => completions::completions(&completions, &mut out),
        Command::Man(man) => man::man(&man, &mut out),
    }?;
    out.flush()?;
    Ok(exit)
}

/// What still runs when the command has ended is left behind: a second Ctrl-C waits for nothing.
fn on_runtime(command: impl Future<Output = Result<Exit, Error>>) -> Result<Exit, Error> {
    // Each watch has a connection of its own: hundreds of them are more files than a process may open by default. Where
    // the limit stays as it is, the cases that need more say so.
    let _ = rlimit::increase_nofile_limit(FILES);
    let runtime = Builder::new_multi_thread().enable_all().thread_stack_size(STACK).build();
    let runtime = runtime.map_err(Error::Runtime)?;
    let exit = runtime.block_on(command);
    runtime.shutdown_background();
    exit
}

/// Files are read by recursion, and may be nested as deep as an API server takes them.
fn on_deep_stack(command: impl FnOnce() -> Result<Exit, Error> + Send) -> Result<Exit, Error> {
    thread::scope(|scope| {
        let thread = thread::Builder::new().stack_size(DEEP_STACK).spawn_scoped(scope, command);
        thread.map_err(Error::Runtime)?.join().unwrap_or_else(|panic| resume_unwind(panic))
    })
}

/// Pretty JSON and a newline.
fn write_json(out: &mut dyn Write, value: &impl serde::Serialize) -> Result<(), Error> {
    serde_json::to_writer_pretty(&mut *out, value).map_err(io::Error::from)?;
    Ok(writeln!(out)?)
}
