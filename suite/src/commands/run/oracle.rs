//! `--oracle`: runs the same cases against a second server, and reports only where the two differ.

use std::io::{self, Write as _};

use kubeproof_cases::Catalogue;
use kubeproof_harness::plan::{RunOptions, plan};
use kubeproof_harness::run::run as run_plan;
use kubeproof_harness::transport::{Client, Limits};
use kubeproof_reports::console::{Options, Verbosity};
use kubeproof_reports::document::Document;
use kubeproof_reports::{OracleComparison, Report, ReportError};
use tokio_util::sync::CancellationToken;

use super::report_task::ReportTask;
use super::target::RunTarget;
use super::{dry_run, load};
use crate::args::high;
use crate::commands::{nothing_selected, outcome, report_files};
use crate::error::Error;
use crate::exit_code::Exit;

/// Runs the cases against the target and then against the oracle, and compares the results.
pub(super) async fn run(
    run: high::Run,
    oracle: high::Target,
    interrupt: &CancellationToken,
) -> Result<Exit, Error> {
    let high::Run { target, mut options, limits, reports, .. } = run;
    let catalogue = load(&run.catalogue, &mut options)?;
    let requirements = report_files::requirements(&catalogue);
    // Unwritable report files are usage errors, so they are found before the first request.
    let mut files = report_files::open(&reports.files, &requirements)?;
    if reports.github {
        files.push(Box::new(report_files::github(&requirements)));
    }
    let mut server = ServerRun { catalogue: &catalogue, options, limits, interrupt };
    let of_target = ReportTask::without_console(&reports, &catalogue, reports.trace.as_deref())?;
    let of_oracle = ReportTask::without_console(&reports, &catalogue, None)?;
    let Some(target) = server.judge(target, of_target).await? else {
        return Ok(Exit::INTERRUPTED);
    };
    // The list describes the target.
    server.options.known_failures = None;
    let Some(oracle) = server.judge(oracle, of_oracle).await? else {
        return Ok(Exit::INTERRUPTED);
    };

    if let Some(stopped) = target.stopped.as_ref().or(oracle.stopped.as_ref()) {
        let _ = writeln!(io::stderr(), "error: the run stopped: {stopped}");
        return Ok(Exit::ERRORS);
    }
    let is_stale = !target.stale_entries.is_empty();
    let comparison = OracleComparison::new(target, oracle, server.options.strict);
    let errors = write_files(&mut files, &comparison.differing());
    let Options { paint, verbosity, .. } = reports.console;
    let brief = verbosity == Verbosity::Quiet;
    let mut out = io::stdout().lock();
    comparison.write(&mut out, &requirements, paint, brief)?;
    out.flush()?;
    let has_errors = outcome::print_errors(&errors);
    Ok(if comparison.target_fails() || is_stale {
        Exit::FAILURES
    } else if comparison.target_errors() {
        Exit::ERRORS
    } else if has_errors {
        Exit::USAGE
    } else {
        Exit::CONFORMANT
    })
}

/// The options that both servers share.
struct ServerRun<'a> {
    catalogue: &'a Catalogue,
    options: RunOptions,
    limits: Limits,
    interrupt: &'a CancellationToken,
}

impl ServerRun<'_> {
    /// Runs the cases against one server. Returns `None` if the run was interrupted.
    async fn judge(
        &self,
        target: high::Target,
        reports: ReportTask,
    ) -> Result<Option<Document>, Error> {
        let Self { catalogue, options, limits, interrupt } = self;
        let target = RunTarget::open(target).await?;
        let client = Client::new(&target.config, limits.clone())?.within(options.write_policy());
        let plan = tokio::select! {
            plan = plan(catalogue, &client, options) => plan?,
            () = interrupt.cancelled() => return Ok(None),
        };
        if plan.runs.is_empty() {
            return Err(nothing_selected(catalogue, &options.selection, options.edition));
        }
        if plan.runs_nothing() {
            return Err(Error::AllSkipped(dry_run::skip_reasons(&plan)));
        }
        let reports = reports.start(client.secrets());
        let (events, options) = (reports.events.clone(), options.clone());
        let interrupt = (*interrupt).clone();
        let running =
            tokio::spawn(async move { run_plan(plan, client, &options, events, interrupt).await });
        let ended = running.await;
        let reported = reports.finish().await?;
        ended.map_err(|error| Error::Panicked(error.to_string()))?;
        // A report that fails is a trace, which is less important than the comparison.
        outcome::print_errors(&reported.errors);
        Ok((!reported.document.interrupted).then_some(reported.document))
    }
}

/// Writes the report files. Returns the errors of the files that it could not write.
fn write_files(files: &mut [Box<dyn Report>], document: &Document) -> Vec<ReportError> {
    files.iter_mut().filter_map(|file| file.finished(document).err()).collect()
}
