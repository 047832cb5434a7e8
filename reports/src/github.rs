//! Annotations and the job summary for GitHub Actions. The runner reads annotations from standard
//! output.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

use kubeproof_cases::plural;
use kubeproof_harness::event::Verdict;

use crate::causes::{Cause, causes, compressed};
use crate::document::{Document, Record};
use crate::formats::Format;
use crate::report::{Report, ReportError};
use crate::requirements::{Requirement, Requirements};
use crate::site::case_url;

/// Maximum names of cases in an annotation.
const NAMES: usize = 10;

/// Writes a workflow command for each cause, or for each place in a file.
pub struct Github<W> {
    out: W,
    requirements: Requirements,
    summary: Option<PathBuf>,
}

impl<W: Write + Send> Github<W> {
    /// Creates a report that writes annotations to `out`, and appends the job summary to a file.
    /// GitHub names that file in `GITHUB_STEP_SUMMARY`.
    pub fn new(out: W, requirements: &Requirements, summary: Option<PathBuf>) -> Self {
        Self { out, requirements: requirements.clone(), summary }
    }

    fn annotate(&mut self, cause: &Cause<'_>) -> Result<(), ReportError> {
        let command = if cause.verdict == Verdict::Warn { "warning" } else { "error" };
        let mut is_in_files = false;
        for record in &cause.results {
            is_in_files |= self.annotate_places(command, record)?;
        }
        if !is_in_files {
            let title = escape_property(&format!("kubeproof: {}", cause.title));
            let message = escape(&self.message(cause));
            writeln!(self.out, "::{command} title={title}::{message}")?;
        }
        Ok(())
    }

    /// Writes an annotation for each place in a file. Returns whether there is one.
    fn annotate_places(&mut self, command: &str, record: &Record) -> Result<bool, ReportError> {
        let title = escape_property(&format!("kubeproof: {}", record.title()));
        let places = record.failed_checks().into_iter().flat_map(|check| &check.places);
        let in_files = places.filter_map(|at| Some((at, at.position.as_ref()?)));
        let mut is_in_files = false;
        for (place, position) in in_files {
            is_in_files = true;
            let text = format!("{}: {}\n{}", place.at, place.message, record.summary);
            let (text, file) = (escape(&text), escape_property(&position.file));
            let (line, column) = (position.line, position.column);
            writeln!(
                self.out,
                "::{command} file={file},line={line},col={column},title={title}::{text}"
            )?;
        }
        Ok(is_in_files)
    }

    fn message(&self, cause: &Cause<'_>) -> String {
        let example = cause.example;
        let mut lines = vec![format!("{}: {}", example.title(), example.headline())];
        if let Some(id) = cause.requirement() {
            let url = self.requirements.get(id).and_then(Requirement::section_url);
            let statement = self.requirements.statement(id);
            lines.push(format!("{id}: {statement} {}", url.unwrap_or_default()));
        }
        let names = compressed(&cause.results);
        let more = match names.len().saturating_sub(NAMES) {
            0 => String::new(),
            more => format!(", and {}", plural(more, "more case")),
        };
        let first = names.iter().take(NAMES).map(String::as_str).collect::<Vec<_>>();
        lines.push(format!("affects {}{more}", first.join(", ")));
        if !cause.blocked.is_empty() {
            lines.push(format!("blocks {}", plural(cause.blocked.len(), "result")));
        }
        if example.required_feature().is_none() {
            lines.push(format!("kubeproof explain {}", example.id));
        }
        lines.extend(case_url(&example.id));
        lines.join("\n")
    }
}

impl<W: Write + Send> Report for Github<W> {
    fn finished(&mut self, document: &Document) -> Result<(), ReportError> {
        for cause in causes(&document.results, false) {
            self.annotate(&cause)?;
        }
        self.out.flush()?;
        match &self.summary {
            Some(path) => append(path, &Format::Markdown.render(document, &self.requirements)?),
            None => Ok(()),
        }
    }
}

/// Appends to the job summary, which other steps of the job write too.
fn append(path: &Path, text: &str) -> Result<(), ReportError> {
    let file = OpenOptions::new().append(true).create(true).open(path);
    file.and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(|source| ReportError::Write { path: path.to_owned(), source })
}

fn escape(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn escape_property(text: &str) -> String {
    escape(text).replace(':', "%3A").replace(',', "%2C")
}
