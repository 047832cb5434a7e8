//! The interface of a report, and its errors.

use std::io;
use std::path::PathBuf;

use crate::document::{Document, Head, Record};

/// Renders a run in one form, such as the console or a JUnit file.
pub trait Report: Send {
    /// Returns which exchanges the report needs.
    fn exchanges(&self) -> Exchanges {
        Exchanges::OfFailures
    }

    /// Handles the start of the run.
    fn started(&mut self, _head: &Head) -> Result<(), ReportError> {
        Ok(())
    }

    /// Handles the start of a case on a subject.
    fn case_started(&mut self, _id: &str, _subject: &str) -> Result<(), ReportError> {
        Ok(())
    }

    /// Handles the result of a case. Cases finish in any order.
    fn case_finished(&mut self, _record: &Record) -> Result<(), ReportError> {
        Ok(())
    }

    /// Handles a message about the run itself.
    fn notice(&mut self, _text: &str) -> Result<(), ReportError> {
        Ok(())
    }

    /// Handles a message about objects that the run leaves in the server. The default handles it as
    /// any message.
    fn leftover(&mut self, text: &str) -> Result<(), ReportError> {
        self.notice(text)
    }

    /// Handles a message about what the run does now.
    fn progress(&mut self, _text: &str) -> Result<(), ReportError> {
        Ok(())
    }

    /// Handles the end of the run. The document holds all results in their stable order.
    fn finished(&mut self, document: &Document) -> Result<(), ReportError>;
}

/// The exchanges that a report needs. More exchanges cost more time and memory.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Exchanges {
    /// The exchanges of results that need attention.
    OfFailures,
    /// All exchanges, at the time when their case finishes.
    OfEach,
    /// All exchanges, until the end of the run.
    All,
}

/// Why a report could not be made. The run and the other reports go on.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The file cannot be written.
    #[error("cannot write {}: {source}; choose a path that exists and is writable", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The terminal, or the pipe in its place, is closed or full.
    #[error("cannot write to the output: {0}")]
    Output(#[from] io::Error),
    /// The results have no representation in the format.
    #[error("cannot render the results as {format}: {message}")]
    Render {
        /// The format.
        format: &'static str,
        /// The error of the library that renders it.
        message: String,
    },
}
