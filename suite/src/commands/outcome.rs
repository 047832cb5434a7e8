//! The exit code of a judged run, and the update of the list of known failures.

use std::io::{self, Write as _};
use std::sync::Arc;

use kubeproof_harness::event::CaseResult;
use kubeproof_harness::plan::KnownFailures;
use kubeproof_reports::document::Document;
use kubeproof_reports::{ReportError, atomic};

use crate::error::Error;
use crate::exit_code::Exit;

/// Returns the exit code of a run, and prints the errors of reports. An unwritable report is less
/// important than a failing target.
pub(super) fn exit_of_run(document: &Document, errors: &[ReportError], strict: bool) -> Exit {
    let has_errors = print_errors(errors);
    if document.interrupted {
        Exit::INTERRUPTED
    } else if document.stopped.is_some() {
        // Most cases did not run, so the failures are not the result of the run.
        Exit::ERRORS
    } else if document.failures(strict).next().is_some() || !document.stale_entries.is_empty() {
        Exit::FAILURES
    } else if document.errors().next().is_some() {
        Exit::ERRORS
    } else if has_errors {
        Exit::USAGE
    } else {
        Exit::CONFORMANT
    }
}

/// Prints the errors of reports. Returns whether there are any.
pub(super) fn print_errors(errors: &[ReportError]) -> bool {
    let errors: Vec<_> = errors.iter().filter(|error| !is_broken_pipe(error)).collect();
    for error in &errors {
        let _ = writeln!(io::stderr(), "error: {error}");
    }
    !errors.is_empty()
}

/// Returns the exit code that one run with all these results has.
pub(super) fn exit_of_merged_run(document: &Document, strict: bool) -> Exit {
    let exit = exit_of_run(document, &[], strict);
    let nothing_ran = document.summary.total() == document.summary.skip;
    if exit == Exit::CONFORMANT && nothing_ran { Exit::NOTHING_RAN } else { exit }
}

/// Writes the failures of the results to the list of known failures. All failures are known
/// afterwards, so the run is conformant.
pub(super) fn update_known_failures(
    results: &[Arc<CaseResult>],
    list: &KnownFailures,
    strict: bool,
) -> Result<Exit, Error> {
    let path = list.path();
    atomic::write(path, list.updated(results, strict).as_bytes())?;
    let _ = writeln!(
        io::stderr(),
        "updated {}: a run with this list passes; give a reason for each new entry",
        path.display()
    );
    Ok(Exit::CONFORMANT)
}

fn is_broken_pipe(error: &ReportError) -> bool {
    let ReportError::Output(error) = error else { return false };
    error.kind() == io::ErrorKind::BrokenPipe
}
