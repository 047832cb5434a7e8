//! Every fault of the reference server is caught by the cases that say they catch it.
//!
//! This is the proof that a case can fail. A fault that no case lists, and a case that lists a fault it does not
//! catch, both fail here; so does a case that ends in an error instead of a verdict. A case runs under the newest edition
//! that judges it.

mod support;

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Arc;

use kubeproof_cases::Catalogue;
use kubeproof_cases::case::{Case, Edition};
use kubeproof_harness::event::Verdict;
use kubeproof_harness::run::RunOptions;
use kubeproof_harness::selection::{Pattern, Selection};
use kubeproof_reference_server::{Fault, Faults};
use libtest_mimic::{Arguments, Failed, Trial};
use tokio::runtime::Runtime;

/// Small enough that a case makes the server forget in no time.
const HISTORY: usize = 1_024;

/// Faults of the framing that came before their cases. The list only shrinks: with the last case it goes.
const AWAITING: &str = include_str!("faults-awaiting-cases.txt");

fn main() -> anyhow::Result<ExitCode> {
    let arguments = Arguments::from_args();
    let catalogue = Arc::new(Catalogue::embedded().map_err(|diagnostics| anyhow::anyhow!("{diagnostics}"))?);
    let runtime = Arc::new(Runtime::new()?);
    let mut trials = vec![unknown_faults(&catalogue)];
    for fault in Fault::all() {
        let (catalogue, runtime) = (Arc::clone(&catalogue), Arc::clone(&runtime));
        trials.push(Trial::test(fault.name(), move || runtime.block_on(caught(&catalogue, fault))));
    }
    Ok(libtest_mimic::run(&arguments, trials).exit_code())
}

fn unknown_faults(catalogue: &Catalogue) -> Trial {
    let mut unknown: Vec<String> = Vec::new();
    for case in &catalogue.cases {
        for fault in case.catches.iter().filter(|fault| Fault::from_name(fault).is_none()) {
            unknown.push(format!("{} lists {fault}, which the reference server does not have", case.id));
        }
    }
    Trial::test("cases list faults that exist", move || {
        if unknown.is_empty() { Ok(()) } else { Err(unknown.join("\n").into()) }
    })
}

async fn caught(catalogue: &Catalogue, fault: Fault) -> Result<(), Failed> {
    let mut claims: BTreeMap<Edition, Vec<&str>> = BTreeMap::new();
    for case in catalogue.cases.iter().filter(|case| case.catches.iter().any(|name| name == fault.name())) {
        claims.entry(last(case)).or_default().push(&case.id);
    }
    if claims.is_empty() {
        if AWAITING.lines().any(|name| name == fault.name()) {
            return Ok(());
        }
        return Err(format!("no case lists {} under `catches`: {}", fault.name(), fault.summary()).into());
    }
    let mut wrong: Vec<String> = Vec::new();
    for (edition, claims) in claims {
        wrong.extend(missed(catalogue, fault, edition, &claims).await?);
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n").into()) }
}

/// The newest edition that judges a case: the one in which it must be able to fail.
fn last(case: &Case) -> Edition {
    case.editions.iter().copied().max().unwrap_or(Edition::Head)
}

/// What these cases, which claim to catch the fault, let pass under the edition.
async fn missed(
    catalogue: &Catalogue,
    fault: Fault,
    edition: Edition,
    claims: &[&str],
) -> anyhow::Result<Vec<String>> {
    let (server, client) = support::serve(Faults::none().with(fault), HISTORY).await?;
    let only = claims.iter().map(|id| id.parse()).collect::<Result<Vec<Pattern>, _>>()?;
    let selection = Selection { only, ..Selection::default() };
    let options = RunOptions { selection, edition, ..RunOptions::default() };
    let plan = support::planned(catalogue, &client, &options).await?;
    let results = support::results(plan, client, &options).await?;
    server.shutdown().await;

    // A fault may show on some subjects only: strategic merge has none of its rules on custom resources.
    let mut worst: BTreeMap<&str, Verdict> = claims.iter().map(|id| (*id, Verdict::Skip)).collect();
    let mut wrong: Vec<String> = Vec::new();
    for result in &results {
        if result.verdict == Verdict::Error {
            wrong.push(format!("{} @ {} {}", result.id, result.subject, support::explain(result)));
        } else if let Some(verdict) = worst.get_mut(result.id.as_str()) {
            *verdict = (*verdict).max(result.verdict);
        }
    }
    for (id, verdict) in worst {
        if verdict < Verdict::Warn {
            let fault = fault.name();
            wrong.push(format!(
                "{id} says it catches {fault}, and its verdict under {edition} is {verdict:?}"
            ));
        }
    }
    Ok(wrong)
}
