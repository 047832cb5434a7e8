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

impl Document {
    /// Returns the verdict of the run. It is inconclusive without failures, if the run was
    /// interrupted, stopped, has errors, or skipped more results than it judged.
    pub fn outcome(&self, strict: bool) -> Outcome {
        let judged = self.summary.total() - self.summary.skip;
        if self.failures(strict).next().is_some() || !self.stale_entries.is_empty() {
            Outcome::NotConformant
        } else if self.interrupted
            || self.stopped.is_some()
            || self.errors().next().is_some()
            || judged == 0
            || judged < self.summary.skip
        {
            Outcome::Inconclusive
        } else {
            Outcome::Conformant
        }
    }
}
