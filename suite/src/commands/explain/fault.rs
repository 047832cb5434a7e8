//! Explains a fault of the reference server.

use std::io::Write;

use kubeproof_cases::Catalogue;
use kubeproof_cases::case::{Case, Edition};
use kubeproof_reference_server::Fault;

use crate::error::Error;

/// Maximum cases in the command that catches the fault.
const NAMED: usize = 4;

/// Prints what a fault does, the requirements that it breaks, the cases that catch it, and the
/// commands that show it.
pub(super) fn write(fault: Fault, catalogue: &Catalogue, out: &mut dyn Write) -> Result<(), Error> {
    writeln!(out, "{} (fault of the reference server)", fault.name())?;
    writeln!(out, "{}", fault.summary())?;
    let broken = catalogue.breakage.of(fault.name()).iter();
    let broken: Vec<_> = broken.filter_map(|id| catalogue.requirements.get(id)).collect();
    if !broken.is_empty() {
        writeln!(out, "\nBreaks these requirements:")?;
    }
    for requirement in broken {
        let level = super::level(requirement);
        writeln!(out, "  {} ({level}): {}", requirement.id, requirement.statement)?;
    }
    let catches = |case: &&Case| case.catches.iter().any(|name| name == fault.name());
    let cases: Vec<&Case> = catalogue.cases.iter().filter(catches).collect();
    if !cases.is_empty() {
        writeln!(out, "\nCases that catch it:")?;
    }
    for case in &cases {
        writeln!(out, "  {}: {}", case.id, case.summary)?;
    }
    write_commands(fault, &cases, out)
}

fn write_commands(fault: Fault, cases: &[&Case], out: &mut dyn Write) -> Result<(), Error> {
    writeln!(out, "\nTry it:")?;
    let tokens = "--token my-token --user-token user";
    let listen = "--listen 127.0.0.1:8001";
    writeln!(out, "  kubeproof serve {listen} {tokens} --fault {}", fault.name())?;
    let target = "--server http://127.0.0.1:8001 --token my-token --second-token user";
    let ids: Vec<&str> = cases.iter().take(NAMED).map(|case| case.id.as_str()).collect();
    let only = if ids.is_empty() { String::new() } else { format!(" --only {}", ids.join(" ")) };
    let is_of_head = |case: &&Case| case.is_judged_by(Edition::Head);
    let older = cases.first().filter(|_| !cases.iter().any(is_of_head));
    let edition = older.and_then(|case| case.editions.last());
    let edition = edition.map(|edition| format!(" --edition {edition}")).unwrap_or_default();
    Ok(writeln!(out, "  kubeproof run {target}{edition}{only}")?)
}
