//! The proof that the suite is right both ways: each case is held against servers that are known to be wrong, and against
//! servers that are known to be right though they differ.
//!
//! A fault that no case sees, a case that sees no fault and a verdict of `error` where a fault is at work are mistakes of
//! the suite ([`faults`]); so is a lawful difference that a case fails, cannot judge, or skips ([`variations`]), and a lawful lack
//! that a case fails, or skips without naming it ([`cuts`]).

mod bundled;
pub mod cuts;
pub mod faults;
pub mod matrix;
pub mod threads;
pub mod variations;

pub use self::bundled::{Bundled, FORGETFUL, MINDFUL, SelfTestError};

use std::sync::Arc;
use std::time::Duration;

use kubeproof_cases::Catalogue;
use kubeproof_harness::event::{CaseResult, Verdict};
use kubeproof_harness::run::RunOptions;
use kubeproof_harness::selection::Selection;
use kubeproof_reference_server::Config;

/// For one case. Who is done earlier waits for nothing, so a slow machine is given all the time it may need.
pub const PATIENCE: Duration = Duration::from_mins(3);

/// Cases at once: slow servers are among them, and several run side by side.
const JOBS: usize = 12;

/// Runs the cases against a server that is right.
async fn run(
    catalogue: &Catalogue,
    config: Config,
    selection: &Selection,
) -> Result<Vec<Arc<CaseResult>>, SelfTestError> {
    let server = Bundled::start(config).await?;
    let selection = selection.clone();
    let options = RunOptions { selection, case_timeout: PATIENCE, jobs: JOBS, ..RunOptions::default() };
    let results = server.run(catalogue, &options).await?;
    server.stop().await;
    Ok(results)
}

/// A result's case, and what it ran on.
fn name(result: &CaseResult) -> String {
    format!("{} @ {}", result.id, result.subject)
}

/// What a result says, for a person.
pub fn explain(result: &CaseResult) -> String {
    let mut lines = vec![format!("{:?}: {}", result.verdict, result.reason)];
    for check in result.checks.iter().filter(|check| check.verdict > Verdict::Deviation) {
        let at = format!("  {:?} of check {} ({}): {}", check.verdict, check.id, check.step, check.message);
        lines.push(at);
        lines.extend(check.diff.clone());
        lines.extend(check.curl.clone());
    }
    lines.join("\n")
}
