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
pub mod variations;

pub use self::bundled::{Bundled, FORGETFUL, MINDFUL, SelfTestError};

use kubeproof_harness::event::{CaseResult, Verdict};

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
