//! A property test that compares the store with a model, which keeps every version of every object.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;

use super::tests::{delete, put_draft};
use super::*;

const TABLE: &str = "things";
/// Small, so that the tests exceed it.
const HISTORY: usize = 12;

#[derive(Clone, Debug)]
enum Act {
    Put(usize, usize, u8),
    Delete(usize, usize),
    /// A write to another table, which increments the version.
    Elsewhere,
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => (0..3_usize, 0..4_usize, any::<u8>())
            .prop_map(|(namespace, name, text)| Act::Put(namespace, name, text)),
        2 => (0..3_usize, 0..4_usize).prop_map(|(namespace, name)| Act::Delete(namespace, name)),
        1 => Just(Act::Elsewhere),
    ]
}

fn key(namespace: usize, name: usize) -> Key {
    // One namespace is a prefix of another.
    Key::new(["", "n", "nn"][namespace], ["a", "b", "ba", "c"][name])
}

fn draft(key: Key, text: u8) -> Draft {
    let before = br#"{"metadata":{"resourceVersion":""#.to_vec();
    let after = format!(r#""}},"text":{text}}}"#).into();
    Draft { key, facts: Arc::default(), before, after, body: 1 }
}

type Objects = BTreeMap<Key, (u64, u8)>;

struct Model {
    versions: BTreeMap<u64, Objects>,
    events: Vec<(u64, Change, Key)>,
}

impl Model {
    fn now(&self) -> Objects {
        self.versions.last_key_value().map(|(_, objects)| objects.clone()).unwrap_or_default()
    }

    /// Returns the newest version whose events may be compacted.
    fn floor(&self) -> u64 {
        let compacted = self.events.len().saturating_sub(HISTORY);
        compacted.checked_sub(1).map_or(FIRST_REVISION, |last| self.events[last].0)
    }
}

fn shown(items: &[Arc<Stored>]) -> Vec<(Key, (u64, u8))> {
    let text = |item: &Stored| {
        let value: serde_json::Value = serde_json::from_slice(item.object()).expect("JSON");
        assert_eq!(value["metadata"]["resourceVersion"], item.revision.to_string());
        u8::try_from(value["text"].as_u64().expect("a number")).expect("a byte")
    };
    items.iter().map(|item| (item.key.clone(), (item.revision, text(item)))).collect()
}

impl Model {
    /// Applies a write to the store and to the model.
    fn act(&mut self, store: &Store, act: &Act) -> TestCaseResult {
        let mut objects = self.now();
        match *act {
            Act::Put(namespace, name, text) => {
                let key = key(namespace, name);
                let put = put_draft(store, TABLE, &draft(key.clone(), text));
                let previous = objects.insert(key.clone(), (put.revision, text));
                let change = if previous.is_some() { Change::Modified } else { Change::Added };
                self.events.push((put.revision, change, key));
            }
            Act::Delete(namespace, name) => {
                let key = key(namespace, name);
                let deleted = delete(store, TABLE, &key);
                prop_assert_eq!(deleted.is_some(), objects.remove(&key).is_some());
                if let Some(deleted) = deleted {
                    self.events.push((deleted.revision, Change::Deleted, key));
                }
            }
            Act::Elsewhere => {
                put_draft(store, "others", &draft(Key::new("", "x"), 0));
            }
        }
        self.versions.insert(store.revision(), objects);
        Ok(())
    }

    /// Returns the objects at a version. A write to another table does not change them.
    fn at(&self, revision: u64) -> Objects {
        let before = self.versions.range(..=revision).next_back();
        before.map(|(_, objects)| objects.clone()).unwrap_or_default()
    }

    /// Reads all events after `revision` in windows, and compares them with the model.
    fn check_events(&self, store: &Store, revision: u64, limit: usize) -> TestCaseResult {
        let (mut cursor, mut seen) = (revision, Vec::new());
        loop {
            let news = store.news(TABLE, cursor, limit).expect("no event is compacted meanwhile");
            prop_assert!(news.events.len() <= limit);
            let events = news.events.iter();
            seen.extend(
                events.map(|event| (event.revision, event.change, event.object.key.clone())),
            );
            cursor = news.revision;
            if news.events.is_empty() {
                break;
            }
        }
        prop_assert_eq!(cursor, store.revision());
        let expected: Vec<_> =
            self.events.iter().filter(|event| event.0 > revision).cloned().collect();
        prop_assert_eq!(seen, expected);
        Ok(())
    }
}

/// Lists each namespace in pages, and compares them with `objects`.
fn check_pages(store: &Store, range: Range<'_>, limit: usize, objects: &Objects) -> TestCaseResult {
    for namespace in ["", "n", "nn", "none"] {
        let (mut pages, mut after): (Vec<Arc<Stored>>, Option<Key>) = (Vec::new(), None);
        let own = objects.iter().filter(|(key, _)| key.namespace == namespace);
        let expected: Vec<_> = own.map(|(key, state)| (key.clone(), *state)).collect();
        loop {
            let after_key = after.as_ref();
            let range =
                Range { namespace: Some(namespace), after: after_key, limit: Some(limit), ..range };
            let page = store.list(TABLE, range, |_| true).expect("the version is available");
            pages.extend(page.items);
            prop_assert_eq!(page.remaining, expected.len() - pages.len());
            prop_assert_eq!(page.more, page.remaining > 0);
            if !page.more {
                break;
            }
            after = pages.last().map(|item| item.key.clone());
        }
        prop_assert_eq!(shown(&pages), expected);
    }
    Ok(())
}

proptest! {
    #[test]
    fn every_version_is_unchanged_or_expired(
        acts in prop::collection::vec(act(), 0..40),
        limit in 1..5_usize,
    ) {
        let store = Store::new(HISTORY);
        let versions = BTreeMap::from([(FIRST_REVISION, Objects::new())]);
        let mut model = Model { versions, events: Vec::new() };
        for act in acts {
            model.act(&store, &act)?;
        }
        let touched = !model.events.is_empty();
        for revision in FIRST_REVISION..=store.revision() {
            let objects = model.at(revision);
            let range = Range { revision: Some(revision), ..Range::default() };
            let compacted = touched && revision < model.floor();
            match store.list(TABLE, range, |_| true) {
                Ok(page) => {
                    prop_assert!(!compacted, "{} is compacted", revision);
                    let expected: Vec<_> = objects.clone().into_iter().collect();
                    prop_assert_eq!(shown(&page.items), expected);
                    check_pages(&store, range, limit, &objects)?;
                    model.check_events(&store, revision, limit)?;
                }
                Err(error) => {
                    prop_assert!(compacted, "{}: {}", revision, error);
                    prop_assert!(store.news(TABLE, revision, 5).is_err());
                }
            }
        }
    }

    /// Large events come in smaller windows, and no event is omitted.
    #[test]
    fn windows_are_limited_by_size(
        sizes in prop::collection::vec(
            prop::sample::select(vec![10_usize, 100_000, 300_000]),
            1..10,
        ),
    ) {
        let store = Store::new(100);
        for (n, size) in sizes.iter().enumerate() {
            let mut draft = draft(Key::new("", n.to_string()), 0);
            draft.before.extend(b" ".repeat(*size));
            put_draft(&store, TABLE, &draft);
        }
        let (mut cursor, mut seen) = (FIRST_REVISION, 0);
        while cursor < store.revision() {
            let news = store.news(TABLE, cursor, 128).expect("the log is long enough");
            prop_assert!(!news.events.is_empty());
            let weights: Vec<usize> = news.events.iter().map(|event| event.object.size()).collect();
            let all_but_last: usize = weights[..weights.len() - 1].iter().sum();
            prop_assert!(all_but_last < 256 * 1024);
            let whole: usize = weights.iter().sum();
            prop_assert!(
                whole >= 256 * 1024 || news.revision == store.revision(),
                "no window ends early",
            );
            seen += news.events.len();
            cursor = news.revision;
        }
        prop_assert_eq!(seen, sizes.len());
    }
}
