//! Variations: the whole suite against conformant servers that differ as the conventions permit.

use std::collections::BTreeSet;

use kubeproof_cases::Catalogue;
use kubeproof_harness::event::Verdict;
use kubeproof_harness::plan::Selection;
use kubeproof_reference_server::{Config, Variations};

use super::{LONG_HISTORY, SelfTestError, explain, run, title};

/// The results of one variation of the server.
#[derive(Clone, Debug)]
pub struct Row {
    /// The enabled variations.
    pub variations: Variations,
    /// The number of results.
    pub results: usize,
    /// Results that a conformant server must not get.
    pub findings: Vec<String>,
}

/// Returns the results that are skipped on the server without variations.
pub async fn baseline_skips(
    catalogue: &Catalogue,
    selection: &Selection,
) -> Result<BTreeSet<String>, SelfTestError> {
    let results = run(catalogue, config(Variations::none()), selection).await?;
    Ok(results
        .iter()
        .filter(|result| result.verdict == Verdict::Skip)
        .map(|result| title(result))
        .collect())
}

/// Runs the suite against one variation. Skips that are not in `baseline` are findings.
pub async fn row(
    catalogue: &Catalogue,
    variations: Variations,
    baseline: &BTreeSet<String>,
    selection: &Selection,
) -> Result<Row, SelfTestError> {
    let results = run(catalogue, config(variations), selection).await?;
    let mut findings = Vec::new();
    for result in &results {
        match result.verdict {
            Verdict::Skip if !baseline.contains(&title(result)) => {
                findings.push(format!("{} is skipped: {}", title(result), result.reason));
            }
            Verdict::Fail | Verdict::Error => {
                findings.push(format!("{} {}", title(result), explain(result)));
            }
            // Servers may deviate from a SHOULD, which is a warning.
            Verdict::Skip | Verdict::Pass | Verdict::Deviation | Verdict::Warn => {}
        }
    }
    Ok(Row { variations, results: results.len(), findings })
}

fn config(variations: Variations) -> Config {
    Config { variations, history: LONG_HISTORY, ..Config::default() }
}
