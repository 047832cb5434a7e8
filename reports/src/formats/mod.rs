//! Reports that are files, rendered at the end of a run.

mod html;
mod json;
mod junit;
mod markdown;
mod sarif;
mod tap;

pub use self::json::{LoadError, load, schema};

use std::path::{Path, PathBuf};

use crate::atomic;
use crate::document::Document;
use crate::report::{Report, ReportError};
use crate::requirements::Requirements;

/// The formats of files.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Format {
    /// The stable format for other programs.
    Json,
    /// JUnit XML, for the test views of CI systems.
    Junit,
    /// A self-contained page.
    Html,
    /// For pull requests and job summaries.
    Markdown,
    /// SARIF 2.1.0, for code scanning.
    Sarif,
    /// The Test Anything Protocol, version 14.
    Tap,
}

impl Format {
    /// Renders the results.
    pub fn render(
        self,
        document: &Document,
        requirements: &Requirements,
    ) -> Result<String, ReportError> {
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
    /// Creates a report, and checks that its file can be written.
    pub fn new(
        path: &Path,
        format: Format,
        requirements: &Requirements,
    ) -> Result<Self, ReportError> {
        atomic::check_writable(path)?;
        Ok(Self { path: path.to_owned(), format, requirements: requirements.clone() })
    }
}

impl Report for FileReport {
    fn finished(&mut self, document: &Document) -> Result<(), ReportError> {
        let text = self.format.render(document, &self.requirements)?;
        atomic::write(&self.path, text.as_bytes())
    }
}
