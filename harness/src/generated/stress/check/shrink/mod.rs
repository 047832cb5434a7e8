//! Finds the smallest part of a history that still shows a violation.
//!
//! Each step removes an object with all its responses and events, the time before or after a
//! change, a watch, or a request without an effect. A correct server could have left that undone.
//! So a part of a correct history is correct, and a violation in a part is a violation in the
//! whole.

mod cuts;
mod part;
#[cfg(test)]
mod tests;

use self::part::Part;
use super::changes::Changes;
use super::{Rule, Violation, check};
use crate::generated::stress::history::History;

/// Limit on the passes over all steps. Each pass removes something, or is the last one.
const PASSES: usize = 20;

/// The smallest part of a history that shows a violation.
#[derive(Clone, Debug)]
pub struct Minimal {
    /// The part.
    pub history: History,
    /// The violation, with indexes into the part.
    pub violation: Violation,
}

/// Returns the smallest part of a history that shows a violation of it.
pub fn minimal(history: &History, violation: &Violation) -> Minimal {
    let same = Same::new(history, violation);
    let Found { part, violation } = same.smallest(violation);
    Minimal { history: part.history, violation }
}

/// What makes two violations the same: the rule, and the watch or the request that breaks it.
#[derive(Debug, Eq, PartialEq)]
struct Accused {
    rule: Rule,
    place: Option<Place>,
}

#[derive(Debug, Eq, PartialEq)]
enum Place {
    /// The index of a watch in the whole history.
    Watch(usize),
    /// The index of an operation in the whole history.
    Operation(usize),
}

impl Accused {
    fn of(violation: &Violation, part: &Part) -> Self {
        let watch = violation.events.last().and_then(|(watch, _)| part.watches.get(*watch));
        let operation = violation.operations.last().and_then(|one| part.operations.get(*one));
        let watch = watch.map(|watch| Place::Watch(*watch));
        let place = watch.or_else(|| operation.map(|operation| Place::Operation(*operation)));
        Self { rule: violation.rule, place }
    }
}

/// A part that shows the violation.
struct Found {
    part: Part,
    violation: Violation,
}

/// The violation that a smaller part must still show.
struct Same {
    accused: Accused,
    whole: Part,
    /// The changes of the whole history.
    changes: Changes,
}

impl Same {
    fn new(history: &History, violation: &Violation) -> Self {
        let whole = Part::whole(history);
        let accused = Accused::of(violation, &whole);
        Self { accused, changes: whole.changes(), whole }
    }

    fn smallest(&self, violation: &Violation) -> Found {
        let mut found = Found { part: self.whole.clone(), violation: violation.clone() };
        for _ in 0..PASSES {
            let size = found.part.size();
            found = self.ended_earlier(found);
            found = self.begun_later(found);
            found = self.without_objects(found);
            found = self.without_some(found, Part::watch_count, Part::without_watches);
            found = self.without_some(found, Part::operation_count, Part::without_operations);
            for watch in 0..found.part.watch_count() {
                found = self.shorter_watch(found, watch);
            }
            if found.part.size() == size {
                break;
            }
        }
        found
    }

    /// Returns the part with its violation if it still shows the same one.
    fn judged(&self, part: Part) -> Option<Found> {
        if !part.is_consistent(&self.whole, &self.changes) {
            return None;
        }
        let violations = check(&part.history);
        let mut same = violations.into_iter();
        let violation = same.find(|one| Accused::of(one, &part) == self.accused)?;
        Some(Found { part, violation })
    }

    fn ended_earlier(&self, found: Found) -> Found {
        let changes = found.part.changes();
        let last = changes.all.len().saturating_sub(1);
        let end =
            |index: usize| Some(found.part.ended_at(&changes, changes.all.get(last - index)?));
        self.furthest(last, end).unwrap_or(found)
    }

    fn begun_later(&self, found: Found) -> Found {
        let changes = found.part.changes();
        let begin = |index: usize| {
            let before = index.checked_sub(1)?;
            Some(found.part.begun_at(&changes, changes.all.get(before)?))
        };
        self.furthest(changes.all.len(), begin).unwrap_or(found)
    }

    /// Returns the part of the highest number that shows the violation. The part of 0 does.
    fn furthest(&self, most: usize, part: impl Fn(usize) -> Option<Part>) -> Option<Found> {
        let (mut best, mut low, mut high) = (None, 0, most + 1);
        while high - low > 1 {
            let middle = usize::midpoint(low, high);
            match part(middle).and_then(|part| self.judged(part)) {
                Some(found) => (best, low) = (Some(found), middle),
                None => high = middle,
            }
        }
        best
    }

    fn without_objects(&self, mut found: Found) -> Found {
        for name in found.part.names() {
            found = self.judged(found.part.without_object(&name)).unwrap_or(found);
        }
        found
    }

    /// Removes as many elements as possible: halves first, single ones last.
    fn without_some(
        &self,
        mut found: Found,
        count: impl Fn(&Part) -> usize,
        without: impl Fn(&Part, std::ops::Range<usize>) -> Part,
    ) -> Found {
        let mut length = count(&found.part);
        while length > 0 {
            let mut end = count(&found.part);
            while end > 0 {
                let begin = end.saturating_sub(length);
                found = self.judged(without(&found.part, begin..end)).unwrap_or(found);
                end = begin;
            }
            length /= 2;
        }
        found
    }

    fn shorter_watch(&self, found: Found, watch: usize) -> Found {
        let count = found.part.event_count(watch);
        let front = |events: usize| found.part.without_first_events(watch, events);
        let found = self.furthest(count, front).unwrap_or(found);
        let count = found.part.event_count(watch);
        let back = |events: usize| Some(found.part.without_last_events(watch, events));
        self.furthest(count, back).unwrap_or(found)
    }
}
