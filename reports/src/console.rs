//! What a person sees.
//!
//! Two streams: while the run goes, a line per result that is not as it should be (or a progress bar) on standard error,
//! in the order in which cases finish; when it has ended, everything that matters on standard output, sorted, so that
//! the outputs of two runs can be compared.

mod live;
mod summary;

use std::io::Write;
use std::path::PathBuf;

use kubeproof_harness::event::Verdict;

pub use self::live::Live;
use crate::document::{Document, Head, Record};
use crate::paint::Paint;
use crate::requirements::Requirements;
use crate::text::{self, Limits};
use crate::{Exchanges, Report, ReportError};

/// How much is told.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub enum Verbosity {
    /// The summary.
    Quiet,
    /// Failures, errors and warnings.
    #[default]
    Normal,
    /// Every result, skips and their reasons included.
    Passes,
    /// Every exchange.
    Exchanges,
}

/// How the console tells it.
#[derive(Clone, Debug)]
pub struct Options {
    /// How much.
    pub verbosity: Verbosity,
    /// Colours on standard output.
    pub paint: Paint,
    /// The command that repeats the run, without its selection and without credentials: `kubeproof run --server ..`; empty where
    /// there was no run.
    pub command: String,
    /// The JSON report of this run, which `--rerun` takes.
    pub json: Option<PathBuf>,
    /// Whether warnings and deviations fail the run.
    pub strict: bool,
}

/// The console report.
pub struct Console<W> {
    out: W,
    live: Live,
    options: Options,
    requirements: Requirements,
}

impl<W: Write + Send> Console<W> {
    /// Writes the results to `out`, and progress to `live`.
    pub fn new(out: W, live: Live, options: Options, requirements: &Requirements) -> Self {
        Self { out, live, options, requirements: requirements.clone() }
    }

    fn result(&mut self, record: &Record) -> Result<(), ReportError> {
        let Options { paint, verbosity, .. } = self.options;
        if !self.is_shown(record) {
            return Ok(());
        }
        writeln!(self.out, "{}", text::title(record, paint))?;
        let in_detail = record.is_remarkable() && record.verdict != Verdict::Deviation && !record.is_known();
        if in_detail {
            write!(self.out, "{}", text::detail(record, &self.requirements, Limits::SHORT, paint))?;
        }
        if verbosity == Verbosity::Exchanges {
            for exchange in &record.exchanges {
                write!(self.out, "{}", text::exchange(exchange, Limits::WHOLE, paint))?;
            }
        }
        if in_detail {
            writeln!(self.out)?;
        }
        Ok(())
    }

    fn is_shown(&self, record: &Record) -> bool {
        match self.options.verbosity {
            Verbosity::Quiet => false,
            Verbosity::Normal => record.is_remarkable(),
            Verbosity::Passes | Verbosity::Exchanges => true,
        }
    }
}

impl<W: Write + Send> Report for Console<W> {
    fn wants(&self) -> Exchanges {
        if self.options.verbosity == Verbosity::Exchanges { Exchanges::All } else { Exchanges::OfFailures }
    }

    fn started(&mut self, head: &Head) -> Result<(), ReportError> {
        self.live.started(head);
        Ok(())
    }

    fn case_started(&mut self, id: &str, subject: &str) -> Result<(), ReportError> {
        self.live.case_started(id, subject);
        Ok(())
    }

    fn case_finished(&mut self, record: &Record) -> Result<(), ReportError> {
        self.live.case_finished(record, self.options.verbosity);
        Ok(())
    }

    fn notice(&mut self, text: &str) -> Result<(), ReportError> {
        self.live.line(&format!("note: {text}"));
        Ok(())
    }

    fn finished(&mut self, document: &Document) -> Result<(), ReportError> {
        self.live.finish();
        for record in &document.results {
            self.result(record)?;
        }
        write!(self.out, "{}", summary::render(document, &self.options))?;
        Ok(self.out.flush()?)
    }
}
