//! The reports of a run, told on a thread of their own: a slow disk or terminal delays no request.

use std::io::{self, IsTerminal as _};
use std::sync::Arc;
use std::time::Duration;

use kubeproof_cases::Catalogue;
use kubeproof_harness::event::{CaseResult, Event, RunFinished};
use kubeproof_harness::transport::Secrets;
use kubeproof_reports::console::{Console, Live, Options, Verbosity};
use kubeproof_reports::document::Document;
use kubeproof_reports::github::Github;
use kubeproof_reports::paint::Paint;
use kubeproof_reports::redact::Redactor;
use kubeproof_reports::trace::Trace;
use kubeproof_reports::{Report, ReportError, Reports};
use tokio::sync::mpsc::Receiver;
use tokio::task::JoinHandle;

use crate::args::{again, high, low};
use crate::error::Error;

/// Tells a run.
pub(super) struct Teller {
    reports: Vec<Box<dyn Report>>,
    keeps_results: bool,
}

/// What was told.
pub(super) struct Told {
    pub(super) document: Document,
    /// Of the reports that could not be made.
    pub(super) errors: Vec<ReportError>,
    /// Everything but what was sent, for the list of known failures; empty when that is not to be changed.
    pub(super) results: Vec<Arc<CaseResult>>,
}

impl Teller {
    /// All reports that were asked for; each is known to have a place that can be written to.
    pub(super) fn new(run: &low::Run, color: low::Color, catalogue: &Catalogue) -> Result<Self, Error> {
        let requirements = high::requirements(catalogue);
        let asked = &run.reports;
        let options = Options {
            verbosity: asked.verbosity(),
            paint: Paint::new(color.on_stdout()),
            command: again::command(run),
            json: asked.files.json.clone(),
            strict: run.execution.strict,
        };
        let live = live(asked, color);
        let mut reports: Vec<Box<dyn Report>> =
            vec![Box::new(Console::new(io::stdout(), live, options, &requirements))];
        reports.extend(asked.files.open(&requirements)?);
        if let Some(directory) = &asked.trace {
            reports.push(Box::new(Trace::new(directory)?));
        }
        if asked.github {
            reports.push(Box::new(Github::new(io::stdout())));
        }
        Ok(Self { reports, keeps_results: run.selection.update_known_failures })
    }

    /// Tells what is heard, but no secret, to the end of the run. There is an end even when the run breaks off.
    pub(super) fn listen(self, mut heard: Receiver<Event>, secrets: Secrets) -> JoinHandle<Told> {
        tokio::task::spawn_blocking(move || {
            let Self { reports, keeps_results } = self;
            let mut reports = Reports::new(Redactor::new(secrets), reports);
            let mut results = Vec::new();
            loop {
                let event = heard.blocking_recv().unwrap_or_else(broken_off);
                if let (true, Event::CaseFinished(result)) = (keeps_results, &event) {
                    // With its exchanges a result keeps the memory for answers, and the run soon has none left.
                    results.push(Arc::new(CaseResult { exchanges: Vec::new(), ..CaseResult::clone(result) }));
                }
                reports.event(&event);
                if let Event::RunFinished(_) = event {
                    let finished = reports.finish();
                    return Told { document: finished.document, errors: finished.errors, results };
                }
            }
        })
    }
}

fn broken_off() -> Event {
    Event::RunFinished(RunFinished { summary: [].into(), duration: Duration::ZERO, interrupted: true })
}

fn live(asked: &low::Reports, color: low::Color) -> Live {
    if asked.no_progress || asked.verbosity() == Verbosity::Quiet {
        Live::none()
    } else if io::stderr().is_terminal() {
        Live::bar(color.on_stderr())
    } else {
        Live::lines(io::stderr(), color.on_stderr())
    }
}
