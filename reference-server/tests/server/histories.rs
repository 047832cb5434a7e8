//! Many clients at once, and whether what they saw can have happened one after the other.
//!
//! Versions order all writes, and a watch tells them all. So a history is linearizable if the events, taken in the order of their
//! versions, are what the acknowledged writes do one after the other; if that order keeps to time (what had ended before
//! something began has the lower version); and if every answer shows a state that there was between its question and itself.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use kubeproof_reference_server::Fault;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Map, Value, json};

use crate::support::{CONFIG_MAPS, Reply, TestServer};

const CLIENTS: u64 = 6;
const OPERATIONS: u64 = 60;
const NAMES: [&str; 3] = ["a", "b", "c"];

/// A point in time, as all clients count it.
type Tick = u64;
type Data = Map<String, Value>;

/// Something that a client did, and what came of it.
#[derive(Debug)]
struct Done {
    asked: Tick,
    answered: Tick,
    name: &'static str,
    act: Act,
    code: u16,
    /// Of the object in the answer, or of the list; of a deletion the uid.
    version: u64,
    uid: String,
    data: Data,
    /// Of a list: the version of each object.
    items: BTreeMap<String, u64>,
}

#[derive(Clone, Debug, PartialEq)]
enum Act {
    Get,
    List,
    Create(Data),
    /// With the version that it was made from, if any.
    Update(Option<u64>, Data),
    Patch(Data),
    /// Only this version, if any.
    Delete(Option<u64>),
}

/// One change, as the watch tells it.
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
    object["metadata"]["resourceVersion"].as_str().and_then(|text| text.parse().ok()).unwrap_or_default()
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
    async fn work(mut self) -> Vec<Done> {
        let mut done = Vec::new();
        for n in 0..OPERATIONS {
            let name = NAMES[self.random.random_range(..NAMES.len())];
            let act = self.choose(name, n);
            let asked = self.clock.fetch_add(1, Ordering::SeqCst);
            let reply = self.perform(name, &act).await;
            let answered = self.clock.fetch_add(1, Ordering::SeqCst);
            let version = version_of(&reply.json);
            if reply.status.is_success() && !matches!(act, Act::List | Act::Delete(_)) {
                self.seen.insert(name, version);
            }
            let items = reply.json["items"].as_array().into_iter().flatten();
            let items = items.map(|item| {
                (item["metadata"]["name"].as_str().unwrap_or_default().to_owned(), version_of(item))
            });
            done.push(Done {
                asked,
                answered,
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
                server.post(CONFIG_MAPS, &json!({ "metadata": { "name": name }, "data": data })).await
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

/// All that happened, in order.
struct History {
    events: Vec<Event>,
    /// When the write of each event was asked for and answered.
    times: Vec<(Tick, Tick)>,
}

impl History {
    /// Gives each event its write, and each acknowledged write its event.
    fn new(events: Vec<Event>, done: &[Done]) -> Self {
        assert!(
            events.is_sorted_by(|one, next| one.version < next.version),
            "events are in order, each once"
        );
        let by_version: BTreeMap<u64, usize> =
            events.iter().enumerate().map(|(index, event)| (event.version, index)).collect();
        let mut times = vec![None; events.len()];
        for one in done.iter().filter(|one| matches!(one.code, 200 | 201)) {
            let index = match &one.act {
                Act::Get | Act::List => continue,
                Act::Delete(_) => {
                    let index =
                        events.iter().position(|event| event.kind == "DELETED" && event.uid == one.uid);
                    index.unwrap_or_else(|| panic!("no event of {one:?}"))
                }
                _ => *by_version.get(&one.version).unwrap_or_else(|| panic!("no event of {one:?}")),
            };
            let event = &events[index];
            assert_eq!(event.name, one.name, "{one:?}");
            assert!(times[index].replace((one.asked, one.answered)).is_none(), "two writes made {event:?}");
            if !matches!(one.act, Act::Delete(_)) {
                assert_eq!(event.data, one.data, "the answer shows what was written: {one:?}");
            }
        }
        let times = times
            .into_iter()
            .zip(&events)
            .map(|(time, event)| time.unwrap_or_else(|| panic!("nobody was told of {event:?}")));
        let times: Vec<_> = times.collect();
        let mut latest = 0;
        for (&(asked, answered), event) in times.iter().zip(&events).rev() {
            assert!(
                latest == 0 || asked < latest,
                "{event:?} was asked for when a later version had been answered"
            );
            latest = if latest == 0 { answered } else { latest.min(answered) };
        }
        Self { events, times }
    }

    /// The changes of one object before and after each event of it: what the model says.
    fn check_steps(&self, done: &[Done]) {
        let mut current: BTreeMap<&str, &Event> = BTreeMap::new();
        for (event, &(asked, _)) in self.events.iter().zip(&self.times) {
            let write = done.iter().find(|one| one.asked == asked).expect("the write of the event");
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
                (_, before) => panic!("{write:?} cannot have happened to {before:?}"),
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

    /// The states of an object that an operation can have met; none is an object that was not there.
    fn met(&self, one: &Done) -> Vec<Option<&Event>> {
        let own: Vec<usize> =
            (0..self.events.len()).filter(|index| self.events[*index].name == one.name).collect();
        let mut states = Vec::new();
        for step in 0..=own.len() {
            let begun = step.checked_sub(1).is_none_or(|before| self.times[own[before]].0 < one.answered);
            let over = own.get(step).is_some_and(|next| self.times[*next].1 < one.asked);
            if begun && !over {
                let event = step.checked_sub(1).map(|before| &self.events[own[before]]);
                states.push(event.filter(|event| event.kind != "DELETED"));
            }
        }
        states
    }

    /// Reads show what was there, and refusals had a reason.
    fn check_answer(&self, one: &Done) {
        let met = self.met(one);
        let some = |test: &dyn Fn(Option<&Event>) -> bool| met.iter().any(|state| test(*state));
        let other = |asked: Option<u64>| {
            move |state: Option<&Event>| {
                state.is_some_and(|state| asked.is_some_and(|asked| asked != state.version))
            }
        };
        let justified = match (&one.act, one.code) {
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
        assert!(justified, "{one:?} met {met:?}");
    }

    /// A list is all objects at its version, which is no older than what had been answered.
    fn check_list(&self, one: &Done) {
        let mut state = BTreeMap::new();
        for (event, &(asked, answered)) in self.events.iter().zip(&self.times) {
            if event.version > one.version {
                assert!(answered > one.asked, "{one:?} is older than {event:?}, which was there");
                continue;
            }
            assert!(asked < one.answered, "{one:?} shows {event:?}, which was not asked for yet");
            if event.kind == "DELETED" {
                state.remove(&event.name);
            } else {
                state.insert(event.name.clone(), event.version);
            }
        }
        assert_eq!(one.items, state, "a list is one version: {one:?}");
    }
}

/// Reads a watch until an object comes that is written last.
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
async fn what_many_clients_see_can_have_happened_in_a_row(#[case] seed: u64) {
    judge(TestServer::start().await, seed).await;
}

/// The judge is one that finds something.
#[rstest::rstest]
#[case(Fault::StaleWriteAccepted)]
#[case(Fault::LostUpdate)]
#[case(Fault::WatchDoublesAnEvent)]
#[case(Fault::ListLags)]
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_server_that_breaks_the_order_is_found(#[case] fault: Fault) {
    let server = TestServer::faulty(fault).await;
    let judged = tokio::spawn(judge(server, 1)).await;
    assert!(judged.is_err_and(|error| error.is_panic()), "{fault:?} is not found");
}

/// Lets clients loose on a server, and checks what they saw. Panics if it cannot have happened.
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
    // Watches that begin on the way, at the version of a list.
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
        history.check_answer(one);
    }
    for (version, watch) in late {
        let told: Vec<u64> = watch.await.expect("a watch").iter().map(|event| event.version).collect();
        let all = history.events.iter().map(|event| event.version).filter(|later| *later > version);
        assert_eq!(
            told,
            all.collect::<Vec<_>>(),
            "a watch from {version} misses nothing and repeats nothing"
        );
    }
    assert!(history.events.len() > 30, "the clients got something done: {}", history.events.len());
}
