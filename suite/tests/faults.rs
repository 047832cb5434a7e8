//! Every fault of the reference server is caught by the cases that say they catch it.
//!
//! This is the proof that a case can fail. A fault that no case lists, and a case that lists a fault it does not
//! catch, both fail here; so does a case that ends in an error instead of a verdict.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use kubeproof::self_test::faults::{Breadth, judge, row};
use kubeproof::self_test::matrix::{document, on_paper};
use kubeproof_cases::Catalogue;
use kubeproof_reference_server::Fault;
use libtest_mimic::{Arguments, Failed, Trial};
use tokio::runtime::Runtime;

/// Unless `--test-threads` says how many.
const TRIALS_AT_ONCE: usize = 8;

fn main() -> anyhow::Result<ExitCode> {
    let mut arguments = Arguments::from_args();
    // Most of a trial is waiting.
    arguments.test_threads.get_or_insert(TRIALS_AT_ONCE);
    let catalogue = Arc::new(Catalogue::embedded().map_err(|diagnostics| anyhow::anyhow!("{diagnostics}"))?);
    let runtime = Arc::new(Runtime::new()?);
    let findings = on_paper(&catalogue);
    let matrix = document(&catalogue);
    let mut trials = vec![
        Trial::test("the claims of the cases fit what the faults break", move || told(&findings)),
        Trial::test("the published matrix is that of the cases", move || published(&matrix)),
    ];
    for fault in Fault::all() {
        let (catalogue, runtime) = (Arc::clone(&catalogue), Arc::clone(&runtime));
        trials.push(Trial::test(fault.name(), move || runtime.block_on(caught(&catalogue, fault))));
    }
    Ok(libtest_mimic::run(&arguments, trials).exit_code())
}

fn published(matrix: &str) -> Result<(), Failed> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cases/FAULTS.md");
    if std::env::var_os("KUBEPROOF_BLESS").is_some_and(|value| value == "1") {
        return Ok(std::fs::write(path, matrix)?);
    }
    let committed = std::fs::read_to_string(path)?;
    let odd = matrix.lines().zip(committed.lines()).find(|(now, committed)| now != committed);
    match odd {
        _ if committed == matrix => Ok(()),
        Some((now, committed)) => Err(format!(
            "KUBEPROOF_BLESS=1 writes cases/FAULTS.md anew\n--- committed\n{committed}\n--- now\n{now}"
        )
        .into()),
        None => Err("KUBEPROOF_BLESS=1 writes cases/FAULTS.md anew: its length differs".into()),
    }
}

async fn caught(catalogue: &Catalogue, fault: Fault) -> Result<(), Failed> {
    let row = row(catalogue, fault, Breadth::Claimed).await?;
    told(&judge(catalogue, &row))
}

fn told<'a, T: ToString + 'a>(findings: impl IntoIterator<Item = &'a T>) -> Result<(), Failed> {
    let findings: Vec<String> = findings.into_iter().map(ToString::to_string).collect();
    if findings.is_empty() { Ok(()) } else { Err(findings.join("\n").into()) }
}
