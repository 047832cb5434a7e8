use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::FutureExt as _;
use futures_util::future::join_all;
use tempfile::TempDir;

use super::*;
use crate::object::{Draft, Stored};
use crate::{Range, Store};

const TABLE: &str = "things";

fn draft(namespace: &str, name: &str, text: &str) -> Draft {
    let before = br#"{"metadata":{"resourceVersion":""#.to_vec();
    let after = format!(r#""}},"text":"{text}"}}"#).into();
    Draft { key: Key::new(namespace, name), facts: Arc::default(), before, after, body: 1 }
}

/// Opens a directory, and restores its objects.
fn open(directory: &TempDir) -> Store {
    let disk = Disk::open(directory.path()).expect("a free directory");
    let Saved { revision, objects } = disk.load().expect("valid content");
    let restored = objects.into_iter().map(|SavedObject { table, key, text }| {
        let text = String::from_utf8(text).expect("UTF-8");
        let (before, rest) = text.split_once("Version\":\"").expect("a version");
        let (revision, after) = rest.split_once('"').expect("the end of the version");
        let draft = Draft {
            key,
            facts: Arc::default(),
            before: format!("{before}Version\":\"").into(),
            after: format!("\"{after}").into(),
            body: 1,
        };
        let revision = revision.parse().expect("a number");
        (table, Stored::new(&draft, revision, Change::Added))
    });
    Store::on_disk(disk, 100, revision, restored).expect("a thread")
}

/// Returns the objects and the version of a store.
fn content(store: &Store) -> (Vec<(u64, String)>, u64) {
    let page = store.list(TABLE, Range::default(), |_| true).expect("the newest version");
    let text = |object: &Stored| String::from_utf8_lossy(object.object()).into_owned();
    (page.items.iter().map(|object| (object.revision, text(object))).collect(), page.revision)
}

#[tokio::test]
async fn a_directory_keeps_objects_and_the_version() {
    let directory = TempDir::new().expect("a directory");
    let store = open(&directory);
    for (name, text) in [("a", "1"), ("b", "1"), ("a", "2"), ("c", "1")] {
        let draft = draft("n", name, text);
        store.write(|write| write.put(TABLE, &draft)).await.expect("space on the disk");
    }
    let key = Key::new("n", "c");
    let ((), deleted) = store.write(|write| write.delete(TABLE, &key)).await.expect("space");
    let before = content(&store);
    assert_eq!(before.1, deleted.expect("it was there").revision);
    assert_eq!(before.0.len(), 2);
    drop(store);

    let store = open(&directory);
    assert_eq!(content(&store), before);
    let expired = store.news(TABLE, before.1 - 1, 1).map(|news| news.revision);
    assert_eq!(expired, Err(crate::RevisionError::Expired { oldest: before.1 }));
    assert_eq!(store.news(TABLE, before.1, 1).map(|news| news.events.len()), Ok(0));
    let draft = draft("n", "d", "1");
    let ((), next) = store.write(|write| write.put(TABLE, &draft)).await.expect("space");
    assert_eq!(next.map(|object| object.revision), Some(before.1 + 1));
}

#[tokio::test]
async fn concurrent_writers_see_each_other_and_share_transactions() {
    const WRITERS: usize = 64;
    let directory = TempDir::new().expect("a directory");
    let store = open(&directory);
    let (created, lost) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let writes = (0..WRITERS).map(|writer| {
        let draft = draft("n", &format!("{}", writer % 4), &writer.to_string());
        let (store, created, lost) = (&store, &created, &lost);
        async move {
            let create = |write: &mut Write<'_>| {
                let is_free = write.get(TABLE, &draft.key).is_none();
                if is_free {
                    write.put(TABLE, &draft);
                }
                (is_free, write.has_namespace("n"), write.has_namespace("m"))
            };
            let (result, object) = store.write(create).await.expect("space on the disk");
            assert_eq!((result.1, result.2), (true, false));
            assert_eq!(result.0, object.is_some());
            // A result is durable, even that of a write that lost.
            let found = store.get(TABLE, &Key::new("n", (writer % 4).to_string()));
            assert!(found.is_some(), "readers see what a writer has seen");
            if result.0 { created } else { lost }.fetch_add(1, Ordering::Relaxed);
        }
    });
    join_all(writes).await;
    assert_eq!((created.into_inner(), lost.into_inner()), (4, WRITERS - 4));
}

#[test]
fn a_write_has_a_result_when_readers_see_it() {
    let directory = TempDir::new().expect("a directory");
    let store = open(&directory);
    let draft = draft("n", "a", "1");
    // A reader keeps the thread from publishing the write, not from writing it.
    let state = store.cache.read();
    let early = store.write(|write| write.put(TABLE, &draft)).now_or_never();
    assert!(early.is_none(), "readers do not see it yet");
    drop(state);
    drop(store);
    let store = open(&directory);
    assert_eq!(content(&store).0.len(), 1, "an abandoned write completes");
}

#[test]
fn a_directory_has_one_store_and_a_known_format() {
    let directory = TempDir::new().expect("a directory");
    let first = Disk::open(directory.path()).expect("a free directory");
    let second = Disk::open(directory.path()).expect_err("a directory in use");
    assert!(matches!(second, OpenError::InUse { .. }), "{second}");
    let transaction = first.database.begin_write().expect("a transaction");
    transaction.open_table(META).expect("a table").insert(FORMAT, 2).expect("space");
    transaction.commit().expect("space");
    drop(first);
    let error = Disk::open(directory.path()).expect_err("another format");
    let path = directory.path().display().to_string();
    let expected =
        format!("the data directory {path} has format 2, expected 1; choose another directory");
    assert_eq!(error.to_string(), expected);

    let file = directory.path().join(FILE_NAME);
    fs::write(&file, "another file").expect("written");
    let error = Disk::open(directory.path()).expect_err("no database").to_string();
    assert!(error.starts_with(&format!("cannot use {}: ", file.display())), "{error}");
}
