//! `kubeproof serve --data-dir`: acknowledged writes survive `kill -9`.
//!
//! Each round starts the server, compares its objects with what writers have recorded, and kills it
//! while they write. A write without a response may be stored or not.
//!
//! `KUBEPROOF_KILLS` sets the number of rounds. Snapshots move the objects between storages.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::sync::mpsc::{self, Sender};
use std::{env, thread};

use serde_json::{Value, json};

use crate::program::kubeproof;
#[cfg(unix)]
use crate::server::signal;
use crate::server::{TOKEN, TestServer};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const WRITERS: usize = 4;
const NAMES: usize = 6;
/// The acknowledged writes before the server is killed.
const WRITES: usize = 40;

fn start(directory: &Path) -> TestServer {
    TestServer::start(&["--data-dir", directory.to_str().expect("a path in UTF-8")])
}

/// The possible states of an object: its number, or none if it is absent.
type States = Vec<Option<u64>>;

/// What a writer knows about its objects, and the newest version of its responses.
#[derive(Default)]
pub(crate) struct Record {
    objects: BTreeMap<String, States>,
    newest: u64,
}

/// Sends a request. Returns none if the server ended before the whole response.
fn send(server: &str, method: &str, path: &str, body: &str) -> Option<(u16, Value)> {
    let address = server.strip_prefix("http://")?;
    let mut stream = TcpStream::connect(address).ok()?;
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {TOKEN}\r\n\
         Connection: close\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).ok()?;
    let mut response = String::new();
    stream.read_to_string(&mut response).ok()?;
    let (head, body) = response.split_once("\r\n\r\n")?;
    let code = head.split(' ').nth(1)?.parse().ok()?;
    Some((code, serde_json::from_str(body).ok()?))
}

fn version(object: &Value) -> u64 {
    let version = object["metadata"]["resourceVersion"].as_str().expect("a version");
    version.parse().expect("a number")
}

/// Creates, changes and deletes objects until the server or the receiver of the writes ends.
pub(crate) fn write(
    server: &str,
    writer: usize,
    seed: u64,
    record: &mut Record,
    acknowledged: &Sender<()>,
) {
    for number in seed.. {
        let index = usize::try_from(number).expect("a small number") % NAMES;
        let name = format!("w{writer}-{index}");
        let states = record.objects.entry(name.clone()).or_insert_with(|| vec![None]);
        let stored = states[0];
        let path = format!("{MAPS}/{name}");
        let body = json!({"metadata": {"name": name}, "data": {"n": number.to_string()}});
        let (method, path, next) = match stored {
            None => ("POST", MAPS, Some(number)),
            Some(_) if number % 4 == 3 => ("DELETE", path.as_str(), None),
            Some(_) => ("PUT", path.as_str(), Some(number)),
        };
        let body = next.map(|_| body.to_string()).unwrap_or_default();
        states.push(next);
        let Some((code, object)) = send(server, method, path, &body) else { return };
        assert!(matches!(code, 200 | 201), "{method} {path}: {object}");
        *states = vec![next];
        if next.is_some() {
            let version = version(&object);
            assert!(version > record.newest, "a version is used once");
            record.newest = version;
        }
        if acknowledged.send(()).is_err() {
            return;
        }
    }
}

/// Compares the objects of a server with the records, and keeps what is stored.
pub(crate) fn compare(server: &TestServer, records: &mut [Record]) {
    let list = server.get(MAPS);
    let items = list["items"].as_array().expect("items").iter();
    let mut stored: BTreeMap<&str, u64> = items
        .filter_map(|item| {
            let number = item["data"]["n"].as_str()?.parse().ok()?;
            Some((item["metadata"]["name"].as_str()?, number))
        })
        .collect();
    for record in records {
        assert!(version(&list) >= record.newest, "an acknowledged version is lost");
        for (name, states) in &mut record.objects {
            let found = stored.remove(name.as_str());
            assert!(states.contains(&found), "{name}: expected one of {states:?}, got {found:?}");
            *states = vec![found];
        }
    }
    assert_eq!(stored, BTreeMap::new(), "nobody wrote these objects");
}

#[test]
fn acknowledged_writes_survive_kills() {
    let kills = env::var("KUBEPROOF_KILLS").map_or(8, |kills| kills.parse().expect("a number"));
    let directory = tempfile::tempdir().expect("a directory");
    let mut records: Vec<Record> = (0..WRITERS).map(|_| Record::default()).collect();
    for round in 0..kills {
        let mut server = start(directory.path());
        compare(&server, &mut records);
        let (acknowledged, count) = mpsc::channel();
        thread::scope(|scope| {
            for (writer, record) in records.iter_mut().enumerate() {
                let (url, acknowledged) = (server.url.clone(), acknowledged.clone());
                scope.spawn(move || write(&url, writer, round * 1000, record, &acknowledged));
            }
            drop(acknowledged);
            assert_eq!(count.iter().take(WRITES).count(), WRITES, "the server ended by itself");
            server.process.kill().expect("the server runs");
        });
    }
    compare(&start(directory.path()), &mut records);
}

/// Types, allocations and service accounts continue where the killed server stopped.
#[test]
fn a_restarted_server_continues() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = start(directory.path());
    let names = json!({"plural": "gadgets", "singular": "gadget", "kind": "Gadget"});
    let schema = json!({"openAPIV3Schema": {"type": "object"}});
    server.create(
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        &json!({
            "metadata": {"name": "gadgets.example.com"},
            "spec": {
                "group": "example.com", "scope": "Namespaced", "names": names,
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}],
            },
        }),
    );
    let gadgets = "/apis/example.com/v1/namespaces/default/gadgets";
    let gadget = |name: &str| {
        let metadata = json!({"name": name});
        json!({"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": metadata})
    };
    server.create(gadgets, &gadget("a"));
    let services = "/api/v1/namespaces/default/services";
    let service = |name: &str| {
        json!({
            "metadata": {"name": name}, "spec": {"type": "NodePort", "ports": [{"port": 1}]},
        })
    };
    server.create(services, &service("first"));
    let uids = |server: &TestServer| {
        ["/api/v1/namespaces/default", "/api/v1/namespaces/default/services/kubernetes"]
            .map(|path| server.get(path)["metadata"]["uid"].clone())
    };
    let before = uids(&server);
    drop(server);

    let server = start(directory.path());
    assert_eq!(uids(&server), before, "the objects of a new cluster are not created again");
    assert_eq!(server.names(gadgets), ["a"]);
    server.create(gadgets, &gadget("b"));
    server.create(services, &service("second"));
    let [first, second] = ["first", "second"].map(|name| server.get(&format!("{services}/{name}")));
    for field in ["/spec/clusterIP", "/spec/ports/0/nodePort"] {
        assert!(first.pointer(field).is_some(), "{first}");
        assert_ne!(first.pointer(field), second.pointer(field), "{field}");
    }
}

/// The history begins with the version of the restart.
#[test]
fn a_watch_continues_after_a_restart_unless_its_version_is_older() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = start(directory.path());
    server.create(MAPS, &json!({"metadata": {"name": "a"}}));
    let old = version(&server.get(&format!("{MAPS}/a")));
    server.create(MAPS, &json!({"metadata": {"name": "b"}}));
    let newest = version(&server.get(MAPS));
    drop(server);

    let server = start(directory.path());
    server.create(MAPS, &json!({"metadata": {"name": "c"}}));
    let watch = |version: u64| {
        server.events(&format!("{MAPS}?watch=1&timeoutSeconds=1&resourceVersion={version}"))
    };
    assert_eq!(watch(old)[0]["object"]["code"], 410);
    let events = watch(newest);
    let names: Vec<_> = events.iter().map(|event| &event["object"]["metadata"]["name"]).collect();
    assert_eq!(names, ["c"]);
}

#[test]
fn two_servers_cannot_share_a_directory() {
    let directory = tempfile::tempdir().expect("a directory");
    let _server = start(directory.path());
    let path = directory.path().to_str().expect("a path in UTF-8");
    let second = kubeproof(&["serve", "--data-dir", path]).with(2);
    assert!(second.stderr.contains("is in use; stop the other server"), "{}", second.stderr);
}

/// Stops a server, which writes its snapshot.
#[cfg(unix)]
fn stop(mut server: TestServer) {
    signal(&server.process, "TERM");
    assert!(server.process.wait().expect("the server runs").success());
}

#[cfg(unix)]
#[test]
fn a_snapshot_moves_objects_to_a_server_with_another_storage() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = |name: &str| directory.path().join(name).to_str().expect("UTF-8").to_owned();
    let (first, second, data) = (path("first"), path("second"), path("data"));
    let server = TestServer::start(&["--snapshot", &first]);
    server.create(MAPS, &json!({"metadata": {"name": "a"}, "data": {"n": "1"}}));
    let before = server.get(MAPS);
    stop(server);

    let server = TestServer::start(&["--restore", &first, "--data-dir", &data]);
    assert_eq!(server.get(MAPS)["items"], before["items"]);
    server.create(MAPS, &json!({"metadata": {"name": "b"}, "data": {"n": "2"}}));
    drop(server);
    let rejected = kubeproof(&["serve", "--restore", &first, "--data-dir", &data]).with(2);
    assert!(rejected.stderr.contains("restore a snapshot to an empty directory"), "{rejected:?}");

    stop(TestServer::start(&["--data-dir", &data, "--snapshot", &second]));
    let server = TestServer::start(&["--restore", &second]);
    assert_eq!(server.names(MAPS), ["a", "b"]);
    let item = |list: &Value| list["items"][0].clone();
    assert_eq!(item(&server.get(MAPS)), item(&before));
}

#[test]
fn a_truncated_snapshot_is_an_error() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("snapshot");
    let head = json!({"format": "kubeproof.snapshot/v1", "revision": 1000, "objects": 2});
    std::fs::write(&file, format!("{head}\n")).expect("space");
    let rejected = kubeproof(&["serve", "--restore", file.to_str().expect("UTF-8")]).with(2);
    assert!(rejected.stderr.contains("0 objects, expected 2"), "{rejected:?}");
}
