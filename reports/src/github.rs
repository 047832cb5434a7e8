//! Annotations for GitHub Actions, on standard output where the runner looks for them.

use std::io::Write;

use kubeproof_harness::event::Verdict;

use crate::document::{Document, Record};
use crate::{Report, ReportError};

/// Writes a workflow command per result that is not as it should be, or per place in a file.
pub struct Github<W> {
    out: W,
}

impl<W: Write + Send> Github<W> {
    /// Writes to this output.
    pub fn new(out: W) -> Self {
        Self { out }
    }
}

impl<W: Write + Send> Report for Github<W> {
    fn finished(&mut self, document: &Document) -> Result<(), ReportError> {
        for record in document.results.iter().filter(|record| record.is_remarkable()) {
            let command = match record.verdict {
                _ if record.is_known() => "notice",
                _ if record.surprise().is_some() => "error",
                Verdict::Fail | Verdict::Error => "error",
                Verdict::Warn => "warning",
                Verdict::Deviation | Verdict::Pass | Verdict::Skip => "notice",
            };
            let title = property(&format!("kubeproof: {}", record.title()));
            let places = record.broken_checks().into_iter().flat_map(|check| &check.places);
            let in_files: Vec<_> =
                places.filter_map(|place| Some((place, place.position.as_ref()?))).collect();
            for (place, at) in &in_files {
                let place = data(&format!("{}: {}\n{}", place.at, place.message, record.summary));
                let (file, line, column) = (property(&at.file), at.line, at.column);
                writeln!(
                    self.out,
                    "::{command} file={file},line={line},col={column},title={title}::{place}"
                )?;
            }
            if in_files.is_empty() {
                writeln!(self.out, "::{command} title={title}::{}", data(&message(record)))?;
            }
        }
        Ok(self.out.flush()?)
    }
}

fn message(record: &Record) -> String {
    let mut lines = vec![record.headline(), record.summary.clone()];
    lines.push(format!("requirements: {}", record.requirements.join(", ")));
    lines.extend(record.broken_checks().iter().map(|check| format!("{}: {}", check.id, check.message)));
    lines.join("\n")
}

fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
