use std::time::Duration;

use rstest::rstest;

use super::{Rule, check};
use crate::generated::stress::history::{
    Action, Content, Event, EventKind, History, Operation, Outcome, Snapshot, State, Watch,
    WatchEnd,
};

/// A history of the object `a`, which is hand-written in the notation of the methods.
struct Written(History);

fn content(text: &str) -> Content {
    let entries = text.split_whitespace().filter_map(|entry| entry.split_once('='));
    entries.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

/// The object `a` at a version, with uid `u`.
fn a(version: u64, text: &str) -> State {
    named("a", version, text)
}

fn named(name: &str, version: u64, text: &str) -> State {
    State {
        name: name.to_owned(),
        uid: format!("u-{name}"),
        version: version.to_string(),
        content: content(text),
    }
}

fn list(version: u64, objects: &[State]) -> Snapshot {
    Snapshot { version: version.to_string(), objects: objects.to_vec() }
}

impl Written {
    /// Starts with the object `a` at version 10.
    fn new() -> Self {
        let initial = list(10, &[a(10, "c0=1")]);
        Self(History { numeric: true, initial, ..History::default() })
    }

    /// Adds an operation of a client between two milliseconds.
    fn op(mut self, client: usize, times: (u64, u64), action: Action, outcome: Outcome) -> Self {
        let (start, end) = (Duration::from_millis(times.0), Duration::from_millis(times.1));
        self.0.operations.push(Operation { client, start, end, action, outcome });
        self
    }

    /// Adds a patch that succeeds.
    fn patch(self, client: usize, times: (u64, u64), own: &str, after: State) -> Self {
        let action = Action::MergePatch("a".to_owned(), content(own));
        self.op(client, times, action, Outcome::Object(after))
    }

    /// Adds a complete watch.
    fn watch(self, from: u64, events: &[(EventKind, State)]) -> Self {
        self.watch_until(from, events, WatchEnd::Complete)
    }

    fn watch_until(mut self, from: u64, events: &[(EventKind, State)], end: WatchEnd) -> Self {
        let events = events.iter().map(|(kind, state)| Event {
            at: Duration::from_millis(90),
            kind: kind.clone(),
            state: state.clone(),
        });
        self.0.watches.push(Watch {
            watcher: self.0.watches.len(),
            start: Duration::ZERO,
            from: from.to_string(),
            after: from.to_string(),
            events: events.collect(),
            end,
        });
        self
    }

    /// Judges the history with ordered and with opaque versions.
    #[track_caller]
    fn rules(self) -> Vec<Rule> {
        let rules = |history: &History| check(history).iter().map(|one| one.rule).collect();
        let numeric: Vec<Rule> = rules(&self.0);
        let opaque: Vec<Rule> = rules(&History { numeric: false, ..self.0 });
        if numeric.is_empty() {
            assert_eq!(opaque, [], "opaque versions give a false alarm");
        }
        numeric
    }
}

fn get(version: u64, text: &str) -> (Action, Outcome) {
    (Action::Get("a".to_owned()), Outcome::Object(a(version, text)))
}

fn rejected(code: u16) -> Outcome {
    Outcome::Rejected(code, "Conflict".to_owned())
}

fn modified(version: u64, text: &str) -> (EventKind, State) {
    (EventKind::Modified, a(version, text))
}

fn bookmark(version: u64) -> (EventKind, State) {
    (EventKind::Bookmark, State { version: version.to_string(), ..State::default() })
}

/// Two patches one after the other, and a watch.
fn two_patches() -> Written {
    Written::new()
        .watch(10, &[modified(11, "c0=2"), modified(12, "c0=2 c1=1")])
        .patch(0, (0, 2), "c0=2", a(11, "c0=2"))
        .patch(1, (3, 5), "c1=1", a(12, "c0=2 c1=1"))
}

#[test]
fn a_correct_history_has_no_violation() {
    let (action, outcome) = get(12, "c0=2 c1=1");
    let listed = |state| Outcome::Listed(list(12, &[state]), vec![1]);
    let update = Action::Update("a".to_owned(), Some("10".to_owned()), content("c2=1"));
    let history = two_patches()
        .op(2, (6, 7), action, outcome)
        .op(2, (8, 9), Action::List(None), listed(a(12, "c0=2 c1=1")))
        .op(2, (10, 11), update, rejected(409))
        .watch(11, &[bookmark(11), modified(12, "c0=2 c1=1"), bookmark(12)])
        .watch(12, &[]);
    assert_eq!(history.rules(), []);
}

#[test]
fn an_update_over_an_unseen_write_is_a_lost_update() {
    let update = Action::Update("a".to_owned(), Some("10".to_owned()), content("c0=1 c1=1"));
    let history = Written::new()
        .watch(10, &[modified(11, "c0=2"), modified(12, "c0=1 c1=1")])
        .patch(0, (0, 2), "c0=2", a(11, "c0=2"))
        .op(1, (1, 3), update, Outcome::Object(a(12, "c0=1 c1=1")));
    assert_eq!(history.rules(), [Rule::LostUpdate]);
}

#[test]
fn a_patch_that_drops_another_write_is_a_lost_update() {
    let history = Written::new()
        .watch(10, &[modified(11, "c0=2"), modified(12, "c0=1 c1=1")])
        .patch(0, (0, 2), "c0=2", a(11, "c0=2"))
        .patch(1, (1, 3), "c1=1", a(12, "c0=1 c1=1"));
    assert_eq!(history.rules(), [Rule::LostUpdate]);
}

#[test]
fn a_read_that_is_older_than_an_acknowledged_write_is_stale() {
    let (action, outcome) = get(11, "c0=2");
    assert_eq!(two_patches().op(2, (6, 7), action, outcome).rules(), [Rule::StaleRead]);
}

#[test]
fn a_read_that_is_older_than_another_read_is_stale() {
    let (newer, of_newer) = get(11, "c0=2");
    let (older, of_older) = get(10, "c0=1");
    let history = Written::new()
        .watch(10, &[modified(11, "c0=2")])
        .op(1, (1, 2), newer, of_newer)
        .op(1, (3, 4), older, of_older)
        .patch(0, (0, 9), "c0=2", a(11, "c0=2"));
    assert_eq!(history.rules(), [Rule::StaleRead]);
}

#[test]
fn a_read_during_a_write_shows_either_state() {
    for (version, text) in [(10, "c0=1"), (11, "c0=2")] {
        let (action, outcome) = get(version, text);
        let history = Written::new()
            .watch(10, &[modified(11, "c0=2")])
            .patch(0, (0, 9), "c0=2", a(11, "c0=2"))
            .op(1, (3, 4), action, outcome);
        assert_eq!(history.rules(), []);
    }
}

#[test]
fn two_writes_share_no_version() {
    let history = Written::new()
        .watch(10, &[modified(11, "c0=2")])
        .patch(0, (0, 2), "c0=2", a(11, "c0=2"))
        .patch(1, (3, 5), "c1=1", a(11, "c0=2 c1=1"));
    assert!(history.rules().contains(&Rule::SharedVersion));
}

#[test]
fn a_later_write_has_a_later_version() {
    let history = Written::new()
        .watch(10, &[modified(11, "c0=1 c1=1"), modified(12, "c0=2 c1=1")])
        .patch(0, (0, 2), "c0=2", a(12, "c0=2 c1=1"))
        .patch(1, (3, 5), "c1=1", a(11, "c0=1 c1=1"));
    assert_eq!(history.rules(), [Rule::VersionOrder]);
}

#[rstest]
#[case::not_acknowledged(rejected(409), vec![Rule::UnexplainedChange])]
#[case::unknown(Outcome::Unknown("timeout".to_owned()), vec![])]
fn only_a_write_that_may_have_happened_explains_a_change(
    #[case] outcome: Outcome,
    #[case] expected: Vec<Rule>,
) {
    let action = Action::MergePatch("a".to_owned(), content("c0=2"));
    let update = Action::MergePatch("a".to_owned(), content("c1=1"));
    let history = Written::new()
        .watch(10, &[modified(11, "c0=2"), modified(12, "c0=2 c1=1")])
        .op(0, (0, 6), action, outcome)
        .op(1, (0, 5), update, Outcome::Object(a(12, "c0=2 c1=1")));
    assert_eq!(history.rules(), expected);
}

#[test]
fn an_unknown_write_need_not_have_happened() {
    let action = Action::MergePatch("a".to_owned(), content("c3=1"));
    let unknown = Outcome::Unknown("timeout".to_owned());
    assert_eq!(two_patches().op(3, (0, 9), action, unknown).rules(), []);
}

#[rstest]
#[case::lost(&[modified(12, "c0=2 c1=1")], Rule::LostEvent)]
#[case::repeated(
    &[modified(11, "c0=2"), modified(11, "c0=2"), modified(12, "c0=2 c1=1")],
    Rule::RepeatedEvent
)]
#[case::replayed(&[modified(10, "c0=1"), modified(11, "c0=2")], Rule::RepeatedEvent)]
#[case::reordered(&[modified(12, "c0=2 c1=1"), modified(11, "c0=2")], Rule::LostEvent)]
#[case::other_type(&[(EventKind::Added, a(11, "c0=2"))], Rule::WrongEvent)]
#[case::bookmark_ahead(&[modified(11, "c0=2"), bookmark(12)], Rule::Bookmark)]
#[case::bookmark_behind(&[modified(11, "c0=2"), bookmark(10)], Rule::Bookmark)]
#[case::other_content(&[modified(11, "c0=9")], Rule::SharedVersion)]
fn watches_report_each_change_once(#[case] events: &[(EventKind, State)], #[case] expected: Rule) {
    let rules = two_patches().watch(10, events).rules();
    assert_eq!(rules.first(), Some(&expected), "{rules:?}");
}

#[test]
fn an_overdue_event_is_lost() {
    let silent = two_patches().watch_until(10, &[modified(11, "c0=2")], WatchEnd::Silent);
    assert_eq!(silent.rules(), [Rule::LostEvent]);
    let closed = WatchEnd::Closed("reset".to_owned());
    assert_eq!(two_patches().watch_until(10, &[modified(11, "c0=2")], closed).rules(), []);
}

#[test]
fn the_first_watch_reports_every_acknowledged_delete() {
    let delete =
        || (Action::Delete("a".to_owned(), None), Outcome::Deleted(Some("u-a".to_owned())));
    let (action, outcome) = delete();
    let lost = Written::new().watch(10, &[]).op(0, (0, 1), action, outcome);
    assert_eq!(lost.rules(), [Rule::LostEvent]);
    let (action, outcome) = delete();
    let event = (EventKind::Deleted, a(11, "c0=1"));
    let seen = Written::new().watch(10, &[event]).op(0, (0, 1), action, outcome);
    assert_eq!(seen.rules(), []);
}

#[test]
fn a_list_that_mixes_two_states_is_found() {
    let both = [named("a", 10, "c0=1"), named("b", 11, "c1=1")];
    let mixed = |objects: &[State], version| {
        let create = Action::Create("b".to_owned(), content("c1=1"));
        let history = Written::new()
            .watch(10, &[(EventKind::Added, named("b", 11, "c1=1")), modified(12, "c0=2")])
            .op(1, (0, 9), create, Outcome::Object(named("b", 11, "c1=1")))
            .patch(0, (0, 9), "c0=2", a(12, "c0=2"));
        let listed = Outcome::Listed(list(version, objects), vec![1, 1]);
        history.op(2, (3, 4), Action::List(Some(1)), listed).rules()
    };
    assert_eq!(mixed(&both, 11), []);
    assert_eq!(mixed(&both[..1], 10), []);
    assert_eq!(mixed(&both[..1], 11), [Rule::MixedList]);
    assert_eq!(mixed(&[both[0].clone(), both[0].clone()], 10), [Rule::MixedList]);
    assert_eq!(mixed(&[a(12, "c0=2"), both[1].clone()], 10), [Rule::MixedList]);
}

#[test]
fn a_page_is_not_larger_than_its_limit() {
    let listed = Outcome::Listed(list(12, &[a(12, "c0=2 c1=1")]), vec![2]);
    let history = two_patches().op(2, (8, 9), Action::List(Some(1)), listed);
    assert_eq!(history.rules(), [Rule::PageSize]);
}

#[rstest]
#[case::missing(Action::Get("a".to_owned()), 404)]
#[case::uncontended(Action::MergePatch("a".to_owned(), content("c2=1")), 409)]
fn a_rejection_needs_a_cause(#[case] action: Action, #[case] code: u16) {
    let worked = get(12, "c0=2 c1=1");
    let history =
        two_patches().op(2, (6, 7), worked.0, worked.1).op(2, (8, 9), action, rejected(code));
    assert_eq!(history.rules().len(), 1);
}

#[test]
fn a_precondition_that_holds_is_no_cause() {
    let delete = |version: &str| Action::Delete("a".to_owned(), Some(version.to_owned()));
    let deleted = Outcome::Deleted(Some("u-a".to_owned()));
    let history = Written::new()
        .watch(10, &[(EventKind::Deleted, a(11, "c0=1"))])
        .op(0, (0, 1), delete("10"), rejected(409))
        .op(0, (2, 3), delete("10"), deleted);
    assert_eq!(history.rules(), [Rule::WrongRejection]);
}

#[test]
fn a_rejection_with_a_cause_is_correct() {
    let create = Action::Create("a".to_owned(), content("c2=1"));
    let stale = Action::Delete("a".to_owned(), Some("10".to_owned()));
    let patch = Action::MergePatch("a".to_owned(), content("c2=1"));
    let history = two_patches()
        .op(2, (8, 9), create, rejected(409))
        .op(2, (8, 9), stale, rejected(409))
        .op(2, (3, 4), patch, rejected(409));
    assert_eq!(history.rules(), []);
}

#[test]
fn an_object_keeps_its_uid_and_gets_a_new_one_after_its_deletion() {
    let other = State { uid: "other".to_owned(), ..a(11, "c0=2") };
    let changed = Written::new().watch(10, &[(EventKind::Modified, other.clone())]).patch(
        0,
        (0, 2),
        "c0=2",
        other,
    );
    assert_eq!(changed.rules(), [Rule::Uid]);
    let delete = Action::Delete("a".to_owned(), None);
    let create = Action::Create("a".to_owned(), content("c0=2"));
    let again = Written::new()
        .watch(10, &[(EventKind::Deleted, a(11, "c0=1")), (EventKind::Added, a(12, "c0=2"))])
        .op(0, (0, 1), delete, Outcome::Deleted(Some("u-a".to_owned())))
        .op(0, (2, 3), create, Outcome::Object(a(12, "c0=2")));
    assert_eq!(again.rules(), [Rule::Uid]);
}

#[test]
fn a_write_before_a_restart_may_not_disappear() {
    let (action, outcome) = get(10, "c0=1");
    let history = two_patches().op(0, (6, 7), action, outcome);
    assert_eq!(history.rules(), [Rule::StaleRead]);
    let missing = Action::Get("a".to_owned());
    let history = two_patches()
        .op(0, (6, 7), Action::Get("a".to_owned()), Outcome::Object(a(12, "c0=2 c1=1")))
        .op(0, (8, 9), missing, rejected(404));
    assert_eq!(history.rules(), [Rule::LostWrite]);
}

#[test]
fn after_a_compaction_the_rest_is_judged() {
    let history = Written::new()
        .watch_until(10, &[], WatchEnd::Expired)
        .patch(0, (0, 2), "c0=2", a(11, "c0=2"))
        .op(1, (3, 4), Action::Delete("a".to_owned(), None), Outcome::Deleted(None));
    assert_eq!(history.rules(), []);
}
