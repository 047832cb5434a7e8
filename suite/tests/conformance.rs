//! Runs every case against the reference server, with one trial per case and subject.
//!
//! A first server is used to plan the trials. The first trial runs all selected cases against one
//! server, so that `cargo test conformance -- watch/` runs only these. Each trial then reports its
//! result.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};

use kubeproof::self_test::{Bundled, CASE_TIMEOUT, LONG_HISTORY, explain};
use kubeproof_cases::Catalogue;
use kubeproof_harness::event::{CaseResult, Verdict};
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
        let server = Bundled::start(Config::default()).await?;
        server.plan(&catalogue, &options).await
    })?;
    let names = planned.runs.iter().filter(|planned| planned.skip.is_none()).map(name);
    let run = Arc::new(SharedRun {
        names: names.filter(|name| is_selected(&arguments, name)).collect(),
        catalogue: Arc::clone(&catalogue),
        runtime: Arc::clone(&runtime),
        results: OnceLock::new(),
    });
    let cases = planned.runs.iter().map(|planned| trial(planned, &run));
    let older = KubernetesVersion::ALL.into_iter();
    let older = older.filter(|version| *version != KubernetesVersion::default());
    let trials = cases.chain(older.map(|version| whole_run(version, &catalogue, &runtime)));
    let trials = trials.collect();
    Ok(libtest_mimic::run(&arguments, trials).exit_code())
}

/// Returns `case@subject`, which is also a pattern that selects this run of the case.
fn name(planned: &PlannedRun) -> String {
    title(&planned.case.id, &planned.subject_name())
}

fn title(id: &str, subject: &str) -> String {
    if subject.is_empty() { id.to_owned() } else { format!("{id}@{subject}") }
}

/// Returns whether libtest-mimic runs a trial of this name.
fn is_selected(arguments: &Arguments, name: &str) -> bool {
    let fits = |filter: &String| {
        if arguments.exact { name == filter } else { name.contains(filter.as_str()) }
    };
    arguments.filter.as_ref().is_none_or(fits) && !arguments.skip.iter().any(fits)
}

fn trial(planned: &PlannedRun, run: &Arc<SharedRun>) -> Trial {
    let name = name(planned);
    let run = Arc::clone(run);
    let pattern = name.clone();
    Trial::test(name, move || run.judge(&pattern))
        // A trial that returns early would count as passed, so skips are ignored trials.
        .with_ignored_flag(planned.skip.is_some())
}

/// One run of the selected cases, whose results the trials report.
struct SharedRun {
    names: Vec<String>,
    catalogue: Arc<Catalogue>,
    runtime: Arc<Runtime>,
    results: OnceLock<Result<Results, String>>,
}

/// The results by the names of the trials.
type Results = BTreeMap<String, Arc<CaseResult>>;

impl SharedRun {
    fn judge(&self, name: &str) -> Result<(), Failed> {
        let run = || self.runtime.block_on(self.run()).map_err(|error| error.to_string());
        let results = self.results.get_or_init(run).as_ref()?;
        let result = results.get(name).ok_or("the run has no such result")?;
        if result.verdict > Verdict::Deviation || result.verdict == Verdict::Skip {
            return Err(explain(result).into());
        }
        Ok(())
    }

    async fn run(&self) -> anyhow::Result<Results> {
        let only = self.names.iter().map(|name| name.parse()).collect::<Result<_, _>>()?;
        let selection = Selection { only, ..Selection::default() };
        let options = RunOptions { selection, case_timeout: CASE_TIMEOUT, ..RunOptions::default() };
        let results = run(Config::default(), &self.catalogue, &options).await?;
        Ok(results.into_iter().map(|one| (title(&one.id, &one.subject), one)).collect())
    }
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
    let options = RunOptions { case_timeout: CASE_TIMEOUT, ..RunOptions::default() };
    let results = run(Config { version, ..Config::default() }, catalogue, &options).await?;
    let wrong = results.iter().filter(|result| result.verdict > Verdict::Deviation);
    let wrong: Vec<String> = wrong
        .filter(|result| result.verdict != Verdict::Skip)
        .map(|result| explain(result))
        .collect();
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n").into()) }
}

async fn run(
    config: Config,
    catalogue: &Catalogue,
    options: &RunOptions,
) -> anyhow::Result<Vec<Arc<CaseResult>>> {
    let server = Bundled::start(Config { history: LONG_HISTORY, ..config }).await?;
    let results = server.run(catalogue, options).await?;
    server.stop().await;
    Ok(results)
}
