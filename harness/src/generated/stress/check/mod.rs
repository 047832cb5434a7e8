//! Checks a history. All functions are pure.
//!
//! Each object is a register with versions. The versions order all changes, so the checks need no
//! search: each response and each event has one possible place in that order.

mod changes;
mod lists;
mod matches;
mod order;
mod reads;
mod shrink;
mod steps;
#[cfg(test)]
mod tests;
mod watches;

use self::changes::Changes;
pub(super) use self::matches::own_key;
pub use self::shrink::{Minimal, minimal};
use super::history::History;

/// A rule that a history breaks.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Rule {
    /// A write replaced another one that its client had not seen, although it may not.
    LostUpdate,
    /// An acknowledged write is not in the object.
    LostWrite,
    /// A response is older than another response before it.
    StaleRead,
    /// A version is shared by two changes, or shows two contents.
    SharedVersion,
    /// A response or an event has no usable version.
    MissingVersion,
    /// A later write has an earlier version.
    VersionOrder,
    /// An object changed, and no request explains it.
    UnexplainedChange,
    /// A write had another effect than it asked for.
    WrongResult,
    /// The server rejected a request that it must accept.
    WrongRejection,
    /// A watch omits a change.
    LostEvent,
    /// A watch reports a change twice, or one that its start version contains.
    RepeatedEvent,
    /// A watch reports changes in another order than that of their versions.
    EventOrder,
    /// An event has another type or object than its change.
    WrongEvent,
    /// A bookmark is older than an event before it, or newer than a change that is still to come.
    Bookmark,
    /// A list shows another state than that of its version.
    MixedList,
    /// A page has more objects than its limit.
    PageSize,
    /// An object changes its uid, or shares it with an earlier object.
    Uid,
}

/// A broken rule, with the part of the history that shows it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Violation {
    /// The rule.
    pub rule: Rule,
    /// What was expected, and what happened.
    pub message: String,
    /// Indexes of operations.
    pub operations: Vec<usize>,
    /// Indexes of watches and of their events.
    pub events: Vec<(usize, usize)>,
}

impl Rule {
    /// Returns its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::LostUpdate => "lost update",
            Self::LostWrite => "lost write",
            Self::StaleRead => "stale read",
            Self::SharedVersion => "shared version",
            Self::MissingVersion => "missing version",
            Self::VersionOrder => "order of versions",
            Self::UnexplainedChange => "unexplained change",
            Self::WrongResult => "wrong result",
            Self::WrongRejection => "wrong rejection",
            Self::LostEvent => "lost event",
            Self::RepeatedEvent => "repeated event",
            Self::EventOrder => "order of events",
            Self::WrongEvent => "wrong event",
            Self::Bookmark => "bookmark",
            Self::MixedList => "mixed list",
            Self::PageSize => "page size",
            Self::Uid => "uid",
        }
    }
}

impl Violation {
    fn new(rule: Rule, message: String) -> Self {
        Self { rule, message, operations: Vec::new(), events: Vec::new() }
    }

    fn of(mut self, operations: impl IntoIterator<Item = usize>) -> Self {
        self.operations.extend(operations);
        self
    }

    fn seen_in(mut self, events: impl IntoIterator<Item = (usize, usize)>) -> Self {
        self.events.extend(events);
        self
    }
}

/// Returns the violations of a history, the most basic ones first. Empty for a correct history.
pub fn check(history: &History) -> Vec<Violation> {
    let mut violations = Vec::new();
    let changes = Changes::collect(history, &mut violations);
    steps::check(history, &changes, &mut violations);
    reads::check(history, &changes, &mut violations);
    lists::check(history, &changes, &mut violations);
    watches::check(history, &changes, &mut violations);
    violations
}
