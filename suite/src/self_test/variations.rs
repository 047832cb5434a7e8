//! Servers that are right and differ: the whole suite against lawful variations of the bundled server.

use std::collections::BTreeSet;

use kubeproof_cases::Catalogue;
use kubeproof_harness::event::Verdict;
use kubeproof_harness::selection::Selection;
use kubeproof_reference_server::{Config, Variations};

use super::{MINDFUL, SelfTestError, explain, name, run};

/// One differing server, and what cases held against it.
#[derive(Clone, Debug)]
pub struct Row {
    /// How it differs.
    pub variations: Variations,
    /// How many results the run had.
    pub results: usize,
    /// What no case should say of a server that is right.
    pub findings: Vec<String>,
}

/// What is skipped on the server that does not differ.
pub async fn usual_skips(
    catalogue: &Catalogue,
    selection: &Selection,
) -> Result<BTreeSet<String>, SelfTestError> {
    let results = run(catalogue, config(Variations::none()), selection).await?;
    Ok(results.iter().filter(|result| result.verdict == Verdict::Skip).map(|result| name(result)).collect())
}

/// Runs the suite against one differing server. Skips are findings but for the usual ones.
pub async fn row(
    catalogue: &Catalogue,
    variations: Variations,
    usual: &BTreeSet<String>,
    selection: &Selection,
) -> Result<Row, SelfTestError> {
    let results = run(catalogue, config(variations), selection).await?;
    let mut findings = Vec::new();
    for result in &results {
        match result.verdict {
            Verdict::Skip if !usual.contains(&name(result)) => {
                findings.push(format!("{} is skipped: {}", name(result), result.reason));
            }
            Verdict::Fail | Verdict::Error => findings.push(format!("{} {}", name(result), explain(result))),
            // What only should be, and may be otherwise for a reason, is warned of.
            Verdict::Skip | Verdict::Pass | Verdict::Deviation | Verdict::Warn => {}
        }
    }
    Ok(Row { variations, results: results.len(), findings })
}

fn config(variations: Variations) -> Config {
    Config { variations, history: MINDFUL, ..Config::default() }
}
