//! The console report.
//!
//! During the run, standard error shows the progress. At the end, standard output shows the causes
//! of the failures and a summary. With `-v`, it shows the sorted results instead of the causes, so
//! that the outputs of two runs can be compared.

mod cause_list;
mod live;
mod rerun;
mod summary;
#[cfg(test)]
mod tests;

use std::io::Write;
use std::path::PathBuf;

use kubeproof_harness::event::Verdict;

pub use self::live::Live;
use crate::causes::{Cause, causes, only_status};
use crate::document::{Document, Head, Record};
use crate::paint::Paint;
use crate::report::{Exchanges, Report, ReportError};
use crate::requirements::Requirements;
use crate::text::{self, Limits, Size};

/// Returns a cause with its example, as the console shows the first cause of a run.
pub fn describe(cause: &Cause<'_>, requirements: &Requirements, paint: Paint) -> String {
    text::cause(cause, requirements, Size::Full, paint)
}

/// How much the console prints.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub enum Verbosity {
    /// The summary alone.
    Quiet,
    /// The summary, and the causes of failures, errors and warnings.
    #[default]
    Normal,
    /// Every result, with the reasons of skips.
    Passes,
    /// Every result and every exchange.
    Exchanges,
}

/// The options of the console report.
#[derive(Clone, Debug)]
pub struct Options {
    /// How much the console prints.
    pub verbosity: Verbosity,
    /// The colours of standard output.
    pub paint: Paint,
    /// The command that repeats the run without its selection and credentials, such as
    /// `kubeproof run --server ..`. Empty for `lint-api`.
    pub command: String,
    /// The path of the JSON report, which `--rerun` takes.
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
    /// The number of notices that the progress output showed. The summary leaves them out.
    shown_notices: usize,
}

impl<W: Write + Send> Console<W> {
    /// Creates a report that writes results to `out` and progress to `live`.
    pub fn new(out: W, live: Live, options: Options, requirements: &Requirements) -> Self {
        Self { out, live, options, requirements: requirements.clone(), shown_notices: 0 }
    }

    fn result(&mut self, record: &Record) -> Result<(), ReportError> {
        let Options { paint, verbosity, .. } = self.options;
        writeln!(self.out, "{}", text::title(record, paint))?;
        let in_detail =
            record.needs_attention() && record.verdict != Verdict::Deviation && !record.is_known();
        if in_detail {
            write!(self.out, "{}", text::detail(record, &self.requirements, Limits::SHORT, paint))?;
        }
        if verbosity == Verbosity::Exchanges {
            for exchange in &record.exchanges {
                write!(self.out, "{}", text::exchange(exchange, Limits::NONE, paint))?;
            }
        }
        if in_detail {
            writeln!(self.out)?;
        }
        Ok(())
    }
}

impl<W: Write + Send> Report for Console<W> {
    fn exchanges(&self) -> Exchanges {
        if self.options.verbosity == Verbosity::Exchanges {
            Exchanges::All
        } else {
            Exchanges::OfFailures
        }
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
        self.shown_notices += usize::from(self.live.is_shown());
        Ok(())
    }

    fn progress(&mut self, text: &str) -> Result<(), ReportError> {
        self.live.line(&format!("note: {text}"));
        Ok(())
    }

    fn leftover(&mut self, text: &str) -> Result<(), ReportError> {
        if self.options.verbosity == Verbosity::Quiet && !self.live.is_shown() {
            let label = self.options.paint.dim("note:");
            return Ok(writeln!(self.out, "{label} {}", text::printable(text))?);
        }
        self.notice(text)
    }

    fn finished(&mut self, document: &Document) -> Result<(), ReportError> {
        self.live.finish();
        let causes = causes(&document.results, self.options.strict);
        match self.options.verbosity {
            Verbosity::Quiet => {}
            Verbosity::Normal => {
                if let Some(code) = only_status(&document.results) {
                    writeln!(self.out, "{}\n", summary::same_response(document, code))?;
                }
                let text = cause_list::render(&causes, &self.requirements, &self.options);
                write!(self.out, "{text}")?;
            }
            Verbosity::Passes | Verbosity::Exchanges => {
                for record in &document.results {
                    self.result(record)?;
                }
            }
        }
        let unseen = document.notices.get(self.shown_notices..).unwrap_or_default();
        write!(self.out, "{}", summary::render(document, &causes, unseen, &self.options))?;
        Ok(self.out.flush()?)
    }
}
