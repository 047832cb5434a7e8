//! The result of a stress run.

use std::collections::BTreeSet;

use super::check::{Minimal, Violation, minimal};
use super::history::{History, Outcome};
use crate::plan::Subject;

/// Limit on the violations in a report. Later ones often follow from the first.
const SHOWN: usize = 5;

/// The result of a stress run.
#[derive(Clone, Debug, Default)]
pub struct StressReport {
    /// The tested resources.
    pub subjects: Vec<String>,
    /// The seed.
    pub seed: u64,
    /// The number of rounds.
    pub rounds: usize,
    /// The number of operations.
    pub operations: usize,
    /// The number of operations that the server acknowledged.
    pub acknowledged: usize,
    /// The number of operations with an unknown outcome.
    pub unknown: usize,
    /// The number of watches.
    pub watches: usize,
    /// The number of events.
    pub events: usize,
    /// The number of restarts.
    pub restarts: usize,
    /// The first round with violations.
    pub failure: Option<Failure>,
    /// Facts for the user.
    pub notices: Vec<String>,
}

/// A round that breaks rules.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The resource.
    pub subject: String,
    /// The number of the round, from 1.
    pub round: usize,
    /// The broken rules; at least one.
    pub violations: Vec<Violation>,
    /// The smallest parts of the history that show the first violation of each rule.
    pub minimal: Vec<Minimal>,
}

impl StressReport {
    pub(super) fn count(&mut self, history: &History) {
        self.rounds += 1;
        self.operations += history.operations.len();
        let outcomes = || history.operations.iter().map(|operation| &operation.outcome);
        self.acknowledged += outcomes().filter(|outcome| outcome.is_success()).count();
        self.unknown += outcomes().filter(|one| matches!(one, Outcome::Unknown(_))).count();
        self.watches += history.watches.len();
        self.events += history.watches.iter().map(|watch| watch.events.len()).sum::<usize>();
    }
}

impl Failure {
    pub(super) fn new(
        subject: &Subject,
        round: usize,
        history: &History,
        violations: Vec<Violation>,
    ) -> Self {
        let mut rules = BTreeSet::new();
        let first_of_each = violations.iter().filter(|violation| rules.insert(violation.rule));
        let minimal = first_of_each.take(SHOWN).map(|violation| minimal(history, violation));
        Self { subject: subject.name.to_string(), round, minimal: minimal.collect(), violations }
    }
}
