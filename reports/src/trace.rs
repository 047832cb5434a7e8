//! Trace files: one text file per result with all its exchanges, and one script per failed check.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use crate::atomic;
use crate::document::{CheckRecord, Document, Record};
use crate::paint::{Paint, verdict_name};
use crate::report::{Exchanges, Report, ReportError};
use crate::text::{self, Limits, printable};

/// Writes `<area>/<case>@<subject>.txt` as each case finishes, so that a run that is killed leaves
/// the traces of its finished cases. The script `<area>/<case>@<subject>.<check>.sh` repeats the
/// request of a failed check.
#[derive(Debug)]
pub struct Trace {
    directory: PathBuf,
}

impl Trace {
    /// Creates the directory if it is missing, and a report that writes below it.
    pub fn new(directory: &Path) -> Result<Self, ReportError> {
        fs::create_dir_all(directory)
            .map_err(|source| ReportError::Write { path: directory.to_owned(), source })?;
        Ok(Self { directory: directory.to_owned() })
    }
}

impl Report for Trace {
    fn exchanges(&self) -> Exchanges {
        Exchanges::OfEach
    }

    fn case_finished(&mut self, record: &Record) -> Result<(), ReportError> {
        if record.exchanges.is_empty() {
            return Ok(());
        }
        let (title, verdict) = (record.title(), verdict_name(record.verdict));
        let mut content = format!("{title}: {verdict} {}\n\n", record.headline());
        for exchange in &record.exchanges {
            content.push_str(&text::exchange(exchange, Limits::NONE, Paint::plain()));
            content.push('\n');
        }
        atomic::write(&self.directory.join(file_name(record, "txt")), content.as_bytes())?;
        for check in record.failed_checks() {
            if let Some(curl) = &check.curl {
                let ending = format!("{}.sh", safe(&check.id));
                let path = self.directory.join(file_name(record, &ending));
                atomic::write_script(&path, script(record, check, curl).as_bytes())?;
            }
        }
        Ok(())
    }

    fn finished(&mut self, _document: &Document) -> Result<(), ReportError> {
        Ok(())
    }
}

/// Returns a script that repeats the request of a failed check.
fn script(record: &Record, check: &CheckRecord, curl: &str) -> String {
    let mut text = format!(
        "#!/bin/sh\n\
         # {}: {} of check {}\n\
         # {}\n\
         # A run removes its objects when a case ends. With --keep, those of failed cases stay.\n\
         set -eu\n",
        printable(&record.title()),
        verdict_name(check.verdict),
        printable(&check.id),
        printable(&check.message),
    );
    for (variable, owner) in [("TOKEN", "the run"), ("SECOND_TOKEN", "the second user")] {
        if curl.contains(&format!("Bearer ${variable}\"")) {
            let advice = format!("set it to the bearer token of {owner}");
            _ = writeln!(text, ": \"${{{variable}:?{advice}}}\"");
        }
    }
    text.push_str(curl);
    text.push('\n');
    text
}

/// Replaces characters that are unsafe in file names. The ids of user cases and the names of user
/// resources can contain any character.
fn safe(text: &str) -> String {
    let text = text.replace(|c: char| !(c.is_ascii_alphanumeric() || "-_.".contains(c)), "_");
    if text.starts_with('.') { format!("_{text}") } else { text }
}

fn file_name(record: &Record, ending: &str) -> PathBuf {
    let name = record.id.split_once('/').map_or("", |(_, name)| name);
    let subject = match record.subject.as_str() {
        "" => String::new(),
        subject => format!("@{}", safe(subject)),
    };
    Path::new(&safe(record.area())).join(format!("{}{subject}.{ending}", safe(name)))
}
