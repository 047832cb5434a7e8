//! `kubeproof report`: renders, merges, compares and checks JSON reports.

use std::io::{self, Write};
use std::path::PathBuf;

use kubeproof_cases::{Catalogue, plural};
use kubeproof_reports::Report as _;
use kubeproof_reports::compare::{Change, diff, merge};
use kubeproof_reports::console::{Console, Live};
use kubeproof_reports::document::Document;
use kubeproof_reports::formats::load;
use kubeproof_reports::paint::{Paint, verdict_name};
use kubeproof_reports::{CatalogueCase, CatalogueCases, Matrix, atomic, verify};

use super::{outcome, report_files};
use crate::args::high::{CatalogueSource, MatrixOptions, RenderOutput, Report};
use crate::args::rerun_of_report;
use crate::error::Error;
use crate::exit_code::Exit;

pub(super) fn report(report: Report, out: &mut dyn Write) -> Result<Exit, Error> {
    match report {
        Report::Render { report, output } => render(&load(&report)?, output),
        Report::Merge { reports, output } => {
            let strict = output.console.strict;
            let documents = reports.iter().map(|path| load(path));
            let merged = merge(documents.collect::<Result<Vec<_>, _>>()?)?;
            render(&merged, output)?;
            Ok(outcome::exit_of_merged_run(&merged, strict))
        }
        Report::Diff { before, after, paint } => {
            print_changes(&load(&before)?, &load(&after)?, paint, out)
        }
        Report::Matrix(options) => write_matrix(&options, out),
        Report::Verify { report, catalogue } => {
            print_mismatches(&load(&report)?, &catalogue.load()?, out)
        }
    }
}

/// Prints reports side by side, and writes the files.
fn write_matrix(options: &MatrixOptions, out: &mut dyn Write) -> Result<Exit, Error> {
    let named = |path: &PathBuf| Ok((path.display().to_string(), load(path)?));
    let reports: Result<Vec<_>, Error> = options.reports.iter().map(named).collect();
    let matrix = Matrix::new(&reports?);
    if let Some(path) = &options.html {
        atomic::write(path, matrix.html()?.as_bytes())?;
    }
    if let Some(path) = &options.markdown {
        atomic::write(path, matrix.markdown().as_bytes())?;
    }
    matrix.write(out, options.paint, options.verbose)?;
    Ok(Exit::CONFORMANT)
}

/// Prints the wrong values of a report. The ids are checked if the run used this catalogue.
fn print_mismatches(
    document: &Document,
    catalogue: &Catalogue,
    out: &mut dyn Write,
) -> Result<Exit, Error> {
    let is_same = document.head.catalogue_digest == catalogue.digest();
    let cases = catalogue.cases.iter().map(|case| {
        let (level, requirements) = (case.level, case.requirements.clone());
        (case.id.clone(), CatalogueCase { level, requirements })
    });
    let cases: Option<CatalogueCases> = is_same.then(|| cases.collect());
    let mismatches = verify(document, cases.as_ref());
    for mismatch in &mismatches {
        writeln!(out, "{mismatch}")?;
    }
    let ids = if is_same { "" } else { "; the ids were not checked: the catalogue differs" };
    let results = plural(document.results.len(), "result");
    writeln!(out, "{results}, {}{ids}", plural(mismatches.len(), "wrong value"))?;
    Ok(if mismatches.is_empty() { Exit::CONFORMANT } else { Exit::FAILURES })
}

fn render(document: &Document, mut output: RenderOutput) -> Result<Exit, Error> {
    output.console.command = rerun_of_report(&document.head);
    let requirements = report_files::requirements(&CatalogueSource::default().load()?);
    for mut file in report_files::open(&output.files, &requirements)? {
        file.finished(document)?;
    }
    let mut console = Console::new(io::stdout(), Live::none(), output.console, &requirements);
    console.finished(document)?;
    Ok(Exit::CONFORMANT)
}

fn print_changes(
    before: &Document,
    after: &Document,
    paint: Paint,
    out: &mut dyn Write,
) -> Result<Exit, Error> {
    let changes = diff(before, after);
    let (worse, other): (Vec<&Change>, Vec<&Change>) =
        changes.iter().partition(|change| change.is_regression());
    for (heading, changes) in [("worse:", &worse), ("changed:", &other)] {
        if !changes.is_empty() {
            writeln!(out, "{}", paint.bold(heading))?;
        }
        for change in changes {
            writeln!(out, "  {}", describe_change(change, paint))?;
        }
    }
    if let Some(selections) = &changes.selections {
        writeln!(out, "{selections}")?;
    }
    writeln!(out, "{} worse, {} changed otherwise", worse.len(), other.len())?;
    Ok(if changes.has_regression() { Exit::FAILURES } else { Exit::CONFORMANT })
}

fn describe_change(change: &Change, paint: Paint) -> String {
    let side = |verdict: Option<_>| {
        verdict.map_or("none".to_owned(), |verdict| paint.verdict(verdict, verdict_name(verdict)))
    };
    let separator = if change.reason.is_empty() { "" } else { "  " };
    let (before, after) = (side(change.before), side(change.after));
    format!("{}: {before} -> {after}{separator}{}", change.title, change.reason)
}
