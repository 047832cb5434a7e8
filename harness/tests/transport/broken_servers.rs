//! Tests that each misbehaviour of a server becomes one exchange, over both transports.

use crate::scripted_peer::{Act, Peer, ample, exact, get, send, soon};
use bytes::Bytes;
use kubeproof_harness::exchange::{Broken, BrokenKind, Outcome};
use kubeproof_harness::target::TargetConfig;
use kubeproof_harness::transport::{Client, Limits, Outgoing};
use rstest::rstest;
use tokio::net::TcpListener;

fn broken(outcome: Outcome) -> Broken {
    match outcome {
        Outcome::Broken(broken) => broken,
        Outcome::Response(response) => panic!("responded: {response:?}"),
    }
}

const CHUNKED: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";

#[rstest]
#[case::close_at_once(vec![])]
#[case::reset_at_once(vec![Act::Reset])]
#[case::close_after_the_request(vec![Act::Head])]
#[case::reset_after_the_request(vec![Act::Head, Act::Reset])]
#[case::close_inside_the_head(vec![Act::Head, send("HTTP/1.1 200 OK\r\nContent-Ty")])]
#[case::garbage(vec![Act::Head, send("SSH-2.0-OpenSSH_9.6\r\n\r\n")])]
#[case::nonsense_status(vec![Act::Head, send("HTTP/1.1 abc Huh\r\n\r\n")])]
#[case::broken_header(vec![Act::Head, send("HTTP/1.1 200 OK\r\nno colon here\r\n\r\n")])]
#[case::endless_head(vec![
    Act::Head,
    send("HTTP/1.1 200 OK\r\n"),
    Act::Flood(Bytes::from(format!("x: {}\r\n", "y".repeat(4096)))),
])]
#[case::lying_length(vec![Act::Head, send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{}")])]
#[case::two_lengths(vec![
    Act::Head,
    send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}"),
])]
#[case::chunk_cut(vec![Act::Head, send(CHUNKED), send("a\r\n{\"a\"")])]
#[case::no_last_chunk(vec![Act::Head, send(CHUNKED), send("2\r\n{}\r\n")])]
#[case::chunk_size_garbage(vec![Act::Head, send(CHUNKED), send("zz\r\n{}\r\n0\r\n\r\n")])]
#[case::reset_in_the_body(vec![Act::Head, send(CHUNKED), send("2\r\n{}\r\n"), Act::Reset])]
#[tokio::test]
async fn breaking_the_protocol_is_reported(
    #[case] script: Vec<Act>,
    #[values(get("/x"), exact("/x"))] outgoing: Outgoing,
) {
    let peer = Peer::start(script).await;
    let found = broken(peer.client().send(outgoing, ample()).await.outcome);
    assert_eq!(found.kind, BrokenKind::Protocol, "{found:?}");
    assert!(found.message.len() > 20, "a message that helps nobody: {found:?}");
}

#[rstest]
#[case::no_response(vec![Act::Head, Act::Hang], "waiting for the head")]
#[case::half_a_head(
    vec![Act::Head, send("HTTP/1.1 200 OK\r\nA: b\r\n"), Act::Hang],
    "waiting for the head"
)]
#[case::half_a_body(
    vec![Act::Head, send(CHUNKED), send("2\r\n{}\r\n"), Act::Hang],
    "reading the body of a 200, 2 bytes so far"
)]
#[tokio::test]
async fn a_server_that_hangs_is_left_at_the_deadline(
    #[case] script: Vec<Act>,
    #[case] stage: &str,
    #[values(get("/x"), exact("/x"))] outgoing: Outgoing,
) {
    let mut peer = Peer::start(script).await;
    let found = broken(peer.client().send(outgoing, soon()).await.outcome);
    assert_eq!(found.kind, BrokenKind::Deadline);
    assert!(found.message.contains(stage), "{found:?}");
    peer.hung_up().await;
}

#[rstest]
#[tokio::test]
async fn a_body_beyond_the_budget_is_cut(#[values(get("/x"), exact("/x"))] outgoing: Outgoing) {
    let flood = format!("1000\r\n{}\r\n", "x".repeat(0x1000));
    let peer = Peer::start(vec![Act::Head, send(CHUNKED), Act::Flood(flood.into())]).await;
    let client = peer.client_with(Limits { max_body: 1 << 20, ..Limits::default() });
    let found = broken(client.send(outgoing, ample()).await.outcome);
    assert_eq!(found.kind, BrokenKind::Budget);
    assert_eq!(found.message, "the body is longer than 1048576 bytes");
}

#[rstest]
#[tokio::test]
async fn a_body_of_just_the_budget_is_read(#[values(get("/x"), exact("/x"))] outgoing: Outgoing) {
    let peer = Peer::responding("HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n12345678").await;
    let client = peer.client_with(Limits { max_body: 8, ..Limits::default() });
    let outcome = client.send(outgoing, ample()).await.outcome;
    assert!(
        matches!(&outcome, Outcome::Response(response) if response.body == "12345678"),
        "{outcome:?}"
    );
}

#[rstest]
#[tokio::test]
async fn a_port_where_no_client_listens_is_no_connection(
    #[values(get("/x"), exact("/x"))] outgoing: Outgoing,
) {
    let addr = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let config = TargetConfig::new(&format!("http://{addr}")).unwrap();
    let found = broken(
        Client::new(&config, Limits::default()).unwrap().send(outgoing, ample()).await.outcome,
    );
    assert_eq!(found.kind, BrokenKind::Connect);
    assert!(found.message.contains("refused"), "{found:?}");
}

#[tokio::test]
async fn one_dead_connection_is_not_the_end_of_the_client() {
    let reset = Peer::start(vec![Act::Head, Act::Reset]).await;
    let client = reset.client();
    for _ in 0..3 {
        assert_eq!(
            broken(client.send(get("/x"), ample()).await.outcome).kind,
            BrokenKind::Protocol
        );
    }
    assert_eq!(reset.connections(), 3, "one connection a request, and none resent");
}
