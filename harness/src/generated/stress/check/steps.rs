//! Each change is the result of its operation on the state before it.

use std::collections::BTreeSet;
use std::time::Duration;

use super::changes::{Change, Changes, described};
use super::matches::own_key;
use super::{Rule, Violation};
use crate::generated::stress::history::{Action, Content, History, Operation, Outcome, State};

pub(super) fn check(history: &History, changes: &Changes, violations: &mut Vec<Violation>) {
    for name in changes.names().filter(|name| !changes.unsure.contains(*name)) {
        of_object(name, history, changes, violations);
    }
    in_real_time(history, changes, violations);
    responses(history, violations);
}

fn of_object(name: &str, history: &History, changes: &Changes, violations: &mut Vec<Violation>) {
    let mut current = changes.initial.get(name);
    let mut writer: Option<usize> = None;
    let mut uids: BTreeSet<&str> = current.iter().map(|state| state.uid.as_str()).collect();
    for change in changes.of(name) {
        let involved = writer.into_iter().chain(change.operation);
        let shown = |violation: Violation| match change.operation {
            Some(_) => violation.of(involved.clone()),
            None => change.add_to(violation.of(involved.clone())),
        };
        let broken = match change.operation.map(|index| &history.operations[index]) {
            Some(operation) => step(operation, change, current, changes),
            None => unexplained(history, change, current),
        };
        violations.extend(broken.map(shown));
        let has_own_uid = match current {
            Some(current) => current.uid == change.state.uid,
            None => uids.insert(&change.state.uid),
        };
        if !has_own_uid {
            let expected = if current.is_some() { "the uid it had" } else { "a new uid" };
            let message = format!(
                "expected {} to have {expected}, got {:?}",
                described(&change.state, change.deleted),
                change.state.uid
            );
            violations.push(shown(Violation::new(Rule::Uid, message)));
        }
        current = (!change.deleted).then_some(&change.state);
        writer = change.operation;
    }
}

/// Returns what is wrong with a change.
fn step(
    operation: &Operation,
    change: &Change,
    before: Option<&State>,
    changes: &Changes,
) -> Option<Violation> {
    let verb = operation.action.verb();
    let name = &change.state.name;
    let wrong = |rule, message| Some(Violation::new(rule, message));
    if change.deleted != matches!(operation.action, Action::Delete(..)) {
        let got = described(&change.state, change.deleted);
        return wrong(Rule::WrongResult, format!("the {verb} of {name} led to {got}"));
    }
    if let (Some(required), Some(before)) = (operation.action.precondition(), before)
        && changes.is_outdated(before, required)
    {
        let message = format!(
            "expected the {verb} of {name} at version {required} to be rejected with 409, because \
             the object was at version {}; it succeeded with version {}",
            before.version, change.state.version
        );
        return wrong(Rule::LostUpdate, message);
    }
    let expected = match (&operation.action, before) {
        (Action::Create(..), Some(before)) => {
            let message = format!(
                "expected the create of {name} to be rejected with 409, because it existed at \
                 version {}; it succeeded with version {}",
                before.version, change.state.version
            );
            return wrong(Rule::LostUpdate, message);
        }
        (Action::Create(_, content), None) | (Action::Update(_, _, content), Some(_)) => {
            content.clone()
        }
        (Action::MergePatch(_, content) | Action::JsonPatch(_, content), Some(before)) => {
            joined(Some(before), content)
        }
        (Action::Apply(_, content), before) => joined(before, content),
        (Action::Delete(..), Some(before)) => before.content.clone(),
        (_, None) => {
            let message = format!(
                "expected the {verb} of {name} to be rejected with 404, because it did not exist; \
                 it succeeded with version {}",
                change.state.version
            );
            return wrong(Rule::WrongResult, message);
        }
        (Action::Get(_) | Action::List(_), _) => return None,
    };
    if expected == change.state.content {
        return None;
    }
    let rule = if loses(before, &expected, &change.state.content) {
        Rule::LostUpdate
    } else {
        Rule::WrongResult
    };
    let expected = State { content: expected, ..change.state.clone() };
    let message = format!(
        "expected the {verb} to lead to {}, got {}",
        described(&expected, change.deleted),
        described(&change.state, change.deleted)
    );
    wrong(rule, message)
}

/// Reports whether an entry disappeared that the write should have kept.
fn loses(before: Option<&State>, expected: &Content, after: &Content) -> bool {
    let mut had = before.into_iter().flat_map(|before| &before.content);
    had.any(|(key, value)| expected.get(key) == Some(value) && after.get(key) != Some(value))
}

fn joined(before: Option<&State>, content: &Content) -> Content {
    let mut joined = before.map(|before| before.content.clone()).unwrap_or_default();
    joined.extend(content.clone());
    joined
}

/// Judges a change without an operation. Controllers may change other parts of an object.
fn unexplained(history: &History, change: &Change, before: Option<&State>) -> Option<Violation> {
    let is_of_others =
        !change.deleted && before.is_some_and(|before| before.content == change.state.content);
    if is_of_others {
        return None;
    }
    let rejected = history.operations.iter().position(|operation| {
        let key = own_key(operation.client);
        let written = operation.action.content().and_then(|content| content.get(&key));
        let is_rejected = matches!(operation.outcome, Outcome::Rejected(..));
        is_rejected && written.is_some() && change.state.content.get(&key) == written
    });
    let cause = match rejected {
        Some(_) if !change.deleted => "the server rejected the write that it comes from",
        _ => "no request explains it",
    };
    let message = format!(
        "{} appeared at version {}, but {cause}",
        described(&change.state, change.deleted),
        change.state.version
    );
    let rejected = rejected.filter(|_| !change.deleted);
    Some(Violation::new(Rule::UnexplainedChange, message).of(rejected))
}

/// A write that ended before another one began has the lower version.
fn in_real_time(history: &History, changes: &Changes, violations: &mut Vec<Violation>) {
    let mut earliest: Option<(Duration, usize, &Change)> = None;
    for change in changes.all.iter().rev() {
        let Some(index) = change.operation else { continue };
        // Its operation may be another one.
        if change.deleted && changes.unsure.contains(&change.state.name) {
            continue;
        }
        let operation = &history.operations[index];
        if let Some((end, later, of)) = earliest
            && operation.start > end
        {
            let message = format!(
                "expected {} to have a higher version than {}, because it began after the \
                 response to that; got {} and {}",
                operation.action.verb(),
                history.operations[later].action.verb(),
                change.state.version,
                of.state.version
            );
            violations.push(Violation::new(Rule::VersionOrder, message).of([later, index]));
        }
        if operation.outcome.is_success() && earliest.is_none_or(|(end, ..)| operation.end < end) {
            earliest = Some((operation.end, index, change));
        }
    }
}

/// The response of a write shows the object that it names.
fn responses(history: &History, violations: &mut Vec<Violation>) {
    for (index, operation) in history.operations.iter().enumerate() {
        if let (Some(name), Outcome::Object(state)) = (operation.action.name(), &operation.outcome)
            && state.name != name
        {
            let verb = operation.action.verb();
            let message =
                format!("expected the {verb} of {name} to return {name}, got {:?}", state.name);
            violations.push(Violation::new(Rule::WrongResult, message).of([index]));
        }
    }
}
