//! One defect of a server does not decide the whole run. Each trial runs a third of the cases.
//! `kubeproof self-test degraded` runs all of them on the same servers.

use std::process::ExitCode;
use std::sync::Arc;

use kubeproof::self_test::degraded::{self, DEGRADED, Degraded};
use kubeproof::self_test::{Bundled, LONG_HISTORY};
use kubeproof_cases::Catalogue;
use kubeproof_harness::event::Verdict;
use kubeproof_harness::plan::{RunOptions, Selection};
use kubeproof_reference_server::Config;
use libtest_mimic::{Arguments, Failed, Trial};
use tokio::runtime::Runtime;

/// Concurrent trials without `--test-threads`. Two trials keep two cores busy, and a case with too
/// little time ends in an error.
const TRIALS_AT_ONCE: usize = 2;

/// Each trial runs one of this many cases.
const ONE_OF: usize = 3;

fn main() -> anyhow::Result<ExitCode> {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(TRIALS_AT_ONCE);
    let catalogue = Catalogue::embedded().map_err(|errors| anyhow::anyhow!("{errors}"))?;
    let catalogue = Arc::new(catalogue);
    let runtime = Arc::new(Runtime::new()?);
    let selection = part(&catalogue)?;
    let expected = runtime.block_on(degraded::expected(&catalogue, &selection))?;
    let mut trials: Vec<Trial> = Vec::new();
    for server in DEGRADED.iter().copied() {
        let (catalogue, runtime) = (Arc::clone(&catalogue), Arc::clone(&runtime));
        let selection = selection.clone();
        let test = move || runtime.block_on(judge(&catalogue, server, (expected, &selection)));
        trials.push(Trial::test(server.fault.name(), test));
    }
    let of_one_job = move || runtime.block_on(run_with_one_job(&catalogue));
    trials.push(Trial::test("one job is enough", of_one_job));
    Ok(libtest_mimic::run(&arguments, trials).exit_code())
}

/// Selects a part of the cases, with all that judge a prerequisite of others. Without those, the
/// others would report its defect.
fn part(catalogue: &Catalogue) -> anyhow::Result<Selection> {
    let cases = catalogue.cases.iter().enumerate();
    let chosen = cases.filter(|(place, case)| place % ONE_OF == 0 || case.provides.is_some());
    let only = chosen.map(|(_, case)| case.id.parse()).collect::<Result<_, _>>()?;
    Ok(Selection { only, ..Selection::default() })
}

async fn judge(
    catalogue: &Catalogue,
    server: Degraded,
    (expected, selection): (usize, &Selection),
) -> Result<(), Failed> {
    let row = degraded::row(catalogue, server, expected, selection).await?;
    let findings = row.findings();
    if findings.is_empty() { Ok(()) } else { Err(findings.join("\n").into()) }
}

/// The cases that judge prerequisites need a job, and must not wait for each other.
async fn run_with_one_job(catalogue: &Catalogue) -> Result<(), Failed> {
    let server = Bundled::start(Config { history: LONG_HISTORY, ..Config::default() }).await?;
    let selection = Selection { areas: vec!["get".to_owned()], ..Selection::default() };
    let options = RunOptions { selection, jobs: 1, ..RunOptions::default() };
    let results = server.run(catalogue, &options).await?;
    server.stop().await;
    if results.len() < 5 || results.iter().any(|result| result.verdict != Verdict::Pass) {
        return Err(format!("{} results, some of which do not pass", results.len()).into());
    }
    Ok(())
}
