//! Runs every case against the reference server, with one trial per case and subject.
//!
//! A first server is used to plan the trials. Each trial then starts its own server, so that
//! `cargo test conformance -- watch/` runs only the selected cases.

use std::process::ExitCode;
use std::sync::Arc;

use kubeproof::self_test::{
    Bundled, CASE_TIMEOUT, LONG_HISTORY, SHORT_HISTORY, SelfTestError, explain,
};
use kubeproof_cases::Catalogue;
use kubeproof_harness::event::Verdict;
use kubeproof_harness::plan::{PlannedRun, RunOptions, Selection};
use kubeproof_reference_server::{Config, KubernetesVersion};
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
    let cases = planned.runs.iter().map(|planned| trial(planned, &catalogue, &runtime));
    let older = KubernetesVersion::ALL.into_iter();
    let older = older.filter(|version| *version != KubernetesVersion::default());
    let trials = cases.chain(older.map(|version| whole_run(version, &catalogue, &runtime)));
    let trials = trials.collect();
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

/// Runs all cases against one server of an older version of Kubernetes.
fn whole_run(
    version: KubernetesVersion,
    catalogue: &Arc<Catalogue>,
    runtime: &Arc<Runtime>,
) -> Trial {
    let (catalogue, runtime) = (Arc::clone(catalogue), Arc::clone(runtime));
    Trial::test(format!("all cases on Kubernetes {version}"), move || {
        runtime.block_on(judge_version(&catalogue, version))
    })
}

async fn judge_version(catalogue: &Catalogue, version: KubernetesVersion) -> Result<(), Failed> {
    let config = Config { version, history: LONG_HISTORY, ..Config::default() };
    let server = Bundled::start(config).await?;
    let options = RunOptions { case_timeout: CASE_TIMEOUT, ..RunOptions::default() };
    let results = server.run(catalogue, &options).await?;
    server.stop().await;
    let wrong = results.iter().filter(|result| result.verdict > Verdict::Deviation);
    let wrong: Vec<String> = wrong
        .filter(|result| result.verdict != Verdict::Skip)
        .map(|result| explain(result))
        .collect();
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n").into()) }
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
