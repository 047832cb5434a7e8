//! A client observes each permitted variation, and observes none on a server without variations.

use http::StatusCode;
use jiff::{SignedDuration, Timestamp};
use kubeproof_reference_server::{Config, Variation, Variations};
use rstest::rstest;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::support::{CONFIG_MAPS, Reply, TestServer, Watch, config_map};

const ONE: &str = "/api/v1/namespaces/default/configmaps/a";
const PAGE: &str = "/api/v1/namespaces/default/configmaps?limit=1";
/// One config map, and its changes.
const STREAMING_LIST: &str = "/api/v1/namespaces/default/configmaps?watch=true&\
                              sendInitialEvents=true&resourceVersionMatch=NotOlderThan&\
                              allowWatchBookmarks=true&fieldSelector=metadata.name=a";
const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";

/// Starts a server with two config maps and a service account.
async fn server(variations: Variations) -> TestServer {
    let server = TestServer::with(Config { variations, ..Config::default() }).await;
    for name in ["a", "b"] {
        server.post(CONFIG_MAPS, &config_map(name)).await.expect(201);
    }
    server.post(ACCOUNTS, &json!({ "metadata": { "name": "robot" } })).await.expect(201);
    server
}

fn only(variation: Variation) -> Variations {
    Variations::none().with(variation)
}

fn has(reply: &Reply, header: &str, value: &str) -> bool {
    reply.headers.get(header).is_some_and(|given| given == value)
}

fn is_off(time: Option<Timestamp>) -> bool {
    let time = time.expect("a time");
    time.duration_since(Timestamp::now()).abs() > SignedDuration::from_hours(1)
}

/// Returns the date of a response that has exactly one.
fn date(reply: &Reply) -> Option<Timestamp> {
    let dates: Vec<_> = reply.headers.get_all("date").iter().collect();
    let [date] = dates.as_slice() else { panic!("{dates:?}") };
    let date = date.to_str().ok()?;
    Timestamp::try_from(httpdate::parse_http_date(date).ok()?).ok()
}

#[rstest]
#[case::opaque_versions(
    Variation::OpaqueVersions,
    "GET",
    ONE,
    |r: &Reply| r.text_at("/metadata/resourceVersion").parse::<u64>().is_err()
)]
#[case::other_uids(
    Variation::OtherUids,
    "GET",
    ONE,
    |r: &Reply| !r.text_at("/metadata/uid").contains('-')
)]
#[case::opaque_continue(
    Variation::OpaqueContinue,
    "GET",
    PAGE,
    |r: &Reply| r.text_at("/metadata/continue").starts_with("kpc")
)]
#[case::unknown_fields(
    Variation::UnknownFields,
    "GET",
    ONE,
    |r: &Reply| r.json["metadata"].get("servedBy").is_some()
)]
#[case::unknown_details(
    Variation::UnknownFields,
    "GET",
    "/api/v1/namespaces/default/configmaps/c",
    |r: &Reply| r.json["details"].get("incident").is_some()
)]
#[case::other_messages(
    Variation::OtherMessages,
    "GET",
    "/api/v1/namespaces/default/configmaps/c",
    |r: &Reply| !r.text_at("/message").contains("not found")
)]
#[case::metadata_at_admission(
    Variation::MetadataAtAdmission,
    "GET",
    ONE,
    |r: &Reply| r.json["metadata"].get("labels").is_some()
)]
#[case::defaults_at_admission(
    Variation::DefaultsAtAdmission,
    "GET",
    ONE,
    |r: &Reply| r.json.get("immutable").is_some()
)]
#[case::status_on_delete(
    Variation::StatusOnDelete,
    "DELETE",
    "/api/v1/namespaces/default/serviceaccounts/robot",
    |r: &Reply| r.text_at("/kind") == "Status"
)]
#[case::object_on_delete(
    Variation::ObjectOnDelete,
    "DELETE",
    ONE,
    |r: &Reply| r.text_at("/kind") == "ConfigMap" && r.text_at("/metadata/name") == "a"
)]
#[case::deletion_accepted(
    Variation::DeletionAccepted,
    "DELETE",
    ONE,
    |r: &Reply| r.status == StatusCode::ACCEPTED
)]
#[case::lists_reversed(
    Variation::ListsReversed,
    "GET",
    "/api/v1/namespaces/default/configmaps?fieldSelector=metadata.name!=kube-root-ca.crt",
    |r: &Reply| r.names() == ["b", "a"]
)]
#[case::counts_omitted(
    Variation::CountsOmitted,
    "GET",
    PAGE,
    |r: &Reply| r.json["metadata"].get("remainingItemCount").is_none()
)]
#[case::chunked(
    Variation::Chunked,
    "GET",
    ONE,
    |r: &Reply| has(r, "transfer-encoding", "chunked") && !r.headers.contains_key("content-length")
)]
#[case::connections_close(
    Variation::ConnectionsClose,
    "GET",
    ONE,
    |r: &Reply| has(r, "connection", "close")
)]
#[case::headers_rearranged(
    Variation::HeadersRearranged,
    "GET",
    ONE,
    |r: &Reply| has(r, "x-served-by", "front")
)]
#[case::charsets_named(
    Variation::CharsetsNamed,
    "GET",
    ONE,
    |r: &Reply| has(r, "content-type", "application/json; charset=utf-8")
)]
#[case::warnings_always(
    Variation::WarningsAlways,
    "GET",
    ONE,
    |r: &Reply| r.headers.contains_key("warning")
)]
#[case::indented_always(
    Variation::IndentedAlways,
    "GET",
    ONE,
    |r: &Reply| r.text.contains("\n  \"")
)]
#[case::clock_off(
    Variation::ClockOff,
    "GET",
    ONE,
    |r: &Reply| is_off(r.text_at("/metadata/creationTimestamp").parse().ok())
)]
#[case::date_off(Variation::ClockOff, "GET", ONE, |r: &Reply| is_off(date(r)))]
#[tokio::test]
async fn a_variation_is_visible_in_a_response(
    #[case] variation: Variation,
    #[case] method: &str,
    #[case] path: &str,
    #[case] shows: fn(&Reply) -> bool,
) {
    for (variations, expected) in [(only(variation), true), (Variations::none(), false)] {
        let reply = server(variations).await.send(method, path, &[], "").await;
        assert_eq!(shows(&reply), expected, "{:?} {}", reply.headers, reply.text);
    }
}

#[rstest]
#[case(only(Variation::OtherSuffixes), 12)]
#[case(Variations::none(), 5)]
#[tokio::test]
async fn other_suffixes_are_longer(#[case] variations: Variations, #[case] length: usize) {
    let metadata = json!({ "metadata": { "generateName": "made-" } });
    let made = server(variations).await.post(CONFIG_MAPS, &metadata).await.expect(201);
    let suffix = made.text_at("/metadata/name").strip_prefix("made-").expect("the prefix");
    assert_eq!(suffix.len(), length, "{suffix}");
}

#[rstest]
#[case(only(Variation::GzipAlways), Some("gzip"))]
#[case(Variations::none(), None)]
#[tokio::test]
async fn a_small_body_is_compressed_only_by_the_variation(
    #[case] variations: Variations,
    #[case] encoding: Option<&str>,
) {
    let response =
        server(variations).await.open("GET", ONE, &[("accept-encoding", "gzip")], "").await;
    let given =
        response.headers().get("content-encoding").map(|value| value.to_str().expect("text"));
    assert_eq!(given, encoding);
}

/// Watches two changes, with and without bookmarks.
#[rstest]
#[case::usual(Variations::none(), "allowWatchBookmarks=true", &["MODIFIED", "MODIFIED"])]
#[case::many(
    only(Variation::ManyBookmarks),
    "allowWatchBookmarks=true",
    &["MODIFIED", "BOOKMARK", "MODIFIED", "BOOKMARK"]
)]
#[case::not_asked_for(only(Variation::ManyBookmarks), "", &["MODIFIED", "MODIFIED"])]
#[tokio::test]
async fn bookmarks_come_after_every_event(
    #[case] variations: Variations,
    #[case] query: &str,
    #[case] expected: &[&str],
) {
    let server = server(variations).await;
    let version = server.get(CONFIG_MAPS).await.version();
    let mut watch =
        server.watch(&format!("{CONFIG_MAPS}?watch=true&resourceVersion={version}&{query}")).await;
    let mut versions = Vec::new();
    for value in ["2", "3"] {
        let changed = server.merge(ONE, &json!({ "data": { "a": value } })).await.expect(200);
        versions.push(changed.text_at("/metadata/resourceVersion").to_owned());
    }
    let mut kinds = Vec::new();
    for _ in expected {
        let event = watch.next().await.expect("an event");
        let version =
            event.pointer("/object/metadata/resourceVersion").and_then(|text| text.as_str());
        let kind = event["type"].as_str().expect("a type").to_owned();
        let changes = kinds.iter().filter(|kind| *kind == "MODIFIED").count();
        let newest = if kind == "BOOKMARK" { changes - 1 } else { changes };
        assert_eq!(version, Some(versions[newest].as_str()), "{event}");
        kinds.push(kind);
    }
    assert_eq!(kinds, expected);
}

/// The bookmark after the initial events is mandatory for a watch with `sendInitialEvents`. Later
/// bookmarks are optional.
#[rstest]
#[case::few(only(Variation::FewBookmarks), 1, None)]
#[case::usual(Variations::none(), 60, Some("BOOKMARK"))]
#[tokio::test]
async fn few_bookmarks_sends_only_mandatory_bookmarks(
    #[case] variations: Variations,
    #[case] seconds: u32,
    #[case] expected: Option<&str>,
) {
    let server = server(variations).await;
    let watch = format!("{STREAMING_LIST}&timeoutSeconds={seconds}");
    let mut watch = server.watch(&watch).await;
    assert_eq!(watch.take(2).await, ["ADDED a", "BOOKMARK "]);
    server.merge(&format!("{CONFIG_MAPS}/b"), &json!({ "data": { "a": "2" } })).await.expect(200);
    let event = watch.next().await;
    assert_eq!(event.as_ref().and_then(|event| event["type"].as_str()), expected);
}

#[tokio::test]
async fn few_bookmarks_ends_the_initial_events_of_a_table() {
    let server = server(only(Variation::FewBookmarks)).await;
    let accept = [("accept", "application/json;as=Table;g=meta.k8s.io;v=v1")];
    let response = server.open("GET", STREAMING_LIST, &accept, "").await;
    assert_eq!(Watch::new(response.into_body()).take(2).await, ["ADDED ", "BOOKMARK "]);
}

#[tokio::test]
async fn a_watch_may_end_before_its_time() {
    let server = server(only(Variation::WatchesEnd)).await;
    let mut watch = server.watch(&format!("{CONFIG_MAPS}?watch=true&timeoutSeconds=3600")).await;
    assert!(watch.ended().await);
}

#[rstest]
#[case(only(Variation::ShortHistory), 410)]
#[case(Variations::none(), 200)]
#[tokio::test]
async fn a_short_history_compacts_versions_early(
    #[case] variations: Variations,
    #[case] code: u16,
) {
    let server = server(variations).await;
    let version = server.get(CONFIG_MAPS).await.version();
    for number in 0..300 {
        server.merge(ONE, &json!({ "data": { "a": number.to_string() } })).await.expect(200);
    }
    let watch = format!("{CONFIG_MAPS}?watch=true&timeoutSeconds=1&resourceVersion={version}");
    let reply = server.get(&watch).await.expect(200);
    let first: serde_json::Value =
        serde_json::from_str(reply.text.lines().next().expect("an event")).expect("JSON");
    let received =
        if first["type"] == "ERROR" { first["object"]["code"].as_u64() } else { Some(200) };
    assert_eq!(received, Some(code.into()), "{first}");
}

#[rstest]
#[case(only(Variation::HeadersInTitleCase), "\r\nContent-Type: ")]
#[case(Variations::none(), "\r\ncontent-type: ")]
#[tokio::test]
async fn header_names_begin_with_capitals(#[case] variations: Variations, #[case] expected: &str) {
    let server = server(variations).await;
    let mut stream = TcpStream::connect(server.running.addr()).await.expect("the server listens");
    let token = server.running.admin_token();
    let request = format!(
        "GET {ONE} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n\
         connection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.expect("the server reads");
    let mut response = String::new();
    stream.read_to_string(&mut response).await.expect("the server responds");
    assert!(response.contains(expected), "{response}");
}

#[rstest]
#[case(only(Variation::Http1Only), false)]
#[case(Variations::none(), true)]
#[tokio::test]
async fn http_2_with_prior_knowledge_can_be_disabled(
    #[case] variations: Variations,
    #[case] spoken: bool,
) {
    let server = server(variations).await;
    let mut stream = TcpStream::connect(server.running.addr()).await.expect("the server listens");
    stream
        .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0")
        .await
        .expect("the server reads");
    let mut head = [0; 9];
    let read = stream.read(&mut head).await.unwrap_or_default();
    // An HTTP/2 server begins with a SETTINGS frame, which has type 4.
    assert_eq!(read >= 4 && head[3] == 4, spoken, "{head:?}");
}
