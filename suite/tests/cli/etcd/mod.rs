//! `kubeproof serve --etcd-servers`: several servers share one etcd and behave as one.
//!
//! The tests skip if the program `etcd` is missing, and print a message. With
//! `KUBEPROOF_REQUIRE_PEERS=1` a missing program fails them.

mod kills;
mod peer;
mod tls;

use std::collections::BTreeSet;
use std::thread;

use serde_json::{Value, json};

use self::peer::EtcdServer;
use crate::program::kubeproof;
use crate::server::TestServer;
#[cfg(unix)]
use crate::server::signal;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const SERVICES: &str = "/api/v1/namespaces/default/services";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const GADGETS: &str = "/apis/example.com/v1/namespaces/default/gadgets";

fn start(etcd: &EtcdServer, more: &[&str]) -> TestServer {
    TestServer::start(&[&["--etcd-servers", &etcd.url], more].concat())
}

fn map(name: &str, n: u64) -> Value {
    json!({"metadata": {"name": name}, "data": {"n": n.to_string()}})
}

fn version(object: &Value) -> String {
    object["metadata"]["resourceVersion"].as_str().expect("a version").to_owned()
}

#[test]
fn each_server_sees_the_writes_of_the_others_at_once() {
    let Some(etcd) = EtcdServer::start() else { return };
    let [one, two, three] = [(); 3].map(|()| start(&etcd, &[]));
    one.create(MAPS, &map("a", 1));
    let path = format!("{MAPS}/a");
    let read = two.get(&path);
    assert_eq!(three.get(MAPS)["items"][0]["data"], json!({"n": "1"}));
    three.request("POST", MAPS, &map("a", 2).to_string(), "409");
    let mut changed = map("a", 2);
    changed["metadata"]["resourceVersion"] = version(&read).into();
    three.request("PUT", &path, &changed.to_string(), "200");
    two.request("PUT", &path, &changed.to_string(), "409");
    let watch = format!("{MAPS}?watch=1&timeoutSeconds=1&resourceVersion={}", version(&read));
    let events = one.events(&watch);
    assert_eq!((&events[0]["type"], events.len()), (&json!("MODIFIED"), 1), "{events:?}");
    one.request("DELETE", &path, "", "200");
    two.create(MAPS, &map("a", 3));
    assert_eq!(three.names(MAPS), ["a"]);
}

#[test]
fn each_server_serves_the_custom_resources_of_the_others_at_once() {
    let Some(etcd) = EtcdServer::start() else { return };
    let [one, two] = [(); 2].map(|()| start(&etcd, &[]));
    let schema = json!({"openAPIV3Schema": {"type": "object"}});
    let definition = json!({
        "metadata": {"name": "gadgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "gadgets", "singular": "gadget", "kind": "Gadget"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}],
        },
    });
    let gadget = |name: &str| {
        let metadata = json!({"name": name});
        json!({"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": metadata})
    };
    two.request("GET", GADGETS, "", "404");
    one.create(DEFINITIONS, &definition);
    two.create(GADGETS, &gadget("a"));
    assert_eq!(one.names(GADGETS), ["a"]);
    assert_eq!(start(&etcd, &[]).names(GADGETS), ["a"], "a new server serves it, too");
    two.request("DELETE", &format!("{DEFINITIONS}/gadgets.example.com"), "", "200");
    // The controller deletes the objects first.
    let watch = format!("{DEFINITIONS}?watch=1&timeoutSeconds=2");
    one.events(&watch);
    one.request("GET", GADGETS, "", "404");
}

#[test]
fn a_list_continues_on_another_server_and_after_its_restart() {
    let Some(etcd) = EtcdServer::start() else { return };
    let one = start(&etcd, &[]);
    for n in 0..4 {
        one.create(MAPS, &map(&format!("m{n}"), n));
    }
    let page = one.get(&format!("{MAPS}?limit=2"));
    let token = page["metadata"]["continue"].as_str().expect("more objects");
    one.request("DELETE", &format!("{MAPS}/m3"), "", "200");
    // This server has only the newest event, so it reads the older version from etcd.
    let short = start(&etcd, &["--history=1"]);
    one.create(MAPS, &map("m5", 5));
    one.create(MAPS, &map("m6", 6));
    for server in [&one, &short, &start(&etcd, &[])] {
        let rest = format!("{MAPS}?limit=5&continue={token}");
        assert_eq!(server.names(&rest), ["m2", "m3"]);
        assert_eq!(version(&server.get(&rest)), version(&page));
    }
}

/// Both servers allocate at the same time.
#[test]
fn services_of_different_servers_never_share_an_address_or_a_port() {
    let Some(etcd) = EtcdServer::start() else { return };
    let servers = [(); 2].map(|()| start(&etcd, &[]));
    let service = |name: String| {
        let spec = json!({"type": "NodePort", "ports": [{"port": 1}]});
        json!({"metadata": {"name": name}, "spec": spec})
    };
    thread::scope(|scope| {
        for writer in 0..4 {
            let server = &servers[writer % 2];
            scope.spawn(move || {
                for n in 0..8 {
                    server.create(SERVICES, &service(format!("s{writer}-{n}")));
                }
            });
        }
    });
    let list = servers[0].get(SERVICES);
    let items = list["items"].as_array().expect("items");
    let all = |pointer: &str| -> BTreeSet<String> {
        items.iter().filter_map(|item| Some(item.pointer(pointer)?.to_string())).collect()
    };
    assert_eq!(items.len(), 33, "with the service kubernetes");
    assert_eq!(all("/spec/clusterIP").len(), 33);
    assert_eq!(all("/spec/ports/0/nodePort").len(), 32);
}

#[test]
fn a_pod_has_one_node_and_its_log_is_on_every_server() {
    let Some(etcd) = EtcdServer::start() else { return };
    let servers = [(); 2].map(|()| start(&etcd, &[]));
    let container = json!({"name": "c", "image": "busybox", "command": ["echo", "hello"]});
    let spec = json!({"restartPolicy": "Never", "containers": [container]});
    let pods = "/api/v1/namespaces/default/pods";
    servers[0].create(pods, &json!({"metadata": {"name": "p"}, "spec": spec}));
    let watch = format!("{pods}?watch=1&timeoutSeconds=3&fieldSelector=status.phase%3DSucceeded");
    assert!(!servers[1].events(&watch).is_empty(), "the pod ends");
    for server in &servers {
        let log = server.request("GET", &format!("{pods}/p/log"), "", "200");
        assert!(log.contains("hello"), "{log}");
    }
}

#[test]
fn a_run_on_etcd_skips_nothing() {
    let Some(etcd) = EtcdServer::start() else { return };
    let server = start(&etcd, &["--sample"]);
    let run = kubeproof(&[&["run", "-q", "--only", "schema/*"][..], &server.target()].concat());
    let run = run.with(0);
    assert!(!run.stdout.contains("skip"), "{run:?}");
}

#[cfg(unix)]
#[test]
fn a_snapshot_moves_objects_to_etcd_and_back() {
    let Some(etcd) = EtcdServer::start() else { return };
    let directory = tempfile::tempdir().expect("a directory");
    let path = |name: &str| directory.path().join(name).to_str().expect("UTF-8").to_owned();
    let (first, second) = (path("first"), path("second"));
    let stop = |mut server: TestServer| {
        signal(&server.process, "TERM");
        assert!(server.process.wait().expect("the server runs").success());
    };
    let server = TestServer::start(&["--snapshot", &first]);
    server.create(MAPS, &map("a", 1));
    let uid = |server: &TestServer| server.get(&format!("{MAPS}/a"))["metadata"]["uid"].clone();
    let before = uid(&server);
    stop(server);
    stop(start(&etcd, &["--restore", &first, "--snapshot", &second]));
    let rejected = kubeproof(&["serve", "--etcd-servers", &etcd.url, "--restore", &first]).with(2);
    assert!(rejected.stderr.contains("restore a snapshot to an empty prefix"), "{rejected:?}");
    let server = TestServer::start(&["--restore", &second]);
    assert_eq!((server.names(MAPS), uid(&server)), (vec!["a".to_owned()], before));
}

#[test]
fn a_server_does_not_start_without_etcd() {
    let rejected = kubeproof(&["serve", "--etcd-servers", "127.0.0.1:1"]).with(2);
    assert!(rejected.stderr.contains("expected http://HOST:PORT"), "{rejected:?}");
    let rejected = kubeproof(&["serve", "--etcd-servers", "http://x:1", "--data-dir", "d"]).with(2);
    assert!(rejected.stderr.contains("cannot be used with"), "{rejected:?}");
}
