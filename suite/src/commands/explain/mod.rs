//! `kubeproof explain`: all about a case or a requirement.

mod steps;
mod streams;
mod words;

use std::io::Write;

use kubeproof_cases::case::Case;
use kubeproof_cases::{Catalogue, Requirement};
use kubeproof_harness::capability::name_of;
use kubeproof_reference_server::Fault;

use super::list::subject;
use crate::args::{high, low};
use crate::error::Error;
use crate::exit_code::Exit;

/// Explains what has this id.
pub(super) fn explain(explain: &low::Explain, out: &mut dyn Write) -> Result<Exit, Error> {
    let catalogue = high::catalogue(&explain.directories)?;
    if let Some(case) = catalogue.case(&explain.id) {
        explain_case(case, &catalogue, out)?;
    } else if let Some(requirement) = catalogue.requirements.get(&explain.id) {
        explain_requirement(requirement, &catalogue, out)?;
    } else {
        let cases = catalogue.cases.iter().map(|case| case.id.as_str());
        let requirements = catalogue.requirements.iter().map(|requirement| requirement.id.as_str());
        return Err(Error::unknown("case or requirement", &explain.id, cases.chain(requirements)));
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
        for name in &case.catches {
            let summary = Fault::from_name(name).map(|fault| format!(": {}", fault.summary()));
            writeln!(out, "  {name}{}", summary.unwrap_or_default())?;
        }
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
    let editions: Vec<_> = requirement.editions.iter().map(words::plain).collect();
    writeln!(out, "Editions: {}", editions.join(", "))?;
    if let Some(changed) = &requirement.changed {
        writeln!(out, "Changed: {}", changed.trim())?;
    }
    writeln!(out, "Shows in: {}", words::plain(&requirement.testability))?;
    if let Some(without) = &requirement.without {
        writeln!(out, "\nNo case ({}): {}", words::plain(&without.kind), without.reason)?;
        return Ok(());
    }
    writeln!(out, "\nCases:")?;
    for case in catalogue.cases.iter().filter(|case| case.requirements.contains(&requirement.id)) {
        writeln!(out, "  {}: {}", case.id, case.summary)?;
    }
    Ok(())
}

fn level(requirement: &Requirement) -> String {
    let implied = if requirement.implied { ", implied" } else { "" };
    format!("{}{implied}", requirement.level)
}
