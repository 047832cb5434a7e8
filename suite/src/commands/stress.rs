//! `kubeproof stress`: records the history of concurrent clients, and checks it.

use std::io::{self, Write};
use std::path::Path;

use kubeproof_cases::plural;
use kubeproof_harness::generated::stress::{Failure, StressReport, stress, svg, text};
use kubeproof_harness::transport::Client;

use super::interruptible;
use super::run::target::RunTarget;
use crate::args::high;
use crate::error::Error;
use crate::exit_code::Exit;

pub(super) async fn run(options: high::Stress, out: &mut dyn Write) -> Result<Exit, Error> {
    let high::Stress { target, catalogue, options, limits, svg: file } = options;
    let catalogue = catalogue.load()?;
    let target = RunTarget::open(target).await?;
    let client = Client::new(&target.config, limits)?.within(options.run.write_policy());
    writeln!(out, "stress of {}, seed {}", target.config.display_url(), options.run.seed)?;
    out.flush()?;
    let run = interruptible(|interrupt| async move {
        let report = stress(&catalogue, &client, &options, &interrupt).await;
        (report, interrupt.is_cancelled())
    });
    let Some((report, is_interrupted)) = run.await? else { return Ok(Exit::INTERRUPTED) };
    let report = report?;
    for notice in &report.notices {
        writeln!(io::stderr(), "note: {notice}")?;
    }
    print(&report, out)?;
    if let Some(failure) = &report.failure {
        write!(out, "{}", text(failure))?;
        write_svg(file.as_deref(), failure)?;
        return Ok(Exit::FAILURES);
    }
    Ok(if is_interrupted { Exit::INTERRUPTED } else { Exit::CONFORMANT })
}

fn print(report: &StressReport, out: &mut dyn Write) -> Result<(), Error> {
    let StressReport { subjects, acknowledged, unknown, .. } = report;
    writeln!(
        out,
        "{}: {}, {} ({acknowledged} acknowledged, {unknown} with an unknown outcome), {}, {}, {}",
        subjects.join(" and "),
        plural(report.rounds, "round"),
        plural(report.operations, "operation"),
        plural(report.watches, "watch").replace("watchs", "watches"),
        plural(report.events, "event"),
        plural(report.restarts, "restart"),
    )?;
    if report.failure.is_none() {
        writeln!(out, "no violation")?;
    }
    Ok(())
}

fn write_svg(file: Option<&Path>, failure: &Failure) -> Result<(), Error> {
    let Some(path) = file else { return Ok(()) };
    let failed = |source| Error::Write { path: path.to_owned(), source };
    std::fs::write(path, svg(failure)).map_err(failed)
}
