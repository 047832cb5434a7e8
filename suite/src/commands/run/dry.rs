//! What a run would do.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

use kubeproof_harness::plan::{Home, Plan, PlannedRun};

use crate::args::low;
use crate::error::Error;
use crate::exit_code::Exit;

/// Prints the plan.
pub(super) fn tell(run: &low::Run, plan: &Plan, seed: u64, out: &mut dyn Write) -> Result<Exit, Error> {
    let skipped = plan.runs.iter().filter(|run| run.skip.is_some()).count();
    let version = plan.target.version.as_deref().map(|v| format!(" ({v})")).unwrap_or_default();
    writeln!(out, "dry run against {}{version}, seed {seed}", plan.target.server)?;
    writeln!(out, "{} results: {} would run, {skipped} skipped", plan.runs.len(), plan.runs.len() - skipped)?;
    if run.reports.files.named().next().is_some() || run.reports.trace.is_some() {
        writeln!(out, "no reports are written")?;
    }
    if !run.reports.quiet {
        running(plan, out)?;
        skips(plan, out)?;
        objects(plan, out)?;
    }
    if plan.runs_nothing() { Err(Error::AllSkipped(reasons(plan))) } else { Ok(Exit::CONFORMANT) }
}

/// Why all of it is skipped: each reason once, with the number of results that it is true of.
pub(super) fn reasons(plan: &Plan) -> String {
    let mut reasons: Vec<(usize, &str)> =
        by_reason(plan).into_iter().map(|(reason, runs)| (runs.len(), reason)).collect();
    reasons.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    reasons.iter().map(|(count, reason)| format!("{reason} ({count})")).collect::<Vec<_>>().join("; ")
}

fn running(plan: &Plan, out: &mut dyn Write) -> Result<(), Error> {
    let mut cases: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for run in plan.runs.iter().filter(|run| run.skip.is_none()) {
        cases.entry(&run.case.id).or_default().insert(run.subject_name());
    }
    if !cases.is_empty() {
        writeln!(out, "\nwould run:")?;
    }
    for (id, subjects) in cases {
        let subjects = subjects.into_iter().collect::<Vec<_>>().join(", ");
        writeln!(out, "{}", format!("  {id}  {subjects}").trim_end())?;
    }
    Ok(())
}

fn skips(plan: &Plan, out: &mut dyn Write) -> Result<(), Error> {
    let reasons = by_reason(plan);
    if !reasons.is_empty() {
        writeln!(out, "\nwould be skipped:")?;
    }
    for (reason, runs) in reasons {
        writeln!(out, "  {reason}:")?;
        let titles: BTreeSet<String> = runs.into_iter().map(title).collect();
        for title in titles {
            writeln!(out, "    {title}")?;
        }
    }
    for (name, reason) in &plan.absent {
        writeln!(out, "no case runs on {name}: {reason}")?;
    }
    Ok(())
}

fn objects(plan: &Plan, out: &mut dyn Write) -> Result<(), Error> {
    let objects = plan.objects();
    if objects.is_empty() {
        writeln!(out, "\nwould create nothing")?;
        return Ok(());
    }
    let place = match &plan.home {
        Home::Own(name) => format!("in the namespace {name}, which is removed with all that is in it"),
        Home::Borrowed(name) => format!("in the namespace {name}, which stays"),
        Home::Nowhere(reason) => format!("in no namespace: {reason}"),
    };
    writeln!(out, "\nwould create, and remove in the end, {place}")?;
    writeln!(out, "(a run has names of its own: {} is another in the next)", plan.run)?;
    for object in objects {
        let case = if object.case.is_empty() { String::new() } else { format!("  {}", object.case) };
        writeln!(out, "  {}/{}{case}", object.collection, object.name)?;
    }
    Ok(())
}

fn by_reason(plan: &Plan) -> BTreeMap<&str, Vec<&PlannedRun>> {
    let mut reasons: BTreeMap<&str, Vec<&PlannedRun>> = BTreeMap::new();
    for run in &plan.runs {
        if let Some(reason) = &run.skip {
            reasons.entry(reason).or_default().push(run);
        }
    }
    reasons
}

fn title(run: &PlannedRun) -> String {
    let subject = run.subject_name();
    if subject.is_empty() { run.case.id.clone() } else { format!("{} @ {subject}", run.case.id) }
}
