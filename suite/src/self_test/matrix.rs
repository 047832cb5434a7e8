//! The matrix of faults, requirements and cases, and the consistency of its data.
//!
//! A case that catches a fault proves little by itself, because a server with only wrong responses
//! fails every case. `cases/data/faults.yaml` therefore lists the requirements that each fault
//! breaks, and a case may list a fault only if they share a requirement. This module checks the
//! data without a server. [`super::faults`] runs the cases.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use kubeproof_cases::Catalogue;
use kubeproof_cases::case::Case;
use kubeproof_reference_server::Fault;

use super::faults::Finding;

/// Returns the inconsistencies of the case files and `cases/data/faults.yaml`.
pub fn check(catalogue: &Catalogue) -> BTreeSet<Finding> {
    let mut findings = BTreeSet::new();
    let mut proven = BTreeSet::new();
    for case in &catalogue.cases {
        let id = || case.id.clone();
        if case.catches.is_empty() {
            findings.insert(Finding::CatchesNothing(id()));
        }
        for name in &case.catches {
            let Some(fault) = Fault::from_name(name) else {
                findings.insert(Finding::Unknown { case: id(), fault: name.clone() });
                continue;
            };
            let shared = shared_requirements(catalogue, case, name);
            if shared.is_empty() {
                findings.insert(Finding::Unrelated { case: id(), fault: fault.name() });
            }
            proven.extend(shared);
        }
    }
    let breaks_nothing = |fault: &&'static str| catalogue.breakage.of(fault).is_empty();
    findings
        .extend(Fault::all().map(Fault::name).filter(breaks_nothing).map(Finding::BreaksNothing));
    let named: BTreeSet<&str> =
        catalogue.cases.iter().flat_map(|case| &case.requirements).map(String::as_str).collect();
    findings.extend(named.difference(&proven).map(|id| Finding::Unproven((*id).to_owned())));
    findings
}

/// Returns the requirements of a case that a fault breaks.
fn shared_requirements<'a>(catalogue: &'a Catalogue, case: &Case, fault: &str) -> Vec<&'a str> {
    let broken = catalogue.breakage.of(fault).iter();
    broken.filter(|broken| case.requirements.contains(broken)).map(String::as_str).collect()
}

/// Renders the matrix as Markdown: a table by fault, by requirement, and by case.
pub fn render(catalogue: &Catalogue) -> String {
    let mut catchers: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut breakers: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for case in &catalogue.cases {
        for fault in &case.catches {
            catchers.entry(fault).or_default().push(&case.id);
            for requirement in shared_requirements(catalogue, case, fault) {
                breakers.entry(requirement).or_default().insert(fault);
            }
        }
    }
    let none = Vec::new();
    let faults = Fault::all().map(|fault| {
        let name = fault.name();
        let broken = catalogue.breakage.of(name);
        [
            code([name]),
            cell(fault.summary()),
            code(broken),
            code(catchers.get(name).unwrap_or(&none)),
        ]
    });
    let requirements = catalogue.requirements.iter().filter_map(|requirement| {
        let faults = breakers.get(requirement.id.as_str())?;
        Some([code([&requirement.id]), cell(&requirement.statement), code(faults)])
    });
    let cases = catalogue
        .cases
        .iter()
        .map(|case| [code([&case.id]), cell(&case.summary), code(&case.catches)]);
    let mut text = HEAD.to_owned();
    table(&mut text, "By fault", ["fault", "behaviour", "breaks", "caught by"], faults);
    table(&mut text, "By requirement", ["requirement", "statement", "broken by"], requirements);
    table(&mut text, "By case", ["case", "behaviour of a correct server", "catches"], cases);
    text
}

const HEAD: &str = "\
# Faults and the cases that catch them

`kubeproof self-test faults` proves each line: it enables each fault, and every case listed beside
the fault must fail. `cases/data/faults.yaml` lists the requirements that a fault breaks.
`kubeproof coverage` shows the requirements without cases.
";

fn table<const N: usize>(
    text: &mut String,
    title: &str,
    headings: [&str; N],
    rows: impl Iterator<Item = [String; N]>,
) {
    // Writing to a string cannot fail.
    let _ = write!(text, "\n## {title}\n\n| {} |\n|{}\n", headings.join(" | "), " --- |".repeat(N));
    for row in rows {
        let _ = writeln!(text, "| {} |", row.join(" | "));
    }
}

/// Formats names as code.
fn code<T: AsRef<str>>(names: impl IntoIterator<Item = T>) -> String {
    let names: Vec<String> = names.into_iter().map(|name| format!("`{}`", name.as_ref())).collect();
    names.join(" ")
}

/// Escapes a sentence for a table cell.
fn cell(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").replace('|', "\\|").replace('*', "\\*").replace('<', "&lt;")
}
