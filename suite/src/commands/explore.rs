//! `kubeproof explore`: generates objects from schemas, and checks properties of each resource.

use std::io::Write;

use kubeproof_cases::plural;
use kubeproof_harness::generated::explore::{ExploreReport, case_file, explore, text};

use super::generated::{self, Found, Report, Setup};
use crate::args::high;
use crate::error::Error;
use crate::exit_code::Exit;

pub(super) async fn run(options: high::Explore, out: &mut dyn Write) -> Result<Exit, Error> {
    let high::Explore { target, catalogue, options, limits, save: file } = options;
    let catalogue = catalogue.load()?;
    let files = file.iter().cloned().collect();
    let setup = Setup { title: "exploration", target, limits, options: options.run.clone(), files };
    let work = async |client, interrupt| {
        let report = explore(&catalogue, &client, &options, &interrupt).await?;
        let violation = report.failure.as_ref().map(|failure| {
            let case = file.map(|path| (path, case_file(failure)));
            Found { text: text(failure), files: case.into_iter().collect() }
        });
        Ok(Report { summary: summary(&report), violation, notices: report.notices })
    };
    generated::run(setup, out, work).await
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
