//! `kubeproof explore`: generates objects from schemas, and checks properties of each resource.

use std::io::Write;
use std::path::Path;

use kubeproof_cases::plural;
use kubeproof_harness::generated::explore::{ExploreReport, Failure, case_file, explore, text};

use super::generated::{Ending, Setup, finish, start};
use crate::args::high;
use crate::error::Error;
use crate::exit_code::Exit;

pub(super) async fn run(options: high::Explore, out: &mut dyn Write) -> Result<Exit, Error> {
    let high::Explore { target, catalogue, options, limits, save: file } = options;
    let catalogue = catalogue.load()?;
    let setup = Setup { title: "exploration", target, limits, options: options.run.clone() };
    let explored = start(setup, out, |client, interrupt| async move {
        explore(&catalogue, &client, &options, &interrupt).await
    });
    let Some((report, is_interrupted)) = explored.await? else { return Ok(Exit::INTERRUPTED) };
    let ending = Ending {
        notices: &report.notices,
        summary: summary(&report),
        violation: report.failure.as_ref().map(text),
        is_interrupted,
    };
    let exit = finish(&ending, out)?;
    if let (Some(failure), Some(path)) = (&report.failure, file) {
        save(&path, failure)?;
    }
    Ok(exit)
}

fn summary(report: &ExploreReport) -> String {
    let ExploreReport { subjects, checks, discarded, undecided, requests, .. } = report;
    format!(
        "{}: {}, {discarded} discarded, {undecided} undecided, {}",
        subjects.join(", "),
        plural(*checks, "check"),
        plural(*requests, "request"),
    )
}

fn save(path: &Path, failure: &Failure) -> Result<(), Error> {
    let failed = |source| Error::Write { path: path.to_owned(), source };
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory).map_err(failed)?;
    }
    std::fs::write(path, case_file(failure)).map_err(failed)
}
