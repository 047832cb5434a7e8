//! `kubeproof next`: explains the next step for the implementer of a server.

use std::collections::BTreeMap;
use std::io::Write;

use kubeproof_cases::case::Case;
use kubeproof_cases::{Catalogue, plural};
use kubeproof_harness::event::Verdict;
use kubeproof_reports::console::describe;
use kubeproof_reports::document::{Document, Record, Rung};
use kubeproof_reports::formats::load;
use kubeproof_reports::{Cause, causes, compressed};

use super::explain::write_correct;
use super::report_files;
use crate::args::high::{CatalogueSource, Next};
use crate::error::Error;
use crate::exit_code::Exit;

/// Maximum cases of a list.
const LISTED: usize = 8;

/// Explains the first profile that is not complete: its first cause, and what a correct server
/// does.
pub(super) async fn next(next: &Next, out: &mut dyn Write) -> Result<Exit, Error> {
    let document = load(&next.report)?;
    let catalogue = CatalogueSource::default().load()?;
    let causes = causes(&document.results, false);
    let rung = document.ladder().into_iter().find(|rung| !rung.is_complete());
    let cause = match &rung {
        Some(rung) => causes.iter().find(|cause| affects(cause, rung)),
        None => causes.first(),
    };
    match &rung {
        Some(rung) => {
            writeln!(out, "profile {rung}")?;
            writeln!(out, "{}\n", rung.profile.summary())?;
        }
        None if cause.is_some() => writeln!(out, "No profile fails. Fix what remains:\n")?,
        None => {
            writeln!(out, "Nothing is left to do: no result of this report fails.")?;
            return Ok(Exit::CONFORMANT);
        }
    }
    let example = match (cause, &rung) {
        (Some(cause), _) => {
            let requirements = report_files::requirements(&catalogue);
            write!(out, "{}", describe(cause, &requirements, next.paint))?;
            print_rules(&cause.results, &catalogue, out)?;
            catalogue.case(&cause.example.id)
        }
        (None, Some(rung)) => print_missing(rung, &document, &catalogue, out)?,
        (None, None) => None,
    };
    if let Some(case) = example.filter(|_| next.with_example) {
        write_correct(case, None, &catalogue, out).await?;
    }
    Ok(Exit::CONFORMANT)
}

fn affects(cause: &Cause<'_>, rung: &Rung) -> bool {
    let mut records = cause.results.iter().chain(&cause.blocked);
    cause.verdict != Verdict::Warn && records.any(|record| record.profile == Some(rung.profile))
}

/// Prints what a correct server does in the cases of a cause.
fn print_rules(
    results: &[&Record],
    catalogue: &Catalogue,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let mut rules: BTreeMap<&str, &str> = BTreeMap::new();
    for record in results {
        if let Some(case) = catalogue.case(&record.id) {
            rules.insert(&case.id, &case.summary);
        }
    }
    writeln!(out, "A correct server passes:")?;
    for (id, summary) in rules.iter().take(LISTED) {
        writeln!(out, "  {id}: {summary}")?;
    }
    if rules.len() > LISTED {
        writeln!(out, "  and {}", plural(rules.len() - LISTED, "more case"))?;
    }
    Ok(())
}

/// Prints why a profile without failures is incomplete: most of its results are skipped. Returns
/// the case to implement first, the one with the fewest requirements.
fn print_missing<'a>(
    rung: &Rung,
    document: &Document,
    catalogue: &'a Catalogue,
    out: &mut dyn Write,
) -> Result<Option<&'a Case>, Error> {
    let skipped: Vec<&Record> = document
        .results
        .iter()
        .filter(|record| record.profile == Some(rung.profile) && record.verdict == Verdict::Skip)
        .collect();
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    for record in &skipped {
        *reasons.entry(&record.reason).or_default() += 1;
    }
    let mut reasons: Vec<_> = reasons.into_iter().collect();
    reasons.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    writeln!(out, "The server does not offer this profile:")?;
    for (reason, count) in reasons.iter().take(LISTED) {
        writeln!(out, "  {reason} ({})", plural(*count, "result"))?;
    }
    writeln!(out, "\nImplement:")?;
    let names = compressed(&skipped);
    for name in names.iter().take(LISTED) {
        writeln!(out, "  {name}")?;
    }
    if names.len() > LISTED {
        writeln!(out, "  and {}", plural(names.len() - LISTED, "more case"))?;
    }
    let cases = skipped.iter().filter_map(|record| catalogue.case(&record.id));
    Ok(cases.min_by_key(|case| (case.level, case.requirements.len(), &case.id)))
}
