//! Compares the reports of several servers or versions side by side: one row per case, one column
//! per report.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::{self, Write};

use askama::Template;
use kubeproof_cases::case::Level;
use kubeproof_cases::plural;
use kubeproof_harness::event::Verdict;

use crate::document::{Document, Record, Summary};
use crate::paint::{Paint, verdict_name};
use crate::report::ReportError;

/// Reports side by side. Rows that differ come first.
#[derive(Clone, Debug)]
pub struct Matrix {
    columns: Vec<Column>,
    rows: Vec<Row>,
}

#[derive(Clone, Debug)]
struct Column {
    /// Counted from 1.
    number: usize,
    /// The file of the report.
    name: String,
    server: String,
    version: String,
    edition: String,
    catalogue: String,
    /// Cases by their worst verdict.
    summary: Summary,
}

/// A case on all its subjects.
#[derive(Clone, Debug)]
struct Row {
    id: String,
    cells: Vec<Cell>,
    subjects: Vec<SubjectRow>,
    differs: bool,
}

/// A case in one report.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Cell {
    /// The worst verdict. `None` if the report lacks the case.
    verdict: Option<Verdict>,
    /// Subjects with this verdict.
    count: usize,
    /// All subjects.
    total: usize,
}

/// A case on one subject.
#[derive(Clone, Debug)]
struct SubjectRow {
    subject: String,
    /// The result in each report.
    cells: Vec<SubjectCell>,
}

/// A case on one subject in one report.
#[derive(Clone, Debug)]
struct SubjectCell {
    verdict: Option<Verdict>,
    reason: String,
}

impl Matrix {
    /// Compares reports. Each has the name of its file. If a run repeated a case, its worst result
    /// counts.
    pub fn new(reports: &[(String, Document)]) -> Self {
        let mut cases: BTreeMap<&str, BTreeMap<&str, Vec<Option<&Record>>>> = BTreeMap::new();
        for (n, (_, document)) in reports.iter().enumerate() {
            for record in &document.results {
                let subjects = cases.entry(&record.id).or_default();
                let slots =
                    subjects.entry(&record.subject).or_insert_with(|| vec![None; reports.len()]);
                if slots[n].is_none_or(|known| known.verdict < record.verdict) {
                    slots[n] = Some(record);
                }
            }
        }
        let mut rows: Vec<Row> =
            cases.iter().map(|(id, subjects)| Row::new(id, subjects, reports.len())).collect();
        rows.sort_by_key(|row| !row.differs);
        let columns = reports.iter().enumerate();
        let columns = columns.map(|(n, (name, document))| Column::new(n, name, document, &rows));
        Self { columns: columns.collect(), rows }
    }

    /// Writes the matrix to a terminal. Rows that are the same in all reports are counted, unless
    /// they need attention or `verbose` is set.
    pub fn write(&self, out: &mut dyn Write, paint: Paint, verbose: bool) -> io::Result<()> {
        for column in &self.columns {
            writeln!(out, "#{} {}", column.number, column.title())?;
        }
        for notice in self.notices() {
            writeln!(out, "note: {notice}")?;
        }
        let passes = |row: &&Row| row.worst() <= Some(Verdict::Pass);
        let (differing, same): (Vec<&Row>, Vec<&Row>) =
            self.rows.iter().partition(|row| row.differs);
        let (hidden, shown): (Vec<&Row>, Vec<&Row>) =
            same.iter().copied().partition(|row| !verbose && passes(row));
        for (heading, rows) in [("different:", &differing), ("the same:", &shown)] {
            if !rows.is_empty() {
                writeln!(out, "\n{}", paint.bold(heading))?;
                self.write_rows(out, rows, paint)?;
            }
        }
        writeln!(out)?;
        let more = match hidden.len() {
            0 => String::new(),
            n => format!("; {n} of them pass or skip in all reports (-v lists them)"),
        };
        writeln!(
            out,
            "{}: {} different, {} the same{more}",
            plural(self.rows.len(), "case"),
            differing.len(),
            same.len()
        )
    }

    fn write_rows(&self, out: &mut dyn Write, rows: &[&Row], paint: Paint) -> io::Result<()> {
        let longest = rows.iter().map(|row| row.id.len()).max().unwrap_or_default();
        let widths: Vec<usize> = (0..self.columns.len())
            .map(|n| rows.iter().map(|row| row.cells[n].text().len()).max().unwrap_or(0).max(3))
            .collect();
        let headings = self.columns.iter().zip(&widths);
        let headings: Vec<String> = headings
            .map(|(column, width)| format!("{:<width$}", format!("#{}", column.number)))
            .collect();
        writeln!(out, "  {}", format!("{:<longest$}  {}", "", headings.join("  ")).trim_end())?;
        for row in rows {
            let cells = row.cells.iter().zip(&widths).map(|(cell, width)| {
                let text = format!("{:<width$}", cell.text());
                cell.verdict.map_or_else(|| paint.dim(&text), |v| paint.verdict(v, &text))
            });
            let line = format!("{:<longest$}  {}", row.id, cells.collect::<Vec<_>>().join("  "));
            writeln!(out, "  {}", line.trim_end())?;
        }
        Ok(())
    }

    /// Renders the matrix as Markdown. Rows that are the same in all reports are folded.
    pub fn markdown(&self) -> String {
        let mut page = "# kubeproof: matrix\n\n".to_owned();
        for column in &self.columns {
            _ = writeln!(page, "- #{}: {}", column.number, escape(&column.title()));
        }
        for notice in self.notices() {
            _ = writeln!(page, "- Note: {}", escape(&notice));
        }
        let (differing, same): (Vec<&Row>, Vec<&Row>) =
            self.rows.iter().partition(|row| row.differs);
        _ = writeln!(page, "\n## {}\n", plural(differing.len(), "different case"));
        self.table(&mut page, &differing);
        _ = writeln!(
            page,
            "\n<details><summary>{} the same</summary>\n",
            plural(same.len(), "case")
        );
        self.table(&mut page, &same);
        page.push_str("\n</details>\n");
        page
    }

    fn table(&self, page: &mut String, rows: &[&Row]) {
        if rows.is_empty() {
            return;
        }
        let numbers = self.columns.iter().map(|column| format!(" #{} |", column.number));
        _ = writeln!(page, "| case |{}", numbers.collect::<String>());
        _ = writeln!(page, "|---|{}", "---|".repeat(self.columns.len()));
        for row in rows {
            let cells = row.cells.iter().map(|cell| format!(" {} |", cell.text()));
            _ = writeln!(page, "| {} |{}", escape(&row.id), cells.collect::<String>());
        }
    }

    /// Renders the matrix as a self-contained HTML page. The template engine escapes all text of
    /// servers.
    pub fn html(&self) -> Result<String, ReportError> {
        let differing = self.rows.iter().filter(|row| row.differs).count();
        let page = Page { matrix: self, notices: self.notices(), differing };
        page.render()
            .map_err(|error| ReportError::Render { format: "HTML", message: error.to_string() })
    }

    /// Returns what limits the comparison.
    fn notices(&self) -> Vec<String> {
        let distinct = |value: fn(&Column) -> &str| {
            self.columns.iter().map(value).collect::<BTreeSet<_>>().len() > 1
        };
        let mut notices = Vec::new();
        if distinct(|column| &column.catalogue) {
            notices.push("the reports are of different catalogues of cases".to_owned());
        }
        if distinct(|column| &column.edition) {
            notices.push("the reports are of different editions of the conventions".to_owned());
        }
        notices
    }
}

#[derive(Template)]
#[template(path = "matrix.html")]
struct Page<'a> {
    matrix: &'a Matrix,
    notices: Vec<String>,
    differing: usize,
}

impl Column {
    fn new(n: usize, name: &str, document: &Document, rows: &[Row]) -> Self {
        let mut summary = Summary::default();
        rows.iter().filter_map(|row| row.cells[n].verdict).for_each(|verdict| summary.add(verdict));
        let head = &document.head;
        Self {
            number: n + 1,
            name: name.to_owned(),
            server: head.target.server.clone(),
            version: head.target.version.clone().unwrap_or_else(|| "unknown version".to_owned()),
            edition: head.edition.to_string(),
            catalogue: head.catalogue_digest.clone(),
            summary,
        }
    }

    fn title(&self) -> String {
        let Self { server, version, edition, name, .. } = self;
        format!("{server} ({version}), edition {edition}, {name}: {}", self.counts())
    }

    fn counts(&self) -> String {
        let counts = self.summary.counts().into_iter().filter(|(_, count)| *count > 0);
        let counts: Vec<String> =
            counts.map(|(verdict, count)| format!("{count} {}", verdict_name(verdict))).collect();
        if counts.is_empty() { "no results".to_owned() } else { counts.join(", ") }
    }
}

impl Row {
    fn new(id: &str, subjects: &BTreeMap<&str, Vec<Option<&Record>>>, columns: usize) -> Self {
        let subject_rows = subjects.iter().map(|(subject, records)| {
            let cells = records.iter().map(|record| SubjectCell::new(*record));
            SubjectRow { subject: (*subject).to_owned(), cells: cells.collect() }
        });
        let subject_rows: Vec<SubjectRow> = subject_rows.collect();
        let cells = (0..columns)
            .map(|n| Cell::of(subject_rows.iter().filter_map(|row| row.cells[n].verdict)));
        let differs = subject_rows.iter().any(SubjectRow::differs);
        Self { id: id.to_owned(), cells: cells.collect(), subjects: subject_rows, differs }
    }

    fn worst(&self) -> Option<Verdict> {
        worst(self.cells.iter().filter_map(|cell| cell.verdict))
    }
}

/// Returns the worst verdict. An error does not hide a failure.
fn worst(verdicts: impl Iterator<Item = Verdict>) -> Option<Verdict> {
    verdicts.max_by_key(|verdict| verdict.weight(Level::Must))
}

impl SubjectRow {
    /// Returns whether the verdicts differ. A skipped result is the same as none, because neither
    /// was judged.
    fn differs(&self) -> bool {
        let judged = |cell: &SubjectCell| cell.verdict.filter(|verdict| *verdict > Verdict::Skip);
        let first = self.cells.first().and_then(judged);
        self.cells.iter().any(|cell| judged(cell) != first)
    }
}

impl SubjectCell {
    fn new(record: Option<&Record>) -> Self {
        Self {
            verdict: record.map(|record| record.verdict),
            reason: record.map(Record::headline).unwrap_or_default(),
        }
    }

    fn name(&self) -> &'static str {
        self.verdict.map_or("none", verdict_name)
    }
}

impl Cell {
    fn of(verdicts: impl Iterator<Item = Verdict> + Clone) -> Self {
        let verdict = worst(verdicts.clone());
        let count = verdicts.clone().filter(|one| Some(*one) == verdict).count();
        Self { verdict, count, total: verdicts.count() }
    }

    /// Returns the worst verdict, and on how many of the subjects: `fail 2/4`.
    fn text(&self) -> String {
        match self.verdict {
            None => "-".to_owned(),
            Some(verdict) if self.count == self.total => verdict_name(verdict).to_owned(),
            Some(verdict) => format!("{} {}/{}", verdict_name(verdict), self.count, self.total),
        }
    }

    /// Returns the CSS class.
    fn class(&self) -> &'static str {
        self.verdict.map_or("none", verdict_name)
    }
}

/// Escapes text so that it cannot end a table cell or become HTML.
fn escape(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    text.replace('|', "\\|").replace(['\n', '\r'], " ")
}

#[cfg(test)]
mod tests;
