//! Writes the reports of a run on a thread of their own, so that a slow disk or terminal delays no
//! request.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use kubeproof_cases::Catalogue;
use kubeproof_harness::event::{CaseResult, Event, RunFinished, RunStarted};
use kubeproof_harness::transport::Secrets;
use kubeproof_reports::console::{Console, Live};
use kubeproof_reports::document::Document;
use kubeproof_reports::redact::Redactor;
use kubeproof_reports::{Report, ReportError, Reports, Trace};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::JoinHandle;

use crate::args::high::{Progress, RunReports};
use crate::commands::report_files;
use crate::error::Error;

/// Maximum events that wait for the reports. The run pauses when the channel is full, so that a
/// blocked terminal does not fill the memory with results.
const WAITING_EVENTS: usize = 64;

/// The reports of a run before its start.
pub(super) struct ReportTask {
    /// `None` if the error message replaces the console output.
    console: Option<Box<dyn Report>>,
    reports: Vec<Box<dyn Report>>,
    keeps_results: bool,
}

/// Reports that receive events.
pub(super) struct RunningReports {
    pub(super) events: Sender<Event>,
    task: JoinHandle<Reported>,
}

/// The outcome of the reports.
pub(super) struct Reported {
    pub(super) document: Document,
    /// The errors of reports that could not be made.
    pub(super) errors: Vec<ReportError>,
    /// The results without exchanges, for the update of the list of known failures. Empty if the
    /// list is not updated.
    pub(super) results: Vec<Arc<CaseResult>>,
}

impl ReportTask {
    /// Opens all reports, and checks that their files are writable.
    pub(super) fn new(
        options: RunReports,
        keeps_results: bool,
        catalogue: &Catalogue,
    ) -> Result<Self, Error> {
        let requirements = report_files::requirements(catalogue);
        let live = live(options.progress);
        let console = Console::new(io::stdout(), live, options.console, &requirements);
        let mut reports = report_files::open(&options.files, &requirements)?;
        if let Some(directory) = &options.trace {
            reports.push(Box::new(Trace::new(directory)?));
        }
        if options.github {
            reports.push(Box::new(report_files::github(&requirements)));
        }
        Ok(Self { console: Some(Box::new(console)), reports, keeps_results })
    }

    /// Creates the reports of one of two servers that are compared: progress, and traces in this
    /// directory.
    pub(super) fn without_console(
        options: &RunReports,
        catalogue: &Catalogue,
        trace: Option<&Path>,
    ) -> Result<Self, Error> {
        let requirements = report_files::requirements(catalogue);
        let live = live(options.progress);
        let progress = Console::new(io::sink(), live, options.console.clone(), &requirements);
        let mut reports: Vec<Box<dyn Report>> = Vec::new();
        if let Some(directory) = trace {
            reports.push(Box::new(Trace::new(directory)?));
        }
        Ok(Self { console: Some(Box::new(progress)), reports, keeps_results: false })
    }

    /// Starts the reports. They hide these secrets.
    pub(super) fn start(self, secrets: Secrets) -> RunningReports {
        let (events, receiver) = channel(WAITING_EVENTS);
        let task = tokio::task::spawn_blocking(move || self.process(receiver, secrets));
        RunningReports { events, task }
    }

    /// Writes the reports of a run that ended before its plan was complete. If `why` is given, the
    /// caller prints it, so the console prints nothing.
    pub(super) async fn report_early_end(
        mut self,
        started: RunStarted,
        secrets: Secrets,
        why: Option<String>,
    ) -> Result<(), Error> {
        if why.is_some() {
            self.console = None;
        }
        let reports = self.start(secrets);
        // The task receives events until the end of the run, so sending cannot fail.
        let _ = reports.events.send(Event::RunStarted(started)).await;
        if let Some(why) = why {
            let _ = reports.events.send(Event::Notice(why)).await;
        }
        reports.finish().await.map(drop)
    }

    /// Processes events until the end of the run. If the sender is dropped first, the run is
    /// reported as interrupted.
    fn process(self, mut receiver: Receiver<Event>, secrets: Secrets) -> Reported {
        let reports = self.console.into_iter().chain(self.reports).collect();
        let mut reports = Reports::new(Redactor::new(secrets), reports);
        let mut results = Vec::new();
        loop {
            let event = receiver.blocking_recv().unwrap_or_else(interrupted);
            if let (true, Event::CaseFinished(result)) = (self.keeps_results, &event) {
                // Exchanges count against the memory budget for responses while they are kept.
                let result = CaseResult { exchanges: Vec::new(), ..CaseResult::clone(result) };
                results.push(Arc::new(result));
            }
            reports.event(&event);
            if let Event::RunFinished(_) = event {
                let finished = reports.finish();
                return Reported { document: finished.document, errors: finished.errors, results };
            }
        }
    }
}

impl RunningReports {
    /// Drops the sender, and waits for the reports.
    pub(super) async fn finish(self) -> Result<Reported, Error> {
        drop(self.events);
        self.task.await.map_err(|error| Error::Panicked(error.to_string()))
    }
}

fn interrupted() -> Event {
    Event::RunFinished(RunFinished {
        summary: [].into(),
        duration: Duration::ZERO,
        interrupted: true,
        stopped: None,
        stale_entries: Vec::new(),
    })
}

fn live(progress: Progress) -> Live {
    match progress {
        Progress::Hidden => Live::none(),
        Progress::Lines(paint) => Live::lines(io::stderr(), paint),
        Progress::Bar(paint) => Live::bar(paint),
    }
}
