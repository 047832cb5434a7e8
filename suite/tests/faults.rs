//! Each fault of the reference server is caught by the cases that list it.
//!
//! This proves that each case can fail. The test fails if no case lists a fault, if a case does not
//! catch a fault that it lists, and if a case ends in an error instead of a verdict.

use std::process::ExitCode;
use std::sync::Arc;

use kubeproof::self_test::faults::{Breadth, judge, row};
use kubeproof::self_test::matrix;
use kubeproof_cases::Catalogue;
use kubeproof_reference_server::Fault;
use libtest_mimic::{Arguments, Failed, Trial};
use tokio::runtime::Runtime;

/// Concurrent trials without `--test-threads`. Most of a trial is waiting.
const TRIALS_AT_ONCE: usize = 12;

fn main() -> anyhow::Result<ExitCode> {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(TRIALS_AT_ONCE);
    let catalogue = Catalogue::embedded().map_err(|errors| anyhow::anyhow!("{errors}"))?;
    let catalogue = Arc::new(catalogue);
    let runtime = Arc::new(Runtime::new()?);
    let findings = matrix::check(&catalogue);
    let mut trials =
        vec![Trial::test("cases and faults share requirements", move || no_findings(&findings))];
    // A comma-separated list of faults to test.
    let names = std::env::var("KUBEPROOF_FAULTS").ok();
    let is_selected = |fault: &Fault| match &names {
        None => true,
        Some(names) => names.split(',').any(|name| name == fault.name()),
    };
    for fault in Fault::all().filter(is_selected) {
        let (catalogue, runtime) = (Arc::clone(&catalogue), Arc::clone(&runtime));
        let test = move || runtime.block_on(is_caught(&catalogue, fault));
        trials.push(Trial::test(fault.name(), test));
    }
    Ok(libtest_mimic::run(&arguments, trials).exit_code())
}

async fn is_caught(catalogue: &Catalogue, fault: Fault) -> Result<(), Failed> {
    let row = row(catalogue, fault, Breadth::Claimed).await?;
    no_findings(&judge(catalogue, &row))
}

fn no_findings<'a, T: ToString + 'a>(
    findings: impl IntoIterator<Item = &'a T>,
) -> Result<(), Failed> {
    let findings: Vec<String> = findings.into_iter().map(ToString::to_string).collect();
    if findings.is_empty() { Ok(()) } else { Err(findings.join("\n").into()) }
}
