//! The commands. Each writes to the given output and returns an exit code.

mod case_pages;
mod clean;
mod completions;
mod coverage;
mod envtest;
mod explain;
mod explore;
mod generated;
mod lint;
mod lint_api;
mod list;
mod man;
mod next;
mod outcome;
mod report;
mod report_files;
mod run;
mod schema;
mod self_test;
mod serve;
mod stress;

use std::io::{self, Write};
use std::panic::resume_unwind;
use std::thread;

use kubeproof_cases::Catalogue;
use kubeproof_cases::case::{Case, Edition};
use kubeproof_harness::plan::Selection;
use tokio::runtime::Builder;
use tokio_util::sync::CancellationToken;

use crate::args::high::Command;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::signals::Signals;

/// The limit of open files: enough for the watches of a run with `--load 10`, and for the bundled
/// server at their other end.
const OPEN_FILES: u64 = 1 << 14;

/// The stack of each thread. Nested JSON bodies are parsed and judged recursively.
const STACK: usize = 8 << 20;

const DEEP_STACK: usize = 64 << 20;

const INTERRUPTED: &str =
    "note: interrupted: removing the objects of the run (interrupt again to stop at once)";

pub(crate) fn execute(command: Command) -> Result<Exit, Error> {
    let mut out = io::BufWriter::new(io::stdout());
    let exit = match command {
        Command::Run(run) => on_runtime(run::run(*run)),
        Command::Stress(options) => on_runtime(stress::run(*options, &mut out)),
        Command::Explore(options) => on_runtime(explore::run(*options, &mut out)),
        Command::Serve(serve) => on_runtime(serve::serve(serve)),
        Command::EnvtestAssets(assets) => envtest::assets(&assets, &mut out),
        Command::KubeApiserver(launcher) => on_runtime(envtest::kube_apiserver(launcher)),
        Command::Etcd(launcher) => on_runtime(envtest::etcd(launcher)),
        Command::SelfTest(test) => on_runtime(self_test::self_test(*test, &mut out)),
        Command::Clean(clean) => on_runtime(clean::clean(*clean, &mut out)),
        Command::List(list) => list::list(&list, &mut out),
        Command::Explain(explain) => on_runtime(explain::explain(&explain, &mut out)),
        Command::CasePages(pages) => on_runtime(case_pages::case_pages(&pages, &mut out)),
        Command::Coverage(coverage) => coverage::coverage(&coverage, &mut out),
        Command::Lint(lint) => lint::lint(&lint, &mut out),
        Command::LintApi(lint) => on_deep_stack(|| lint_api::lint_api(*lint)),
        Command::Report(report) => report::report(report, &mut out),
        Command::Next(next) => on_runtime(next::next(&next, &mut out)),
        Command::Schema(kind) => schema::schema(kind, &mut out),
        Command::Completions(shell) => completions::completions(shell, &mut out),
        Command::Man(command) => man::man(command.as_deref(), &mut out),
    }?;
    out.flush()?;
    Ok(exit)
}

/// Executes a command on an async runtime. Tasks that still run afterwards are abandoned, so that a
/// second Ctrl-C exits at once.
fn on_runtime(command: impl Future<Output = Result<Exit, Error>>) -> Result<Exit, Error> {
    // Each watch has its own connection, so a run can need more files than the default limit. If
    // the limit cannot be raised, the cases that need more end in errors.
    let _ = rlimit::increase_nofile_limit(OPEN_FILES);
    let runtime = Builder::new_multi_thread().enable_all().thread_stack_size(STACK).build();
    let runtime = runtime.map_err(Error::Runtime)?;
    let exit = runtime.block_on(command);
    runtime.shutdown_background();
    exit
}

/// Executes work that the first signal interrupts. Returns `None` after the second signal.
async fn interruptible<T, W: Future<Output = T>>(
    work: impl FnOnce(CancellationToken) -> W,
) -> Result<Option<T>, Error> {
    let mut signals = Signals::listen().map_err(Error::Runtime)?;
    let interrupt = CancellationToken::new();
    let interrupted_twice = async {
        signals.next().await;
        interrupt.cancel();
        // If standard error is closed, the exit code must suffice.
        let _ = writeln!(io::stderr(), "{INTERRUPTED}");
        signals.next().await;
    };
    tokio::select! {
        biased;
        done = work(interrupt.clone()) => Ok(Some(done)),
        () = interrupted_twice => Ok(None),
    }
}

/// Executes a command on a thread with a deep stack. Files are parsed recursively, and can be
/// nested as deep as API servers accept.
fn on_deep_stack(command: impl FnOnce() -> Result<Exit, Error> + Send) -> Result<Exit, Error> {
    thread::scope(|scope| {
        let thread = thread::Builder::new().stack_size(DEEP_STACK).spawn_scoped(scope, command);
        thread.map_err(Error::Runtime)?.join().unwrap_or_else(|panic| resume_unwind(panic))
    })
}

/// Returns why a selection has no case: all of its cases may belong to another edition.
fn nothing_selected(catalogue: &Catalogue, selection: &Selection, edition: Edition) -> Error {
    let mut cases = catalogue.cases.iter().filter(|case| selection.takes_case(case));
    let is_judged = |case: &Case| case.is_judged_by(edition);
    match cases.clone().next() {
        Some(case) if !cases.any(is_judged) => match case.editions.last() {
            Some(other) => Error::OtherEdition { case: case.id.clone(), edition, other: *other },
            None => Error::NothingSelected,
        },
        _ => Error::NothingSelected,
    }
}

fn write_json(out: &mut dyn Write, value: &impl serde::Serialize) -> Result<(), Error> {
    serde_json::to_writer_pretty(&mut *out, value).map_err(io::Error::from)?;
    Ok(writeln!(out)?)
}
