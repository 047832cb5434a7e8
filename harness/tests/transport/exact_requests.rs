//! Tests that requests and responses pass unchanged.

use crate::scripted_peer::{Act, Peer, TOKEN, ample, exact, get, send, values};
use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, HOST, USER_AGENT};
use kubeproof_cases::case::Identity;
use kubeproof_harness::exchange::{Outcome, Received};
use kubeproof_harness::target::{Credential, TargetConfig};
use kubeproof_harness::transport::{Client, Limits, Outgoing};
use rstest::rstest;

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}";

fn response(outcome: Outcome) -> Received {
    match outcome {
        Outcome::Response(response) => response,
        Outcome::Broken(broken) => panic!("broken: {broken:?}"),
    }
}

#[rstest]
#[case("/api/v1/namespaces?limit=5&labelSelector=a%3Db%2Cc")]
#[case("/api/v1/../v1/pods")]
#[case("/api/v1/%2e%2e/pods/./x")]
#[case("//api//v1")]
#[case("/api/v1/%zz")]
#[case("/a%2Fb/%C3%A9")]
#[case("/a b\t`{}|\\^<>\"")]
#[case("/pods?")]
#[case("/pods?a=b?c&d={x}'")]
#[case("/pods#fragment")]
#[case("/é")]
#[case("*")]
#[case("http://elsewhere.example/x")]
#[case("pods")]
#[tokio::test]
async fn targets_are_sent_as_written(#[case] target: &str, #[values(false, true)] exact: bool) {
    let mut peer = Peer::responding(OK).await;
    let exchange = peer.client().send(Outgoing { exact, ..get(target) }, ample()).await;
    assert_eq!(peer.head().await.lines().next().unwrap(), format!("GET {target} HTTP/1.1"));
    assert_eq!(exchange.request.target, target);
    assert_eq!(response(exchange.outcome).status, 200);
}

#[rstest]
#[case("/clusters/root:org", "/api/v1?a=b", "/clusters/root:org/api/v1?a=b")]
#[case("/clusters/root:org/", "/../x", "/clusters/root:org/../x")]
#[case("", "/api", "/api")]
#[tokio::test]
async fn the_path_of_the_server_stays_in_front(
    #[case] path: &str,
    #[case] target: &str,
    #[case] on_wire: &str,
    #[values(false, true)] exact: bool,
) {
    let mut peer = Peer::responding(OK).await;
    let config = TargetConfig::new(&format!("http://{}{path}", peer.addr)).unwrap();
    let client = Client::new(&config, Limits::default()).unwrap();
    let exchange = client.send(Outgoing { exact, ..get(target) }, ample()).await;
    assert_eq!(peer.head().await.lines().next().unwrap(), format!("GET {on_wire} HTTP/1.1"));
    assert_eq!(exchange.request.target, target);
}

#[rstest]
#[case("PURGE")]
#[case("get")]
#[case("M-SEARCH")]
#[tokio::test]
async fn methods_are_sent_as_written(#[case] method: &str, #[values("/x", "/a b")] target: &str) {
    let mut peer = Peer::responding(OK).await;
    peer.client().send(Outgoing { method: method.to_owned(), ..exact(target) }, ample()).await;
    assert_eq!(peer.head().await.lines().next().unwrap(), format!("{method} {target} HTTP/1.1"));
}

#[tokio::test]
async fn a_request_no_one_could_send_is_not_sent() {
    let peer = Peer::responding(OK).await;
    let client = peer.client();
    for outgoing in [
        Outgoing { method: "GE T".to_owned(), ..exact("/x") },
        Outgoing { headers: vec![("a".to_owned(), "b\r\nc: d".to_owned())], ..exact("/x") },
        exact("/x HTTP/1.1\r\nInjected: yes\r\n\r\n"),
    ] {
        let outcome = client.send(outgoing, ample()).await.outcome;
        assert!(
            matches!(&outcome, Outcome::Broken(b) if b.message.starts_with("not sent: ")),
            "{outcome:?}"
        );
    }
    assert_eq!(peer.connections(), 0);
}

#[rstest]
#[tokio::test]
async fn headers_are_sent_in_their_number_and_nothing_is_added_to_them(
    #[values(false, true)] exact: bool,
) {
    let mut peer = Peer::responding(OK).await;
    let field = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let headers = vec![
        field("accept", "a/b"),
        field("x-twice", "1"),
        field("accept", "c/d"),
        field("x-twice", "2"),
    ];
    let exchange = peer.client().send(Outgoing { headers, exact, ..get("/x") }, ample()).await;
    let head = peer.head().await;
    assert_eq!(values(&head, &ACCEPT), ["a/b", "c/d"]);
    assert_eq!(values(&head, &"x-twice".parse().unwrap()), ["1", "2"]);
    assert_eq!(values(&head, &HOST), [peer.addr.to_string()]);
    let names: Vec<_> = exchange.request.headers.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["accept", "x-twice", "accept", "x-twice", "user-agent"]);
    assert_eq!(head.lines().filter(|line| line.contains(": ")).count(), 7, "{head}");
}

#[tokio::test]
async fn no_accept_means_none() {
    let mut peer = Peer::responding(OK).await;
    peer.client().send(Outgoing { headers: Vec::new(), ..get("/x") }, ample()).await;
    assert!(values(&peer.head().await, &ACCEPT).is_empty());
}

#[rstest]
#[case(Identity::Admin, Some("Bearer s3cr3t-t0ken"), Some("jane"))]
#[case(Identity::Second, Some("Bearer other"), None)]
#[case(Identity::Invalid, Some("Bearer kubeproof:no-such-token"), None)]
#[case(Identity::Anonymous, None, None)]
#[tokio::test]
async fn identities_show_on_the_wire_and_not_in_the_record(
    #[case] identity: Identity,
    #[case] authorization: Option<&str>,
    #[case] acts_as: Option<&str>,
    #[values(false, true)] exact: bool,
) {
    let mut peer = Peer::responding(OK).await;
    let mut config = peer.config();
    config.second = Some(Credential::token("other").unwrap());
    config.impersonate = Some("jane".to_owned());
    let client = Client::new(&config, Limits::default()).unwrap();
    let exchange = client.send(Outgoing { identity, exact, ..get("/x") }, ample()).await;
    let head = peer.head().await;
    assert_eq!(values(&head, &AUTHORIZATION), authorization.as_slice());
    assert_eq!(values(&head, &"impersonate-user".parse().unwrap()), acts_as.as_slice());
    assert_eq!(exchange.request.identity, identity);
    let shown = format!("{exchange:?} {client:?} {config:?}").to_ascii_lowercase();
    assert!(!shown.contains(TOKEN) && !shown.contains("authorization"), "{shown}");
}

#[tokio::test]
async fn an_authorization_of_the_case_stands_alone() {
    let mut peer = Peer::responding(OK).await;
    let headers = vec![("Authorization".to_owned(), "Basic x".to_owned())];
    peer.client().send(Outgoing { headers, ..get("/x") }, ample()).await;
    assert_eq!(values(&peer.head().await, &AUTHORIZATION), ["Basic x"]);
}

#[rstest]
#[tokio::test]
async fn a_body_is_sent_with_its_length(#[values(false, true)] exact: bool) {
    let body = Bytes::from_static(b"{\"a\": 1}");
    let mut peer = Peer::start(vec![Act::Head, send(OK)]).await;
    let outgoing = Outgoing { method: "POST".to_owned(), body: body.clone(), exact, ..get("/x") };
    let exchange = peer.client().send(outgoing, ample()).await;
    assert_eq!(values(&peer.head().await, &"content-length".parse().unwrap()), ["8"]);
    assert_eq!(exchange.request.body, body);
}

#[rstest]
#[tokio::test]
async fn redirects_are_not_followed(#[values(get("/x"), exact("/x"))] outgoing: Outgoing) {
    let peer =
        Peer::responding("HTTP/1.1 302 Found\r\nLocation: /y\r\nContent-Length: 0\r\n\r\n").await;
    let response = response(peer.client().send(outgoing, ample()).await.outcome);
    assert_eq!((response.status, peer.connections()), (302, 1));
}

#[rstest]
#[tokio::test]
async fn what_is_compressed_stays_so(#[values(get("/x"), exact("/x"))] outgoing: Outgoing) {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\n\
                Content-Length: 4\r\n\r\n";
    let body = Bytes::from_static(b"\x1f\x8b\x08\x00");
    let mut peer = Peer::start(vec![Act::Head, send(head), Act::Send(body.clone())]).await;
    let response = response(peer.client().send(outgoing, ample()).await.outcome);
    assert_eq!(values(&peer.head().await, &"accept-encoding".parse().unwrap()), [""; 0]);
    assert_eq!((response.body, response.json, response.json_fault), (body, None, None));
    assert!(
        response
            .headers
            .iter()
            .any(|(name, value)| name.eq_ignore_ascii_case("content-encoding") && value == "gzip")
    );
}

#[tokio::test]
async fn header_names_are_recorded_as_spelled() {
    let interim = "HTTP/1.1 100 Continue\r\nX-Interim: yes\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n";
    let head = "HTTP/1.1 200 OK\r\nx-B: 1\r\nX-A:2\r\nX-b:  3 \r\ncontent-LENGTH: 0\r\n\r\n";
    let peer = Peer::responding(format!("{interim}{head}")).await;
    let response = response(peer.client().send(exact("/x"), ample()).await.outcome);
    let fields: Vec<_> =
        response.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(fields, [("x-B", "1"), ("X-A", "2"), ("X-b", "3"), ("content-LENGTH", "0")]);
}

#[rstest]
#[tokio::test]
async fn duplicate_headers_are_kept(#[values(get("/x"), exact("/x"))] outgoing: Outgoing) {
    let peer = Peer::responding(
        "HTTP/1.1 200 OK\r\nWarning: 1\r\nwarning: 2\r\nContent-Length: 0\r\n\r\n",
    )
    .await;
    let response = response(peer.client().send(outgoing, ample()).await.outcome);
    let warnings: Vec<_> = response
        .headers
        .iter()
        .filter(|(name, _)| name.eq_ignore_ascii_case("warning"))
        .map(|(_, v)| v.as_str())
        .collect();
    assert_eq!(warnings, ["1", "2"]);
}

#[rstest]
#[case::json("application/json", r#"{"a": 1}"#, true, None)]
#[case::suffix(
    "application/merge-patch+json; charset=utf-8",
    "{",
    false,
    Some("expected a key in double quotes, met the end of the text")
)]
#[case::duplicate(
    "application/json",
    r#"{"a": 1, "a": 2}"#,
    true,
    Some("duplicate key /a at line 1 column 10 (byte 9)")
)]
#[case::not_claimed("text/plain", "ok", false, None)]
#[case::not_claimed_but_is("text/plain", "[]", true, None)]
#[case::empty("application/json", "", false, None)]
#[tokio::test]
async fn bodies_are_read_as_strict_json(
    #[case] content_type: &str,
    #[case] body: &str,
    #[case] is_json: bool,
    #[case] fault: Option<&str>,
    #[values(get("/x"), exact("/x"))] outgoing: Outgoing,
) {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\n\r\n"
    );
    let peer = Peer::responding(head + body).await;
    let response = response(peer.client().send(outgoing, ample()).await.outcome);
    assert_eq!(response.body, body);
    assert_eq!(response.json.is_some(), is_json);
    match (&response.json_fault, fault) {
        (Some(found), Some(expected)) => assert!(found.starts_with(expected), "{found}"),
        (found, expected) => assert_eq!(found.as_deref(), expected),
    }
}

#[tokio::test]
async fn times_count_from_the_origin() {
    let peer = Peer::responding(OK).await;
    let client = peer.client();
    let first = client.send(get("/x"), ample()).await;
    let second = client.send(exact("/x"), ample()).await;
    assert!(first.started + first.took <= second.started, "{first:?} {second:?}");
    assert!(second.started + second.took <= client.origin.elapsed());
}

#[tokio::test]
async fn the_user_agent_is_ours_unless_the_case_brings_one() {
    let mut peer = Peer::responding(OK).await;
    let client = peer.client();
    client.send(get("/x"), ample()).await;
    assert_eq!(
        values(&peer.head().await, &USER_AGENT),
        [concat!("kubeproof/", env!("CARGO_PKG_VERSION"))]
    );
    let headers = vec![("user-agent".to_owned(), "kubectl/v1".to_owned())];
    client.send(Outgoing { headers, ..exact("/x") }, ample()).await;
    assert_eq!(values(&peer.head().await, &USER_AGENT), ["kubectl/v1"]);
}
