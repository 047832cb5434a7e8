//! Tests watches: any chunk boundaries, every kind of end, and hundreds at once.

use bytes::Bytes;
use futures_util::future::join_all;
use kubeproof_harness::exchange::{BrokenKind, Outcome, Received, WatchEnd};
use kubeproof_harness::transport::Limits;
use kubeproof_harness::transport::watch::{Next, OpenWatch};
use rstest::rstest;
use serde_json::json;
use tokio::time::Instant;

use crate::scripted_peer::{Act, Peer, ample, get, send, soon};

const HEAD: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
const LAST: &str = "0\r\n\r\n";

fn chunk(text: &str) -> String {
    format!("{:x}\r\n{text}\r\n", text.len())
}

fn event(kind: &str, version: u32) -> String {
    format!(
        "{{\"type\":\"{kind}\",\"object\":\
         {{\"metadata\":{{\"resourceVersion\":\"{version}\",\"name\":\"é\"}}}}}}\n"
    )
}

/// Reads all events: types, versions and the end.
async fn to_the_end(watch: &mut OpenWatch) -> (Vec<String>, WatchEnd) {
    let mut events = Vec::new();
    loop {
        match watch.next(ample()).await {
            Next::Event(event) => {
                let version =
                    event.object.pointer("/metadata/resourceVersion").and_then(|v| v.as_str());
                events.push(format!("{} {}", event.kind, version.unwrap_or("-")));
            }
            Next::End(end) => return (events, end),
            Next::Deadline => panic!("no end after {events:?}"),
        }
    }
}

fn received(watch: &OpenWatch) -> Received {
    match watch.snapshot().outcome {
        Outcome::Response(received) => received,
        Outcome::Broken(broken) => panic!("broken: {broken:?}"),
    }
}

#[tokio::test]
async fn chunk_boundaries_mean_nothing() {
    let lines = event("ADDED", 1) + "\r\n" + &event("MODIFIED", 2) + &event("BOOKMARK", 3);
    // Boundaries inside characters, too.
    let bytewise: Vec<u8> =
        lines.bytes().flat_map(|byte| [b'1', b'\r', b'\n', byte, b'\r', b'\n']).collect();
    let scripts = [
        vec![Act::Head, send(HEAD), send(chunk(&lines)), send(LAST)],
        vec![Act::Head, Act::Trickle(Bytes::from(format!("{HEAD}{}{LAST}", chunk(&lines))))],
        vec![Act::Head, send(HEAD), Act::Send(bytewise.into()), send(LAST)],
        vec![Act::Head, send("HTTP/1.0 200 OK\r\n\r\n"), send(lines.clone())],
    ];
    for script in scripts {
        let peer = Peer::start(script.clone()).await;
        let mut watch = peer.client().watch(get("/x?watch=true"), ample()).await;
        let found = to_the_end(&mut watch).await;
        let expected = vec!["ADDED 1".to_owned(), "MODIFIED 2".to_owned(), "BOOKMARK 3".to_owned()];
        assert_eq!(found, (expected, WatchEnd::Server), "{script:?}");
        let received = received(&watch);
        assert_eq!((received.events.len(), received.end), (3, Some(WatchEnd::Server)));
        assert_eq!(received.events[2].object["metadata"]["name"], "é");
    }
}

#[rstest]
#[case::garbage(
    "watch me\n",
    "an event is not JSON: expected a value, met 'w' at line 1 column 1 (byte 0); it starts \
     \"watch me\""
)]
#[case::no_object(
    "{\"type\":\"ADDED\"}\n",
    "a document of the stream is no event, which has a type and an object"
)]
#[case::array("[]\n", "a document of the stream is no event")]
#[case::partial("{\"type\":\"ADD", "the stream ended inside an event")]
#[case::missing_bracket("{\"type\":\"ADDED\"\n{", "an event is not JSON")]
#[tokio::test]
async fn other_documents_break_the_watch(#[case] other: &str, #[case] reason: &str) {
    let first = send(chunk(&event("ADDED", 1)));
    let script = vec![Act::Head, send(HEAD), first, send(chunk(other)), send(LAST)];
    let peer = Peer::start(script).await;
    let mut watch = peer.client().watch(get("/x"), ample()).await;
    let (events, end) = to_the_end(&mut watch).await;
    assert_eq!(events, ["ADDED 1"], "what came before stays");
    assert!(matches!(&end, WatchEnd::Broken(found) if found.starts_with(reason)), "{end:?}");
    assert!(
        matches!(watch.next(ample()).await, Next::End(again) if again == end),
        "an end stays the end"
    );
}

/// Clients of Kubernetes decode a stream of JSON documents, not of lines.
#[rstest]
#[case::concatenated(|events: &str| events.replace('\n', ""))]
#[case::indented(|events: &str| events.replace("{\"", "{\n  \""))]
#[tokio::test]
async fn events_need_no_newlines(#[case] rewritten: fn(&str) -> String) {
    let events = rewritten(&(event("ADDED", 1) + &event("MODIFIED", 2)));
    let bytewise = format!("{HEAD}{}{LAST}", chunk(&events));
    for script in [
        vec![Act::Head, send(HEAD), send(chunk(&events)), send(LAST)],
        vec![Act::Head, Act::Trickle(bytewise.into())],
    ] {
        let peer = Peer::start(script).await;
        let mut watch = peer.client().watch(get("/x"), ample()).await;
        let expected = vec!["ADDED 1".to_owned(), "MODIFIED 2".to_owned()];
        assert_eq!(to_the_end(&mut watch).await, (expected, WatchEnd::Server));
    }
}

/// An event counts when it is complete. A newline that never arrives does not delay it.
#[tokio::test]
async fn an_event_without_a_newline_arrives_at_once() {
    let first = send(chunk(event("ADDED", 1).trim()));
    let peer = Peer::start(vec![Act::Head, send(HEAD), first, Act::Hang]).await;
    let mut watch = peer.client().watch(get("/x"), ample()).await;
    assert!(matches!(watch.next(ample()).await, Next::Event(_)));
}

#[tokio::test]
async fn a_list_in_response_to_a_watch_is_recognized() {
    let list = "{\n  \"kind\": \"PodList\",\n  \"items\": [{\"metadata\": {}}]\n}\n";
    let peer = Peer::start(vec![Act::Head, send(HEAD), send(chunk(list)), send(LAST)]).await;
    let mut watch = peer.client().watch(get("/x"), ample()).await;
    let expected = (Vec::new(), WatchEnd::List("PodList".to_owned()));
    assert_eq!(to_the_end(&mut watch).await, expected);
}

#[rstest]
#[case::no_last_chunk(vec![])]
#[case::cut_in_a_chunk(vec![send("ff\r\n{\"type\"")])]
#[case::reset(vec![Act::Reset])]
#[case::chunk_garbage(vec![send("zz\r\n")])]
#[tokio::test]
async fn a_stream_cut_short_is_broken(#[case] then: Vec<Act>) {
    let mut script = vec![Act::Head, send(HEAD), send(chunk(&event("ADDED", 1)))];
    script.extend(then);
    let peer = Peer::start(script).await;
    let mut watch = peer.client().watch(get("/x"), ample()).await;
    let (_, end) = to_the_end(&mut watch).await;
    assert!(
        matches!(&end, WatchEnd::Broken(reason) if reason.starts_with("the stream broke: ")),
        "{end:?}"
    );
}

#[rstest]
#[case::line(
    "x",
    Limits { max_event: 1 << 16, ..Limits::default() },
    WatchEnd::Broken("an event is longer than 65536 bytes".to_owned())
)]
#[case::total(
    "{\"type\":\"ADDED\",\"object\":{}}\n",
    Limits { max_watch_bytes: 1 << 16, ..Limits::default() },
    WatchEnd::Budget("the watch is longer than 65536 bytes".to_owned())
)]
#[tokio::test]
async fn floods_are_cut_at_the_budget(
    #[case] text: &str,
    #[case] limits: Limits,
    #[case] expected: WatchEnd,
) {
    let flood = Act::Flood(chunk(&text.repeat(100)).into());
    let mut peer = Peer::start(vec![Act::Head, send(HEAD), flood, Act::Hang]).await;
    let mut watch = peer.client_with(limits).watch(get("/x"), ample()).await;
    let (_, end) = to_the_end(&mut watch).await;
    assert_eq!(end, expected);
    peer.hung_up().await;
}

#[tokio::test]
async fn a_rejected_watch_is_an_ordinary_response() {
    let body = r#"{"kind":"Status","code":410}"#;
    let head = format!(
        "HTTP/1.1 410 Gone\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let peer = Peer::responding(head + body).await;
    let mut watch = peer.client().watch(get("/x"), ample()).await;
    assert!(!watch.is_open());
    let found = received(&watch);
    assert_eq!((found.status, found.end), (410, None));
    assert_eq!(found.json.unwrap()["code"], 410);
    assert!(matches!(watch.next(ample()).await, Next::End(WatchEnd::Broken(_))));
}

#[tokio::test]
async fn a_watch_without_a_head_is_left_at_the_deadline() {
    let mut peer = Peer::start(vec![Act::Head, Act::Hang]).await;
    let watch = peer.client().watch(get("/x"), soon()).await;
    let Outcome::Broken(broken) = watch.snapshot().outcome else { panic!("responded") };
    assert_eq!(broken.kind, BrokenKind::Deadline);
    peer.hung_up().await;
}

#[tokio::test]
async fn a_silent_watch_stays_open_past_a_deadline_until_it_is_closed() {
    let mut peer =
        Peer::start(vec![Act::Head, send(HEAD), send(chunk(&event("ADDED", 1))), Act::Hang]).await;
    let mut watch = peer.client().watch(get("/x"), ample()).await;
    assert!(matches!(watch.next(ample()).await, Next::Event(_)));
    assert!(matches!(watch.next(soon()).await, Next::Deadline));
    assert_eq!(received(&watch).end, None);
    watch.close();
    peer.hung_up().await;
    assert_eq!(received(&watch).end, Some(WatchEnd::Client));
    assert!(matches!(watch.next(ample()).await, Next::End(WatchEnd::Client)));
}

#[tokio::test]
async fn dropping_a_watch_hangs_up() {
    let mut peer = Peer::start(vec![Act::Head, send(HEAD), Act::Hang]).await;
    drop(peer.client().watch(get("/x"), ample()).await);
    peer.hung_up().await;
}

#[tokio::test]
async fn a_duplicate_key_in_an_event_is_a_fault_of_the_response() {
    let line = "{\"type\":\"ADDED\",\"object\":{\"a\":1,\"a\":2}}\n";
    let peer = Peer::start(vec![Act::Head, send(HEAD), send(chunk(line)), send(LAST)]).await;
    let mut watch = peer.client().watch(get("/x"), ample()).await;
    let (events, _) = to_the_end(&mut watch).await;
    assert_eq!(events.len(), 1);
    assert_eq!(
        received(&watch).json_fault.unwrap(),
        "duplicate key /object/a at line 1 column 33 (byte 32)"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hundreds_of_watches_are_read_while_nobody_looks() {
    const WATCHES: usize = 300;
    let lines: String = (0..200).map(|version| event("MODIFIED", version)).collect();
    let peer = Peer::start(vec![Act::Head, send(HEAD), send(chunk(&lines)), send(LAST)]).await;
    let client = peer.client();
    let watches = join_all((0..WATCHES).map(|_| client.watch(get("/x"), ample()))).await;
    // All events would exceed the memory limit.
    let keep = ["/metadata/resourceVersion".to_owned()];
    let mut watches: Vec<_> = watches.into_iter().map(|watch| watch.keeping(&keep)).collect();
    // Reading the last ones first shows that watches are independent.
    for watch in watches.iter_mut().rev() {
        let (events, end) = to_the_end(watch).await;
        assert_eq!((events.len(), end), (200, WatchEnd::Server));
    }
    assert_eq!(peer.connections(), WATCHES);
}

/// A watch may keep few members, but errors are kept whole.
#[tokio::test]
async fn of_objects_only_what_is_asked_for_is_kept() {
    let lines = event("ADDED", 1) + &event("ERROR", 2);
    let peer = Peer::start(vec![Act::Head, send(HEAD), send(chunk(&lines)), send(LAST)]).await;
    let keep = ["/metadata/resourceVersion".to_owned()];
    let mut watch = peer.client().watch(get("/x"), ample()).await.keeping(&keep);
    to_the_end(&mut watch).await;
    let kept: Vec<_> = watch.events().iter().map(|event| (*event.object).clone()).collect();
    assert_eq!(kept[0], json!({"metadata": {"resourceVersion": "1"}}));
    assert_eq!(kept[1], json!({"metadata": {"resourceVersion": "2", "name": "é"}}));
}

#[tokio::test]
async fn a_watch_goes_on_with_the_stream_of_another() {
    let [one, two] = [1, 2].map(|version| {
        vec![Act::Head, send(HEAD), send(chunk(&event("ADDED", version))), send(LAST)]
    });
    let (one, two) = (Peer::start(one).await, Peer::start(two).await);
    let mut watch = one.client().watch(get("/x"), ample()).await;
    assert_eq!(to_the_end(&mut watch).await.1, WatchEnd::Server);
    watch.go_on(two.client().watch(get("/x"), ample()).await);
    assert!(watch.is_open());
    assert_eq!(received(&watch).end, None);
    assert_eq!(to_the_end(&mut watch).await, (vec!["ADDED 2".to_owned()], WatchEnd::Server));
    assert_eq!(watch.events().len(), 2);
}

/// A line without memory arrived, so the deadline does not indicate a silent server.
#[tokio::test]
async fn a_line_that_there_is_no_room_for_is_no_silence() {
    let line =
        format!("{{\"type\":\"ADDED\",\"object\":{{\"a\":\"{}\"}}}}\n", "x".repeat(1_000_000));
    let peer = Peer::start(vec![Act::Head, send(HEAD), send(chunk(&line)), Act::Hang]).await;
    let client =
        peer.client_with(Limits { max_held: 3_500_000, max_event: 1_100_000, ..Limits::default() });
    let mut first = client.watch(get("/x"), ample()).await;
    // Its event needs two million bytes, and the incomplete line of the other watch as many.
    let next = first.next(ample()).await;
    assert!(matches!(next, Next::Event(_)), "{next:?}");
    let mut second = client.watch(get("/x"), ample()).await;
    let patience = ample();
    let end = loop {
        match second.next(soon()).await {
            Next::End(end) => break end,
            Next::Deadline => assert!(patience > Instant::now(), "it waits for ever"),
            Next::Event(event) => {
                panic!("there was room for {} bytes", event.object.to_string().len())
            }
        }
    };
    assert!(matches!(end, WatchEnd::Budget(_)), "{end:?}");
}

/// An incomplete line needs memory, too.
#[tokio::test]
async fn a_line_that_does_not_end_takes_room() {
    let script = vec![Act::Head, send(HEAD), send(chunk(&"x".repeat(1 << 20))), Act::Hang];
    let mut peer = Peer::start(script).await;
    let client = peer.client_with(Limits { max_held: 1 << 20, ..Limits::default() });
    let mut watch = client.watch(get("/x"), ample()).await;
    let next = watch.next(ample()).await;
    assert!(matches!(next, Next::End(WatchEnd::Budget(_))), "{next:?}");
    peer.hung_up().await;
}
