use std::collections::BTreeMap;
use std::pin::pin;
use std::thread;

use futures_util::FutureExt;

use super::*;

const TABLE: &str = "things";

fn draft(namespace: &str, name: &str, text: &str) -> Draft {
    let before = br#"{"kind":"Thing","metadata":{"resourceVersion":""#.to_vec();
    let body = r#"{"kind":"Thing","#.len();
    let after = format!(r#"","name":"{name}"}},"text":"{text}"}}"#).into();
    Draft { key: Key::new(namespace, name), facts: Arc::default(), before, after, body }
}

fn put(store: &Store, namespace: &str, name: &str, text: &str) -> Arc<Stored> {
    put_draft(store, TABLE, &draft(namespace, name, text))
}

/// Runs a write on a store in memory, which never waits.
pub(super) fn write<R: Send>(
    store: &Store,
    change: impl FnMut(&mut Write<'_>) -> R + Send,
) -> (R, Option<Arc<Stored>>) {
    store.write(change).now_or_never().expect("no wait").expect("a write in memory")
}

pub(super) fn put_draft(store: &Store, table: &str, draft: &Draft) -> Arc<Stored> {
    write(store, |write| write.put(table, draft)).1.expect("an object")
}

pub(super) fn delete(store: &Store, table: &str, key: &Key) -> Option<Arc<Stored>> {
    write(store, |write| write.delete(table, key)).1
}

fn names(page: &Page) -> Vec<&str> {
    page.items.iter().map(|item| item.key.name.as_str()).collect()
}

fn list(store: &Store, range: Range<'_>) -> Page {
    store.list(TABLE, range, |_| true).expect("a version that is there")
}

#[test]
fn an_object_is_a_slice_of_the_event_that_announced_it() {
    let store = Store::new(10);
    let object = put(&store, "", "a", "x");
    let text = format!(
        r#"{{"kind":"Thing","metadata":{{"resourceVersion":"{}","name":"a"}},"text":"x"}}"#,
        object.revision
    );
    assert_eq!(object.object(), text.as_bytes());
    assert_eq!(object.body(), &text.as_bytes()[r#"{"kind":"Thing","#.len()..]);
    let event = |kind: &str| format!("{{\"type\":\"{kind}\",\"object\":{text}}}\n");
    assert_eq!(object.line_as(Change::Added), event("ADDED"));
    assert_eq!(object.line_as(Change::Deleted), event("DELETED"));
    assert_eq!(
        object.line_as(Change::Added).as_ptr(),
        object.line_as(Change::Added).as_ptr(),
        "one buffer for all"
    );
}

#[test]
fn at_changes_only_the_version() {
    let store = Store::new(10);
    let object = put(&store, "", "a", "x");
    let later = object.at(123_456_789, Change::Modified);
    let expected =
        String::from_utf8_lossy(object.object()).replace(&object.revision.to_string(), "123456789");
    assert_eq!(later.object(), expected.as_bytes());
    assert_eq!(later.body(), &expected.as_bytes()[r#"{"kind":"Thing","#.len()..]);
    assert!(later.same_content(&draft("", "a", "x")));
    assert!(!later.same_content(&draft("", "a", "y")));
}

#[test]
fn an_object_exists_until_it_is_deleted() {
    let store = Store::new(10);
    let key = Key::new("n", "a");
    let there = || {
        let alone = store.get(TABLE, &key).map(|object| object.revision);
        let within = write(&store, |write| write.get(TABLE, &key).map(|object| object.revision)).0;
        assert_eq!(alone, within, "a write sees what a reader sees");
        alone
    };
    let namespaces = || {
        write(&store, |write| ["m", "n", "nn"].map(|namespace| write.has_namespace(namespace))).0
    };
    assert_eq!((there(), namespaces()), (None, [false; 3]));
    let put = put(&store, "n", "a", "").revision;
    assert_eq!((there(), namespaces()), (Some(put), [false, true, false]));
    let (items, revision) = store.snapshot(TABLE, Some("n"));
    assert_eq!(
        (items.iter().map(|item| item.revision).collect::<Vec<_>>(), revision),
        (vec![put], put)
    );
    assert!(store.snapshot(TABLE, Some("m")).0.is_empty());
    let deleted = delete(&store, TABLE, &key).expect("it is there").revision;
    assert_eq!((there(), namespaces()), (None, [false; 3]));
    assert_eq!(store.snapshot(TABLE, None).1, deleted, "an empty list has the newest version");
}

#[test]
fn a_list_at_a_version_omits_later_changes() {
    let store = Store::new(100);
    for name in ["a", "b", "c"] {
        put(&store, "n", name, "1");
    }
    let then = store.revision();
    put(&store, "n", "b", "2");
    put(&store, "n", "bb", "1");
    delete(&store, TABLE, &Key::new("n", "c"));
    put(&store, "n", "c", "again");
    delete(&store, TABLE, &Key::new("n", "a"));

    let past = list(&store, Range { revision: Some(then), ..Range::default() });
    assert_eq!((names(&past), past.revision), (vec!["a", "b", "c"], then));
    assert!(
        past.items.iter().all(|item| item.object().ends_with(br#""text":"1"}"#)),
        "the states of then"
    );
    assert_eq!(names(&list(&store, Range::default())), ["b", "bb", "c"]);
}

#[test]
fn pages_cover_a_namespace_and_count_what_remains() {
    let store = Store::new(100);
    for (namespace, name) in [("m", "z"), ("n", "a"), ("n", "b"), ("n", "c"), ("o", "a")] {
        put(&store, namespace, name, "");
    }
    let range = Range { namespace: Some("n"), limit: Some(2), ..Range::default() };
    let first = list(&store, range);
    assert_eq!((names(&first), first.more, first.remaining), (vec!["a", "b"], true, 1));
    let last = list(&store, Range { after: first.items.last().map(|item| &item.key), ..range });
    assert_eq!((names(&last), last.more, last.remaining), (vec!["c"], false, 0));
}

#[test]
fn versions_outside_the_log_are_expired_or_in_the_future() {
    let store = Store::new(2);
    let first = put(&store, "", "a", "0").revision;
    for text in ["1", "2", "3"] {
        put(&store, "", "a", text);
    }
    let current = store.revision();
    assert_eq!(
        store.news(TABLE, first, 10).map(|news| news.revision),
        Err(RevisionError::Expired { oldest: current - 2 })
    );
    let range = |revision| Range { revision: Some(revision), ..Range::default() };
    assert!(matches!(
        store.list(TABLE, range(first), |_| true),
        Err(RevisionError::Expired { .. })
    ));
    assert_eq!(names(&list(&store, range(current - 2))), ["a"]);
    assert!(matches!(
        store.list(TABLE, range(current + 1), |_| true),
        Err(RevisionError::Future { current: now }) if now == current
    ));
}

/// Writes an object whose event has this size. Returns its version.
fn put_sized(store: &Store, table: &str, size: usize) -> u64 {
    let first = store.get(table, &Key::new("", "a")).is_none();
    let change = if first { Change::Added } else { Change::Modified };
    let mut draft = draft("", "a", "");
    let bare = Stored::new(&draft, FIRST_REVISION, change).size();
    draft.before.extend(b" ".repeat(size - bare));
    let put = put_draft(store, table, &draft);
    assert_eq!(put.size(), size);
    put.revision
}

#[test]
fn a_history_holds_32_mebibytes_and_at_least_its_newest_event() {
    const ROOM: usize = 32 << 20;
    const SMALL: usize = 200;
    let store = Store::new(100);
    let put = |size| put_sized(&store, TABLE, size);
    let oldest = || store.news(TABLE, FIRST_REVISION, 1).map(|news| news.revision);
    let expired = |revision| Err(RevisionError::Expired { oldest: revision });

    let first = put(SMALL);
    put(ROOM / 4 - SMALL);
    let third = put(ROOM / 4);
    put(ROOM / 4);
    put(ROOM / 4);
    assert_eq!(oldest(), Ok(first), "it is full, and holds everything");
    put(SMALL);
    assert_eq!(oldest(), expired(first));
    let last = put(ROOM / 4);
    assert_eq!(oldest(), expired(third));
    let alone = put(ROOM + 1);
    assert_eq!(oldest(), expired(last));
    assert_eq!(
        store.news(TABLE, last, 2).map(|news| (news.events.len(), news.revision)),
        Ok((1, alone))
    );
}

#[test]
fn the_oldest_events_of_all_tables_expire_first() {
    const QUARTER: usize = 8 << 20;
    let store = Store::new(100);
    let [first, ..] = ["a", "b", "a", "b"].map(|table| put_sized(&store, table, QUARTER));
    let expired = Err(RevisionError::Expired { oldest: first });
    put_sized(&store, "c", QUARTER);
    let next = |table, revision| store.news(table, revision, 1).map(|news| news.revision);
    assert_eq!(next("a", FIRST_REVISION), expired);
    assert_eq!(next("b", FIRST_REVISION), Ok(first + 1));
    let newer = store.news("a", first, 9).map(|news| news.events.len());
    assert_eq!(newer, Ok(1), "the log of each table is complete after its floor");
    assert_eq!(store.get("a", &Key::new("", "a")).map(|object| object.revision), Some(first + 2));
}

/// A deleted resource leaves nothing behind when its history expires. Its versions stay expired.
#[test]
fn a_table_without_content_is_dropped_with_its_history() {
    let store = Store::new(100);
    let put = put_sized(&store, "a", 1000);
    let deleted = delete(&store, "a", &Key::new("", "a")).expect("it is there");
    let watcher = store.subscribe("b");
    put_sized(&store, TABLE, MAX_HISTORY_BYTES - 3000);
    let tables = || store.cache.read().tables.keys().cloned().collect::<Vec<_>>();
    assert_eq!(tables(), ["a", "b", TABLE], "it has an event");
    put_sized(&store, TABLE, 3000);
    assert_eq!(tables(), ["b", TABLE], "a table with a watcher stays");
    let expired = RevisionError::Expired { oldest: deleted.revision };
    let at = |revision| Range { revision: Some(revision), ..Range::default() };
    for recreated in [false, true] {
        assert_eq!(store.news("a", put, 1).err(), Some(expired), "{recreated}");
        assert_eq!(store.list("a", at(put), |_| true).err(), Some(expired));
        assert!(store.list("a", at(store.revision()), |_| true).is_ok());
        drop(store.subscribe("a"));
    }
    drop(watcher);
}

#[test]
fn news_are_in_order_and_have_their_last_version() {
    let store = Store::new(100);
    let start = store.revision();
    for name in ["a", "b", "c"] {
        put(&store, "", name, "");
    }
    put_draft(&store, "others", &draft("", "x", ""));
    let first = store.news(TABLE, start, 2).expect("fresh");
    assert_eq!((first.events.len(), first.revision), (2, start + 2));
    let rest = store.news(TABLE, first.revision, 2).expect("fresh");
    assert_eq!(rest.events.len(), 1);
    assert_eq!(
        rest.revision,
        start + 4,
        "nothing is missing up to the newest version of the whole store"
    );
}

#[test]
fn concurrent_writers_and_readers_see_the_same_history() {
    const WRITERS: usize = 4;
    const WRITES: usize = 200;
    let store = Store::new(WRITERS * WRITES + 1);
    let start = store.revision();
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let store = &store;
            scope.spawn(move || {
                for n in 0..WRITES {
                    put(store, "", &format!("o{}", n % 7), &format!("{writer}-{n}"));
                }
            });
        }
        for _ in 0..2 {
            scope.spawn(|| {
                // Replays the log while it grows. The result must equal the store.
                let mut seen: BTreeMap<String, u64> = BTreeMap::new();
                let mut cursor = start;
                let mut events = 0;
                while events < WRITERS * WRITES {
                    let news = store.news(TABLE, cursor, 16).expect("the log is long enough");
                    for event in &news.events {
                        assert!(event.revision > cursor, "in order, without gaps or repeats");
                        let previous = event.previous.as_ref().map(|previous| previous.revision);
                        assert_eq!(
                            previous,
                            seen.insert(event.object.key.name.clone(), event.revision)
                        );
                        cursor = event.revision;
                        events += 1;
                    }
                    thread::yield_now();
                }
            });
        }
    });
    assert_eq!(store.revision(), start + (WRITERS * WRITES) as u64);
    let page = list(&store, Range::default());
    assert_eq!(page.items.len(), 7);
}

#[tokio::test]
async fn a_write_wakes_only_the_watchers_of_its_table() {
    let store = Store::new(10);
    let (mut mine, other) = (store.subscribe(TABLE), store.subscribe("others"));
    mine.mark_unchanged();
    let written = put(&store, "", "a", "").revision;
    mine.changed().await.expect("the store is there");
    assert_eq!(*mine.borrow(), written);
    assert!(!other.has_changed().expect("the store is there"));
}

#[tokio::test]
async fn pending_owners_waits_until_there_are_some() {
    let store = Store::new(10);
    let mut look = pin!(store.pending_owners());
    assert_eq!(look.as_mut().now_or_never(), None);
    put(&store, "", "a", "");
    assert_eq!(look.as_mut().now_or_never(), None, "it has none");
    let mut owned = draft("", "b", "");
    owned.facts = Arc::new(Facts {
        owners: vec!["owner".to_owned()],
        awaits_dependents: true,
        uid: "b".to_owned(),
        ..Facts::default()
    });
    let key = owned.key.clone();
    put_draft(&store, TABLE, &owned);
    let pending = BTreeSet::from(["b", "owner"].map(str::to_owned));
    assert_eq!(look.await, pending);
    let place = (TABLE.to_owned(), key);
    assert_eq!(
        (store.dependents("owner"), store.waiting_owner("b")),
        (vec![place.clone()], Some(place))
    );
    assert_eq!((store.dependents("b"), store.waiting_owner("owner")), (vec![], None));
}

#[test]
fn a_closure_without_writes_creates_no_version() {
    let store = Store::new(10);
    let before = store.revision();
    assert!(delete(&store, TABLE, &Key::new("", "nothing")).is_none());
    assert_eq!(store.revision(), before);
    assert!(!write(&store, |write| write.has_namespace("n")).0);
}

#[test]
fn an_observer_receives_each_write() {
    let store = Store::new(10);
    let (sender, receiver) = std::sync::mpsc::channel();
    let sender = std::sync::Mutex::new(sender);
    store.observe(Box::new(move |request| {
        let text = format!("{} {} {}", request.operation, request.table, request.is_failed);
        sender.lock().expect("a sender").send(text).expect("a receiver");
    }));
    put(&store, "", "a", "x");
    put(&store, "", "a", "y");
    delete(&store, TABLE, &Key::new("", "a"));
    delete(&store, TABLE, &Key::new("", "a"));
    drop(store);
    let requests: Vec<String> = receiver.iter().collect();
    assert_eq!(requests, ["create things false", "update things false", "delete things false"]);
}

#[test]
fn the_newest_version_of_a_table_follows_its_writes_only() {
    let store = Store::new(10);
    let newest = store.newest(TABLE);
    let created = put(&store, "", "a", "x");
    assert_eq!(newest.get(), created.revision);
    put_draft(&store, "others", &draft("", "a", "x"));
    assert_eq!(newest.get(), created.revision);
    let deleted = delete(&store, TABLE, &Key::new("", "a")).expect("an object");
    assert_eq!(newest.get(), deleted.revision);
}

#[test]
fn only_removals_wake_their_receivers() {
    let store = Store::new(10);
    let mut removals = store.subscribe_removals();
    put(&store, "", "a", "x");
    put(&store, "", "a", "y");
    assert!(removals.changed().now_or_never().is_none());
    delete(&store, TABLE, &Key::new("", "a"));
    assert!(removals.changed().now_or_never().is_some());
}
