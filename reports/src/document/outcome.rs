//! The verdict of a whole run.

use super::Document;

/// The verdict of a whole run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Outcome {
    /// The target follows the conventions.
    Conformant,
    /// The target breaks the conventions.
    NotConformant,
    /// The run judged too little.
    Inconclusive,
}

impl Outcome {
    /// Returns the words for reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Conformant => "conformant",
            Self::NotConformant => "not conformant",
            Self::Inconclusive => "inconclusive",
        }
    }
}

/// A run that skips more than it judges shows little.
const MOST_SKIPPED: &str = "the run skipped more results than it judged";

impl Document {
    /// Returns the verdict of the run. It is inconclusive without failures, if the run was
    /// interrupted, stopped, has errors, or skipped more results than it judged.
    pub fn outcome(&self, strict: bool) -> Outcome {
        if self.failures(strict).next().is_some() || !self.stale_entries.is_empty() {
            Outcome::NotConformant
        } else if self.interrupted
            || self.stopped.is_some()
            || self.errors().next().is_some()
            || self.judges_too_little().is_some()
        {
            Outcome::Inconclusive
        } else {
            Outcome::Conformant
        }
    }

    /// Returns why a run that passes shows too little about the server.
    pub(crate) fn judges_too_little(&self) -> Option<&'static str> {
        let judged = self.summary.total() - self.summary.skip;
        match judged {
            0 => Some("the run judged nothing"),
            judged => (judged < self.summary.skip).then_some(MOST_SKIPPED),
        }
    }
}
