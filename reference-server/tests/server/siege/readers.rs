//! Clients that take nothing of what they ask for, and clients that are very many.

use std::collections::BTreeSet;

use tokio::io::AsyncBufReadExt as _;

use super::*;

const MERGE: &str = "application/merge-patch+json";
const PODS: &str = "/api/v1/namespaces/default/pods";

/// Half a megabyte in an object, twenty times.
async fn fill(fortress: &Fortress) {
    for n in 0..20 {
        let data = json!({ "x": format!("{n:02}").repeat(1 << 18) });
        fortress
            .create(CONFIG_MAPS, &json!({ "metadata": { "name": format!("big-{n}") }, "data": data }))
            .await;
    }
}

/// Connections that ask for this and read nothing.
async fn ask_and_read_nothing(
    fortress: &Fortress,
    count: usize,
    line: &str,
    headers: &str,
) -> Vec<TcpStream> {
    let mut streams = Vec::new();
    for _ in 0..count {
        let request = format!("{}{headers}\r\n", fortress.head(line));
        streams.push(fortress.sends(request.as_bytes()).await);
    }
    streams
}

/// Rewrites the objects, so that whoever holds their old states holds them alone.
async fn rewrite(fortress: &Fortress, rounds: usize) {
    for round in 0..rounds {
        for n in 0..20 {
            let patch = json!({ "data": { "y": round.to_string() } });
            let (code, _) =
                fortress.ask("PATCH", &format!("{CONFIG_MAPS}/big-{n}"), MERGE, patch.to_string()).await;
            assert_eq!(code, 200);
        }
    }
}

#[rstest::rstest]
#[case::list("", "")]
#[case::table("", "accept: application/json;as=Table;v=v1;g=meta.k8s.io\r\n")]
#[case::watch("?watch=true", "")]
#[case::watch_of_tables(
    "?watch=true&includeObject=Object",
    "accept: application/json;as=Table;v=v1;g=meta.k8s.io\r\n"
)]
#[tokio::test]
async fn who_reads_nothing_holds_no_copies(#[case] query: &str, #[case] headers: &str) {
    // The objects, their log of 64 MiB, and the states before those in the log.
    besiege_within(Walls::default(), 2 * MEMORY, async |fortress| {
        fill(&fortress).await;
        let streams =
            ask_and_read_nothing(&fortress, 60, &format!("GET {CONFIG_MAPS}{query}"), headers).await;
        rewrite(&fortress, 1).await;
        streams
    })
    .await;
}

#[rstest::rstest]
#[case::list("")]
#[case::watch("?watch=true")]
#[tokio::test]
async fn who_reads_nothing_is_hung_up_on(#[case] query: &str) {
    besiege_within(Walls::impatient(), 2 * MEMORY, async |fortress| {
        fill(&fortress).await;
        let streams = ask_and_read_nothing(&fortress, 5, &format!("GET {CONFIG_MAPS}{query}"), "").await;
        for mut stream in streams {
            // Nothing is read before the server has given up, which shows in what can be sent: it resets.
            let junk = [b'x'; 1024];
            while stream.write_all(&junk).await.is_ok() {}
        }
    })
    .await;
}

/// Every one of them hears of the change.
#[tokio::test]
async fn hundreds_of_watches_wait_and_hear() {
    besiege(Walls::default(), async |fortress| {
        let line = format!("GET {CONFIG_MAPS}?watch=true&fieldSelector=metadata.name%3Dheard");
        let streams = ask_and_read_nothing(&fortress, 500, &line, "").await;
        fortress.create(CONFIG_MAPS, &json!({ "metadata": { "name": "heard" } })).await;
        let mut held = Vec::new();
        for mut stream in streams {
            let mut bytes = Vec::new();
            while !bytes.windows(7).any(|text| text == b"\"ADDED\"") {
                assert!(matches!(stream.read_buf(&mut bytes).await, Ok(1..)), "the watch ended");
            }
            held.push(stream);
        }
        held
    })
    .await;
}

/// A watcher that is slow misses nothing and gets nothing twice, however large the events are.
#[tokio::test]
async fn a_slow_watcher_gets_every_event_once() {
    besiege_within(Walls::default(), 2 * MEMORY, async |fortress| {
        fill(&fortress).await;
        let line = format!("GET {CONFIG_MAPS}?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true");
        let mut streams = ask_and_read_nothing(&fortress, 1, &line, "").await;
        let mut stream = tokio::io::BufReader::new(streams.remove(0));
        let mut status = String::new();
        // It is answered, so it has begun.
        stream.read_line(&mut status).await.expect("an answer");
        rewrite(&fortress, 2).await;
        let (mut seen, mut events) = (BTreeSet::new(), 0);
        while events < 60 {
            let mut line = String::new();
            assert!(matches!(stream.read_line(&mut line).await, Ok(1..)), "the watch ended");
            let Some((_, name)) = line.split_once(r#""name":""#) else { continue };
            let Some((_, version)) = line.split_once(r#""resourceVersion":""#) else { continue };
            if name.starts_with("big-") {
                assert!(seen.insert((name[..6].to_owned(), version[..8].to_owned())), "an event came twice: {line:.200}");
                events += 1;
            }
        }
    })
    .await;
}

/// Logs and commands that are not read stand still, and cost what is in their buffers.
#[tokio::test]
async fn streams_that_are_not_read_stand_still() {
    let walls = Walls { node: true, ..Walls::impatient() };
    besiege(walls, async |fortress| {
        let command = json!(["sh", "-c", "echo ready; while true; do seq 1000; done"]);
        let container = json!({ "name": "c", "image": "x", "command": command });
        fortress
            .create(PODS, &json!({ "metadata": { "name": "loud" }, "spec": { "containers": [container] } }))
            .await;
        while !fortress.ask("GET", &format!("{PODS}/loud"), JSON, "").await.1.contains(r#""phase":"Running""#) {
            tokio::task::yield_now().await;
        }
        let upgrade = "connection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
                       sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-protocol: v5.channel.k8s.io\r\n";
        let mut streams = ask_and_read_nothing(&fortress, 20, &format!("GET {PODS}/loud/log?follow=true"), "").await;
        let seq = format!("GET {PODS}/loud/exec?command=seq&command=100000000&stdout=true");
        streams.extend(ask_and_read_nothing(&fortress, 20, &seq, upgrade).await);
        // Their clients have paused; they go on where they were.
        let mut log = streams.swap_remove(0);
        let mut bytes = Vec::new();
        while bytes.len() < 200_000 {
            assert!(matches!(log.read_buf(&mut bytes).await, Ok(1..)), "the log ended");
        }
        streams
    })
    .await;
}
