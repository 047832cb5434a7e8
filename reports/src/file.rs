//! A report that is a file, rendered when the run has ended.

use std::path::{Path, PathBuf};

use crate::document::Document;
use crate::requirements::Requirements;
use crate::{Report, ReportError, atomic};
use crate::{html, json, junit, markdown, sarif, tap};

/// The formats of files.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Format {
    /// The contract with other programs.
    Json,
    /// For the test views of CI systems.
    Junit,
    /// A page of its own.
    Html,
    /// For pull requests and job summaries.
    Markdown,
    /// For code scanning.
    Sarif,
    /// For everything that reads the Test Anything Protocol.
    Tap,
}

impl Format {
    /// Renders the results.
    pub fn render(self, document: &Document, requirements: &Requirements) -> Result<String, ReportError> {
        match self {
            Self::Json => json::render(document),
            Self::Junit => junit::render(document, requirements),
            Self::Html => html::render(document, requirements),
            Self::Markdown => Ok(markdown::render(document, requirements)),
            Self::Sarif => sarif::render(document, requirements),
            Self::Tap => Ok(tap::render(document)),
        }
    }
}

/// A file in one format.
#[derive(Debug)]
pub struct FileReport {
    path: PathBuf,
    format: Format,
    requirements: Requirements,
}

impl FileReport {
    /// Makes sure that the file can be written.
    pub fn new(path: &Path, format: Format, requirements: &Requirements) -> Result<Self, ReportError> {
        atomic::prepare(path)?;
        Ok(Self { path: path.to_owned(), format, requirements: requirements.clone() })
    }
}

impl Report for FileReport {
    fn finished(&mut self, document: &Document) -> Result<(), ReportError> {
        let text = self.format.render(document, &self.requirements)?;
        atomic::write(&self.path, text.as_bytes())
    }
}
