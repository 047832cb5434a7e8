//! Example exchanges, from runs of all cases against the bundled server.

use std::collections::BTreeMap;

use kubeproof_cases::Catalogue;
use kubeproof_cases::case::{Case, Edition};
use kubeproof_harness::event::{CaseResult, Verdict};
use kubeproof_harness::plan::{RunOptions, Selection, plan};
use kubeproof_harness::run;
use kubeproof_harness::transport::{Client, Limits};
use kubeproof_reference_server::Faults;

use crate::commands::explain::write_exchanges;
use crate::commands::run::target::RunTarget;
use crate::error::Error;

/// Returns the example of each case as text, by the id of the case.
///
/// Each case runs under the newest edition that judges it.
pub(super) async fn examples(catalogue: &Catalogue) -> Result<BTreeMap<String, String>, Error> {
    let mut by_edition: BTreeMap<Edition, Vec<&Case>> = BTreeMap::new();
    for case in &catalogue.cases {
        if let Some(newest) = case.editions.iter().copied().max() {
            by_edition.entry(newest).or_default().push(case);
        }
    }
    let mut examples = BTreeMap::new();
    for (edition, cases) in by_edition {
        add_examples(catalogue, edition, &cases, &mut examples).await?;
    }
    Ok(examples)
}

async fn add_examples(
    catalogue: &Catalogue,
    edition: Edition,
    cases: &[&Case],
    examples: &mut BTreeMap<String, String>,
) -> Result<(), Error> {
    let server = RunTarget::bundled(Faults::none()).await?;
    // The results of all cases hold their responses.
    let limits = Limits { max_held: 2 << 30, ..Limits::default() };
    let client = Client::new(&server.config, limits)?;
    let only = cases.iter().map(|case| case.id.parse()).collect::<Result<_, _>>()?;
    let selection = Selection { only, ..Selection::default() };
    let options = RunOptions { selection, edition, seed: 1, ..RunOptions::default() };
    let plan = plan(catalogue, &client, &options).await?;
    let mut results = run::results(plan, client, &options).await;
    results.sort_by(|a, b| (&a.id, &a.subject).cmp(&(&b.id, &b.subject)));
    for result in results {
        let CaseResult { id, verdict, .. } = &*result;
        let Some(case) = catalogue.case(id) else { continue };
        if matches!(verdict, Verdict::Pass | Verdict::Deviation) && !examples.contains_key(id) {
            let mut text = Vec::new();
            write_exchanges(case, &result, None, &mut text)?;
            if !text.is_empty() {
                examples.insert(id.clone(), String::from_utf8_lossy(&text).into_owned());
            }
        }
    }
    Ok(())
}
