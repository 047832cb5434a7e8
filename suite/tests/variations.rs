//! No case fails a conformant server that varies or lacks a capability, or in a run with few
//! rights.
//!
//! The seeds together select every variation, and each seed runs a share of the cases. Each missing
//! capability runs a few cases. `kubeproof self-test` tests 50 seeds and all cases.

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::sync::Arc;

use kubeproof::self_test::capabilities::{self, Baseline, MissingCapability};
use kubeproof::self_test::modes::{self, Mode};
use kubeproof::self_test::variations;
use kubeproof_cases::Catalogue;
use kubeproof_harness::plan::Selection;
use kubeproof_reference_server::{Variation, Variations};
use libtest_mimic::{Arguments, Failed, Trial};
use tokio::runtime::Runtime;

/// Concurrent trials without `--test-threads`. Most of a trial is waiting.
const TRIALS_AT_ONCE: usize = 4;

fn main() -> anyhow::Result<ExitCode> {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(TRIALS_AT_ONCE);
    let catalogue =
        Arc::new(Catalogue::embedded().map_err(|diagnostics| anyhow::anyhow!("{diagnostics}"))?);
    let runtime = Arc::new(Runtime::new()?);
    let mut trials = Vec::new();
    let seeds = seeds_with_all_variations();
    for (index, seed) in seeds.iter().copied().enumerate() {
        let shard = format!("{}/{}", index + 1, seeds.len()).parse()?;
        let selection = Selection { shard: Some(shard), ..Selection::default() };
        let (catalogue, runtime) = (Arc::clone(&catalogue), Arc::clone(&runtime));
        let judge = move || runtime.block_on(test_variations(&catalogue, seed, &selection));
        trials.push(Trial::test(format!("seed {seed}"), judge));
    }
    for missing in MissingCapability::all() {
        let (catalogue, runtime) = (Arc::clone(&catalogue), Arc::clone(&runtime));
        let judge = move || runtime.block_on(test_capability(&catalogue, missing));
        trials.push(Trial::test(format!("without {missing}"), judge));
    }
    for mode in Mode::ALL {
        let (catalogue, runtime) = (Arc::clone(&catalogue), Arc::clone(&runtime));
        let judge = move || runtime.block_on(test_mode(&catalogue, mode));
        trials.push(Trial::test(format!("mode {mode}"), judge));
    }
    Ok(libtest_mimic::run(&arguments, trials).exit_code())
}

async fn test_variations(
    catalogue: &Catalogue,
    seed: u64,
    selection: &Selection,
) -> Result<(), Failed> {
    let baseline = variations::baseline_skips(catalogue, selection).await?;
    let row = variations::row(catalogue, Variations::from_seed(seed), &baseline, selection).await?;
    let names: Vec<&str> = row.variations.iter().map(Variation::name).collect();
    if row.results == 0 {
        return Err("nothing ran".into());
    }
    no_findings(&row.findings)
        .map_err(|findings| format!("{}:\n{findings}", names.join(" ")).into())
}

async fn test_capability(catalogue: &Catalogue, missing: MissingCapability) -> Result<(), Failed> {
    let row =
        capabilities::row(catalogue, missing, &Baseline::default(), &missing.sample()?).await?;
    Ok(no_findings(&row.findings)?)
}

async fn test_mode(catalogue: &Catalogue, mode: Mode) -> Result<(), Failed> {
    let row = modes::row(catalogue, mode, &Selection::default()).await?;
    Ok(no_findings(&row.findings)?)
}

fn no_findings(findings: &[String]) -> Result<(), String> {
    if findings.is_empty() { Ok(()) } else { Err(findings.join("\n")) }
}

/// Returns seeds that together select all variations. Each step adds the seed with the most new
/// ones.
fn seeds_with_all_variations() -> Vec<u64> {
    let chosen =
        |seed| Variations::from_seed(seed).iter().map(Variation::name).collect::<BTreeSet<&str>>();
    let mut missing: BTreeSet<&str> = Variation::all().map(Variation::name).collect();
    let mut seeds = Vec::new();
    while let Some(best) =
        (1..=50_u64).max_by_key(|seed| chosen(*seed).intersection(&missing).count())
        && !missing.is_empty()
    {
        missing = missing.difference(&chosen(best)).copied().collect();
        seeds.push(best);
    }
    seeds
}
