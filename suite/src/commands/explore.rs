//! `kubeproof explore`: generates objects from schemas, and checks properties of each resource.

use std::io::{self, Write};
use std::path::Path;

use kubeproof_cases::plural;
use kubeproof_harness::generated::explore::{ExploreReport, Failure, case_file, explore, text};
use kubeproof_harness::transport::Client;

use super::interruptible;
use super::run::target::RunTarget;
use crate::args::high;
use crate::error::Error;
use crate::exit_code::Exit;

pub(super) async fn run(options: high::Explore, out: &mut dyn Write) -> Result<Exit, Error> {
    let high::Explore { target, catalogue, options, limits, save: file } = options;
    let catalogue = catalogue.load()?;
    let target = RunTarget::open(target).await?;
    let client = Client::new(&target.config, limits)?.within(options.run.write_policy());
    writeln!(out, "exploration of {}, seed {}", target.config.display_url(), options.run.seed)?;
    out.flush()?;
    let run = interruptible(|interrupt| async move {
        let report = explore(&catalogue, &client, &options, &interrupt).await;
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
        save(file.as_deref(), failure)?;
        return Ok(Exit::FAILURES);
    }
    Ok(if is_interrupted { Exit::INTERRUPTED } else { Exit::CONFORMANT })
}

fn print(report: &ExploreReport, out: &mut dyn Write) -> Result<(), Error> {
    let ExploreReport { subjects, checks, discarded, undecided, requests, .. } = report;
    writeln!(
        out,
        "{}: {}, {discarded} discarded, {undecided} undecided, {}",
        subjects.join(", "),
        plural(*checks, "check"),
        plural(*requests, "request"),
    )?;
    if report.failure.is_none() {
        writeln!(out, "no violation")?;
    }
    Ok(())
}

fn save(file: Option<&Path>, failure: &Failure) -> Result<(), Error> {
    let Some(path) = file else { return Ok(()) };
    let failed = |source| Error::Write { path: path.to_owned(), source };
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory).map_err(failed)?;
    }
    std::fs::write(path, case_file(failure)).map_err(failed)
}
