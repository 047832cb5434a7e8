//! Collects the events of a run and passes them on to the reports.

use kubeproof_harness::event::{CaseResult, Event, RunStarted};

use crate::document::{Document, Head};
use crate::exchange_budget::ExchangeBudget;
use crate::redact::Redactor;
use crate::report::{Exchanges, Report, ReportError};

/// All reports of a run.
pub struct Reports {
    redactor: Redactor,
    document: Document,
    listeners: Vec<Box<dyn Report>>,
    errors: Vec<ReportError>,
    budget: ExchangeBudget,
}

/// The outcome of all reports.
#[derive(Debug)]
pub struct Finished {
    /// All results.
    pub document: Document,
    /// The errors of the reports that could not be made.
    pub errors: Vec<ReportError>,
}

impl Reports {
    /// Creates a collector that removes secrets with this redactor.
    pub fn new(redactor: Redactor, reports: Vec<Box<dyn Report>>) -> Self {
        Self {
            redactor,
            document: Document::default(),
            listeners: reports,
            errors: Vec::new(),
            budget: ExchangeBudget::default(),
        }
    }

    /// Handles one event. A report that fails receives no further events; its error is in
    /// [`Finished::errors`].
    pub fn event(&mut self, event: &Event) {
        match event {
            Event::RunStarted(started) => self.started(started),
            Event::CaseStarted { id, subject } => {
                self.for_each(|report| report.case_started(id, subject));
            }
            Event::CaseFinished(result) => self.case_finished(result),
            Event::Notice(text) => {
                let text = self.redactor.text(text);
                self.for_each(|report| report.notice(&text));
                self.document.notices.push(text);
            }
            Event::Leftover(text) => {
                let text = self.redactor.text(text);
                self.for_each(|report| report.leftover(&text));
                self.document.notices.push(text);
                self.document.has_leftovers = true;
            }
            Event::Progress(text) => self.for_each(|report| report.progress(text)),
            Event::RunFinished(finished) => {
                self.document.close(finished);
                let document = std::mem::take(&mut self.document);
                self.for_each(|report| report.finished(&document));
                self.document = document;
            }
        }
    }

    /// Returns the results, and the errors of the reports that failed.
    pub fn finish(self) -> Finished {
        Finished { document: self.document, errors: self.errors }
    }

    fn started(&mut self, started: &RunStarted) {
        let mut head = Head::from(started);
        head.target.server = self.redactor.text(&head.target.server);
        head.command = self.redactor.text(&head.command);
        self.for_each(|report| report.started(&head));
        self.document.head = head;
    }

    fn case_finished(&mut self, result: &CaseResult) {
        let needed = self.listeners.iter().map(|report| report.exchanges()).max();
        let needed = needed.unwrap_or(Exchanges::OfFailures);
        let mut record = self.redactor.record(result, needed > Exchanges::OfFailures);
        self.for_each(|report| report.case_finished(&record));
        if !record.needs_attention() && needed < Exchanges::All {
            record.exchanges = Vec::new();
        }
        self.budget.shorten(&mut record.exchanges);
        self.document.add(record);
    }

    fn for_each(&mut self, notify: impl Fn(&mut dyn Report) -> Result<(), ReportError>) {
        let errors = &mut self.errors;
        self.listeners.retain_mut(|report| match notify(report.as_mut()) {
            Ok(()) => true,
            Err(error) => {
                errors.push(error);
                false
            }
        });
    }
}
