//! Clients that do not read their responses, and large numbers of watches.

use std::collections::BTreeSet;

use tokio::io::AsyncBufReadExt as _;

use super::*;

const MERGE: &str = "application/merge-patch+json";
const PODS: &str = "/api/v1/namespaces/default/pods";

/// Creates 20 objects of 512 KiB each.
async fn fill(server: &StressServer) {
    for n in 0..20 {
        let data = json!({ "x": format!("{n:02}").repeat(1 << 18) });
        server
            .create(
                CONFIG_MAPS,
                &json!({ "metadata": { "name": format!("big-{n}") }, "data": data }),
            )
            .await;
    }
}

/// Opens connections that send a request and do not read the response.
async fn send_without_reading(
    server: &StressServer,
    count: usize,
    line: &str,
    headers: &str,
) -> Vec<TcpStream> {
    let mut streams = Vec::new();
    for _ in 0..count {
        let request = format!("{}{headers}\r\n", server.head(line));
        streams.push(server.sends(request.as_bytes()).await);
    }
    streams
}

/// Rewrites the objects. Afterwards a buffered response is the only owner of their old states.
async fn rewrite(server: &StressServer, rounds: usize) {
    for round in 0..rounds {
        for n in 0..20 {
            let patch = json!({ "data": { "y": round.to_string() } });
            let (code, _) = server
                .ask("PATCH", &format!("{CONFIG_MAPS}/big-{n}"), MERGE, patch.to_string())
                .await;
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
async fn unread_responses_hold_no_copies(#[case] query: &str, #[case] headers: &str) {
    // The limit covers the objects, 32 MiB of history, and the states before the log.
    stress_within(Options::default(), 2 * MEMORY, async |server| {
        fill(&server).await;
        let streams =
            send_without_reading(&server, 60, &format!("GET {CONFIG_MAPS}{query}"), headers).await;
        rewrite(&server, 1).await;
        streams
    })
    .await;
}

#[rstest::rstest]
#[case::list("")]
#[case::watch("?watch=true")]
#[tokio::test]
async fn a_client_that_does_not_read_is_disconnected(#[case] query: &str) {
    stress_within(Options::short_timeouts(), 2 * MEMORY, async |server| {
        fill(&server).await;
        let streams =
            send_without_reading(&server, 5, &format!("GET {CONFIG_MAPS}{query}"), "").await;
        for mut stream in streams {
            // The write fails after the server has reset the connection.
            let junk = [b'x'; 1024];
            while stream.write_all(&junk).await.is_ok() {}
        }
    })
    .await;
}

/// Every watch receives the event.
#[tokio::test]
async fn hundreds_of_watches_receive_an_event() {
    stress(Options::default(), async |server| {
        let line = format!("GET {CONFIG_MAPS}?watch=true&fieldSelector=metadata.name%3Dheard");
        let streams = send_without_reading(&server, 500, &line, "").await;
        server.create(CONFIG_MAPS, &json!({ "metadata": { "name": "heard" } })).await;
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

/// The events are larger than the buffers between server and client.
#[tokio::test]
async fn a_slow_watcher_receives_every_event_once() {
    stress_within(Options::default(), 2 * MEMORY, async |server| {
        fill(&server).await;
        let line = format!(
            "GET {CONFIG_MAPS}?watch=true&sendInitialEvents=true&\
             resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
        );
        let mut streams = send_without_reading(&server, 1, &line, "").await;
        let mut stream = tokio::io::BufReader::new(streams.remove(0));
        let mut status = String::new();
        // The status line shows that the watch has started.
        stream.read_line(&mut status).await.expect("a response");
        rewrite(&server, 2).await;
        let (mut seen, mut events) = (BTreeSet::new(), 0);
        while events < 60 {
            let mut line = String::new();
            assert!(matches!(stream.read_line(&mut line).await, Ok(1..)), "the watch ended");
            let Some((_, name)) = line.split_once(r#""name":""#) else { continue };
            let Some((_, version)) = line.split_once(r#""resourceVersion":""#) else { continue };
            if name.starts_with("big-") {
                assert!(
                    seen.insert((name[..6].to_owned(), version[..8].to_owned())),
                    "the watch repeats an event: {line:.200}"
                );
                events += 1;
            }
        }
    })
    .await;
}

/// The server pauses logs and commands whose clients do not read, and holds only their buffers.
#[tokio::test]
async fn streams_without_readers_pause() {
    let options = Options { node: true, ..Options::short_timeouts() };
    stress(options, async |server| {
        let command = json!(["sh", "-c", "echo ready; while true; do seq 1000; done"]);
        let container = json!({ "name": "c", "image": "x", "command": command });
        server
            .create(
                PODS,
                &json!({ "metadata": { "name": "loud" }, "spec": { "containers": [container] } }),
            )
            .await;
        while !server
            .ask("GET", &format!("{PODS}/loud"), JSON, "")
            .await
            .1
            .contains(r#""phase":"Running""#)
        {
            tokio::task::yield_now().await;
        }
        let upgrade = "connection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
                       sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
                       sec-websocket-protocol: v5.channel.k8s.io\r\n";
        let follow = format!("GET {PODS}/loud/log?follow=true");
        let mut streams = send_without_reading(&server, 20, &follow, "").await;
        let seq = format!("GET {PODS}/loud/exec?command=seq&command=100000000&stdout=true");
        streams.extend(send_without_reading(&server, 20, &seq, upgrade).await);
        // A client that reads again receives the rest.
        let mut log = streams.swap_remove(0);
        let mut bytes = Vec::new();
        while bytes.len() < 200_000 {
            assert!(matches!(log.read_buf(&mut bytes).await, Ok(1..)), "the log ended");
        }
        streams
    })
    .await;
}
