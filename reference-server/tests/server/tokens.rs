//! Tokens of service accounts: requests, reviews, authentication and published keys.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rstest::rstest;
use serde_json::{Value, json};

use crate::support::{Reply, TestServer};

const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";

/// Starts a server with the service account `robot`.
async fn start() -> TestServer {
    let server = TestServer::start().await;
    server.post(ACCOUNTS, &json!({"metadata": {"name": "robot"}})).await.expect(201);
    server
}

async fn request(server: &TestServer, spec: &Value) -> Reply {
    let body = json!({
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec,
    });
    server.post(&format!("{ACCOUNTS}/robot/token"), &body).await
}

async fn token(server: &TestServer, spec: Value) -> String {
    request(server, &spec).await.expect(201).text_at("/status/token").to_owned()
}

/// Returns the status of a review of a token.
async fn review(server: &TestServer, token: &str, audiences: &[&str]) -> Value {
    let review = json!({
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview",
        "spec": {"token": token, "audiences": audiences},
    });
    let path = "/apis/authentication.k8s.io/v1/tokenreviews";
    server.post(path, &review).await.expect(201).json["status"].clone()
}

fn claims(token: &str) -> Value {
    let claims = token.split('.').nth(1).expect("three parts");
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).expect("base64")).expect("JSON")
}

#[tokio::test]
async fn a_token_has_the_claims_of_its_account() {
    let server = start().await;
    let account = server.get(&format!("{ACCOUNTS}/robot")).await;
    let uid = account.text_at("/metadata/uid");
    let reply = request(&server, &json!({})).await.expect(201);
    assert_eq!(reply.text_at("/kind"), "TokenRequest");
    assert_eq!(reply.text_at("/metadata/name"), "robot");
    let audience = "https://kubernetes.default.svc";
    assert_eq!(reply.json["spec"]["audiences"], json!([audience]));
    assert_eq!(reply.json["spec"]["expirationSeconds"], 3600);
    let claims = claims(reply.text_at("/status/token"));
    assert_eq!((&claims["iss"], &claims["aud"]), (&json!(audience), &json!([audience])));
    assert_eq!(claims["sub"], "system:serviceaccount:default:robot");
    let bound = json!({
        "namespace": "default", "serviceaccount": {"name": "robot", "uid": uid},
    });
    assert_eq!(claims["kubernetes.io"], bound);
    let lifetime = claims["exp"].as_i64().zip(claims["iat"].as_i64());
    assert_eq!(lifetime.map(|(end, start)| end - start), Some(3600));
}

#[tokio::test]
async fn requests_with_a_token_are_requests_of_the_account() {
    let server = start().await;
    let token = token(&server, json!({})).await;
    let bearer = format!("Bearer {token}");
    let own = [("authorization", bearer.as_str()), ("content-type", "application/json")];
    let body = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let reply = server.send("POST", path, &own, &body.to_string()).await.expect(201);
    let user = &reply.json["status"]["userInfo"];
    assert_eq!(user["username"], "system:serviceaccount:default:robot");
    let groups =
        json!(["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"]);
    assert_eq!(user["groups"], groups);
    let id = format!("JTI={}", claims(&token)["jti"].as_str().expect("an id"));
    assert_eq!(user["extra"]["authentication.kubernetes.io/credential-id"], json!([id]));
    // The namespace has no role for the account.
    server.send("GET", ACCOUNTS, &own, "").await.rejected(403, "Forbidden");
    server.delete(&format!("{ACCOUNTS}/robot"), "").await.expect(200);
    server.send("GET", ACCOUNTS, &own, "").await.rejected(401, "Unauthorized");
}

#[tokio::test]
async fn a_review_compares_audiences() {
    let server = start().await;
    let own = token(&server, json!({})).await;
    let own_audience = json!(["https://kubernetes.default.svc"]);
    let status = review(&server, &own, &[]).await;
    assert_eq!((&status["authenticated"], &status["audiences"]), (&json!(true), &own_audience));
    let wrong = review(&server, &own, &["x"]).await;
    assert_eq!(wrong["user"], json!({}));
    let message = "[invalid bearer token, token audiences [\"https://kubernetes.default.svc\"] is \
                   invalid for the target audiences [\"x\"]]";
    assert_eq!(wrong["error"], message);

    let other = token(&server, json!({"audiences": ["x", "y"]})).await;
    assert_eq!(review(&server, &other, &["z", "y"]).await["audiences"], json!(["y"]));
    assert_eq!(review(&server, &other, &[]).await.get("authenticated"), None);
    let bearer = [("authorization", &*format!("Bearer {other}"))];
    server.send("GET", "/api", &bearer, "").await.rejected(401, "Unauthorized");

    let admin = server.running.admin_token();
    assert_eq!(review(&server, admin, &[]).await["audiences"], own_audience);
    assert_eq!(review(&server, admin, &["x"]).await["error"], "invalid bearer token");
}

#[tokio::test]
async fn a_token_ends_with_the_object_that_it_is_bound_to() {
    let server = start().await;
    let secrets = "/api/v1/namespaces/default/secrets";
    let secret = json!({"metadata": {"name": "s"}});
    let reference = json!({"kind": "Secret", "apiVersion": "v1", "name": "s"});
    request(&server, &json!({"boundObjectRef": reference})).await.rejected(404, "NotFound");
    let uid = server.post(secrets, &secret).await.expect(201).text_at("/metadata/uid").to_owned();
    let mut wrong = reference.clone();
    wrong["uid"] = json!("other");
    request(&server, &json!({"boundObjectRef": wrong})).await.rejected(409, "Conflict");
    let token = token(&server, json!({"boundObjectRef": reference})).await;
    assert_eq!(claims(&token)["kubernetes.io"]["secret"], json!({"name": "s", "uid": uid}));
    assert_eq!(review(&server, &token, &[]).await["authenticated"], true);
    server.delete(&format!("{secrets}/s"), "").await.expect(200);
    server.post(secrets, &secret).await.expect(201);
    assert_eq!(review(&server, &token, &[]).await.get("authenticated"), None);
}

#[tokio::test]
async fn a_token_of_a_pod_names_the_pod_and_its_node() {
    let server = start().await;
    let pod = |name: &str, account: &str| {
        json!({
            "metadata": {"name": name},
            "spec": {
                "serviceAccountName": account, "nodeName": "n",
                "containers": [{"name": "c", "image": "i"}],
            },
        })
    };
    let pods = "/api/v1/namespaces/default/pods";
    server.post(pods, &pod("own", "robot")).await.expect(201);
    server.post(pods, &pod("foreign", "other")).await.expect(201);
    let bound = |name: &str| json!({"boundObjectRef": {"kind": "Pod", "name": name}});
    let status = review(&server, &token(&server, bound("own")).await, &[]).await;
    let extra = &status["user"]["extra"];
    assert_eq!(extra["authentication.kubernetes.io/pod-name"], json!(["own"]));
    assert_eq!(extra["authentication.kubernetes.io/node-name"], json!(["n"]));
    request(&server, &bound("foreign")).await.rejected(400, "BadRequest");
}

#[rstest]
#[case(json!({"expirationSeconds": 599}), 422, "spec.expirationSeconds")]
#[case(json!({"expirationSeconds": 4_294_967_297_i64}), 422, "spec.expirationSeconds")]
#[case(json!({"boundObjectRef": {"kind": "ConfigMap", "apiVersion": "v1"}}), 400, "Kind=ConfigMap")]
#[case(json!({"audiences": "x"}), 400, "TokenRequest")]
#[tokio::test]
async fn invalid_requests_are_rejected(
    #[case] spec: Value,
    #[case] code: u16,
    #[case] message: &str,
) {
    let server = start().await;
    let reply = request(&server, &spec).await.expect(code);
    assert!(reply.text_at("/message").contains(message), "{}", reply.text);
}

#[tokio::test]
async fn the_names_of_a_request_must_be_those_of_the_account() {
    let server = start().await;
    let path = format!("{ACCOUNTS}/robot/token");
    let reply = server.post(&path, &json!({"metadata": {"name": "other"}})).await;
    let reply = reply.rejected(422, "Invalid");
    assert_eq!(reply.text_at("/details/causes/0/field"), "metadata.name");
    let reply = server.post(&path, &json!({"metadata": {"namespace": "other"}})).await;
    reply.rejected(400, "BadRequest");
    server.post(&format!("{ACCOUNTS}/none/token"), &json!({})).await.rejected(404, "NotFound");
    server.get(&path).await.rejected(405, "MethodNotAllowed");
}

#[tokio::test]
async fn the_published_key_is_that_of_the_tokens() {
    let server = start().await;
    let path = "/.well-known/openid-configuration";
    let document = server.get(path).await.expect(200);
    assert_eq!(document.json["issuer"], "https://kubernetes.default.svc");
    assert_eq!(document.json["id_token_signing_alg_values_supported"], json!(["ES256"]));
    let keys = server.get("/openid/v1/jwks").await.expect(200);
    assert_eq!(keys.headers["content-type"], "application/jwk-set+json");
    let token = token(&server, json!({})).await;
    let header = token.split('.').next().expect("a header");
    let header: Value =
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(header).expect("base64")).expect("JSON");
    assert_eq!(keys.json["keys"][0]["kid"], header["kid"]);
    let bearer = format!("Bearer {token}");
    for path in ["/openid/v1/jwks", path] {
        server.send("GET", path, &[("authorization", "")], "").await.rejected(403, "Forbidden");
        server.send("GET", path, &[("authorization", &*bearer)], "").await.expect(200);
    }
    server.send("POST", path, &[], "").await.rejected(405, "MethodNotAllowed");
}

#[rstest]
#[case::list("[]")]
#[case::text("\"text\"")]
#[case::spec_is_a_list(r#"{"spec": []}"#)]
#[tokio::test]
async fn a_request_is_an_object(#[case] body: &str) {
    let server = start().await;
    let json = [("content-type", "application/json")];
    let reply = server.send("POST", &format!("{ACCOUNTS}/robot/token"), &json, body).await;
    reply.rejected(400, "BadRequest");
}
