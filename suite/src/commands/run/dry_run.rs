//! `--dry-run`: prints the plan of a run.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

use kubeproof_cases::plural;
use kubeproof_harness::plan::{Plan, PlannedRun, RunNamespace};
use kubeproof_reports::console::Verbosity;

use crate::args::high::RunReports;
use crate::error::Error;
use crate::exit_code::Exit;

/// The options of a dry run.
pub(super) struct DryRun {
    seed: u64,
    is_quiet: bool,
    /// The user asked for reports, which a dry run does not write.
    has_reports: bool,
}

impl DryRun {
    pub(super) fn new(reports: &RunReports, seed: u64) -> Self {
        Self {
            seed,
            is_quiet: reports.console.verbosity == Verbosity::Quiet,
            has_reports: !reports.files.is_empty() || reports.trace.is_some(),
        }
    }

    /// Prints the plan.
    pub(super) fn print(&self, plan: &Plan, out: &mut dyn Write) -> Result<Exit, Error> {
        let skipped = plan.runs.iter().filter(|run| run.skip.is_some()).count();
        let running = plan.runs.len() - skipped;
        let version = plan.target.version.as_deref();
        let version = version.map(|version| format!(" ({version})")).unwrap_or_default();
        writeln!(out, "dry run against {}{version}, seed {}", plan.target.name(), self.seed)?;
        let results = plural(plan.runs.len(), "result");
        writeln!(out, "{results}: {running} would run, {skipped} skipped")?;
        if self.has_reports {
            writeln!(out, "a dry run writes no reports")?;
        }
        if !self.is_quiet {
            print_cases(plan, out)?;
            print_skips(plan, out)?;
            print_objects(plan, out)?;
        }
        if plan.runs_nothing() {
            Err(Error::AllSkipped(skip_reasons(plan)))
        } else {
            Ok(Exit::CONFORMANT)
        }
    }
}

/// Returns each reason for skips with its number of results, most frequent first.
pub(super) fn skip_reasons(plan: &Plan) -> String {
    let reasons = runs_by_reason(plan).into_iter();
    let mut reasons: Vec<_> = reasons.map(|(reason, runs)| (runs.len(), reason)).collect();
    reasons.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    let reasons = reasons.iter().map(|(count, reason)| format!("{reason} ({count})"));
    reasons.collect::<Vec<_>>().join("; ")
}

fn print_cases(plan: &Plan, out: &mut dyn Write) -> Result<(), Error> {
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

fn print_skips(plan: &Plan, out: &mut dyn Write) -> Result<(), Error> {
    let reasons = runs_by_reason(plan);
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

fn print_objects(plan: &Plan, out: &mut dyn Write) -> Result<(), Error> {
    let objects = plan.objects();
    if objects.is_empty() {
        writeln!(out, "\nwould create nothing")?;
        return Ok(());
    }
    let place = match &plan.namespace {
        RunNamespace::Created(name) => format!("in the namespace {name}, which is removed too"),
        RunNamespace::Existing(name) => format!("in the existing namespace {name}"),
        RunNamespace::ReadOnly { name, reason } => {
            format!("in the existing namespace {name}, which cases only read: {reason}")
        }
    };
    writeln!(out, "\nwould create, and remove at the end, {place}")?;
    writeln!(out, "(names contain {}, which differs in each run)", plan.run)?;
    for object in objects {
        let case = match object.case.as_str() {
            "" => String::new(),
            case => format!("  {case}"),
        };
        writeln!(out, "  {}/{}{case}", object.collection, object.name)?;
    }
    Ok(())
}

fn runs_by_reason(plan: &Plan) -> BTreeMap<String, Vec<&PlannedRun>> {
    let mut reasons: BTreeMap<String, Vec<&PlannedRun>> = BTreeMap::new();
    for run in &plan.runs {
        if let Some(reason) = &run.skip {
            reasons.entry(reason.to_string()).or_default().push(run);
        }
    }
    reasons
}

fn title(run: &PlannedRun) -> String {
    let subject = run.subject_name();
    if subject.is_empty() { run.case.id.clone() } else { format!("{} @ {subject}", run.case.id) }
}
