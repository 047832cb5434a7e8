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
    let setup = Setup { title: "exploration", target, limits, options: options.run.clone(), file };
    let work = async |client, interrupt| {
        let report = explore(&catalogue, &client, &options, &interrupt).await?;
        let violation = report.failure.as_ref();
        let violation = violation.map(|one| Found { text: text(one), file: case_file(one) });
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
