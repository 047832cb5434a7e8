//! Tests against a real etcd.
//!
//! They skip if the program `etcd` is missing, and print a message. With
//! `KUBEPROOF_REQUIRE_PEERS=1` a missing program fails them.

mod peer;

use std::sync::Arc;
use std::sync::mpsc;

use rstest::rstest;
use serde_json::{Value, json};

use self::peer::EtcdServer;
use super::client::Client;
use super::compaction::{self, Clock};
use super::messages::{DeleteRangeRequest, PutRequest, Request, TxnRequest};
use super::*;
use crate::object::Facts;
use crate::{Range, RevisionError, SavedObject, Store};

const TABLE: &str = "things";
const HISTORY: usize = 1_000;

/// Stores JSON. The field `claim` of an object is its claim.
#[derive(Default)]
struct JsonCodec;

impl Codec for JsonCodec {
    fn directory(&self, table: &str) -> String {
        format!("tables/{table}")
    }

    fn place(&self, path: &str) -> Option<(String, Key)> {
        let (table, rest) = path.strip_prefix("tables/")?.split_once('/')?;
        let (namespace, name) = rest.split_once('/').unwrap_or(("", rest));
        Some((table.to_owned(), Key::new(namespace, name)))
    }

    fn encode(&self, _table: &str, object: &[u8]) -> Result<Vec<u8>, String> {
        let mut object: Value =
            serde_json::from_slice(object).map_err(|error| error.to_string())?;
        object["metadata"]["resourceVersion"] = json!("");
        Ok(object.to_string().into_bytes())
    }

    fn decode(&self, _table: &str, value: &[u8]) -> Result<Draft, String> {
        let object: Value = serde_json::from_slice(value).map_err(|error| error.to_string())?;
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
        Ok(draft(text("namespace"), text("name"), &object["n"], object["claim"].as_str()))
    }

    fn defines_types(&self, _table: &str) -> bool {
        false
    }

    fn observe(&self, _table: &str, _change: Change, _object: &Stored) {}
}

fn draft(namespace: &str, name: &str, n: &Value, claim: Option<&str>) -> Draft {
    let claims = claim.into_iter().map(str::to_owned).collect();
    let claim = json!(claim);
    Draft {
        key: Key::new(namespace, name),
        facts: Arc::new(Facts { claims, ..Facts::default() }),
        before: format!(
            r#"{{"metadata":{{"name":"{name}","namespace":"{namespace}","resourceVersion":""#
        )
        .into(),
        after: format!(r#""}},"n":{n},"claim":{claim}}}"#).into(),
        body: 1,
    }
}

fn options(server: &EtcdServer) -> EtcdOptions {
    let servers = vec!["http://127.0.0.1:1".to_owned(), server.url.clone()];
    EtcdOptions { servers, compaction_interval: None, ..EtcdOptions::default() }
}

async fn open(server: &EtcdServer) -> Store {
    open_with(&options(server)).await
}

async fn open_with(options: &EtcdOptions) -> Store {
    let etcd = Etcd::new(options, Arc::new(JsonCodec)).expect("valid options");
    Store::on_etcd(etcd, HISTORY).await.expect("etcd runs")
}

async fn put(store: &Store, name: &str, n: u64) -> Arc<Stored> {
    let draft = draft("a", name, &n.into(), None);
    let ((), object) = store.write(|write| write.put(TABLE, &draft)).await.expect("a write");
    object.expect("an object")
}

async fn delete(store: &Store, name: &str) {
    let key = Key::new("a", name);
    store.write(|write| write.delete(TABLE, &key)).await.expect("a write");
}

fn number(object: &Stored) -> u64 {
    let object: Value = serde_json::from_slice(object.object()).expect("JSON");
    object["n"].as_u64().expect("a number")
}

/// Returns the numbers of the objects at a version.
fn numbers(store: &Store, revision: Option<u64>) -> Result<Vec<u64>, RevisionError> {
    let page = store.list(TABLE, Range { revision, ..Range::default() }, |_| true)?;
    Ok(page.items.iter().map(|object| number(object)).collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_sees_the_writes_of_other_servers() {
    let Some(server) = EtcdServer::start() else { return };
    let (one, other) = (open(&server).await, open(&server).await);
    for n in 0..50 {
        let (writer, reader) = if n % 2 == 0 { (&one, &other) } else { (&other, &one) };
        let written = put(writer, "x", n).await;
        assert_eq!(written.revision, writer.get(TABLE, &written.key).expect("kept").revision);
        reader.catch_up().await.expect("etcd runs");
        let read = reader.get(TABLE, &written.key).expect("an object");
        assert_eq!((read.object(), read.revision), (written.object(), written.revision));
        assert!(reader.revision() >= written.revision);
    }
    delete(&one, "x").await;
    other.catch_up().await.expect("etcd runs");
    assert_eq!(numbers(&other, None), Ok(vec![]));
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_writes_are_in_one_order() {
    let Some(server) = EtcdServer::start() else { return };
    let stores = [Arc::new(open(&server).await), Arc::new(open(&server).await)];
    put(&stores[0], "counter", 0).await;
    let writers = stores.iter().cycle().take(4).cloned().map(|store| {
        tokio::spawn(async move {
            let key = Key::new("a", "counter");
            for _ in 0..25 {
                let change = |write: &mut crate::Write<'_>| {
                    let old = write.get(TABLE, &key).map_or(0, |object| number(object));
                    write.put(TABLE, &draft("a", "counter", &(old + 1).into(), None));
                };
                store.write(change).await.expect("a write");
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.expect("no panic");
    }
    for store in &stores {
        store.catch_up().await.expect("etcd runs");
        assert_eq!(numbers(store, None), Ok(vec![100]), "no update is lost");
    }
}

/// Another server, with a runtime of its own, deletes an object after the write has read it.
#[tokio::test(flavor = "multi_thread")]
async fn a_write_runs_again_if_an_object_that_it_read_has_changed() {
    let Some(server) = EtcdServer::start() else { return };
    let store = open(&server).await;
    put(&store, "gate", 1).await;
    let (begin, started) = mpsc::channel::<()>();
    let (done, finished) = mpsc::channel();
    let options = options(&server);
    let deletion = std::thread::spawn(move || {
        let runtime = tokio::runtime::Runtime::new().expect("threads");
        let other = runtime.block_on(open_with(&options));
        started.recv().expect("the write begins");
        runtime.block_on(delete(&other, "gate"));
        done.send(()).expect("the write waits");
    });
    let mut gates = Vec::new();
    // The closure must be Send, and a receiver is not Sync.
    let finished = std::sync::Mutex::new(finished);
    let change = |write: &mut crate::Write<'_>| {
        let is_open = write.get(TABLE, &Key::new("a", "gate")).is_some();
        gates.push(is_open);
        if gates.len() == 1 {
            begin.send(()).expect("the deletion waits");
            finished.lock().expect("one thread").recv().expect("the deletion ends");
        }
        if is_open {
            write.put(TABLE, &draft("a", "behind", &1.into(), None));
        }
    };
    store.write(change).await.expect("a write");
    deletion.join().expect("no panic");
    assert_eq!(gates, [true, false]);
    assert_eq!(numbers(&store, None), Ok(vec![]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_without_a_change_gets_no_version() {
    let Some(server) = EtcdServer::start() else { return };
    let store = open(&server).await;
    let first = put(&store, "x", 1).await;
    assert_eq!(put(&store, "x", 1).await.revision, first.revision);
    assert_eq!(store.revision(), first.revision);
    assert!(put(&store, "x", 2).await.revision > first.revision);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_one_object_has_a_claim() {
    let Some(server) = EtcdServer::start() else { return };
    let (one, other) = (open(&server).await, open(&server).await);
    let claim = async |store: &Store, name: &str, claim: Option<&str>| {
        let draft = draft("a", name, &1.into(), claim);
        store.write(|write| write.put(TABLE, &draft)).await.map(drop)
    };
    claim(&one, "x", Some("ip/1")).await.expect("it is free");
    let taken = claim(&other, "y", Some("ip/1")).await.expect_err("x has it");
    assert!(matches!(&taken, WriteError::Claimed(claim) if &**claim == "ip/1"), "{taken:?}");
    claim(&other, "y", Some("ip/2")).await.expect("it is free");
    claim(&one, "x", None).await.expect("it gives up its claim");
    claim(&other, "y", Some("ip/1")).await.expect("it is free again");
    delete(&other, "y").await;
    claim(&one, "x", Some("ip/1")).await.expect("it is free again");
    claim(&one, "z", Some("ip/2")).await.expect("it is free again");

    // A server without claims, such as kube-apiserver, has deleted the object.
    let client = Client::new(&options(&server)).expect("valid options");
    let remove = DeleteRangeRequest { key: b"/registry/tables/things/a/x".to_vec() };
    let success = vec![Request::DeleteRange(remove).into()];
    let transaction = TxnRequest { success, ..TxnRequest::default() };
    client.transact(transaction).await.expect("etcd runs");
    claim(&other, "y", Some("ip/1")).await.expect("its holder is gone");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_server_has_the_history() {
    let Some(server) = EtcdServer::start() else { return };
    let first = open(&server).await;
    let start = first.revision();
    let versions =
        [put(&first, "x", 1).await, put(&first, "x", 2).await, put(&first, "y", 3).await]
            .map(|object| object.revision);
    delete(&first, "x").await;
    let expected = [Change::Added, Change::Modified, Change::Added, Change::Deleted];
    let second = open(&server).await;
    for store in [&first, &second] {
        let news = store.news(TABLE, start, 10).expect("the version is not expired");
        let revisions: Vec<_> = news.events.iter().map(|event| event.revision).collect();
        assert_eq!(revisions[..3], versions);
        let changes: Vec<_> = news.events.iter().map(|event| event.change).collect();
        assert_eq!(changes, expected);
        assert_eq!(numbers(store, Some(versions[1])), Ok(vec![2]));
        assert_eq!(numbers(store, None), Ok(vec![3]));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_that_the_cache_lacks_is_read_from_etcd_until_it_is_compacted() {
    let Some(server) = EtcdServer::start() else { return };
    let store = open(&server).await;
    put(&store, "x", 1).await;
    let old = put(&store, "y", 2).await.revision;
    put(&store, "x", 3).await;
    let past = async |after: Option<&Key>| {
        let range = Range { namespace: Some("a"), after, limit: Some(1), ..Range::default() };
        store.list_past(TABLE, (range, old), |_| true).await.expect("etcd runs")
    };
    let page = past(None).await.expect("the version");
    assert_eq!((number(&page.items[0]), page.revision, page.remaining), (1, old, 1));
    let page = past(Some(&page.items[0].key)).await.expect("the version");
    assert_eq!((number(&page.items[0]), page.more), (2, false));

    let client = Client::new(&options(&server)).expect("valid options");
    client.compact(store.revision()).await.expect("etcd runs");
    assert!(past(None).await.is_none());
    let new = open(&server).await;
    assert_eq!(numbers(&new, None), Ok(vec![3, 2]));
    assert!(matches!(numbers(&new, Some(old)), Err(RevisionError::Expired { .. })));
    assert!(new.news(TABLE, old, 1).is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn one_server_compacts_in_each_interval() {
    let Some(server) = EtcdServer::start() else { return };
    let store = open(&server).await;
    let client = Client::new(&options(&server)).expect("valid options");
    let tick = async |clock| compaction::tick(&client, clock).await.expect("etcd runs");
    let (first, second) = (tick(Clock::default()).await, tick(Clock::default()).await);
    assert_eq!((first.version, second.version), (1, 1), "the first one has written the key");
    let old = put(&store, "x", 1).await.revision;
    put(&store, "x", 2).await;
    let first = tick(first).await;
    assert_eq!(compaction::last(&client).await.ok(), Some(second.revision));
    let second = tick(second).await;
    assert_eq!((first.version, second.version), (2, 2));
    let range = Range::default();
    let past = store.list_past(TABLE, (range, old), |_| true).await.expect("etcd runs");
    assert!(past.is_some(), "the history of one interval stays");
    tick(second).await;
    let past = store.list_past(TABLE, (range, old), |_| true).await.expect("etcd runs");
    assert!(past.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_continues_after_an_outage_of_etcd() {
    let Some(mut server) = EtcdServer::start() else { return };
    let store = open(&server).await;
    let seen = put(&store, "x", 1).await.revision;
    server.restart();
    store.catch_up().await.expect("etcd runs again");
    put(&store, "y", 2).await;
    let news = store.news(TABLE, seen, 10).expect("no version is lost");
    assert_eq!(news.events.len(), 1);
}

/// While the server has no connection, another client writes and compacts. The next revision of the
/// watch is compacted, or the oldest one that etcd has.
#[rstest]
#[case::compacted(0)]
#[case::oldest(1)]
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_missed_events_expires_old_versions(#[case] kept: u64) {
    let Some(mut server) = EtcdServer::start() else { return };
    let store = open(&server).await;
    put(&store, "gone", 1).await;
    let seen = put(&store, "x", 1).await.revision;
    let mut woken = store.subscribe(TABLE);
    woken.mark_unchanged();
    let key = |name: &str| format!("/registry/tables/things/a/{name}").into_bytes();
    let object = json!({"metadata": {"name": "x", "namespace": "a"}, "n": 9}).to_string();
    let value = JsonCodec.encode(TABLE, object.as_bytes()).expect("JSON");
    let changes = vec![
        Request::DeleteRange(DeleteRangeRequest { key: key("gone") }),
        Request::Put(PutRequest { key: key("x"), value }),
    ];
    server.restart_with_changes(changes, kept).await;
    store.catch_up().await.expect("etcd runs again");
    assert_eq!(numbers(&store, None), Ok(vec![9]));
    assert!(store.news(TABLE, seen, 10).is_err(), "a watch gets 410");
    assert!(woken.has_changed().expect("the store is open"));
    put(&store, "y", 2).await;
    assert_eq!(numbers(&store, None), Ok(vec![9, 2]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_fills_an_empty_prefix() {
    let Some(server) = EtcdServer::start() else { return };
    let object = |n: u64| SavedObject {
        table: TABLE.to_owned(),
        key: Key::new("a", format!("x{n}")),
        text: Stored::new(&draft("a", &format!("x{n}"), &n.into(), None), 7, Change::Added)
            .object()
            .to_vec(),
    };
    let saved = Saved { revision: 7, objects: (10..60).map(object).collect() };
    let etcd = Etcd::new(&options(&server), Arc::new(JsonCodec)).expect("valid options");
    etcd.fill(&saved).await.expect("etcd is empty");
    let store = open(&server).await;
    assert_eq!(numbers(&store, None), Ok((10..60).collect()));
    let found = store.get(TABLE, &Key::new("a", "x10")).expect("an object");
    let text = format!(r#""resourceVersion":"{}""#, found.revision);
    assert!(String::from_utf8_lossy(found.object()).contains(&text), "{found:?}");
    let error = etcd.fill(&saved).await.expect_err("it has objects");
    assert!(matches!(error, EtcdError::NotEmpty(_)), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_etcd_that_cannot_be_used_is_an_error() {
    let open = async |url: &str| {
        let options = EtcdOptions { servers: vec![url.to_owned()], ..EtcdOptions::default() };
        Store::on_etcd(Etcd::new(&options, Arc::new(JsonCodec))?, HISTORY).await.map(drop)
    };
    let error = open("http://127.0.0.1:1").await.expect_err("nobody listens");
    assert!(error.to_string().contains("Connection refused"), "{error}");
    let error = open("127.0.0.1:2379").await.expect_err("no URL");
    assert!(error.to_string().contains("expected http://HOST:PORT"), "{error}");
    let none = Etcd::new(&EtcdOptions::default(), Arc::new(JsonCodec));
    assert!(matches!(none, Err(EtcdError::NoServer)));
}
