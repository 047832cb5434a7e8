//! `kubeproof stress`: records the history of concurrent clients, and checks it.

use std::io::Write;

use kubeproof_cases::plural;
use kubeproof_harness::generated::stress::{Failure, StressReport, json, stress, svg, text};

use super::generated::{self, Found, Report, Setup};
use crate::args::high;
use crate::error::Error;
use crate::exit_code::Exit;

pub(super) async fn run(options: high::Stress, out: &mut dyn Write) -> Result<Exit, Error> {
    let high::Stress { target, catalogue, options, limits, svg: timeline, json: data } = options;
    let catalogue = catalogue.load()?;
    let files = timeline.iter().chain(&data).cloned().collect();
    let setup = Setup { title: "stress", target, limits, options: options.run.clone(), files };
    let work = async |client, interrupt| {
        let report = stress(&catalogue, &client, &options, &interrupt).await?;
        let found = |failure: &Failure| {
            let timeline = timeline.map(|path| (path, svg(failure)));
            let data = data.map(|path| (path, json(failure, report.seed)));
            Found { text: text(failure), files: timeline.into_iter().chain(data).collect() }
        };
        let violation = report.failure.as_ref().map(found);
        Ok(Report { summary: summary(&report), violation, notices: report.notices })
    };
    generated::run(setup, out, work).await
}

fn summary(report: &StressReport) -> String {
    let StressReport { subjects, acknowledged, unknown, .. } = report;
    format!(
        "{}: {}, {} ({acknowledged} acknowledged, {unknown} with an unknown outcome), {}, {}, {}",
        subjects.join(" and "),
        plural(report.rounds, "round"),
        plural(report.operations, "operation"),
        plural(report.watches, "watch").replace("watchs", "watches"),
        plural(report.events, "event"),
        plural(report.restarts, "restart"),
    )
}
