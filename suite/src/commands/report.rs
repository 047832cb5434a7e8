//! `kubeproof report`: what can be done with the JSON reports of earlier runs.

use std::io::{self, Write};

use kubeproof_reports::compare::{Change, diff, merge};
use kubeproof_reports::console::{Console, Live, Options};
use kubeproof_reports::document::Document;
use kubeproof_reports::paint::{Paint, word};

use crate::args::{high, low};
use crate::error::Error;
use crate::exit_code::Exit;

/// Renders, merges or compares.
pub(super) fn report(report: &low::Report, color: low::Color, out: &mut dyn Write) -> Result<Exit, Error> {
    match &report.command {
        low::ReportCommand::Render(asked) => render(&Document::load(&asked.report)?, &asked.output, color),
        low::ReportCommand::Merge(asked) => {
            let documents = asked.reports.iter().map(|path| Document::load(path));
            let merged = merge(documents.collect::<Result<Vec<_>, _>>()?)?;
            render(&merged, &asked.output, color)
        }
        low::ReportCommand::Diff(asked) => {
            compare(&Document::load(&asked.before)?, &Document::load(&asked.after)?, color, out)
        }
    }
}

fn render(document: &Document, output: &low::RenderOutput, color: low::Color) -> Result<Exit, Error> {
    let requirements = high::requirements(&high::catalogue(&[])?);
    let options = Options {
        verbosity: low::verbosity(output.quiet, output.verbose),
        paint: Paint::new(color.on_stdout()),
        command: "kubeproof run".to_owned(),
        json: output.files.json.clone(),
        strict: false,
    };
    let mut reports = output.files.open(&requirements)?;
    reports.push(Box::new(Console::new(io::stdout(), Live::none(), options, &requirements)));
    for mut report in reports {
        report.finished(document)?;
    }
    Ok(Exit::CONFORMANT)
}

fn compare(
    before: &Document,
    after: &Document,
    color: low::Color,
    out: &mut dyn Write,
) -> Result<Exit, Error> {
    let paint = Paint::new(color.on_stdout());
    let changes = diff(before, after);
    let (worse, other): (Vec<&Change>, Vec<&Change>) =
        changes.iter().partition(|change| change.is_regression());
    for (heading, changes) in [("worse:", &worse), ("changed:", &other)] {
        if !changes.is_empty() {
            writeln!(out, "{}", paint.bold(heading))?;
        }
        for change in changes {
            let side = |verdict: Option<_>| verdict.map_or("none".to_owned(), |v| paint.verdict(v, word(v)));
            let reason = if change.reason.is_empty() { "" } else { "  " };
            let (before, after) = (side(change.before), side(change.after));
            writeln!(out, "  {}: {before} -> {after}{reason}{}", change.title, change.reason)?;
        }
    }
    writeln!(out, "{} worse, {} changed otherwise", worse.len(), other.len())?;
    Ok(if changes.has_regression() { Exit::FAILURES } else { Exit::CONFORMANT })
}
