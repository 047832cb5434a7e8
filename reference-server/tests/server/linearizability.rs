//! Linearizability: the responses to concurrent clients are possible in some sequential order.
//!
//! Versions order all writes, and a watch reports all of them. A history is linearizable if:
//!
//! - the events, in the order of their versions, are the results of the acknowledged writes;
//! - a write that ended before another one began has the lower version;
//! - every response shows a state that existed between its request and its arrival.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use kubeproof_reference_server::{Config, Fault, Faults};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Map, Value, json};

use crate::support::{CONFIG_MAPS, Reply, TestServer};

const CLIENTS: u64 = 6;
const OPERATIONS: u64 = 60;
const NAMES: [&str; 3] = ["a", "b", "c"];

/// A point in time on the clock that all clients share.
type Tick = u64;
type Data = Map<String, Value>;

/// A request of a client, and its response.
#[derive(Debug)]
struct Operation {
    sent: Tick,
    received: Tick,
    name: &'static str,
    act: Act,
    code: u16,
    /// The version of the object or list in the response.
    version: u64,
    /// The uid of a deleted object.
    uid: String,
    data: Data,
    /// The version of each object in a list.
    items: BTreeMap<String, u64>,
}

#[derive(Clone, Debug, PartialEq)]
enum Act {
    Get,
    List,
    Create(Data),
    /// An optional version, and the data.
    Update(Option<u64>, Data),
    Patch(Data),
    /// An optional version as precondition.
    Delete(Option<u64>),
}

/// A change that the watch reports.
#[derive(Debug)]
struct Event {
    version: u64,
    kind: String,
    name: String,
    uid: String,
    data: Data,
}

fn path(name: &str) -> String {
    format!("{CONFIG_MAPS}/{name}")
}

fn data_of(object: &Value) -> Data {
    object["data"].as_object().cloned().unwrap_or_default()
}

fn version_of(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"]
        .as_str()
        .and_then(|text| text.parse().ok())
        .unwrap_or_default()
}

fn uid_of(object: &Value) -> String {
    object["metadata"]["uid"].as_str().unwrap_or_default().to_owned()
}

struct Client {
    server: Arc<TestServer>,
    clock: Arc<AtomicU64>,
    number: u64,
    random: StdRng,
    seen: BTreeMap<&'static str, u64>,
}

impl Client {
    async fn work(mut self) -> Vec<Operation> {
        let mut done = Vec::new();
        for n in 0..OPERATIONS {
            let name = NAMES[self.random.random_range(..NAMES.len())];
            let act = self.choose(name, n);
            let sent = self.clock.fetch_add(1, Ordering::SeqCst);
            let reply = self.perform(name, &act).await;
            let received = self.clock.fetch_add(1, Ordering::SeqCst);
            let version = version_of(&reply.json);
            if reply.status.is_success() && !matches!(act, Act::List | Act::Delete(_)) {
                self.seen.insert(name, version);
            }
            let items = reply.json["items"].as_array().into_iter().flatten();
            let items = items.map(|item| {
                (item["metadata"]["name"].as_str().unwrap_or_default().to_owned(), version_of(item))
            });
            done.push(Operation {
                sent,
                received,
                name,
                code: reply.status.as_u16(),
                version,
                uid: reply.text_at("/details/uid").to_owned(),
                data: data_of(&reply.json),
                items: items.collect(),
                act,
            });
        }
        done
    }

    fn choose(&mut self, name: &str, n: u64) -> Act {
        let mut data = Data::new();
        data.insert(format!("by-{}", self.number), n.to_string().into());
        let seen = self.seen.get(name).copied().filter(|_| self.random.random_ratio(3, 4));
        match self.random.random_range(0..10) {
            0 | 1 => Act::Get,
            2 => Act::List,
            3 | 4 => Act::Create(data),
            5 | 6 => Act::Update(seen, data),
            7 | 8 => Act::Patch(data),
            _ => Act::Delete(seen),
        }
    }

    async fn perform(&self, name: &str, act: &Act) -> Reply {
        let server = &self.server;
        match act {
            Act::Get => server.get(&path(name)).await,
            Act::List => server.get(CONFIG_MAPS).await,
            Act::Create(data) => {
                server
                    .post(CONFIG_MAPS, &json!({ "metadata": { "name": name }, "data": data }))
                    .await
            }
            Act::Update(version, data) => {
                let mut object = json!({ "metadata": { "name": name }, "data": data });
                if let Some(version) = version {
                    object["metadata"]["resourceVersion"] = version.to_string().into();
                }
                server.put(&path(name), &object).await
            }
            Act::Patch(data) => server.merge(&path(name), &json!({ "data": data })).await,
            Act::Delete(version) => {
                let mut options = json!({ "kind": "DeleteOptions", "apiVersion": "v1" });
                if let Some(version) = version {
                    options["preconditions"] = json!({ "resourceVersion": version.to_string() });
                }
                server.delete(&path(name), &options.to_string()).await
            }
        }
    }
}

/// All changes, in the order of their versions.
struct History {
    events: Vec<Event>,
    /// The times of the request and the response of the write behind each event.
    times: Vec<(Tick, Tick)>,
}

impl History {
    /// Matches each event with its write, and each acknowledged write with its event.
    fn new(events: Vec<Event>, done: &[Operation]) -> Self {
        assert!(
            events.is_sorted_by(|one, next| one.version < next.version),
            "the events are in the order of their versions, each once"
        );
        let by_version: BTreeMap<u64, usize> =
            events.iter().enumerate().map(|(index, event)| (event.version, index)).collect();
        let mut times = vec![None; events.len()];
        for one in done.iter().filter(|one| matches!(one.code, 200 | 201)) {
            let index = match &one.act {
                Act::Get | Act::List => continue,
                Act::Delete(_) => {
                    let index = events
                        .iter()
                        .position(|event| event.kind == "DELETED" && event.uid == one.uid);
                    index.unwrap_or_else(|| panic!("no event of {one:?}"))
                }
                _ => *by_version.get(&one.version).unwrap_or_else(|| panic!("no event of {one:?}")),
            };
            let event = &events[index];
            assert_eq!(event.name, one.name, "{one:?}");
            assert!(
                times[index].replace((one.sent, one.received)).is_none(),
                "two writes made {event:?}"
            );
            if !matches!(one.act, Act::Delete(_)) {
                assert_eq!(event.data, one.data, "the response shows the written data: {one:?}");
            }
        }
        let times = times.into_iter().zip(&events).map(|(time, event)| {
            time.unwrap_or_else(|| panic!("no write was acknowledged for {event:?}"))
        });
        let times: Vec<_> = times.collect();
        let mut latest = 0;
        for (&(sent, received), event) in times.iter().zip(&events).rev() {
            assert!(
                latest == 0 || sent < latest,
                "the request of {event:?} began after the response to a later version"
            );
            latest = if latest == 0 { received } else { latest.min(received) };
        }
        Self { events, times }
    }

    /// Checks that each event is the result of its write on the previous state of the object.
    fn check_steps(&self, done: &[Operation]) {
        let mut current: BTreeMap<&str, &Event> = BTreeMap::new();
        for (event, &(sent, _)) in self.events.iter().zip(&self.times) {
            let write = done.iter().find(|one| one.sent == sent).expect("the write of the event");
            let before = current.get(event.name.as_str());
            let expected = match (&write.act, before) {
                (Act::Create(data), None) => ("ADDED", data.clone()),
                (Act::Update(version, data), Some(before)) => {
                    assert!(
                        version.is_none_or(|version| version == before.version),
                        "{write:?} over {before:?}"
                    );
                    ("MODIFIED", data.clone())
                }
                (Act::Patch(data), Some(before)) => {
                    let mut merged = before.data.clone();
                    merged.extend(data.clone());
                    ("MODIFIED", merged)
                }
                (Act::Delete(version), Some(before)) => {
                    assert!(
                        version.is_none_or(|version| version == before.version),
                        "{write:?} of {before:?}"
                    );
                    ("DELETED", before.data.clone())
                }
                (_, before) => panic!("{write:?} is impossible on {before:?}"),
            };
            assert_eq!((event.kind.as_str(), &event.data), (expected.0, &expected.1), "{write:?}");
            if let Some(before) = before {
                assert_eq!(before.uid, event.uid, "an object keeps its uid");
            }
            if event.kind == "DELETED" {
                current.remove(event.name.as_str());
            } else {
                current.insert(&event.name, event);
            }
        }
    }

    /// Returns the states that an operation can have observed; `None` stands for a missing object.
    fn observable(&self, one: &Operation) -> Vec<Option<&Event>> {
        let own: Vec<usize> =
            (0..self.events.len()).filter(|index| self.events[*index].name == one.name).collect();
        let mut states = Vec::new();
        for step in 0..=own.len() {
            let begun =
                step.checked_sub(1).is_none_or(|before| self.times[own[before]].0 < one.received);
            let over = own.get(step).is_some_and(|next| self.times[*next].1 < one.sent);
            if begun && !over {
                let event = step.checked_sub(1).map(|before| &self.events[own[before]]);
                states.push(event.filter(|event| event.kind != "DELETED"));
            }
        }
        states
    }

    /// Checks that a read shows an observable state, and that a rejection has a cause.
    fn check_response(&self, one: &Operation) {
        let observable = self.observable(one);
        let some =
            |test: &dyn Fn(Option<&Event>) -> bool| observable.iter().any(|state| test(*state));
        let other = |sent: Option<u64>| {
            move |state: Option<&Event>| {
                state.is_some_and(|state| sent.is_some_and(|sent| sent != state.version))
            }
        };
        let possible = match (&one.act, one.code) {
            (Act::List, 200) => return self.check_list(one),
            (Act::Get, 200) => some(&|state| {
                state.is_some_and(|state| state.version == one.version && state.data == one.data)
            }),
            (Act::Create(_), 409) => some(&|state| state.is_some()),
            (Act::Get | Act::Update(..) | Act::Patch(_) | Act::Delete(_), 404) => {
                some(&|state| state.is_none())
            }
            (Act::Update(version, _) | Act::Delete(version), 409) => some(&other(*version)),
            (Act::Create(_) | Act::Update(..) | Act::Patch(_) | Act::Delete(_), 200 | 201) => true,
            _ => false,
        };
        assert!(possible, "{one:?} is impossible in the states {observable:?}");
    }

    /// Checks that a list shows all objects at its version, and that the version is current.
    fn check_list(&self, one: &Operation) {
        let mut state = BTreeMap::new();
        for (event, &(sent, received)) in self.events.iter().zip(&self.times) {
            if event.version > one.version {
                assert!(
                    received > one.sent,
                    "{one:?} is older than {event:?}, which was acknowledged before"
                );
                continue;
            }
            assert!(sent < one.received, "{one:?} shows {event:?}, whose request began later");
            if event.kind == "DELETED" {
                state.remove(&event.name);
            } else {
                state.insert(event.name.clone(), event.version);
            }
        }
        assert_eq!(one.items, state, "a list shows one version: {one:?}");
    }
}

/// Reads a watch until it reports the object `last`.
async fn watched(server: Arc<TestServer>, query: String) -> Vec<Event> {
    let mut watch = server.watch(&format!("{CONFIG_MAPS}?watch=true{query}")).await;
    let mut events = Vec::new();
    loop {
        let event = watch.next().await.expect("the watch goes on");
        let object = &event["object"];
        let name = object["metadata"]["name"].as_str().expect("a name").to_owned();
        if name == "last" {
            return events;
        }
        events.push(Event {
            version: version_of(object),
            kind: event["type"].as_str().expect("a type").to_owned(),
            name,
            uid: uid_of(object),
            data: data_of(object),
        });
    }
}

#[rstest::rstest]
#[case(1)]
#[case(2)]
#[case(3)]
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_clients_observe_a_linearizable_history(#[case] seed: u64) {
    judge(TestServer::start().await, seed).await;
}

#[rstest::rstest]
#[case(Fault::StaleWriteAccepted)]
#[case(Fault::LostUpdate)]
#[case(Fault::WatchLosesAnEvent)]
#[case(Fault::WatchDoublesAnEvent)]
#[case(Fault::ListLags)]
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_judge_detects_a_faulty_server(#[case] fault: Fault) {
    let config = Config { faults: Faults::from(fault), ..Config::default() };
    let judged = tokio::spawn(judge(TestServer::with(config).await, 1));
    // A server that loses the last event leaves the judge waiting, which also detects the fault.
    let outcome = tokio::time::timeout(Duration::from_mins(1), judged).await;
    assert!(!matches!(outcome, Ok(Ok(()))), "the judge does not detect {}", fault.name());
}

/// Runs concurrent clients against a server. Panics if their history is not linearizable.
async fn judge(server: TestServer, seed: u64) {
    let server = Arc::new(server);
    let start = server.get(CONFIG_MAPS).await.version();
    let first = tokio::spawn(watched(server.clone(), format!("&resourceVersion={start}")));
    let clock = Arc::new(AtomicU64::new(1));
    let clients: Vec<_> = (0..CLIENTS)
        .map(|number| {
            let random = StdRng::seed_from_u64(seed * CLIENTS + number);
            let (server, clock) = (server.clone(), clock.clone());
            tokio::spawn(Client { server, clock, number, random, seen: BTreeMap::new() }.work())
        })
        .collect();
    // These watches start during the writes, at the version of a list.
    let late = {
        let server = server.clone();
        tokio::spawn(async move {
            let mut watches = Vec::new();
            for _ in 0..5 {
                let version = server.get(CONFIG_MAPS).await.version();
                let query = format!("&resourceVersion={version}");
                watches.push((version, tokio::spawn(watched(server.clone(), query))));
            }
            watches
        })
    };
    let mut done = Vec::new();
    for client in clients {
        done.extend(client.await.expect("a client"));
    }
    let late = late.await.expect("watches");
    server.post(CONFIG_MAPS, &json!({ "metadata": { "name": "last" } })).await.expect(201);

    let history = History::new(first.await.expect("a watch"), &done);
    history.check_steps(&done);
    for one in &done {
        history.check_response(one);
    }
    for (version, watch) in late {
        let received: Vec<u64> =
            watch.await.expect("a watch").iter().map(|event| event.version).collect();
        let all = history.events.iter().map(|event| event.version).filter(|later| *later > version);
        assert_eq!(
            received,
            all.collect::<Vec<_>>(),
            "a watch from {version} reports each later event once"
        );
    }
    assert!(
        history.events.len() > 30,
        "expected more than 30 events, got {}",
        history.events.len()
    );
}
