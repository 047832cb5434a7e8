//! `kubeproof lint-api`: design rules over schemas in files.
//!
//! The cases that ask for nothing but design rules are judged, each on every resource of the files; from there on all is as in a
//! run: the verdicts, the list of known failures, the reports and the exit codes.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use jiff::Zoned;
use kubeproof_cases::Catalogue;
use kubeproof_cases::case::{Case, Step};
use kubeproof_harness::event::{CaseResult, Event, RunFinished, RunStarted, Target, Verdict};
use kubeproof_harness::schema::{Manifest, ManifestError, read};
use kubeproof_reports::console::{Console, Live, Options};
use kubeproof_reports::github::Github;
use kubeproof_reports::paint::Paint;
use kubeproof_reports::redact::Redactor;
use kubeproof_reports::{Report, Reports};

use super::run;
use crate::args::{high, low};
use crate::error::Error;
use crate::exit_code::Exit;

/// What files that hold schemas end in.
const ENDINGS: [&str; 3] = ["yaml", "yml", "json"];

/// Checks files.
pub(super) fn lint_api(asked: &low::LintApi, color: low::Color) -> Result<Exit, Error> {
    let begun = Instant::now();
    let catalogue = high::catalogue(&asked.cases.directories)?;
    let cases = selected(asked, &catalogue)?;
    let manifests = manifests(&asked.files)?;
    let list =
        high::known_failures(asked.judging.known_failures.as_deref(), asked.judging.update_known_failures)?;
    let subjects: Vec<(&Manifest, String)> = manifests
        .iter()
        .flat_map(|manifest| manifest.subjects().into_iter().map(move |subject| (manifest, subject)))
        .collect();
    if let Some(list) = &list {
        let ids = cases.iter().map(|case| case.id.as_str());
        list.check(&ids, &subjects.iter().map(|(_, subject)| subject.as_str()))?;
    }
    let mut reports = Reports::new(Redactor::default(), reports(asked, color, &catalogue)?);
    let today = Zoned::now().date();
    let edition = asked.cases.edition.into();
    let mut results: Vec<Arc<CaseResult>> = Vec::new();
    for (case, (manifest, subject)) in cases.iter().flat_map(|case| subjects.iter().map(move |on| (case, on)))
    {
        let taken = asked.cases.selection().takes(&case.id, subject);
        let Some(mut result) = manifest.judge(case, subject, edition, asked.judging.letter).filter(|_| taken)
        else {
            continue;
        };
        result.known = list.as_ref().and_then(|list| list.judge(&result, today, asked.judging.strict));
        results.push(Arc::new(result));
    }
    if results.is_empty() {
        return Err(Error::NothingSelected);
    }

    reports.event(&Event::RunStarted(RunStarted {
        target: Target { server: names(&asked.files), ..Target::default() },
        edition,
        letter: asked.judging.letter,
        seed: 0,
        catalogue_digest: catalogue.digest().to_owned(),
        planned: results.len(),
    }));
    let mut summary = BTreeMap::new();
    for result in &results {
        *summary.entry(result.verdict).or_default() += 1;
        reports.event(&Event::CaseFinished(Arc::clone(result)));
    }
    let (duration, interrupted) = (begun.elapsed(), false);
    reports.event(&Event::RunFinished(RunFinished { summary, duration, interrupted }));
    let told = reports.finish();
    let exit = run::judged(&told.document, &told.errors, asked.judging.strict);
    match (results.iter().find(|result| result.verdict != Verdict::Skip), list) {
        (None, _) => Err(Error::AllSkipped(results[0].reason.clone())),
        (Some(_), Some(list)) if asked.judging.update_known_failures => {
            run::updated(&results, &list, asked.judging.strict)
        }
        _ => Ok(exit),
    }
}

/// The cases that schemas alone can answer.
fn selected(asked: &low::LintApi, catalogue: &Catalogue) -> Result<Vec<Case>, Error> {
    let of_schemas = |case: &&Case| case.steps.iter().all(|step| matches!(step, Step::Schema(_)));
    let all: Vec<Case> = catalogue.cases.iter().filter(of_schemas).cloned().collect();
    let selection = asked.cases.selection();
    selection.check(&all)?;
    let edition = asked.cases.edition.into();
    let taken = |case: &Case| selection.takes_case(case) && case.is_judged_by(edition);
    Ok(all.into_iter().filter(taken).collect())
}

fn manifests(files: &[PathBuf]) -> Result<Vec<Manifest>, Error> {
    let mut found = Vec::new();
    for file in files {
        if file.as_os_str() == "-" {
            let mut text = String::new();
            io::stdin().read_to_string(&mut text).map_err(|source| unreadable(file, source))?;
            found.extend(read("stdin", &text)?);
        } else if file.is_dir() {
            let before = found.len();
            for path in inside(file)? {
                match load(&path) {
                    // A directory holds other things too.
                    Err(Error::Manifest(ManifestError::Nothing { .. })) => {}
                    manifests => found.extend(manifests?),
                }
            }
            if found.len() == before {
                return Err(Error::NothingToLint(file.clone()));
            }
        } else {
            found.extend(load(file)?);
        }
    }
    Ok(found)
}

fn load(path: &Path) -> Result<Vec<Manifest>, Error> {
    let text = fs::read_to_string(path).map_err(|source| unreadable(path, source))?;
    Ok(read(&path.to_string_lossy(), &text)?)
}

/// All files below a directory that may hold schemas, sorted. What is hidden, and what links lead to, is left out.
fn inside(directory: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut files = Vec::new();
    let mut open = vec![directory.to_owned()];
    while let Some(directory) = open.pop() {
        let entries = fs::read_dir(&directory).and_then(Iterator::collect::<Result<Vec<fs::DirEntry>, _>>);
        for entry in entries.map_err(|source| unreadable(&directory, source))? {
            let (path, ty) = (entry.path(), entry.file_type());
            let ty = ty.map_err(|source| unreadable(&path, source))?;
            let ending = path.extension().and_then(|ending| ending.to_str());
            if entry.file_name().to_string_lossy().starts_with('.') {
            } else if ty.is_dir() {
                open.push(path);
            } else if ty.is_file() && ending.is_some_and(|ending| ENDINGS.contains(&ending)) {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

fn unreadable(path: &Path, source: io::Error) -> Error {
    Error::Read { path: path.to_owned(), source }
}

fn reports(
    asked: &low::LintApi,
    color: low::Color,
    catalogue: &Catalogue,
) -> Result<Vec<Box<dyn Report>>, Error> {
    let requirements = high::requirements(catalogue);
    let output = &asked.output;
    let options = Options {
        verbosity: low::verbosity(output.quiet, output.verbose),
        paint: Paint::new(color.on_stdout()),
        command: String::new(),
        json: output.files.json.clone(),
        strict: asked.judging.strict,
    };
    let mut reports: Vec<Box<dyn Report>> =
        vec![Box::new(Console::new(io::stdout(), Live::none(), options, &requirements))];
    reports.extend(output.files.open(&requirements)?);
    if asked.github {
        reports.push(Box::new(Github::new(io::stdout())));
    }
    Ok(reports)
}

/// What was checked, for the head of the reports.
fn names(files: &[PathBuf]) -> String {
    match files {
        [one] => one.display().to_string(),
        many => format!("{} and {} more", many[0].display(), many.len() - 1),
    }
}
