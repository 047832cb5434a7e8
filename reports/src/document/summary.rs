//! Results by verdict.

use kubeproof_harness::event::Verdict;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Results by verdict.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
pub struct Summary {
    /// Results that follow the conventions.
    pub pass: usize,
    /// Results where the target behaves like deployed servers and not like the text.
    pub deviation: usize,
    /// Results where a SHOULD or MAY failed.
    pub warn: usize,
    /// Results where a MUST failed.
    pub fail: usize,
    /// Results that were not judged.
    pub skip: usize,
    /// Results that the harness could not judge.
    pub error: usize,
}

impl Summary {
    /// Returns the verdicts and their counts in reading order: best first, skips last.
    pub fn counts(&self) -> [(Verdict, usize); 6] {
        [
            (Verdict::Pass, self.pass),
            (Verdict::Deviation, self.deviation),
            (Verdict::Warn, self.warn),
            (Verdict::Fail, self.fail),
            (Verdict::Error, self.error),
            (Verdict::Skip, self.skip),
        ]
    }

    /// Returns the number of all results.
    pub fn total(&self) -> usize {
        self.counts().iter().map(|(_, count)| count).sum()
    }

    /// Counts one more result.
    pub fn add(&mut self, verdict: Verdict) {
        *match verdict {
            Verdict::Skip => &mut self.skip,
            Verdict::Pass => &mut self.pass,
            Verdict::Deviation => &mut self.deviation,
            Verdict::Warn => &mut self.warn,
            Verdict::Fail => &mut self.fail,
            Verdict::Error => &mut self.error,
        } += 1;
    }
}
