//! `kubeproof explain`: all about a case or a requirement.

mod example;
mod steps;
mod streams;
mod words;

use std::collections::BTreeSet;
use std::io::Write;

use kubeproof_cases::case::{Case, Edition};
use kubeproof_cases::{Catalogue, Requirement};
use kubeproof_harness::capability::name_of;
use kubeproof_reference_server::Fault;

use super::list::subject;
use crate::args::{high, low};
use crate::error::Error;
use crate::exit_code::Exit;

/// Explains what has this id.
pub(super) async fn explain(explain: &low::Explain, out: &mut dyn Write) -> Result<Exit, Error> {
    let catalogue = high::catalogue(&explain.directories)?;
    let shown = if let Some(case) = catalogue.case(&explain.id) {
        explain_case(case, &catalogue, out)?;
        Some(case)
    } else if let Some(requirement) = catalogue.requirements.get(&explain.id) {
        explain_requirement(requirement, &catalogue, out)?;
        typical(requirement, &catalogue)
    } else {
        let cases = catalogue.cases.iter().map(|case| case.id.as_str());
        let requirements = catalogue.requirements.iter().map(|requirement| requirement.id.as_str());
        return Err(Error::unknown("case or requirement", &explain.id, cases.chain(requirements)));
    };
    if let Some(case) = shown.filter(|_| !explain.no_example) {
        example::write(case, &catalogue, out).await?;
    }
    Ok(Exit::CONFORMANT)
}

fn explain_case(case: &Case, catalogue: &Catalogue, out: &mut dyn Write) -> Result<(), Error> {
    writeln!(out, "{} ({})", case.id, case.level)?;
    writeln!(out, "{}", case.summary)?;
    if let Some(why) = &case.why {
        writeln!(out, "\nWhy it matters:")?;
        for line in why.trim().lines() {
            writeln!(out, "  {line}")?;
        }
    }
    writeln!(out, "\nRequirements:")?;
    for requirement in case.requirements.iter().filter_map(|id| catalogue.requirements.get(id)) {
        writeln!(out, "  {} ({}): {}", requirement.id, level(requirement), requirement.statement)?;
    }
    if case.editions.len() < Edition::ALL.len() {
        let editions: Vec<_> = case.editions.iter().map(Edition::to_string).collect();
        writeln!(out, "\nEditions: {}", editions.join(", "))?;
    }
    writeln!(out, "\nRuns on: {}", case.subject.as_ref().map_or("no subject, once".to_owned(), subject))?;
    if !case.protocols.is_empty() {
        let protocols: Vec<_> = case.protocols.iter().map(ToString::to_string).collect();
        writeln!(out, "Over: {}", protocols.join(", "))?;
    }
    if !case.needs.is_empty() {
        let needs: Vec<_> = case.needs.iter().map(|need| name_of(*need)).collect();
        writeln!(out, "Needs: {}", needs.join(", "))?;
    }
    writeln!(out, "\nSteps:")?;
    steps::write(&case.steps, 1, out)?;
    if !case.catches.is_empty() {
        writeln!(out, "\nCatches these faults of the reference server:")?;
        case.catches.iter().try_for_each(|name| fault(name, out))?;
    }
    writeln!(out, "\nFile: {}", case.file)?;
    Ok(())
}

fn explain_requirement(
    requirement: &Requirement,
    catalogue: &Catalogue,
    out: &mut dyn Write,
) -> Result<(), Error> {
    writeln!(out, "{} ({})", requirement.id, level(requirement))?;
    writeln!(out, "{}", requirement.statement)?;
    writeln!(out, "\nSection: {}", requirement.section)?;
    writeln!(out, "Shows in: {}", words::plain(&requirement.testability))?;
    writeln!(out, "\nBy edition:")?;
    for (editions, text) in by_edition(requirement) {
        writeln!(out, "  {editions}: {text}")?;
    }
    if let Some(changed) = &requirement.changed {
        writeln!(out, "  ({})", changed.trim())?;
    }
    if let Some(why) = &requirement.why {
        writeln!(out, "\nWhy clients rely on it: {why}")?;
    }
    if let Some(legal) = &requirement.legal {
        writeln!(out, "What is legal: {legal}")?;
    }
    if let Some(without) = &requirement.without {
        writeln!(out, "\nNo case ({}): {}", words::plain(&without.kind), without.reason)?;
        return Ok(());
    }
    let cases: Vec<_> =
        catalogue.cases.iter().filter(|case| case.requirements.contains(&requirement.id)).collect();
    writeln!(out, "\nCases:")?;
    for case in &cases {
        writeln!(out, "  {}: {}", case.id, case.summary)?;
    }
    let faults: BTreeSet<&String> = cases.iter().flat_map(|case| &case.catches).collect();
    if !faults.is_empty() {
        writeln!(out, "\nFaults of the reference server that these cases catch:")?;
        faults.into_iter().try_for_each(|name| fault(name, out))?;
    }
    Ok(())
}

/// Editions that say the same stand together.
fn by_edition(requirement: &Requirement) -> Vec<(String, &str)> {
    let mut said: Vec<(String, &str)> = Vec::new();
    for edition in Edition::ALL {
        let text = requirement.says(edition).unwrap_or("says nothing of it");
        match said.last_mut() {
            Some((editions, last)) if *last == text => {
                editions.push_str(", ");
                editions.push_str(&edition.to_string());
            }
            _ => said.push((edition.to_string(), text)),
        }
    }
    said
}

/// The case that is most about this requirement: the one that has fewest others, judged today if any is.
fn typical<'a>(requirement: &Requirement, catalogue: &'a Catalogue) -> Option<&'a Case> {
    let about = catalogue.cases.iter().filter(|case| case.requirements.contains(&requirement.id));
    about.min_by_key(|case| (!case.is_judged_by(Edition::Head), case.requirements.len()))
}

fn fault(name: &str, out: &mut dyn Write) -> Result<(), Error> {
    let summary = Fault::from_name(name).map(|fault| format!(": {}", fault.summary()));
    Ok(writeln!(out, "  {name}{}", summary.unwrap_or_default())?)
}

fn level(requirement: &Requirement) -> String {
    let implied = if requirement.implied { ", implied" } else { "" };
    format!("{}{implied}", requirement.level)
}
