//! One file per case with everything that was sent and received.

use std::fs;
use std::path::{Path, PathBuf};

use crate::document::{Document, Record};
use crate::paint::{Paint, word};
use crate::text::{self, Limits};
use crate::{Exchanges, Report, ReportError, atomic};

/// Writes `<area>/<case>@<subject>.txt` as each case finishes, so that a run that dies leaves its traces.
#[derive(Debug)]
pub struct Trace {
    directory: PathBuf,
}

impl Trace {
    /// Writes below this directory, which is made if it is missing.
    pub fn new(directory: &Path) -> Result<Self, ReportError> {
        fs::create_dir_all(directory)
            .map_err(|source| ReportError::Write { path: directory.to_owned(), source })?;
        Ok(Self { directory: directory.to_owned() })
    }
}

impl Report for Trace {
    fn wants(&self) -> Exchanges {
        Exchanges::OfEach
    }

    fn case_finished(&mut self, record: &Record) -> Result<(), ReportError> {
        if record.exchanges.is_empty() {
            return Ok(());
        }
        let mut content = format!("{}: {} {}\n\n", record.title(), word(record.verdict), record.headline());
        for exchange in &record.exchanges {
            content.push_str(&text::exchange(exchange, Limits::WHOLE, Paint::plain()));
            content.push('\n');
        }
        atomic::write(&self.directory.join(file_name(record)), content.as_bytes())
    }

    fn finished(&mut self, _document: &Document) -> Result<(), ReportError> {
        Ok(())
    }
}

/// Ids and subjects are tame, but a user's own case file or resource may be named anything.
fn file_name(record: &Record) -> PathBuf {
    let tame = |text: &str| {
        let text = text.replace(|c: char| !(c.is_ascii_alphanumeric() || "-_.".contains(c)), "_");
        if text.starts_with('.') { format!("_{text}") } else { text }
    };
    let name = record.id.split_once('/').map_or("", |(_, name)| name);
    let subject =
        if record.subject.is_empty() { String::new() } else { format!("@{}", tame(&record.subject)) };
    Path::new(&tame(record.area())).join(format!("{}{subject}.txt", tame(name)))
}
