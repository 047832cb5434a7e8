//! Tests responses that end at any byte. Each is reported as broken unless it is complete.

use std::net::SocketAddr;

use kubeproof_cases::protocol::{Carrier, StreamKind};
use kubeproof_harness::exchange::StreamEnd;
use kubeproof_harness::exchange::{BrokenKind, Outcome, WatchEnd};
use kubeproof_harness::target::TlsOptions;
use kubeproof_harness::target::{TargetConfig, TlsConfig};
use kubeproof_harness::transport::stream::{Handshake, Shape, StreamTimeout, WaitOutcome};
use kubeproof_harness::transport::watch::Next;
use kubeproof_harness::transport::{Client, Limits, Outgoing, Upgrade};
use rstest::rstest;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Duration;

use crate::scripted_peer::{ample, exact, get};
use crate::tls_server::{Setup, TlsServer};

const OBJECT: &str = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\
                      Content-Length: 12\r\n\r\n{\"kind\":\"a\"}";
const LIST: &str = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\
                    Transfer-Encoding: chunked\r\n\r\n\
                    a\r\n{\"items\":[\r\n2\r\n]}\r\n0\r\n\r\n";
const STATUS: &str = "HTTP/1.1 409 Conflict\r\nContent-Type: application/json\r\n\
                      Content-Length: 29\r\n\r\n\
                      {\"kind\":\"Status\",\"code\":409}\n";
const INTERIM: &str = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n";
const WATCH: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
                     24\r\n{\"type\":\"ADDED\",\"object\":{\"a\":1}}\n\r\n0\r\n\r\n";
const UPGRADE: &[u8] = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n\
                         Upgrade: SPDY/3.1\r\n\
                         X-Stream-Protocol-Version: v4.channel.k8s.io\r\n\r\n\
                         \x80\x03\0\x07\0\0\0\x08\0\0\0\0\0\0\0\0";

/// A server that sends one byte more per connection, and then closes it.
async fn longer_and_longer(response: &[u8]) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (addr, response) = (listener.local_addr().unwrap(), response.to_vec());
    tokio::spawn(async move {
        for length in 0..=response.len() {
            let (mut client, _) = listener.accept().await.unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(client.read_u8().await.unwrap());
            }
            client.write_all(&response[..length]).await.unwrap();
            client.shutdown().await.unwrap();
            // A close with unread bytes would reset the connection.
            let _ = client.read_to_end(&mut Vec::new()).await;
        }
    });
    addr
}

fn client(addr: SocketAddr) -> Client {
    Client::new(&TargetConfig::new(&format!("http://{addr}")).unwrap(), Limits::default()).unwrap()
}

#[rstest]
#[case::object(OBJECT, 200)]
#[case::list(LIST, 200)]
#[case::status(STATUS, 409)]
#[case::after_an_interim_response(INTERIM, 204)]
#[tokio::test]
async fn a_response_is_whole_or_broken(
    #[case] response: &str,
    #[case] status: u16,
    #[values(get("/x"), exact("/x"))] outgoing: Outgoing,
) {
    let client = client(longer_and_longer(response.as_bytes()).await);
    for length in 0..response.len() {
        match client.send(outgoing.clone(), ample()).await.outcome {
            Outcome::Broken(broken) => {
                assert_eq!(broken.kind, BrokenKind::Protocol, "{length}: {broken:?}");
            }
            // A chunked body ends with a line, followed by an empty one.
            Outcome::Response(_) => assert_eq!((response, length), (LIST, LIST.len() - 1)),
        }
    }
    assert_eq!(client.send(outgoing, ample()).await.status(), status);
}

/// The same object over HTTP/2: HEADERS and CONTINUATION (`:status: 200`, `content-length: 12`),
/// then two DATA frames.
const FRAMES: &[u8] = b"\0\0\x01\x01\0\0\0\0\x01\x88\0\0\x05\x09\x04\0\0\0\x01\x0f\x0d\x0212\
                        \0\0\x06\0\0\0\0\0\x01{\"kind\0\0\x06\0\x01\0\0\0\x01\":\"a\"}";

#[tokio::test]
async fn a_response_in_frames_is_whole_or_broken() {
    let server = TlsServer::start(Setup { growing: Some(FRAMES), ..Setup::default() }).await;
    let mut config = TargetConfig::new(&format!("https://{}", server.addr)).unwrap();
    config.tls =
        TlsConfig::Options(TlsOptions { insecure_skip_verify: true, ..TlsOptions::default() });
    for length in 0..FRAMES.len() {
        // A separate client, because a request on a closed connection would get lost.
        let client = Client::new(&config, Limits::default()).unwrap();
        let Outcome::Broken(broken) = client.send(get("/x"), ample()).await.outcome else {
            panic!("{length} bytes are a response")
        };
        assert_eq!(broken.kind, BrokenKind::Protocol, "{length}: {broken:?}");
        assert_eq!(server.connections(), length + 1);
    }
    let whole = Client::new(&config, Limits::default()).unwrap().send(get("/x"), ample()).await;
    assert_eq!(whole.json(), Some(&serde_json::json!({"kind": "a"})));
}

#[tokio::test]
async fn a_watch_reports_what_came_and_that_it_broke() {
    let client = client(longer_and_longer(WATCH.as_bytes()).await);
    let whole_event = WATCH.find("\n\r\n0").unwrap();
    for length in 0..=WATCH.len() {
        let mut watch = client.watch(get("/x?watch=true"), ample()).await;
        let mut events = 0;
        let end = loop {
            match watch.next(ample()).await {
                Next::Event(_) => events += 1,
                Next::End(end) => break end,
                Next::Deadline => panic!("no end after {length} bytes"),
            }
        };
        assert_eq!(events, usize::from(length >= whole_event), "{length}");
        if length < WATCH.len() - 1 {
            assert!(matches!(end, WatchEnd::Broken(_)), "{length}: {end:?}");
        }
    }
}

#[tokio::test]
async fn an_upgrade_is_rejected_or_a_stream_that_is_dropped() {
    let client = client(longer_and_longer(UPGRADE).await);
    let head = UPGRADE.windows(4).position(|end| end == b"\r\n\r\n").unwrap() + 4;
    for length in 0..=UPGRADE.len() {
        let handshake = Handshake::new(Carrier::Spdy, vec!["v4.channel.k8s.io".to_owned()]);
        let request =
            Outgoing { headers: handshake.headers(Vec::new()), ..exact("/exec?command=a") };
        let shape = Shape { kind: StreamKind::Command, ports: Vec::new() };
        let upgrade = Upgrade { handshake: &handshake, shape: &shape, token_in_protocols: false };
        let stream = client.stream(request, upgrade, ample()).await;
        assert_eq!(stream.is_open(), length >= head, "{length}: {:?}", stream.head.outcome);
        if stream.is_open() {
            let mut timeout = StreamTimeout::fixed(ample(), Duration::from_secs(20));
            let WaitOutcome::Arrived(end) = stream.finish(&mut timeout).await else {
                panic!("{length}: no end")
            };
            let goodbye = length == UPGRADE.len();
            assert!(goodbye == (end == StreamEnd::Server), "{length}: {end:?}");
            let inside = matches!(&end, StreamEnd::Dropped(why) if why.contains("inside a frame"));
            assert_eq!(inside, length > head && !goodbye, "{length}: {end:?}");
        }
    }
}

/// A relay to a server that closes after this many bytes.
async fn relay(to: SocketAddr, step: u64) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    tokio::spawn(async move {
        for turn in 0.. {
            let (mut client, _) = listener.accept().await.unwrap();
            let mut server = TcpStream::connect(to).await.unwrap();
            let (mut from_client, mut to_client) = client.split();
            let (from_server, mut to_server) = server.split();
            let mut some = from_server.take(turn * step);
            let downwards = async {
                let _ = copy(&mut some, &mut to_client).await;
                let _ = to_client.shutdown().await;
            };
            tokio::select! {
                () = downwards => {}
                _ = copy(&mut from_client, &mut to_server) => {}
            }
        }
    });
    addr
}

/// Truncated inside and between records, and during the handshake.
#[rstest]
#[tokio::test]
async fn tls_that_ends_anywhere_is_reported(#[values(get("/x"), exact("/x"))] outgoing: Outgoing) {
    const STEP: u64 = 31;
    let server = TlsServer::start(Setup { protocols: vec!["http/1.1"], ..Setup::default() }).await;
    let addr = relay(server.addr, STEP).await;
    let mut config = TargetConfig::new(&format!("https://{addr}")).unwrap();
    config.tls =
        TlsConfig::Options(TlsOptions { insecure_skip_verify: true, ..TlsOptions::default() });
    let client = Client::new(&config, Limits::default()).unwrap();
    let mut kinds = Vec::new();
    loop {
        match client.send(outgoing.clone(), ample()).await.outcome {
            Outcome::Response(response) => {
                assert_eq!(response.status, 200);
                break;
            }
            Outcome::Broken(broken) => kinds.push(broken.kind),
        }
        assert!(kinds.len() < 1000, "it never gets through: {kinds:?}");
    }
    assert!(kinds.len() > 10, "{kinds:?}");
    assert!(!kinds.contains(&BrokenKind::Deadline), "{kinds:?}");
}
