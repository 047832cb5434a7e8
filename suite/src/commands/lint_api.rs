//! `kubeproof lint-api`: checks schemas in files against the API design rules.
//!
//! It judges the cases that consist of design rules only, each on every resource of the files.
//! Verdicts, known failures, reports and exit codes are the same as those of a run.

mod files;

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use jiff::{Timestamp, Zoned};
use kubeproof_cases::Catalogue;
use kubeproof_cases::case::{Action, Case};
use kubeproof_harness::event::{CaseResult, Event, RunFinished, RunStarted, Target, Verdict};
use kubeproof_harness::plan::EntryUsage;
use kubeproof_harness::schema::Manifest;
use kubeproof_reports::console::{Console, Live};
use kubeproof_reports::redact::Redactor;
use kubeproof_reports::{Finished, Report, Reports};

use super::{outcome, report_files};
use crate::args::high::{CaseSelection, LintApi};
use crate::error::Error;
use crate::exit_code::Exit;

pub(super) fn lint_api(mut options: LintApi) -> Result<Exit, Error> {
    let started = (Timestamp::now(), Instant::now());
    let catalogue = options.catalogue.load()?;
    let cases = schema_cases(&options.cases, &catalogue)?;
    limit_known_failures(&mut options, &catalogue);
    let options = &options;
    let manifests = files::read_all(&options.files)?;
    let results = judge(options, &cases, &manifests)?;
    let first = results.first().ok_or(Error::NothingSelected)?;
    let reports = open_reports(options, &catalogue)?;
    let finished = report(options, &results, catalogue.digest(), reports, started);
    let exit = outcome::exit_of_run(&finished.document, &finished.errors, options.strict);
    if results.iter().all(|result| result.verdict == Verdict::Skip) {
        return Err(Error::AllSkipped(first.reason.clone()));
    }
    match &options.known_failures {
        Some(list) if options.update_known_failures => {
            outcome::update_known_failures(&results, list, options.strict)
        }
        _ => Ok(exit),
    }
}

fn limit_known_failures(options: &mut LintApi, catalogue: &Catalogue) {
    let LintApi { known_failures, cases: CaseSelection { selection, edition }, .. } = options;
    if let Some(list) = known_failures {
        let is_judged = |case: &&Case| needs_only_schemas(case) && case.is_judged_by(*edition);
        let cases = catalogue.cases.iter().filter(is_judged);
        list.limit_to(&cases, |case| selection.takes_whole(case));
    }
}

fn needs_only_schemas(case: &Case) -> bool {
    case.steps.iter().all(|step| matches!(step.action, Action::Schema(_)))
}

/// Returns the selected cases that need schemas only.
fn schema_cases(cases: &CaseSelection, catalogue: &Catalogue) -> Result<Vec<Case>, Error> {
    let of_schemas = |case: &&Case| needs_only_schemas(case);
    let all: Vec<Case> = catalogue.cases.iter().filter(of_schemas).cloned().collect();
    let CaseSelection { selection, edition } = cases;
    selection.check(&all.iter().map(|case| case.id.clone()).collect::<Vec<_>>())?;
    let is_selected = |case: &Case| selection.takes_case(case) && case.is_judged_by(*edition);
    Ok(all.into_iter().filter(is_selected).collect())
}

/// Judges each case on each resource of the files.
fn judge(
    lint: &LintApi,
    cases: &[Case],
    manifests: &[Manifest],
) -> Result<Vec<Arc<CaseResult>>, Error> {
    let of_manifest =
        |manifest| Manifest::subjects(manifest).into_iter().map(move |s| (manifest, s));
    let subjects: Vec<(&Manifest, String)> = manifests.iter().flat_map(of_manifest).collect();
    if let Some(list) = &lint.known_failures {
        let ids = cases.iter().map(|case| case.id.as_str());
        list.check(&ids, &subjects.iter().map(|(_, subject)| subject.as_str()))?;
    }
    let today = Zoned::now().date();
    let CaseSelection { selection, edition } = &lint.cases;
    let mut results = Vec::new();
    for case in cases {
        let selected = subjects.iter().filter(|(_, subject)| selection.takes(&case.id, subject));
        for (manifest, subject) in selected {
            if let Some(mut result) = manifest.judge(case, subject, *edition, lint.letter) {
                let known = lint.known_failures.as_ref();
                result.known = known.and_then(|list| list.judge(&result, today, lint.strict));
                results.push(Arc::new(result));
            }
        }
    }
    Ok(results)
}

/// Passes the results to the reports as the events of a run.
fn report(
    lint: &LintApi,
    results: &[Arc<CaseResult>],
    catalogue_digest: &str,
    reports: Vec<Box<dyn Report>>,
    (started_at, started): (Timestamp, Instant),
) -> Finished {
    let mut reports = Reports::new(Redactor::default(), reports);
    reports.event(&Event::RunStarted(RunStarted {
        target: Target { server: describe_files(&lint.files), ..Target::default() },
        edition: lint.cases.edition,
        letter: lint.letter,
        seed: 0,
        catalogue_digest: catalogue_digest.to_owned(),
        planned: results.len(),
        shard: None,
        selection: lint.cases.selection.to_string(),
        started_at,
        command: lint.command.clone(),
    }));
    let mut summary = BTreeMap::new();
    for result in results {
        *summary.entry(result.verdict).or_default() += 1;
        reports.event(&Event::CaseFinished(Arc::clone(result)));
    }
    let finished = RunFinished {
        summary,
        duration: started.elapsed(),
        interrupted: false,
        stopped: None,
        stale_entries: stale_entries(lint, results),
    };
    reports.event(&Event::RunFinished(finished));
    reports.finish()
}

/// Returns the entries of the list of known failures that must change.
fn stale_entries(lint: &LintApi, results: &[Arc<CaseResult>]) -> Vec<String> {
    let Some(known) = &lint.known_failures else { return Vec::new() };
    let mut usage = EntryUsage::default();
    for judged in results {
        known.record(judged, &mut usage);
    }
    known.stale(&usage, Zoned::now().date(), true)
}

fn open_reports(lint: &LintApi, catalogue: &Catalogue) -> Result<Vec<Box<dyn Report>>, Error> {
    let requirements = report_files::requirements(catalogue);
    let console = lint.output.console.clone();
    let console = Console::new(io::stdout(), Live::none(), console, &requirements);
    let mut reports: Vec<Box<dyn Report>> = vec![Box::new(console)];
    reports.extend(report_files::open(&lint.output.files, &requirements)?);
    if lint.github {
        reports.push(Box::new(report_files::github(&requirements)));
    }
    Ok(reports)
}

fn describe_files(files: &[PathBuf]) -> String {
    match files {
        [one] => one.display().to_string(),
        many => format!("{} and {} more", many[0].display(), many.len() - 1),
    }
}
