//! Folds the events of a run into reports.
//!
//! There is one fold and many renderings: [`Reports`] takes each event, removes what is secret, and keeps a
//! [`Document`]; a [`Report`] is shown single results while the run goes, and the whole document at its end. A report
//! therefore cannot leak what the others hide, and whatever can be rendered during a run can be rendered later from a
//! JSON report (`kubeproof report`).

pub mod atomic;
pub mod compare;
pub mod console;
pub mod document;
pub mod file;
pub mod github;
pub mod html;
pub mod json;
pub mod junit;
pub mod markdown;
pub mod paint;
pub mod redact;
pub mod requirements;
mod room;
pub mod sarif;
pub mod tap;
mod text;
pub mod trace;

use std::io;
use std::path::PathBuf;

use kubeproof_harness::event::{Event, RunStarted};

use crate::document::{Document, Head, Record};
use crate::redact::Redactor;
use crate::room::Room;

/// One way of telling how a run went.
pub trait Report: Send {
    /// Which exchanges the report wants to see.
    fn wants(&self) -> Exchanges {
        Exchanges::OfFailures
    }

    /// The run begins.
    fn started(&mut self, _head: &Head) -> Result<(), ReportError> {
        Ok(())
    }

    /// A case begins on a subject.
    fn case_started(&mut self, _id: &str, _subject: &str) -> Result<(), ReportError> {
        Ok(())
    }

    /// A case has its verdict. Cases finish in any order.
    fn case_finished(&mut self, _record: &Record) -> Result<(), ReportError> {
        Ok(())
    }

    /// Something about the run itself.
    fn notice(&mut self, _text: &str) -> Result<(), ReportError> {
        Ok(())
    }

    /// The run has ended; the results are in their stable order.
    fn finished(&mut self, document: &Document) -> Result<(), ReportError>;
}

/// The exchanges that a report wants to see: more of them cost time and memory.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Exchanges {
    /// Those of results that are not as they should be.
    OfFailures,
    /// All, as each case finishes.
    OfEach,
    /// All, until the end.
    All,
}

/// Why a report could not be made. The run, and the other reports, are not affected.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The file cannot be written.
    #[error("cannot write {}: {source}; choose a place that exists and may be written", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The terminal, or the pipe in its place, is gone or full.
    #[error("cannot write to the output: {0}")]
    Output(#[from] io::Error),
    /// The report has no form in its format.
    #[error("cannot put the results into {format}: {message}")]
    Render {
        /// The format.
        format: &'static str,
        /// What its library said.
        message: String,
    },
}

/// All reports of a run.
pub struct Reports {
    redactor: Redactor,
    document: Document,
    listeners: Vec<Box<dyn Report>>,
    errors: Vec<ReportError>,
    room: Room,
}

impl Reports {
    /// Reports that hide what the redactor knows to be secret.
    pub fn new(redactor: Redactor, listeners: Vec<Box<dyn Report>>) -> Self {
        Self { redactor, document: Document::default(), listeners, errors: Vec::new(), room: Room::default() }
    }

    /// Takes one event. A report that fails is told nothing more; its error is in [`Finished::errors`].
    pub fn event(&mut self, event: &Event) {
        match event {
            Event::RunStarted(started) => self.started(started),
            Event::CaseStarted { id, subject } => self.each(|report| report.case_started(id, subject)),
            Event::CaseFinished(result) => {
                let wants =
                    self.listeners.iter().map(|report| report.wants()).max().unwrap_or(Exchanges::OfFailures);
                let mut record = self.redactor.record(result, wants > Exchanges::OfFailures);
                self.each(|report| report.case_finished(&record));
                if !record.is_remarkable() && wants < Exchanges::All {
                    record.exchanges = Vec::new();
                }
                self.room.fit(&mut record.exchanges);
                self.document.add(record);
            }
            Event::Notice(text) => {
                let text = self.redactor.text(text);
                self.each(|report| report.notice(&text));
                self.document.notices.push(text);
            }
            Event::RunFinished(finished) => {
                self.document.close(finished);
                let document = std::mem::take(&mut self.document);
                self.each(|report| report.finished(&document));
                self.document = document;
            }
        }
    }

    /// What was told, and which reports failed.
    pub fn finish(self) -> Finished {
        Finished { document: self.document, errors: self.errors }
    }

    fn started(&mut self, started: &RunStarted) {
        let mut head = Head::from(started);
        head.target.server = self.redactor.text(&head.target.server);
        self.each(|report| report.started(&head));
        self.document.head = head;
    }

    fn each(&mut self, tell: impl Fn(&mut dyn Report) -> Result<(), ReportError>) {
        let errors = &mut self.errors;
        self.listeners.retain_mut(|report| match tell(report.as_mut()) {
            Ok(()) => true,
            Err(error) => {
                errors.push(error);
                false
            }
        });
    }
}

/// The end of all reports.
#[derive(Debug)]
pub struct Finished {
    /// All results.
    pub document: Document,
    /// The reports that could not be made.
    pub errors: Vec<ReportError>,
}
