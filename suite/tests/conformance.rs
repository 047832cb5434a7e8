//! Runs every case against the reference server, with one trial per case and subject.
//!
//! A first server is used to plan the trials. Each trial then starts its own server, so that
//! `cargo test conformance -- watch/` runs only the selected cases.

use std::process::ExitCode;
use std::sync::Arc;

use kubeproof::self_test::{Bundled, CASE_TIMEOUT, SHORT_HISTORY, SelfTestError, explain};
use kubeproof_cases::Catalogue;
use kubeproof_harness::event::Verdict;
use kubeproof_harness::plan::{PlannedRun, RunOptions, Selection};
use kubeproof_reference_server::Config;
use libtest_mimic::{Arguments, Failed, Trial};
use tokio::runtime::Runtime;

fn main() -> anyhow::Result<ExitCode> {
    let arguments = Arguments::from_args();
    let catalogue =
        Arc::new(Catalogue::embedded().map_err(|diagnostics| anyhow::anyhow!("{diagnostics}"))?);
    let runtime = Arc::new(Runtime::new()?);
    let planned = runtime.block_on(async {
        let options = RunOptions { dry_run: true, ..RunOptions::default() };
        server().await?.plan(&catalogue, &options).await
    })?;
    let trials = planned.runs.iter().map(|planned| trial(planned, &catalogue, &runtime)).collect();
    Ok(libtest_mimic::run(&arguments, trials).exit_code())
}

fn trial(planned: &PlannedRun, catalogue: &Arc<Catalogue>, runtime: &Arc<Runtime>) -> Trial {
    let id = planned.case.id.clone();
    let subject = planned.subject_name();
    let name = if subject.is_empty() { id.clone() } else { format!("{id}@{subject}") };
    let (catalogue, runtime) = (Arc::clone(catalogue), Arc::clone(runtime));
    let pattern = name.clone();
    Trial::test(name, move || runtime.block_on(judge(&catalogue, &pattern)))
        // A trial that returns early would count as passed, so skips are ignored trials.
        .with_ignored_flag(planned.skip.is_some())
}

async fn judge(catalogue: &Catalogue, pattern: &str) -> Result<(), Failed> {
    let server = server().await?;
    let selection = Selection { only: vec![pattern.parse()?], ..Selection::default() };
    let options = RunOptions { selection, case_timeout: CASE_TIMEOUT, ..RunOptions::default() };
    let results = server.run(catalogue, &options).await?;
    server.stop().await;
    let [result] = results.as_slice() else {
        return Err(format!("{pattern} planned {} results, expected one", results.len()).into());
    };
    if result.verdict > Verdict::Deviation || result.verdict == Verdict::Skip {
        return Err(explain(result).into());
    }
    Ok(())
}

async fn server() -> Result<Bundled, SelfTestError> {
    Bundled::start(Config { history: SHORT_HISTORY, ..Config::default() }).await
}
