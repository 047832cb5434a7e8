//! Servers that are right and differ: no case fails one, and none is skipped for it.
//!
//! A few seeds that together choose every variation; `kubeproof self-test variations` takes fifty.

use std::collections::BTreeSet;

use kubeproof::self_test::variations::{row, usual_skips};
use kubeproof_cases::Catalogue;
use kubeproof_reference_server::{Variation, Variations};

#[tokio::test(flavor = "multi_thread")]
async fn lawful_differences_break_no_case() -> anyhow::Result<()> {
    let catalogue = Catalogue::embedded().map_err(|diagnostics| anyhow::anyhow!("{diagnostics}"))?;
    let usual = usual_skips(&catalogue).await?;
    for seed in seeds_that_choose_everything() {
        let row = row(&catalogue, Variations::from_seed(seed), &usual).await?;
        let names: Vec<&str> = row.variations.iter().map(Variation::name).collect();
        assert!(row.results > 0);
        assert!(row.findings.is_empty(), "seed {seed} ({}):\n{}", names.join(" "), row.findings.join("\n"));
    }
    Ok(())
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
