//! `kubeproof explain`: explains whatever has a name: cases, requirements, profiles, levels,
//! capabilities, faults and variations.

mod body;
mod choice;
mod describe;
mod example;
mod fault;
mod level;
mod named;
mod server_feature;
mod steps;
mod streams;

use self::choice::Focus;
pub(super) use self::example::{write_correct, write_exchanges};

use std::collections::BTreeSet;
use std::io::Write;

use kubeproof_cases::case::{Case, Edition};
use kubeproof_cases::requirements::Requirement;
use kubeproof_cases::{Catalogue, Profile, is_embedded_case};
use kubeproof_harness::plan::capability_name;
use kubeproof_reference_server::Fault;

use super::list::describe_subjects;
use super::report_files;
use crate::args::high;
use crate::error::Error;
use crate::exit_code::Exit;

pub(super) async fn explain(explain: &high::Explain, out: &mut dyn Write) -> Result<Exit, Error> {
    let catalogue = if is_embedded_case(&explain.id) {
        explain.catalogue.load_only(|id| id == explain.id)?
    } else {
        explain.catalogue.load()?
    };
    let example = if let Some(case) = catalogue.case(&explain.id) {
        explain_case(case, &catalogue, out)?;
        Some((case, None))
    } else if let Some(requirement) = catalogue.requirements.get(&explain.id) {
        explain_requirement(requirement, &catalogue, out)?;
        let focus = Focus::on(requirement, &catalogue);
        focus.case(&catalogue).map(|case| (case, Some(focus)))
    } else {
        named::explain(&explain.id, &catalogue, out)?;
        None
    };
    if let Some((case, focus)) = example.filter(|_| explain.with_example) {
        example::write(case, focus.as_ref(), &catalogue, out).await?;
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
        let level = level(requirement);
        writeln!(out, "  {} ({level}): {}", requirement.id, requirement.statement)?;
        if let Some(url) = section_url(requirement) {
            writeln!(out, "    {url}")?;
        }
    }
    explain_conditions(case, out)?;
    if let Some(profile) = case.profile {
        writeln!(out, "Profile: {profile}")?;
    }
    if !case.lets.is_empty() {
        writeln!(out, "\nNamed expressions:")?;
        for named in &case.lets {
            writeln!(out, "  {} = {}", named.name, named.text)?;
        }
    }
    writeln!(out, "\nSteps:")?;
    steps::write(&case.steps, 1, out)?;
    if !case.catches.is_empty() {
        writeln!(out, "\nCatches these faults of the reference server:")?;
        case.catches.iter().try_for_each(|name| list_fault(name, out))?;
    }
    writeln!(out, "\nFile: {}", case.file)?;
    Ok(())
}

/// Prints the steps of a case and their checks.
pub(super) fn write_steps(case: &Case, out: &mut dyn Write) -> Result<(), Error> {
    steps::write(&case.steps, 0, out)
}

fn explain_profile(
    profile: Profile,
    catalogue: &Catalogue,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let place = Profile::ALL.iter().position(|one| *one == profile).map_or(0, |index| index + 1);
    writeln!(out, "{profile} (profile {place} of {})", Profile::ALL.len())?;
    writeln!(out, "{}", profile.summary())?;
    writeln!(out, "\nRun it: kubeproof run --profile {profile}")?;
    writeln!(out, "\nCases:")?;
    for case in catalogue.cases_of(profile) {
        writeln!(out, "  {} ({}): {}", case.id, case.level, case.summary)?;
    }
    Ok(())
}

/// Prints the editions, subjects, protocols and capabilities of a case.
fn explain_conditions(case: &Case, out: &mut dyn Write) -> Result<(), Error> {
    if case.editions.len() < Edition::ALL.len() {
        let editions: Vec<_> = case.editions.iter().map(Edition::to_string).collect();
        writeln!(out, "\nEditions: {}", editions.join(", "))?;
    }
    let subjects = case.subject.as_ref().map_or("no subject".to_owned(), describe_subjects);
    writeln!(out, "\nRuns on: {subjects}")?;
    if !case.protocols.is_empty() {
        let protocols: Vec<_> = case.protocols.iter().map(ToString::to_string).collect();
        writeln!(out, "Over: {}", protocols.join(", "))?;
    }
    if !case.needs.is_empty() {
        let needs: Vec<_> = case.needs.iter().map(|need| capability_name(*need)).collect();
        writeln!(out, "Needs: {}", needs.join(", "))?;
    }
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
    if let Some(url) = section_url(requirement) {
        writeln!(out, "  {url}")?;
    }
    writeln!(out, "Testable by: {}", describe::serialized_name(&requirement.testability))?;
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
        writeln!(out, "Permitted: {legal}")?;
    }
    if let Some(without) = &requirement.without {
        writeln!(
            out,
            "\nNo case ({}): {}",
            describe::serialized_name(&without.kind),
            without.reason
        )?;
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
        faults.into_iter().try_for_each(|name| list_fault(name, out))?;
    }
    Ok(())
}

/// Returns the text of each edition. Editions with the same text are combined.
fn by_edition(requirement: &Requirement) -> Vec<(String, &str)> {
    let mut texts: Vec<(String, &str)> = Vec::new();
    for edition in Edition::ALL {
        let text = requirement.text_of(edition).unwrap_or("no such rule");
        match texts.last_mut() {
            Some((editions, last)) if *last == text => {
                editions.push_str(", ");
                editions.push_str(&edition.to_string());
            }
            _ => texts.push((edition.to_string(), text)),
        }
    }
    texts
}

fn list_fault(name: &str, out: &mut dyn Write) -> Result<(), Error> {
    let summary = Fault::from_name(name).map(|fault| format!(": {}", fault.summary()));
    Ok(writeln!(out, "  {name}{}", summary.unwrap_or_default())?)
}

fn section_url(requirement: &Requirement) -> Option<String> {
    report_files::requirement(requirement).section_url()
}

fn level(requirement: &Requirement) -> String {
    let implied = if requirement.implied { ", implied" } else { "" };
    format!("{}{implied}", requirement.level)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(print: impl FnOnce(&mut dyn Write) -> Result<(), Error>) -> String {
        let mut out = Vec::new();
        print(&mut out).expect("written");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn every_case_is_explained_with_its_steps() {
        let catalogue = Catalogue::embedded().expect("valid files");
        for case in &catalogue.cases {
            let text = printed(|out| explain_case(case, &catalogue, out));
            assert!(text.starts_with(&format!("{} (", case.id)), "{text}");
            assert!(text.contains("\nSteps:\n  "), "{text}");
            assert!(text.ends_with(&format!("\nFile: {}\n", case.file)), "{text}");
        }
    }

    #[test]
    fn every_requirement_is_explained_with_its_cases() {
        let catalogue = Catalogue::embedded().expect("valid files");
        for requirement in &catalogue.requirements {
            let text = printed(|out| explain_requirement(requirement, &catalogue, out));
            assert!(text.starts_with(&format!("{} (", requirement.id)), "{text}");
            assert!(text.contains("\nCases:\n  ") || text.contains("\nNo case ("), "{text}");
        }
    }
}
