//! The store against a model that keeps every version of everything.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

const TABLE: &str = "things";
/// Short enough to be overrun.
const HISTORY: usize = 12;

#[derive(Clone, Debug)]
enum Act {
    Put(usize, usize, u8),
    Delete(usize, usize),
    /// Another table moves the versions on.
    Elsewhere,
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => (0..3_usize, 0..4_usize, any::<u8>()).prop_map(|(namespace, name, text)| Act::Put(namespace, name, text)),
        2 => (0..3_usize, 0..4_usize).prop_map(|(namespace, name)| Act::Delete(namespace, name)),
        1 => Just(Act::Elsewhere),
    ]
}

fn key(namespace: usize, name: usize) -> Key {
    // One namespace is the beginning of another.
    Key::new(["", "n", "nn"][namespace], ["a", "b", "ba", "c"][name])
}

fn draft(key: Key, text: u8) -> Draft {
    let before = r#"{"metadata":{"resourceVersion":""#.to_owned();
    let after = format!(r#""}},"text":{text}}}"#);
    Draft { key, facts: Facts::default(), before, after, body: 1 }
}

type Objects = BTreeMap<Key, (u64, u8)>;

/// Every version of a table.
struct Model {
    versions: BTreeMap<u64, Objects>,
    events: Vec<(u64, Change, Key)>,
}

impl Model {
    fn now(&self) -> Objects {
        self.versions.last_key_value().map(|(_, objects)| objects.clone()).unwrap_or_default()
    }

    /// The newest version whose events may be gone.
    fn floor(&self) -> u64 {
        let forgotten = self.events.len().saturating_sub(HISTORY);
        forgotten.checked_sub(1).map_or(FIRST_REVISION, |last| self.events[last].0)
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

proptest! {
    #[test]
    fn every_version_is_as_it_was_or_gone(acts in prop::collection::vec(act(), 0..40), limit in 1..5_usize) {
        let store = Store::new(HISTORY);
        let mut model = Model { versions: BTreeMap::from([(FIRST_REVISION, Objects::new())]), events: Vec::new() };
        for act in acts {
            let mut objects = model.now();
            match act {
                Act::Put(namespace, name, text) => {
                    let key = key(namespace, name);
                    let put = store.write(|write| write.put(TABLE, draft(key.clone(), text)));
                    let change = if objects.insert(key.clone(), (put.revision, text)).is_some() { Change::Modified } else { Change::Added };
                    model.events.push((put.revision, change, key));
                }
                Act::Delete(namespace, name) => {
                    let key = key(namespace, name);
                    let deleted = store.write(|write| write.delete(TABLE, &key));
                    prop_assert_eq!(deleted.is_some(), objects.remove(&key).is_some());
                    if let Some(deleted) = deleted {
                        model.events.push((deleted.revision, Change::Deleted, key));
                    }
                }
                Act::Elsewhere => drop(store.write(|write| write.put("others", draft(Key::new("", "x"), 0)))),
            }
            model.versions.insert(store.revision(), objects);
        }
        let touched = !model.events.is_empty();
        for revision in FIRST_REVISION..=store.revision() {
            // Between two changes of the table nothing differs.
            let objects = model.versions.range(..=revision).next_back().map(|(_, objects)| objects.clone()).unwrap_or_default();
            let range = Range { revision: Some(revision), ..Range::default() };
            let gone = touched && revision < model.floor();
            match store.list(TABLE, range, |_| true) {
                Ok(page) => {
                    prop_assert!(!gone, "{} is forgotten", revision);
                    prop_assert_eq!(shown(&page.items), objects.clone().into_iter().collect::<Vec<_>>());
                }
                Err(error) => {
                    prop_assert!(gone, "{}: {}", revision, error);
                    prop_assert!(store.news(TABLE, revision, 5).is_err());
                    continue;
                }
            }
            for namespace in ["", "n", "nn", "none"] {
                let (mut pages, mut after): (Vec<Arc<Stored>>, Option<Key>) = (Vec::new(), None);
                let expected: Vec<_> = objects.iter().filter(|(key, _)| key.namespace == namespace).map(|(key, state)| (key.clone(), *state)).collect();
                loop {
                    let range = Range { namespace: Some(namespace), after: after.as_ref(), limit: Some(limit), ..range };
                    let page = store.list(TABLE, range, |_| true).expect("it is there");
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
            // A window on the events from here on, read in steps.
            let (mut cursor, mut seen) = (revision, Vec::new());
            loop {
                let news = store.news(TABLE, cursor, limit).expect("nothing is forgotten meanwhile");
                prop_assert!(news.events.len() <= limit);
                seen.extend(news.events.iter().map(|event| (event.revision, event.change, event.object.key.clone())));
                cursor = news.revision;
                if news.events.is_empty() {
                    break;
                }
            }
            prop_assert_eq!(cursor, store.revision());
            let expected: Vec<_> = model.events.iter().filter(|event| event.0 > revision).cloned().collect();
            prop_assert_eq!(seen, expected);
        }
    }

    /// Large events come in smaller windows, and none is left out.
    #[test]
    fn windows_are_bounded_by_weight(sizes in prop::collection::vec(prop::sample::select(vec![10_usize, 100_000, 300_000]), 1..10)) {
        let store = Store::new(100);
        for (n, size) in sizes.iter().enumerate() {
            let mut draft = draft(Key::new("", n.to_string()), 0);
            draft.before.push_str(&" ".repeat(*size));
            store.write(|write| write.put(TABLE, draft));
        }
        let (mut cursor, mut seen) = (FIRST_REVISION, 0);
        while cursor < store.revision() {
            let news = store.news(TABLE, cursor, 128).expect("the log is long enough");
            prop_assert!(!news.events.is_empty());
            let weights: Vec<usize> = news.events.iter().map(|event| event.object.size()).collect();
            let all_but_last: usize = weights[..weights.len() - 1].iter().sum();
            prop_assert!(all_but_last < 256 * 1024);
            let whole: usize = weights.iter().sum();
            prop_assert!(whole >= 256 * 1024 || news.revision == store.revision(), "no window ends early");
            seen += news.events.len();
            cursor = news.revision;
        }
        prop_assert_eq!(seen, sizes.len());
    }
}
