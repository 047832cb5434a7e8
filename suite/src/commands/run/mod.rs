//! `kubeproof run`: runs the conformance cases against a server.

mod dry_run;
mod node;
mod oracle;
mod report_task;
pub(super) mod target;

use std::io;

use jiff::Timestamp;
use kubeproof_cases::Catalogue;
use kubeproof_harness::event::{Event, RunStarted, Target};
use kubeproof_harness::plan::{Plan, PlanError, RunOptions, plan, run_id};
use kubeproof_harness::run::run as run_plan;
use kubeproof_harness::transport::Client;
use tokio::sync::mpsc::Sender;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::dry_run::DryRun;
use self::node::Node;
use self::report_task::ReportTask;
use self::target::RunTarget;
use super::{nothing_selected, outcome};
use crate::args::high::{self, CatalogueSource};
use crate::error::Error;
use crate::exit_code::Exit;
use crate::signals::Signals;

/// Runs the cases. The first signal interrupts the run, which cleans up; the second one exits.
pub(super) async fn run(mut run: high::Run) -> Result<Exit, Error> {
    let mut signals = Signals::listen().map_err(Error::Runtime)?;
    let interrupt = CancellationToken::new();
    let interrupted_twice = async {
        signals.next().await;
        interrupt.cancel();
        signals.next().await;
    };
    let oracle = run.oracle.take();
    let running = async {
        match oracle {
            Some(oracle) => Box::pin(oracle::run(run, oracle, &interrupt)).await,
            None => open_and_run(run, &interrupt).await,
        }
    };
    tokio::select! {
        biased;
        exit = running => exit,
        () = interrupted_twice => Ok(Exit::INTERRUPTED),
    }
}

/// Opens the target, the reports and the node, and then plans and runs.
async fn open_and_run(run: high::Run, interrupt: &CancellationToken) -> Result<Exit, Error> {
    let high::Run { mut options, reports, .. } = run;
    let catalogue = load(&run.catalogue, &mut options)?;
    let target = RunTarget::open(run.target).await?;
    let client = Client::new(&target.config, run.limits)?;
    // Unwritable report files are usage errors, so they are found before the first request.
    let mode = if options.dry_run {
        Mode::DryRun(DryRun::new(&reports, options.seed))
    } else {
        Mode::Run(ReportTask::new(reports, run.update_known_failures, &catalogue)?)
    };
    let node = match &run.node {
        None => None,
        Some(node) => {
            client.ping(Instant::now() + options.case_timeout).await?;
            let id = options.id.insert(run_id(options.seed));
            Node::open(&client, &target.config, node, id).await?
        }
    };
    // The user asked for the node, so it is exempt from the limits that `--namespace` sets.
    let client = client.within(options.write_policy());
    let server = target.config.display_url();
    let update_known_failures = run.update_known_failures;
    let session = Session { catalogue, server, client, options, update_known_failures };
    let exit = session.plan_and_run(mode, interrupt).await;
    if let Some(node) = node {
        node.close(interrupt.is_cancelled()).await?;
    }
    exit
}

/// Loads the cases of the run, and limits the list of known failures to them. A selection without a
/// case is an error before the target gets a request.
fn load(source: &CatalogueSource, options: &mut RunOptions) -> Result<Catalogue, Error> {
    let RunOptions { known_failures, selection, edition, max_fail, .. } = options;
    let catalogue = match known_failures {
        // The list may name any case.
        Some(_) => source.load()?,
        None => source.load_only(|id| selection.takes_id(id))?,
    };
    selection.check(&catalogue.ids).map_err(PlanError::from)?;
    let cases = catalogue.cases.iter().filter(|case| case.is_judged_by(*edition));
    if !cases.clone().any(|case| selection.takes_case(case)) {
        return Err(nothing_selected(&catalogue, selection, *edition));
    }
    if let Some(list) = known_failures {
        list.limit_to(&cases, |case| max_fail.is_none() && selection.takes_whole(case));
    }
    Ok(catalogue)
}

/// Whether the cases run.
enum Mode {
    DryRun(DryRun),
    Run(ReportTask),
}

/// Everything that a run needs after its target is open.
struct Session {
    catalogue: Catalogue,
    /// The URL of the target without credentials.
    server: String,
    client: Client,
    options: RunOptions,
    update_known_failures: bool,
}

impl Session {
    async fn plan_and_run(self, mode: Mode, interrupt: &CancellationToken) -> Result<Exit, Error> {
        let planned = tokio::select! {
            planned = plan(&self.catalogue, &self.client, &self.options) => Some(planned),
            () = interrupt.cancelled() => None,
        };
        match (planned, mode) {
            (Some(Ok(plan)), _) if plan.runs.is_empty() => {
                let Self { catalogue, options, .. } = &self;
                Err(nothing_selected(catalogue, &options.selection, options.edition))
            }
            (Some(Ok(plan)), Mode::DryRun(dry)) => dry.print(&plan, &mut io::stdout().lock()),
            (Some(Ok(plan)), Mode::Run(reports)) => self.run_cases(plan, reports, interrupt).await,
            (Some(Err(PlanError::Target(error))), Mode::Run(reports)) => {
                self.report_early_end(reports, Some(error.to_string())).await?;
                Err(error.into())
            }
            (Some(Err(error)), _) => Err(error.into()),
            (None, Mode::DryRun(_)) => Ok(Exit::INTERRUPTED),
            (None, Mode::Run(reports)) => {
                self.report_early_end(reports, None).await?;
                Ok(Exit::INTERRUPTED)
            }
        }
    }

    async fn run_cases(
        self,
        plan: Plan,
        reports: ReportTask,
        interrupt: &CancellationToken,
    ) -> Result<Exit, Error> {
        let Self { catalogue, client, options, update_known_failures, .. } = self;
        // The plan has copies of the cases that run.
        drop(catalogue);
        let strict = options.strict;
        let all_skipped = plan.runs_nothing().then(|| dry_run::skip_reasons(&plan));
        let known_failures = options.known_failures.clone();
        let reports = reports.start(client.secrets());
        let notice = tokio::spawn(announce_cleanup(reports.events.clone(), interrupt.clone()));
        let (events, interrupt) = (reports.events.clone(), interrupt.clone());
        let running =
            tokio::spawn(async move { run_plan(plan, client, &options, events, interrupt).await });
        let ended = running.await;
        notice.abort();
        // An aborted task drops its sender when it is awaited.
        let _ = notice.await;
        let reported = reports.finish().await?;
        let exit = outcome::exit_of_run(&reported.document, &reported.errors, strict);
        ended.map_err(|error| Error::Panicked(error.to_string()))?;
        match (all_skipped, known_failures) {
            _ if exit == Exit::INTERRUPTED || reported.document.stopped.is_some() => Ok(exit),
            (Some(reasons), _) => Err(Error::AllSkipped(reasons)),
            (None, Some(list)) if update_known_failures => {
                outcome::update_known_failures(&reported.results, &list, strict)
            }
            _ => Ok(exit),
        }
    }

    /// Writes the reports of a run that ended before its plan was complete.
    async fn report_early_end(
        &self,
        reports: ReportTask,
        why: Option<String>,
    ) -> Result<(), Error> {
        let started = RunStarted {
            target: Target {
                server: self.server.clone(),
                bundled: self.options.bundled,
                ..Target::default()
            },
            edition: self.options.edition,
            letter: self.options.letter,
            seed: self.options.seed,
            catalogue_digest: self.catalogue.digest().to_owned(),
            planned: 0,
            shard: self.options.selection.shard,
            selection: self.options.selected(),
            started_at: Timestamp::now(),
            command: self.options.command.clone(),
        };
        reports.report_early_end(started, self.client.secrets(), why).await
    }
}

/// Waits for an interrupt, and then announces the cleanup.
async fn announce_cleanup(events: Sender<Event>, interrupt: CancellationToken) {
    interrupt.cancelled().await;
    let text = "interrupted: removing the objects of the run (interrupt again to stop at once)";
    // Sending fails if the run has ended in the meantime.
    let _ = events.send(Event::Progress(text.to_owned())).await;
}
