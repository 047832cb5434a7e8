//! Streams: what peers send is understood however it is cut, and nothing that a peer does holds up a case for ever.

use bytes::Bytes;
use kubeproof_cases::stream::{Carrier, StreamKind};
use kubeproof_harness::stream::{
    Handshake, Impatience, OpenStream, Patience, SendError, Sent, Shape, StreamEnd, Transcript, Waited,
};
use kubeproof_harness::transport::{Outgoing, Upgrade};
use tokio::time::{Duration, Instant};

use crate::peer::{Act, Peer, TOKEN, ample, exact, send, soon};

const SPDY: &str = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\
                    X-Stream-Protocol-Version: v4.channel.k8s.io\r\n\r\n";

/// What a real server sent for `echo hi` over v4 of SPDY, with the streams error (1) and stdout (3).
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

fn patience(deadline: Instant) -> Patience {
    Patience::fixed(deadline, Duration::from_secs(20))
}

/// Whatever comes is quick, and nothing is a silence.
fn generous() -> Patience {
    let long = Duration::from_secs(20);
    Patience { deadline: ample(), limit: ample(), silence: long, quick: long }
}

async fn open(peer: &Peer, over: Carrier, token_in_protocols: bool) -> OpenStream {
    let handshake = Handshake::new(over, vec!["v4.channel.k8s.io".to_owned()]);
    let request = Outgoing { headers: handshake.headers(Vec::new()), ..exact("/exec?command=a") };
    let shape = Shape { kind: StreamKind::Command, ports: Vec::new() };
    let upgrade = Upgrade { handshake: &handshake, shape: &shape, token_in_protocols };
    peer.client().stream(request, upgrade, ample()).await
}

async fn create(stream: &OpenStream, channel: &str) {
    let sent = Sent::Create {
        channel: channel.to_owned(),
        number: None,
        headers: vec![("streamtype".to_owned(), channel.to_owned())],
        end: false,
    };
    stream.send(sent, &mut patience(ample())).await.unwrap();
}

fn transcript(stream: &OpenStream) -> Transcript {
    let exchange = stream.snapshot();
    Transcript::clone(exchange.answer().unwrap().stream.as_ref().unwrap())
}

#[tokio::test]
async fn a_recorded_session_is_understood_byte_by_byte() {
    let script = vec![Act::Head, send(SPDY), Act::Trickle(bytes(&RECORDED.concat()))];
    let peer = Peer::start(script).await;
    let stream = open(&peer, Carrier::Spdy, false).await;
    assert_eq!(stream.problems, Vec::<String>::new());
    for channel in ["error", "stdout"] {
        create(&stream, channel).await;
    }
    assert_eq!(stream.finish(&mut patience(ample())).await, Waited::Came(StreamEnd::Server));
    let seen = transcript(&stream);
    assert_eq!(seen.channels["stdout"].received.text(), "hi\n");
    assert_eq!(seen.channels["error"].received.text(), r#"{"status":"Success"}"#);
}

#[tokio::test]
async fn a_peer_that_says_nothing_meets_the_deadline() {
    let peer = Peer::start(vec![Act::Head, send(SPDY), Act::Hang]).await;
    let stream = open(&peer, Carrier::Spdy, false).await;
    create(&stream, "stdout").await;
    assert_eq!(stream.finish(&mut patience(soon())).await, Waited::Not(Impatience::Deadline));
}

/// A silence that is over before long.
fn short() -> Duration {
    Duration::from_millis(150)
}

#[tokio::test]
async fn a_peer_that_falls_silent_has_stalled() {
    let peer = Peer::start(vec![Act::Head, send(SPDY), Act::Hang]).await;
    let stream = open(&peer, Carrier::Spdy, false).await;
    create(&stream, "stdout").await;
    let waited = stream.finish(&mut Patience::fixed(ample(), short())).await;
    assert_eq!(waited, Waited::Not(Impatience::Silence(short())));
}

/// On a machine that has much else to do, data comes late.
#[tokio::test]
async fn data_that_comes_moves_the_deadline() {
    let peer = Peer::start(vec![Act::Head, send(SPDY), Act::Trickle(bytes(&RECORDED.concat()))]).await;
    let stream = open(&peer, Carrier::Spdy, false).await;
    for channel in ["error", "stdout"] {
        create(&stream, channel).await;
    }
    let (deadline, ever) = (ample(), ample() + Duration::from_mins(1));
    let mut patience = Patience { deadline, limit: ever, ..generous() };
    assert_eq!(stream.finish(&mut patience).await, Waited::Came(StreamEnd::Server));
    assert!(patience.deadline > deadline && patience.deadline < ever);
}

/// Whoever only pings would be waited for as long as it likes.
#[tokio::test]
async fn pings_do_not_move_the_deadline() {
    let ping = bytes("800300060000000400000002");
    let peer = Peer::start(vec![Act::Head, send(SPDY), Act::Flood(ping)]).await;
    let stream = open(&peer, Carrier::Spdy, false).await;
    create(&stream, "stdout").await;
    let deadline = soon();
    let mut patience = Patience { deadline, ..generous() };
    assert_eq!(stream.finish(&mut patience).await, Waited::Not(Impatience::Deadline));
    assert_eq!(patience.deadline, deadline);
}

/// Of what is sent, all that fits on the way is taken at once, and nothing after it. Any silence at all is long here.
#[tokio::test]
async fn a_peer_that_reads_nothing_has_stalled() {
    let ping = bytes("800300060000000400000002");
    let peer = Peer::start(vec![Act::Head, send(SPDY), Act::Flood(ping)]).await;
    let stream = open(&peer, Carrier::Spdy, false).await;
    let data = Bytes::from(vec![0; 64 << 20]);
    let sent = Sent::Data { channel: "1".to_owned(), bytes: data, end: false };
    let stalled = stream.send(sent, &mut Patience::fixed(soon(), Duration::ZERO)).await;
    assert!(matches!(stalled, Err(SendError::Untaken(Impatience::Silence(_)))), "{stalled:?}");
}

/// It sends for ever and reads nothing: neither do its pings block us, nor do our data wait past the deadline.
#[tokio::test]
async fn a_peer_that_takes_nothing_meets_the_deadline() {
    let ping = bytes("800300060000000400000002");
    let peer = Peer::start(vec![Act::Head, send(SPDY), Act::Flood(ping)]).await;
    let stream = open(&peer, Carrier::Spdy, false).await;
    create(&stream, "stdin").await;
    let deadline = soon();
    let stalled = loop {
        let data = Bytes::from(vec![0; 1 << 20]);
        let sent = Sent::Data { channel: "stdin".to_owned(), bytes: data, end: false };
        if let Err(error) = stream.send(sent, &mut patience(deadline)).await {
            break error;
        }
    };
    assert_eq!(stalled, SendError::Untaken(Impatience::Deadline));
}

#[tokio::test]
async fn a_connection_that_ends_inside_a_frame_is_dropped() {
    let script = vec![Act::Head, send(SPDY), Act::Send(bytes("00000003000000ff68"))];
    let peer = Peer::start(script).await;
    let stream = open(&peer, Carrier::Spdy, false).await;
    let Waited::Came(StreamEnd::Dropped(why)) = stream.finish(&mut patience(ample())).await else {
        panic!("it was dropped");
    };
    assert!(why.contains("inside a frame"), "{why}");
}

#[tokio::test]
async fn an_answer_that_does_not_fit_the_key_opens_nothing() {
    let answer = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                  Sec-WebSocket-Accept: bm9ib2R5\r\nSec-WebSocket-Protocol: v4.channel.k8s.io\r\n\r\n";
    let peer = Peer::start(vec![Act::Head, send(answer), Act::Hang]).await;
    let stream = open(&peer, Carrier::Websocket, false).await;
    assert!(!stream.is_open());
    assert_eq!(stream.problems.len(), 1, "{:?}", stream.problems);
}

#[tokio::test]
async fn a_refusal_without_a_body_is_an_answer() {
    let peer = Peer::answering("HTTP/1.1 403 Forbidden\r\nConnection: close\r\n\r\n").await;
    let stream = open(&peer, Carrier::Websocket, false).await;
    assert_eq!((stream.is_open(), stream.head.status()), (false, 403));
}

/// `czNjcjN0LXQwa2Vu` is the token in base64.
#[tokio::test]
async fn a_token_among_the_subprotocols_is_sent_and_not_recorded() {
    let answer = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                  Sec-WebSocket-Protocol: base64url.bearer.authorization.k8s.io.czNjcjN0LXQwa2Vu\r\n\r\n";
    let mut peer = Peer::start(vec![Act::Head, send(answer), Act::Hang]).await;
    let stream = open(&peer, Carrier::Websocket, true).await;
    let head = peer.head().await;
    let asked = "base64url.bearer.authorization.k8s.io.czNjcjN0LXQwa2Vu, v4.channel.k8s.io";
    assert!(head.contains(asked), "{head}");
    assert!(!head.contains(TOKEN) && !head.to_ascii_lowercase().contains("\r\nauthorization:"), "{head}");
    let recorded = format!("{:?} {:?}", stream.snapshot(), stream.problems);
    assert!(recorded.contains("$TOKEN, v4.channel.k8s.io") && !recorded.contains("czNjcjN0"), "{recorded}");
}
