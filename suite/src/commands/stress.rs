//! `kubeproof stress`: records the history of concurrent clients, and checks it.

use std::io::Write;

use kubeproof_cases::plural;
use kubeproof_harness::generated::stress::{StressReport, stress, svg, text};

use super::generated::{Ending, Setup, finish, start};
use crate::args::high;
use crate::error::Error;
use crate::exit_code::Exit;

pub(super) async fn run(options: high::Stress, out: &mut dyn Write) -> Result<Exit, Error> {
    let high::Stress { target, catalogue, options, limits, svg: file } = options;
    let catalogue = catalogue.load()?;
    let setup = Setup { title: "stress", target, limits, options: options.run.clone() };
    let stressed = start(setup, out, |client, interrupt| async move {
        stress(&catalogue, &client, &options, &interrupt).await
    });
    let Some((report, is_interrupted)) = stressed.await? else { return Ok(Exit::INTERRUPTED) };
    let ending = Ending {
        notices: &report.notices,
        summary: summary(&report),
        violation: report.failure.as_ref().map(text),
        is_interrupted,
    };
    let exit = finish(&ending, out)?;
    if let (Some(failure), Some(path)) = (&report.failure, file) {
        let failed = |source| Error::Write { path: path.clone(), source };
        std::fs::write(&path, svg(failure)).map_err(failed)?;
    }
    Ok(exit)
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
