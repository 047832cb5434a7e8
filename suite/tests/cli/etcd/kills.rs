//! Kills and restarts servers that share an etcd.

use std::sync::mpsc;
use std::thread;

use super::peer::EtcdServer;
use super::start;
use crate::durability::{Record, compare, write};
use crate::program::complete_run;
use crate::server::TestServer;

const REPLICAS: usize = 3;
const WRITERS: usize = 6;
/// The acknowledged writes before a server is killed, and after it.
const WRITES: usize = 40;

/// The restarts during a run of the suite.
const RESTARTS: usize = 3;

/// Starts a server again at its address.
fn restart(etcd: &EtcdServer, server: &mut TestServer) {
    let address = server.url.strip_prefix("http://").expect("plain HTTP").to_owned();
    server.process.kill().expect("the server runs");
    server.process.wait().expect("the server runs");
    *server = start(etcd, &["--listen", &address]);
}

/// `KUBEPROOF_KILLS` sets the number of rounds.
#[test]
fn acknowledged_writes_survive_the_kills_of_replicas() {
    let Some(etcd) = EtcdServer::start() else { return };
    let kills = std::env::var("KUBEPROOF_KILLS");
    let kills = kills.map_or(6, |kills| kills.parse().expect("a number"));
    let mut servers: Vec<TestServer> = (0..REPLICAS).map(|_| start(&etcd, &[])).collect();
    let mut records: Vec<Record> = (0..WRITERS).map(|_| Record::default()).collect();
    for round in 0..kills {
        let victim = round % REPLICAS;
        let (acknowledged, count) = mpsc::channel();
        thread::scope(|scope| {
            for (writer, record) in records.iter_mut().enumerate() {
                let url = servers[writer % REPLICAS].url.clone();
                let acknowledged = acknowledged.clone();
                let seed = u64::try_from(round).expect("small") * 1000;
                scope.spawn(move || write(&url, writer, seed, record, &acknowledged));
            }
            drop(acknowledged);
            let wait = || assert_eq!(count.iter().take(WRITES).count(), WRITES, "all have ended");
            wait();
            servers[victim].process.kill().expect("the server runs");
            wait();
            // The other writers end when nobody counts.
            drop(count);
        });
        restart(&etcd, &mut servers[victim]);
        for server in &servers {
            compare(server, &mut records);
        }
    }
}

/// Each replica runs half of the suite. `KUBEPROOF_WHOLE=1` runs all of it on each.
#[test]
fn the_suite_passes_on_each_replica_while_another_one_restarts() {
    let Some(etcd) = EtcdServer::start() else { return };
    let mut servers: Vec<TestServer> = (0..REPLICAS).map(|_| start(&etcd, &[])).collect();
    for tested in 0..REPLICAS {
        let other = (tested + 1) % REPLICAS;
        let target: Vec<String> = servers[tested].target().map(str::to_owned).into();
        let run = thread::spawn(move || {
            let target: Vec<&str> = target.iter().map(String::as_str).collect();
            let is_whole = std::env::var_os("KUBEPROOF_WHOLE").is_some();
            let part = if is_whole { "1/1" } else { ["1/2", "2/2"][tested % 2] };
            complete_run(&[&target[..], &["--seed", "1", "--shard", part]].concat())
        });
        for _ in 0..RESTARTS {
            restart(&etcd, &mut servers[other]);
        }
        let run = run.join().expect("no panic").with(0);
        assert!(run.stdout.contains("\nconformant, "), "{}", run.stdout);
        servers[tested].assert_clean();
    }
}
