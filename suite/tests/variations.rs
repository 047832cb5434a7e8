//! Servers that are right and differ, or can do less: no case fails one, and none is skipped but for what is missing.
//!
//! Lawful differences: a few seeds that together choose every one of them, each with its share of the cases. Lawful lacks: each
//! with the few cases that show it. `kubeproof self-test` takes fifty seeds, and all cases for each.

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::sync::Arc;

use kubeproof::self_test::cuts::{self, Lack, Usual};
use kubeproof::self_test::variations;
use kubeproof_cases::Catalogue;
use kubeproof_harness::selection::Selection;
use kubeproof_reference_server::{Variation, Variations};
use libtest_mimic::{Arguments, Failed, Trial};
use tokio::runtime::Runtime;

/// Unless `--test-threads` says how many.
const TRIALS_AT_ONCE: usize = 4;

fn main() -> anyhow::Result<ExitCode> {
    let mut arguments = Arguments::from_args();
    // Most of a trial is waiting.
    arguments.test_threads.get_or_insert(TRIALS_AT_ONCE);
    let catalogue = Arc::new(Catalogue::embedded().map_err(|diagnostics| anyhow::anyhow!("{diagnostics}"))?);
    let runtime = Arc::new(Runtime::new()?);
    let mut trials = Vec::new();
    let seeds = seeds_that_choose_everything();
    for (index, seed) in seeds.iter().copied().enumerate() {
        let shard = format!("{}/{}", index + 1, seeds.len()).parse()?;
        let selection = Selection { shard: Some(shard), ..Selection::default() };
        let (catalogue, runtime) = (Arc::clone(&catalogue), Arc::clone(&runtime));
        let judge = move || runtime.block_on(differing(&catalogue, seed, &selection));
        trials.push(Trial::test(format!("seed {seed}"), judge));
    }
    for lack in Lack::all() {
        let (catalogue, runtime) = (Arc::clone(&catalogue), Arc::clone(&runtime));
        let judge = move || runtime.block_on(lacking(&catalogue, lack));
        trials.push(Trial::test(format!("without {lack}"), judge));
    }
    Ok(libtest_mimic::run(&arguments, trials).exit_code())
}

async fn differing(catalogue: &Catalogue, seed: u64, selection: &Selection) -> Result<(), Failed> {
    let usual = variations::usual_skips(catalogue, selection).await?;
    let row = variations::row(catalogue, Variations::from_seed(seed), &usual, selection).await?;
    let names: Vec<&str> = row.variations.iter().map(Variation::name).collect();
    if row.results == 0 {
        return Err("nothing ran".into());
    }
    told(&row.findings).map_err(|findings| format!("{}:\n{findings}", names.join(" ")).into())
}

async fn lacking(catalogue: &Catalogue, lack: Lack) -> Result<(), Failed> {
    let row = cuts::row(catalogue, lack, &Usual::default(), &lack.sample()?).await?;
    Ok(told(&row.findings)?)
}

fn told(findings: &[String]) -> Result<(), String> {
    if findings.is_empty() { Ok(()) } else { Err(findings.join("\n")) }
}

/// The next seed that adds the most, until nothing is missing.
fn seeds_that_choose_everything() -> Vec<u64> {
    let chosen = |seed| Variations::from_seed(seed).iter().map(Variation::name).collect::<BTreeSet<&str>>();
    let mut missing: BTreeSet<&str> = Variation::all().map(Variation::name).collect();
    let mut seeds = Vec::new();
    while let Some(best) = (1..=50_u64).max_by_key(|seed| chosen(*seed).intersection(&missing).count())
        && !missing.is_empty()
    {
        missing = missing.difference(&chosen(best)).copied().collect();
        seeds.push(best);
    }
    seeds
}
