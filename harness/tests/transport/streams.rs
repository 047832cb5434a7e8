//! Tests streams with arbitrary packet boundaries and malicious peers.

use bytes::Bytes;
use kubeproof_cases::protocol::{Carrier, StreamKind};
use kubeproof_harness::exchange::{StreamEnd, Transcript};
use kubeproof_harness::transport::stream::{
    Handshake, OpenStream, SendError, Shape, StreamTimeout, StreamWrite, TimeoutCause, WaitOutcome,
};
use kubeproof_harness::transport::{Outgoing, Upgrade};
use rstest::rstest;
use tokio::time::{Duration, Instant};

use crate::scripted_peer::{Act, Peer, TOKEN, ample, exact, send, soon};

const SPDY: &str = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n\
                    Upgrade: SPDY/3.1\r\n\
                    X-Stream-Protocol-Version: v4.channel.k8s.io\r\n\r\n";

/// Recorded from a real server for `echo hi` over SPDY v4, with the streams error (1) and stdout
/// (3).
const RECORDED: [&str; 7] = [
    "80030002000000140000000178f9e3c6a7c26260606000000000ffff",
    "800300020000000c00000003026100000000ffff",
    "000000030000000368690a",
    "00000001000000147b22737461747573223a2253756363657373227d",
    "80030003000000080000000100000005",
    "80030003000000080000000300000005",
    "80030007000000080000000000000000",
];

fn bytes(hex: &str) -> Bytes {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

fn timeout(deadline: Instant) -> StreamTimeout {
    StreamTimeout::fixed(deadline, Duration::from_secs(20))
}

/// A timeout with a long deadline that any data extends.
fn generous() -> StreamTimeout {
    let long = Duration::from_secs(20);
    StreamTimeout { deadline: ample(), limit: ample(), silence: long, quick: long }
}

async fn open(peer: &Peer, over: Carrier, token_in_protocols: bool) -> OpenStream {
    let handshake = Handshake::new(over, vec!["v4.channel.k8s.io".to_owned()]);
    let request = Outgoing { headers: handshake.headers(Vec::new()), ..exact("/exec?command=a") };
    let shape = Shape { kind: StreamKind::Command, ports: Vec::new() };
    let upgrade = Upgrade { handshake: &handshake, shape: &shape, token_in_protocols };
    peer.client().stream(request, upgrade, ample()).await
}

/// Opens the body of a response.
async fn body(peer: &Peer) -> OpenStream {
    let handshake = Handshake::new(Carrier::Http, Vec::new());
    let request = Outgoing { headers: handshake.headers(Vec::new()), ..exact("/log?follow=true") };
    let shape = Shape { kind: StreamKind::Plain, ports: Vec::new() };
    let upgrade = Upgrade { handshake: &handshake, shape: &shape, token_in_protocols: false };
    peer.client().stream(request, upgrade, ample()).await
}

async fn create(stream: &OpenStream, channel: &str) {
    let sent = StreamWrite::Create {
        channel: channel.to_owned(),
        number: None,
        headers: vec![("streamtype".to_owned(), channel.to_owned())],
        end: false,
    };
    stream.send(sent, &mut timeout(ample())).await.unwrap();
}

fn transcript(stream: &OpenStream) -> Transcript {
    let exchange = stream.snapshot();
    Transcript::clone(exchange.response().unwrap().stream.as_ref().unwrap())
}

#[tokio::test]
async fn a_recorded_session_is_parsed_byte_by_byte() {
    let script = vec![Act::Head, send(SPDY), Act::Trickle(bytes(&RECORDED.concat()))];
    let peer = Peer::start(script).await;
    let stream = open(&peer, Carrier::Spdy, false).await;
    assert_eq!(stream.problems, Vec::<String>::new());
    for channel in ["error", "stdout"] {
        create(&stream, channel).await;
    }
    assert_eq!(stream.finish(&mut timeout(ample())).await, WaitOutcome::Arrived(StreamEnd::Server));
    let seen = transcript(&stream);
    assert_eq!(seen.channels["stdout"].received.text(), "hi\n");
    assert_eq!(seen.channels["error"].received.text(), r#"{"status":"Success"}"#);
}

#[tokio::test]
async fn the_body_of_a_response_is_read_while_it_arrives() {
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\none\n\r\n";
    let peer = Peer::start(vec![Act::Head, send(head), Act::Hang]).await;
    let stream = body(&peer).await;
    let arrived = |transcript: &Transcript, _: &mut usize| {
        (transcript.channels["data"].received.text() == "one\n").then_some(())
    };
    assert_eq!(stream.wait(&mut timeout(ample()), arrived).await, WaitOutcome::Arrived(()));
    let waited = stream.finish(&mut StreamTimeout::fixed(ample(), short())).await;
    assert_eq!(waited, WaitOutcome::TimedOut(TimeoutCause::Stalled(short())));
    let sent =
        StreamWrite::Data { channel: "data".to_owned(), bytes: Bytes::from("two"), end: false };
    assert_eq!(stream.send(sent, &mut timeout(ample())).await, Err(SendError::Ended));
}

#[rstest]
#[case::complete("4\r\none\n\r\n0\r\n\r\n", true)]
#[case::cut("4\r\non", false)]
#[tokio::test]
async fn a_body_ends_with_its_last_chunk(#[case] chunks: &str, #[case] is_complete: bool) {
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let peer = Peer::start(vec![Act::Head, send(format!("{head}{chunks}"))]).await;
    let stream = body(&peer).await;
    let end = stream.finish(&mut timeout(ample())).await;
    assert_eq!(end == WaitOutcome::Arrived(StreamEnd::Server), is_complete, "{end:?}");
}

#[tokio::test]
async fn only_a_success_opens_a_body() {
    let head = "HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\n{}";
    let peer = Peer::start(vec![Act::Head, send(head)]).await;
    let stream = body(&peer).await;
    assert!(!stream.is_open());
    assert_eq!(stream.head.status(), 404);
}

#[tokio::test]
async fn a_peer_that_reports_nothing_meets_the_deadline() {
    let peer = Peer::start(vec![Act::Head, send(SPDY), Act::Hang]).await;
    let stream = open(&peer, Carrier::Spdy, false).await;
    create(&stream, "stdout").await;
    assert_eq!(
        stream.finish(&mut timeout(soon())).await,
        WaitOutcome::TimedOut(TimeoutCause::Deadline)
    );
}

/// A short stall timeout.
fn short() -> Duration {
    Duration::from_millis(150)
}

#[tokio::test]
async fn a_peer_that_falls_silent_has_stalled() {
    let peer = Peer::start(vec![Act::Head, send(SPDY), Act::Hang]).await;
    let stream = open(&peer, Carrier::Spdy, false).await;
    create(&stream, "stdout").await;
    let waited = stream.finish(&mut StreamTimeout::fixed(ample(), short())).await;
    assert_eq!(waited, WaitOutcome::TimedOut(TimeoutCause::Stalled(short())));
}

/// Data may be late on a busy machine.
#[tokio::test]
async fn data_that_comes_moves_the_deadline() {
    let peer =
        Peer::start(vec![Act::Head, send(SPDY), Act::Trickle(bytes(&RECORDED.concat()))]).await;
    let stream = open(&peer, Carrier::Spdy, false).await;
    for channel in ["error", "stdout"] {
        create(&stream, channel).await;
    }
    let (deadline, ever) = (ample(), ample() + Duration::from_mins(1));
    let mut timeout = StreamTimeout { deadline, limit: ever, ..generous() };
    assert_eq!(stream.finish(&mut timeout).await, WaitOutcome::Arrived(StreamEnd::Server));
    assert!(timeout.deadline > deadline && timeout.deadline < ever);
}

/// Otherwise a server could delay a case forever with pings.
#[tokio::test]
async fn pings_do_not_move_the_deadline() {
    let ping = bytes("800300060000000400000002");
    let peer = Peer::start(vec![Act::Head, send(SPDY), Act::Flood(ping)]).await;
    let stream = open(&peer, Carrier::Spdy, false).await;
    create(&stream, "stdout").await;
    let deadline = soon();
    let mut timeout = StreamTimeout { deadline, ..generous() };
    assert_eq!(stream.finish(&mut timeout).await, WaitOutcome::TimedOut(TimeoutCause::Deadline));
    assert_eq!(timeout.deadline, deadline);
}

/// The peer reads nothing, so the buffers fill up. Any silence is long here.
#[tokio::test]
async fn a_peer_that_reads_nothing_has_stalled() {
    let ping = bytes("800300060000000400000002");
    let peer = Peer::start(vec![Act::Head, send(SPDY), Act::Flood(ping)]).await;
    let stream = open(&peer, Carrier::Spdy, false).await;
    let data = Bytes::from(vec![0; 64 << 20]);
    let sent = StreamWrite::Data { channel: "1".to_owned(), bytes: data, end: false };
    let stalled = stream.send(sent, &mut StreamTimeout::fixed(soon(), Duration::ZERO)).await;
    assert!(matches!(stalled, Err(SendError::TimedOut(TimeoutCause::Stalled(_)))), "{stalled:?}");
}

/// The peer sends pings forever and reads nothing. Neither direction may block beyond the deadline.
#[tokio::test]
async fn a_peer_that_takes_nothing_meets_the_deadline() {
    let ping = bytes("800300060000000400000002");
    let peer = Peer::start(vec![Act::Head, send(SPDY), Act::Flood(ping)]).await;
    let stream = open(&peer, Carrier::Spdy, false).await;
    create(&stream, "stdin").await;
    let deadline = soon();
    let stalled = loop {
        let data = Bytes::from(vec![0; 1 << 20]);
        let sent = StreamWrite::Data { channel: "stdin".to_owned(), bytes: data, end: false };
        if let Err(error) = stream.send(sent, &mut timeout(deadline)).await {
            break error;
        }
    };
    assert_eq!(stalled, SendError::TimedOut(TimeoutCause::Deadline));
}

#[tokio::test]
async fn a_connection_that_ends_inside_a_frame_is_dropped() {
    let script = vec![Act::Head, send(SPDY), Act::Send(bytes("00000003000000ff68"))];
    let peer = Peer::start(script).await;
    let stream = open(&peer, Carrier::Spdy, false).await;
    let WaitOutcome::Arrived(StreamEnd::Dropped(why)) = stream.finish(&mut timeout(ample())).await
    else {
        panic!("it was dropped");
    };
    assert!(why.contains("inside a frame"), "{why}");
}

#[tokio::test]
async fn a_response_that_does_not_fit_the_key_opens_nothing() {
    let response = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n\
                  Upgrade: websocket\r\n\
                  Sec-WebSocket-Accept: bm9ib2R5\r\n\
                  Sec-WebSocket-Protocol: v4.channel.k8s.io\r\n\r\n";
    let peer = Peer::start(vec![Act::Head, send(response), Act::Hang]).await;
    let stream = open(&peer, Carrier::Websocket, false).await;
    assert!(!stream.is_open());
    assert_eq!(stream.problems.len(), 1, "{:?}", stream.problems);
}

#[tokio::test]
async fn a_rejection_without_a_body_is_a_response() {
    let peer = Peer::responding("HTTP/1.1 403 Forbidden\r\nConnection: close\r\n\r\n").await;
    let stream = open(&peer, Carrier::Websocket, false).await;
    assert_eq!((stream.is_open(), stream.head.status()), (false, 403));
}

/// `czNjcjN0LXQwa2Vu` is the token in base64.
#[tokio::test]
async fn a_token_among_the_subprotocols_is_sent_and_not_recorded() {
    let response = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n\
                  Upgrade: websocket\r\n\
                  Sec-WebSocket-Protocol: \
                  base64url.bearer.authorization.k8s.io.czNjcjN0LXQwa2Vu\r\n\r\n";
    let mut peer = Peer::start(vec![Act::Head, send(response), Act::Hang]).await;
    let stream = open(&peer, Carrier::Websocket, true).await;
    let head = peer.head().await;
    let asked = "base64url.bearer.authorization.k8s.io.czNjcjN0LXQwa2Vu, v4.channel.k8s.io";
    assert!(head.contains(asked), "{head}");
    assert!(
        !head.contains(TOKEN) && !head.to_ascii_lowercase().contains("\r\nauthorization:"),
        "{head}"
    );
    let recorded = format!("{:?} {:?}", stream.snapshot(), stream.problems);
    assert!(
        recorded.contains("$TOKEN, v4.channel.k8s.io") && !recorded.contains("czNjcjN0"),
        "{recorded}"
    );
}
