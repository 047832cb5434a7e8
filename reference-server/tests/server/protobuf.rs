//! Protobuf bodies and responses.

use http_body_util::BodyExt as _;
use kubeproof_api::Version;
use kubeproof_apimachinery::serializer::protobuf;
use kubeproof_reference_server::Config;
use rstest::rstest;
use serde_json::{Value, json};

use crate::support::{Reply, TestServer, config_map};

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const JSON: &str = "application/json";
const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// The config map `one` with a value, as protobuf.
const ONE: &str =
    "k8s\0\x0a\x0f\x0a\x02v1\x12\tConfigMap\x12\x0f\x0a\x05\x0a\x03one\x12\x06\x0a\x01a\x12\x01b";

/// Returns the media type and the body of a response.
async fn read(server: &TestServer, path: &str, accept: &str) -> (u16, String, Vec<u8>) {
    let response = server.open("GET", path, &[("accept", accept)], "").await;
    let media_type = response.headers()["content-type"].to_str().expect("text").to_owned();
    let status = response.status().as_u16();
    (status, media_type, response.into_body().collect().await.expect("a body").to_bytes().into())
}

async fn send(server: &TestServer, method: &str, path: &str, body: &str) -> Reply {
    server.send(method, path, &[("content-type", PROTOBUF)], body).await
}

/// Returns the start of the envelope of a kind.
fn head(api_version: &str, kind: &str) -> Vec<u8> {
    let length = |text: &str| u8::try_from(text.len()).expect("a short text");
    let mut head = b"k8s\0\x0a".to_vec();
    head.extend([length(api_version) + length(kind) + 4, 0x0a, length(api_version)]);
    head.extend(api_version.bytes());
    head.extend([0x12, length(kind)]);
    head.extend(kind.bytes());
    head
}

#[tokio::test]
async fn a_body_is_stored_like_its_json() {
    let server = TestServer::start().await;
    let created = send(&server, "POST", CONFIG_MAPS, ONE).await.expect(201);
    assert_eq!(created.json["data"], json!({"a": "b"}));
    let changed = ONE.replace("\x01b", "\x01c");
    let path = format!("{CONFIG_MAPS}/one");
    let updated = send(&server, "PUT", &path, &changed).await.expect(200);
    assert_eq!(updated.json["data"], json!({"a": "c"}));
    // DeleteOptions with dryRun
    let options = "k8s\0\x0a\x13\x0a\x02v1\x12\x0dDeleteOptions\x12\x05\x2a\x03All";
    send(&server, "DELETE", &path, options).await.expect(200);
    server.get(&path).await.expect(200);
    send(&server, "DELETE", &path, "").await.expect(200);
    server.get(&path).await.rejected(404, "NotFound");
}

#[rstest]
#[case::object("/api/v1/namespaces/default", "v1", "Namespace")]
#[case::list("/api/v1/namespaces", "v1", "NamespaceList")]
#[case::status("/api/v1/namespaces/none", "v1", "Status")]
#[case::versions("/api", "v1", "APIVersions")]
#[case::groups("/apis", "v1", "APIGroupList")]
#[case::group("/apis/apps", "v1", "APIGroup")]
#[case::resources("/apis/apps/v1", "v1", "APIResourceList")]
#[tokio::test]
async fn responses_have_an_envelope(
    #[case] path: &str,
    #[case] api_version: &str,
    #[case] kind: &str,
) {
    let server = TestServer::start().await;
    let (_, media_type, body) = read(&server, path, PROTOBUF).await;
    assert_eq!(media_type, PROTOBUF);
    assert!(body.starts_with(&head(api_version, kind)), "{}", body.escape_ascii());
}

#[rstest]
#[case::metadata("PartialObjectMetadata", "meta.k8s.io", "/api/v1/namespaces/default", "v1")]
#[case::list("PartialObjectMetadataList", "meta.k8s.io", "/api/v1/namespaces", "v1")]
#[case::older("PartialObjectMetadataList", "meta.k8s.io", "/api/v1/namespaces", "v1beta1")]
#[case::discovery("APIGroupDiscoveryList", "apidiscovery.k8s.io", "/apis", "v2")]
#[tokio::test]
async fn other_forms_have_an_envelope(
    #[case] form: &str,
    #[case] group: &str,
    #[case] path: &str,
    #[case] version: &str,
) {
    let server = TestServer::start().await;
    let accept = format!("{PROTOBUF};as={form};g={group};v={version}");
    let (status, _, body) = read(&server, path, &accept).await;
    assert_eq!(status, 200);
    assert!(body.starts_with(&head(&format!("{group}/{version}"), form)), "{form}");
}

#[tokio::test]
async fn a_watch_event_has_its_length_in_front() {
    let server = TestServer::start().await;
    server.post(CONFIG_MAPS, &config_map("one")).await.expect(201);
    let path = format!("{CONFIG_MAPS}?watch=true&timeoutSeconds=1");
    let (_, media_type, body) = read(&server, &path, PROTOBUF).await;
    assert_eq!(media_type, "application/vnd.kubernetes.protobuf;stream=watch");
    let (length, event) = body.split_first_chunk::<4>().expect("a length");
    assert_eq!(u32::from_be_bytes(*length) as usize, event.len());
    assert!(event.starts_with(b"\x0a\x05ADDED\x12"), "{}", event.escape_ascii());
    let object = event.windows(4).position(|window| window == b"k8s\0").expect("an envelope");
    assert!(event[object..].starts_with(&head("v1", "ConfigMap")), "{}", event.escape_ascii());
}

#[rstest]
#[case::empty("", "empty data")]
#[case::json("{}", "expected the prefix")]
#[case::prefix("k8s\0", "empty body")]
#[case::cut(&ONE[..30], "unexpected end of data")]
#[case::kind("k8s\0\x0a\x09\x0a\x02v1\x12\x03Foo", "no protobuf message for kind \"Foo\"")]
#[case::other_kind("k8s\0\x0a\x09\x0a\x02v1\x12\x03Pod", "Pod in version \"v1\" cannot")]
#[tokio::test]
async fn broken_bodies_are_bad_requests(#[case] body: &str, #[case] message: &str) {
    let server = TestServer::start().await;
    let reply = send(&server, "POST", CONFIG_MAPS, body).await.rejected(400, "BadRequest");
    assert!(reply.text_at("/message").contains(message), "{}", reply.text);
}

#[tokio::test]
async fn custom_resources_and_patches_have_no_protobuf() {
    let server = TestServer::with(Config { sample: true, ..Config::default() }).await;
    let gadgets = "/apis/devices.example.com/v1/namespaces/default/gadgets";
    send(&server, "POST", gadgets, ONE).await.rejected(415, "UnsupportedMediaType");
    send(&server, "PATCH", "/api/v1/namespaces/default", ONE)
        .await
        .rejected(415, "UnsupportedMediaType");
    assert_eq!(read(&server, gadgets, PROTOBUF).await.0, 406);
    let (status, media_type, _) = read(&server, gadgets, &format!("{PROTOBUF},{JSON}")).await;
    assert_eq!((status, media_type.as_str()), (200, JSON));
    let metadata = "as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
    let (status, media_type, _) = read(&server, gadgets, &format!("{PROTOBUF};{metadata}")).await;
    assert_eq!((status, media_type.as_str()), (200, PROTOBUF));
    let table = format!("{PROTOBUF};as=Table;g=meta.k8s.io;v=v1");
    assert_eq!(read(&server, CONFIG_MAPS, &table).await.0, 406);
}

const IN_DEFAULT: &str = "/api/v1/namespaces/default";

#[rstest]
#[case::token(
    "POST", "/api/v1/namespaces/default/serviceaccounts/robot/token",
    &json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
            "spec": {"audiences": ["here"]}}),
    &["authentication.k8s.io/v1", "TokenRequest", "/spec/audiences/0", "here"]
)]
#[case::eviction(
    "POST", "/api/v1/namespaces/default/pods/p/eviction",
    &json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}}),
    &["v1", "Status", "/status", "Success"]
)]
#[case::binding(
    "POST", "/api/v1/namespaces/default/pods/p/binding",
    &json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p"},
            "target": {"kind": "Node", "name": "n"}}),
    &["v1", "Status", "/status", "Success"]
)]
#[case::scale(
    "PUT", "/apis/apps/v1/namespaces/default/deployments/web/scale",
    &json!({"apiVersion": "autoscaling/v1", "kind": "Scale",
            "metadata": {"name": "web", "namespace": "default"}, "spec": {"replicas": 3}}),
    &["autoscaling/v1", "Scale", "/status/selector", "app=web"]
)]
#[case::access_review(
    "POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews",
    &json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
            "spec": {"user": "jane", "resourceAttributes": {"verb": "get", "resource": "pods"}}}),
    &["authorization.k8s.io/v1", "SubjectAccessReview", "/spec/user", "jane"]
)]
#[tokio::test]
async fn subresources_and_reviews_speak_protobuf(
    #[case] method: &str,
    #[case] path: &str,
    #[case] body: &Value,
    #[case] expected: &[&str],
) {
    let server = TestServer::start().await;
    let account =
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}});
    server.post(&format!("{IN_DEFAULT}/serviceaccounts"), &account).await.expect(201);
    let template = json!({"containers": [{"name": "c", "image": "i"}]});
    let pod =
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": template});
    server.post(&format!("{IN_DEFAULT}/pods"), &pod).await.expect(201);
    let labels = json!({"app": "web"});
    let web = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": template},
        },
    });
    server.post("/apis/apps/v1/namespaces/default/deployments", &web).await.expect(201);

    let definitions = Version::default().definitions();
    let sent = protobuf::encode(definitions, body).expect("an object of the kind");
    let sent = String::from_utf8(sent).expect("lengths below 128");
    let headers = [("content-type", PROTOBUF), ("accept", PROTOBUF)];
    let response = server.open(method, path, &headers, &sent).await;
    assert!(response.status().is_success(), "{}", response.status());
    assert_eq!(response.headers()["content-type"], PROTOBUF);
    let bytes = response.into_body().collect().await.expect("a body").to_bytes();
    let shown = protobuf::decode(definitions, &bytes, ("", "")).expect("protobuf");
    let [api_version, kind, pointer, value] = expected else { panic!("four texts") };
    assert_eq!((&shown["apiVersion"], &shown["kind"]), (&json!(api_version), &json!(kind)));
    assert_eq!(shown.pointer(pointer), Some(&json!(value)), "{shown}");
}
