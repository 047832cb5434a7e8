//! Tests the suite itself against servers whose verdict is known.
//!
//! - [`faults`]: servers with one deliberate bug each. Each bug must be caught by the cases that
//!   list it, and each case must catch at least one.
//! - [`variations`]: servers that differ as the conventions permit. No case may fail or skip.
//! - [`capabilities`]: conformant servers with one capability disabled. Cases may skip with the
//!   matching reason, and must not fail.
//! - [`modes`]: a conformant server, users with few rights, and options that limit the run. No case
//!   may fail.
//! - [`explore`]: servers with one fault each, which `kubeproof explore` must find without cases.
//! - [`stress`]: servers with one fault each, which `kubeproof stress` must find without cases.
//! - [`degraded`]: servers with one defect that affects many cases. The summary must have few
//!   causes, and most results must have a verdict of their own.

mod bundled_server;
pub mod capabilities;
pub mod degraded;
pub mod explore;
pub mod faults;
pub mod matrix;
pub mod modes;
pub mod server_threads;
pub mod stress;
pub mod variations;

pub use self::bundled_server::{Bundled, LONG_HISTORY, SHORT_HISTORY, SelfTestError};

use std::sync::Arc;
use std::time::Duration;

use kubeproof_cases::Catalogue;
use kubeproof_harness::event::{CaseResult, Verdict};
use kubeproof_harness::plan::{RunOptions, Selection};
use kubeproof_reference_server::Config;

/// Time limit of a case. It is long, because slow machines must not cause errors, and a finished
/// case does not wait for it.
pub const CASE_TIMEOUT: Duration = Duration::from_mins(3);

/// Concurrent cases. Several servers run in parallel, and some of them are slow.
const JOBS: usize = 12;

/// Runs the cases against a conformant server.
async fn run(
    catalogue: &Catalogue,
    config: Config,
    selection: &Selection,
) -> Result<Vec<Arc<CaseResult>>, SelfTestError> {
    let server = Bundled::start(config).await?;
    let selection = selection.clone();
    let options =
        RunOptions { selection, case_timeout: CASE_TIMEOUT, jobs: JOBS, ..RunOptions::default() };
    let results = server.run(catalogue, &options).await?;
    server.stop().await;
    Ok(results)
}

/// Returns the case and the subject of a result.
fn title(result: &CaseResult) -> String {
    format!("{} @ {}", result.id, result.subject)
}

/// Describes a result and its failed checks.
pub fn explain(result: &CaseResult) -> String {
    let mut lines = vec![format!("{:?}: {}", result.verdict, result.reason)];
    for check in result.checks.iter().filter(|check| check.verdict > Verdict::Deviation) {
        let line = format!(
            "  {:?} of check {} ({}): {}",
            check.verdict, check.id, check.step, check.message
        );
        lines.push(line);
        lines.extend(check.diff.clone());
        lines.extend(check.curl.clone());
    }
    lines.join("\n")
}
