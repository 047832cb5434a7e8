use std::collections::BTreeSet;

use proptest::prelude::*;

use super::part::Part;
use super::{Same, check, minimal};
use crate::generated::stress::check::changes::Changes;
use crate::generated::stress::check::{Rule, Violation};
use crate::generated::stress::history::{History, Operation, Watch};
use crate::generated::stress::simulation::{Bug, simulate};

/// A step towards a smaller part, chosen by numbers.
fn step(part: &Part, choice: u8, place: usize) -> Part {
    let changes = part.changes();
    let change = changes.all.get(place % changes.all.len().max(1));
    let names: Vec<String> = part.names().into_iter().collect();
    let of =
        |count: usize| (place % count.max(1)).min(count)..(place % count.max(1) + 1).min(count);
    let watch = place % part.watch_count().max(1);
    let events = place / 7 % (part.event_count(watch) + 1);
    match (choice % 7, change) {
        (0, Some(change)) => part.ended_at(&changes, change),
        (1, Some(change)) => part.begun_at(&changes, change),
        (2, _) if !names.is_empty() => part.without_object(&names[place % names.len()]),
        (3, _) => part.without_watches(of(part.watch_count())),
        (4, _) => part.without_first_events(watch, events).unwrap_or_else(|| part.clone()),
        (5, _) => part.without_last_events(watch, events),
        _ => part.without_operations(of(part.operation_count())),
    }
}

/// Returns the elements of a history as text.
fn elements(history: &History) -> BTreeSet<String> {
    let operations = history.operations.iter().map(|one| {
        let Operation { client, start, end, action, .. } = one;
        format!("{client} {start:?} {end:?} {action:?}")
    });
    let events = history.watches.iter().flat_map(|watch| {
        let Watch { watcher, from, .. } = watch;
        watch.events.iter().map(move |event| format!("{watcher} {from} {event:?}"))
    });
    operations.chain(events).collect()
}

fn first_of_each_rule(history: &History) -> Vec<Violation> {
    let mut rules = BTreeSet::new();
    check(history).into_iter().filter(|violation| rules.insert(violation.rule)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 96,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_correct_history_has_no_violation(seed: u64, numeric: bool) {
        prop_assert_eq!(check(&simulate(seed, numeric, Bug::None)), []);
    }

    #[test]
    fn a_part_of_a_correct_history_is_correct(
        seed: u64,
        numeric: bool,
        steps in prop::collection::vec((any::<u8>(), 0_usize..10_000), 1..12),
    ) {
        let whole = Part::whole(&simulate(seed, numeric, Bug::None));
        let changes = Changes::collect(&whole.history, &mut Vec::new());
        let mut part = whole.clone();
        for (choice, place) in steps {
            let smaller = step(&part, choice, place);
            if smaller.is_consistent(&whole, &changes) {
                prop_assert_eq!(check(&smaller.history), []);
                part = smaller;
            }
        }
    }

    #[test]
    fn a_minimal_history_shows_the_same_violation(
        seed: u64,
        numeric: bool,
        bug in prop::sample::select(&Bug::ALL[..]),
    ) {
        let history = simulate(seed, numeric, bug);
        let all = elements(&history);
        for violation in first_of_each_rule(&history) {
            let smallest = minimal(&history, &violation);
            prop_assert!(check(&smallest.history).contains(&smallest.violation));
            prop_assert_eq!(smallest.violation.rule, violation.rule);
            prop_assert!(elements(&smallest.history).is_subset(&all));
        }
    }

    #[test]
    fn nothing_more_can_be_removed(
        seed: u64,
        numeric: bool,
        bug in prop::sample::select(&Bug::ALL[..]),
    ) {
        let history = simulate(seed, numeric, bug);
        for violation in first_of_each_rule(&history) {
            let same = Same::new(&history, &violation);
            let part = same.smallest(&violation).part;
            for index in 0..part.operation_count() {
                prop_assert!(same.judged(part.without_operations(index..index + 1)).is_none());
            }
            for index in 0..part.watch_count() {
                prop_assert!(same.judged(part.without_watches(index..index + 1)).is_none());
            }
            for name in part.names() {
                prop_assert!(same.judged(part.without_object(&name)).is_none());
            }
        }
    }
}

/// Returns the largest of the minimal histories of a bug, and the rules that it breaks.
fn largest(bug: Bug) -> (usize, BTreeSet<Rule>) {
    let mut rules = BTreeSet::new();
    let mut most = 0;
    for seed in 0..40 {
        let history = simulate(seed, true, bug);
        for violation in first_of_each_rule(&history) {
            rules.insert(violation.rule);
            let smallest = minimal(&history, &violation).history;
            most = most.max(elements(&smallest).len());
        }
    }
    (most, rules)
}

#[test]
fn each_bug_is_shown_by_a_few_operations_and_events() {
    for (bug, rule) in [
        (Bug::StaleGet, Rule::StaleRead),
        (Bug::ShortList, Rule::MixedList),
        (Bug::IgnoredVersion, Rule::LostUpdate),
        (Bug::LostPatch, Rule::LostUpdate),
        (Bug::SharedVersion, Rule::SharedVersion),
        (Bug::LostEvent, Rule::LostEvent),
        (Bug::RepeatedEvent, Rule::RepeatedEvent),
        (Bug::SwappedEvents, Rule::LostEvent),
        (Bug::WrongType, Rule::WrongEvent),
    ] {
        let (most, rules) = largest(bug);
        assert!(rules.contains(&rule), "{bug:?}: {rules:?}");
        assert!(most <= 10, "{bug:?} leaves {most} operations and events");
    }
}
