//! `kubeproof run`: target, plan, run, reports, exit code.

mod dry;
mod node;
pub(super) mod target;
mod teller;

use std::io::{self, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use kubeproof_cases::Catalogue;
use kubeproof_harness::event::{CaseResult, Event, RunFinished, RunStarted, Target};
use kubeproof_harness::known_failures::KnownFailures;
use kubeproof_harness::plan::{Plan, PlanError, plan, run_id};
use kubeproof_harness::run::{RunOptions, run as run_plan};
use kubeproof_harness::transport::{Client, Limits, Secrets};
use kubeproof_reports::ReportError;
use kubeproof_reports::document::Document;
use tokio::sync::mpsc::channel;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::node::Node;
use self::target::Opened;
use self::teller::Teller;
use crate::args::{high, low};
use crate::error::Error;
use crate::exit_code::Exit;
use crate::signals::Signals;

/// Events that the reports may be behind, about half of which are results. Beyond that the run waits for them: a pager that is not
/// scrolled must not cost the cases their memory.
const UNTOLD: usize = 64;

/// Tests the target.
pub(super) async fn run(run: &low::Run, color: low::Color) -> Result<Exit, Error> {
    // From here on, Ctrl-C is ours to handle.
    let mut signals = Signals::listen().map_err(Error::Runtime)?;
    let interrupt = CancellationToken::new();
    let stopped_twice = async {
        signals.next().await;
        interrupt.cancel();
        signals.next().await;
    };
    tokio::select! {
        biased;
        exit = test(run, color, &interrupt) => exit,
        () = stopped_twice => Ok(Exit::INTERRUPTED),
    }
}

async fn test(run: &low::Run, color: low::Color, interrupt: &CancellationToken) -> Result<Exit, Error> {
    let mut options = high::run_options(run)?;
    let catalogue = high::catalogue(&run.cases.directories)?;
    let target = Opened::open(&run.target).await?;
    let limits = Limits {
        max_rps: run.safety.max_rps,
        // More objects at once need more room.
        max_held: (run.execution.answer_memory as usize).saturating_mul(options.load as usize) << 20,
        ..Limits::default()
    };
    let client = Client::new(&target.config, limits)?;
    // Places that no report can be written to are an error of the command line, so they come before the first request.
    let teller = if options.dry_run { None } else { Some(Teller::new(run, color, &catalogue)?) };

    let node = if run.pods.with_node {
        client.ping(Instant::now() + options.case_timeout).await?;
        let id = options.id.insert(run_id(options.seed));
        Some(Node::open(&client, &target.config, &run.pods, id).await?)
    } else {
        None
    };
    // The node is what somebody asked for who keeps the run inside a namespace.
    let client = client.within(options.fence());
    let exit = planned(run, &catalogue, &target, teller, client, options, interrupt).await;
    if let Some(node) = node {
        node.close().await?;
    }
    exit
}

/// Makes the plan, and does what is asked for with it.
async fn planned(
    run: &low::Run,
    catalogue: &Catalogue,
    target: &Opened,
    teller: Option<Teller>,
    client: Client,
    options: RunOptions,
    interrupt: &CancellationToken,
) -> Result<Exit, Error> {
    let planned = tokio::select! {
        planned = plan(catalogue, &client, &options) => Some(planned),
        () = interrupt.cancelled() => None,
    };
    let known = (target.config.display_url(), client.secrets());
    match (planned, teller) {
        (Some(Err(error)), teller) => {
            if let (PlanError::Target(error), Some(teller)) = (&error, teller) {
                told_early(teller, known, catalogue.digest(), &options, Some(error.to_string())).await?;
            }
            Err(error.into())
        }
        (Some(Ok(plan)), _) if plan.runs.is_empty() => Err(Error::NothingSelected),
        (Some(Ok(plan)), Some(teller)) => go(run, teller, plan, client, options, interrupt).await,
        (Some(Ok(plan)), None) => dry::tell(run, &plan, options.seed, &mut io::stdout().lock()),
        (None, Some(teller)) => {
            told_early(teller, known, catalogue.digest(), &options, None).await?;
            Ok(Exit::INTERRUPTED)
        }
        (None, None) => Ok(Exit::INTERRUPTED),
    }
}

async fn go(
    run: &low::Run,
    teller: Teller,
    plan: Plan,
    client: Client,
    options: RunOptions,
    interrupt: &CancellationToken,
) -> Result<Exit, Error> {
    let nothing_ran = plan.runs_nothing().then(|| Error::AllSkipped(dry::reasons(&plan)));
    let known_failures = options.known_failures.clone();
    let (events, heard) = channel(UNTOLD);
    let telling = teller.listen(heard, client.secrets());
    let interrupted = {
        let (events, interrupt) = (events.clone(), interrupt.clone());
        tokio::spawn(async move {
            interrupt.cancelled().await;
            let text = "interrupted: what was created is being removed (once more: stop at once)";
            // Nobody hears it when the run has ended in the meantime.
            let _ = events.send(Event::Notice(text.to_owned())).await;
        })
    };
    let interrupt = interrupt.clone();
    let running = tokio::spawn(async move { run_plan(plan, client, &options, events, interrupt).await });
    let ended = running.await;
    interrupted.abort();
    let told = telling.await.map_err(|error| Error::Died(error.to_string()))?;
    let exit = judged(&told.document, &told.errors, run.execution.strict);
    if let Err(error) = ended {
        return Err(Error::Died(error.to_string()));
    }
    match (nothing_ran, known_failures) {
        _ if exit == Exit::INTERRUPTED => Ok(exit),
        (Some(error), _) => Err(error),
        (None, Some(list)) if run.selection.update_known_failures => {
            updated(&told.results, &list, run.execution.strict)
        }
        _ => Ok(exit),
    }
}

/// The end came before there was a plan: the reports say that much, and why.
async fn told_early(
    teller: Teller,
    (server, secrets): (String, Secrets),
    catalogue_digest: &str,
    options: &RunOptions,
    why: Option<String>,
) -> Result<(), Error> {
    let (events, heard) = channel(UNTOLD);
    let telling = teller.listen(heard, secrets);
    // The teller listens until the end of the run.
    let started = RunStarted {
        target: Target { server, ..Target::default() },
        edition: options.edition,
        letter: options.letter,
        seed: options.seed,
        catalogue_digest: catalogue_digest.to_owned(),
        planned: 0,
    };
    let _ = events.send(Event::RunStarted(started)).await;
    if let Some(why) = why {
        let _ = events.send(Event::Notice(why)).await;
    }
    let finished = RunFinished { summary: [].into(), duration: Duration::ZERO, interrupted: true };
    let _ = events.send(Event::RunFinished(finished)).await;
    telling.await.map_err(|error| Error::Died(error.to_string()))?;
    Ok(())
}

/// The exit code of a run whose reports are told. What a report could not be written for comes last: a failing target is
/// the greater news.
pub(super) fn judged(document: &Document, errors: &[ReportError], strict: bool) -> Exit {
    for error in errors.iter().filter(|error| !is_broken_pipe(error)) {
        let _ = writeln!(io::stderr(), "error: {error}");
    }
    if document.interrupted {
        Exit::INTERRUPTED
    } else if document.failures(strict).next().is_some() {
        Exit::FAILURES
    } else if document.errors().next().is_some() {
        Exit::ERRORS
    } else if errors.iter().any(|error| !is_broken_pipe(error)) {
        Exit::USAGE
    } else {
        Exit::CONFORMANT
    }
}

/// Brings the list of known failures up to date. From then on every failure is a known one, so the run is conformant.
pub(super) fn updated(
    results: &[Arc<CaseResult>],
    list: &KnownFailures,
    strict: bool,
) -> Result<Exit, Error> {
    let text = list.updated(results, strict);
    let path: &Path = list.path();
    kubeproof_reports::atomic::write(path, text.as_bytes())?;
    let _ = writeln!(io::stderr(), "{} is up to date; give a reason for each new entry", path.display());
    Ok(Exit::CONFORMANT)
}

fn is_broken_pipe(error: &ReportError) -> bool {
    let ReportError::Output(error) = error else { return false };
    error.kind() == io::ErrorKind::BrokenPipe
}
