//! Users, methods, media types, paths, discovery and health.

use http::StatusCode;
use kubeproof_reference_server::{Config, Running, Server, Tls, Variation, Variations};
use rstest::rstest;
use serde_json::json;

use crate::support::{CONFIG_MAPS, TestServer, config_map};

#[rstest]
#[case("Bearer wrong", CONFIG_MAPS, 401)]
#[case("Bearer wrong", "/healthz", 401)]
#[case("Bearer user", CONFIG_MAPS, 403)]
#[case("Bearer user", "/apis/nope.example.com/v1/things", 403)]
#[case("Bearer user", "/apis", 200)]
#[case("Bearer user", "/metrics", 403)]
#[case("Basic YTpi", CONFIG_MAPS, 403)]
#[case("Bearer ", "/version", 200)]
#[case("Bearer ", "/api", 403)]
#[tokio::test]
async fn users_read_what_their_permissions_allow(
    #[case] authorization: &str,
    #[case] path: &str,
    #[case] code: u16,
) {
    let server = TestServer::start().await;
    let reply = server.send("GET", path, &[("authorization", authorization)], "").await;
    match code {
        401 => drop(reply.rejected(401, "Unauthorized")),
        403 => drop(reply.rejected(403, "Forbidden")),
        code => drop(reply.expect(code)),
    }
}

#[tokio::test]
async fn a_rejection_names_user_verb_and_resource() {
    let server = TestServer::start().await;
    let user = [("authorization", "Bearer user"), ("content-type", "application/json")];
    let rejected = server.send("POST", CONFIG_MAPS, &user, "{").await.rejected(403, "Forbidden");
    assert_eq!(rejected.json["details"], json!({ "kind": "configmaps" }));
    let message = "configmaps is forbidden: User \"kubeproof-user\" cannot create resource \
                   \"configmaps\" in API group \"\" in the namespace \"default\"";
    assert_eq!(rejected.text_at("/message"), message);
}

#[rstest]
#[case("PUT", CONFIG_MAPS, 405)]
#[case("PATCH", CONFIG_MAPS, 405)]
#[case("OPTIONS", CONFIG_MAPS, 405)]
#[case("HEAD", CONFIG_MAPS, 405)]
#[case("FOO", CONFIG_MAPS, 405)]
#[case("POST", "/api/v1/namespaces/default/configmaps/a", 405)]
#[case("POST", "/api/v1/configmaps", 405)]
#[case("DELETE", "/api/v1/configmaps", 405)]
#[case("DELETE", "/api/v1/namespaces", 405)]
#[case("DELETE", "/version", 405)]
#[case("DELETE", "/apis/apps/v1/namespaces/default/deployments/d/status", 405)]
#[case("PATCH", "/api/v1/namespaces/default/finalize", 405)]
#[case("GET", "/api/v1/nothings", 404)]
#[case("GET", "/api/v2/configmaps", 404)]
#[case("GET", "/api/v1/namespaces/default/configmaps/a/status", 404)]
#[case("GET", "/api/v1/namespaces/default/nodes", 404)]
#[case("GET", "/api/v1/configmaps/a", 404)]
#[case("GET", "/api/v1/namespaces/default/configmaps/a/b/c", 404)]
#[tokio::test]
async fn unserved_methods_and_paths_are_rejected(
    #[case] method: &str,
    #[case] path: &str,
    #[case] code: u16,
) {
    let server = TestServer::start().await;
    server.post(CONFIG_MAPS, &config_map("a")).await.expect(201);
    let reply = server.send(method, path, &[], "").await;
    if method == "HEAD" {
        assert_eq!((reply.status.as_u16(), reply.text.as_str()), (code, ""));
    } else {
        reply.rejected(code, if code == 405 { "MethodNotAllowed" } else { "NotFound" });
    }
}

#[rstest]
#[case("/apis/nope.example.com/v1/things")]
#[case("/nope")]
#[case("//api/v1/namespaces")]
#[tokio::test]
async fn an_unknown_path_returns_plain_text(#[case] path: &str) {
    let server = TestServer::start().await;
    let reply = server.get(path).await.expect(404);
    assert_eq!(reply.headers["content-type"], "text/plain; charset=utf-8");
    assert_eq!(reply.text, "404 page not found\n");
}

#[rstest]
#[case("POST", CONFIG_MAPS, "text/plain")]
#[case("POST", CONFIG_MAPS, "application/cbor")]
#[case("PUT", "/api/v1/namespaces/default/configmaps/a", "application/x-www-form-urlencoded")]
#[case("PATCH", "/api/v1/namespaces/default/configmaps/a", "application/json")]
#[case("PATCH", "/api/v1/namespaces/default/configmaps/a", "application/apply-patch+cbor")]
#[tokio::test]
async fn bodies_of_other_media_types_are_rejected(
    #[case] method: &str,
    #[case] path: &str,
    #[case] media: &str,
) {
    let server = TestServer::start().await;
    let body = config_map("a").to_string();
    let reply = server.send(method, path, &[("content-type", media)], &body).await;
    reply.rejected(415, "UnsupportedMediaType");
}

#[tokio::test]
async fn a_body_above_the_limit_returns_413() {
    let server = TestServer::start().await;
    let mut object = config_map("big");
    object["data"]["x"] = "x".repeat(3 * 1024 * 1024).into();
    server.post(CONFIG_MAPS, &object).await.rejected(413, "RequestEntityTooLarge");
    assert!(server.get(CONFIG_MAPS).await.names().is_empty());
}

#[rstest]
#[case("/healthz", 200, "ok")]
#[case("/livez/ping", 200, "ok")]
#[case("/livez?verbose", 200, "[+]ping ok\n[+]log ok\n[+]etcd ok\nHOOKSlivez check passed\n")]
#[case(
    "/readyz?verbose",
    200,
    "[+]ping ok\n[+]log ok\n[+]informer-sync ok\nHOOKS[+]shutdown ok\nreadyz check passed\n"
)]
#[case("/healthz/poststarthook/rbac/bootstrap-roles", 200, "ok")]
#[case("/healthz/etcd", 200, "ok")]
#[case("/livez/shutdown", 404, "404 page not found\n")]
#[case("/readyz/etcd", 404, "404 page not found\n")]
#[case("/healthz/", 404, "404 page not found\n")]
#[case("/healthz?exclude=ping&exclude=nothing", 200, "ok")]
#[case(
    "/healthz?verbose&exclude=ping&exclude=nothing&exclude=more",
    200,
    "[+]ping excluded: ok\n[+]log ok\n[+]etcd ok\nHOOKSwarn: some health checks cannot be \
     excluded: no matches for \"more\",\"nothing\"\nhealthz check passed\n"
)]
#[case("/readyz/nothing", 404, "404 page not found\n")]
#[tokio::test]
async fn health(#[case] path: &str, #[case] code: u16, #[case] text: &str) {
    let server = TestServer::start().await;
    let hooks = "[+]poststarthook/start-apiextensions-controllers ok\n\
                 [+]poststarthook/crd-informer-synced ok\n\
                 [+]poststarthook/start-system-namespaces-controller ok\n\
                 [+]poststarthook/rbac/bootstrap-roles ok\n";
    assert_eq!(server.get(path).await.expect(code).text, text.replace("HOOKS", hooks));
}

#[tokio::test]
async fn discovery_lists_the_served_resources() {
    let server = TestServer::start().await;
    let groups = server.get("/apis").await.expect(200);
    assert!(
        groups.json["groups"]
            .as_array()
            .is_some_and(|groups| groups.iter().any(|group| group["name"] == "apps"))
    );
    let core = server.get("/api/v1").await.expect(200);
    let names: Vec<_> =
        core.json["resources"].as_array().unwrap().iter().map(|entry| &entry["name"]).collect();
    assert!(
        names.contains(&&json!("configmaps")) && names.contains(&&json!("namespaces/finalize")),
        "{names:?}"
    );
    let aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let first = server.send("GET", "/apis", &[("accept", aggregated)], "").await.expect(200);
    assert_eq!(first.json["kind"], "APIGroupDiscoveryList");
    let tag = first.headers["etag"].to_str().unwrap();
    let again =
        server.send("GET", "/apis", &[("accept", aggregated), ("if-none-match", tag)], "").await;
    assert_eq!(again.status, StatusCode::NOT_MODIFIED);
    server.get("/apis/nope.example.com").await.expect(404);
}

#[tokio::test]
async fn reviews_return_a_result_and_store_nothing() {
    let server = TestServer::start().await;
    let user = [("authorization", "Bearer user"), ("content-type", "application/json")];
    let who = server
        .send("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", &user, "{}")
        .await
        .expect(201);
    assert_eq!(who.text_at("/status/userInfo/username"), "kubeproof-user");
    let token = "/apis/authentication.k8s.io/v1/tokenreviews";
    let known = server.post(token, &json!({ "spec": { "token": "user" } })).await.expect(201);
    assert_eq!(known.json["status"]["authenticated"], true);
    let unknown = server.post(token, &json!({ "spec": { "token": "nope" } })).await.expect(201);
    assert_ne!(unknown.json["status"]["authenticated"], true);
    let access = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let question =
        json!({ "spec": { "resourceAttributes": { "verb": "delete", "resource": "pods" } } });
    assert_eq!(server.post(access, &question).await.expect(201).json["status"]["allowed"], true);
    let denied = server.send("POST", access, &user, &question.to_string()).await.expect(201);
    assert_eq!(denied.json["status"]["allowed"], false);
    server.post(access, &json!({ "spec": {} })).await.rejected(422, "Invalid");
    server.get(access).await.rejected(405, "MethodNotAllowed");
}

#[rstest]
#[case("Bearer nobody", "application/json", 401)]
#[case("Bearer user", "application/json", 403)]
#[case("Bearer admin", "text/plain", 415)]
#[tokio::test]
async fn a_client_that_is_still_sending_receives_the_rejection(
    #[case] authorization: &str,
    #[case] media_type: &str,
    #[case] code: u16,
) {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    const LENGTH: usize = 16 * 1024 * 1024;
    let server = TestServer::start().await;
    let token = authorization.replace("admin", server.running.admin_token());
    let mut stream = tokio::net::TcpStream::connect(server.running.addr()).await.unwrap();
    let head = format!(
        "POST {CONFIG_MAPS} HTTP/1.1\r\nhost: x\r\nauthorization: {token}\r\n\
         content-type: {media_type}\r\n\
         content-length: {LENGTH}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(&vec![b'x'; LENGTH]).await.expect("the server reads on");
    let mut response = [0; 12];
    stream.read_exact(&mut response).await.expect("the server responds");
    assert_eq!(String::from_utf8_lossy(&response), format!("HTTP/1.1 {code}"));
}

#[tokio::test]
async fn a_rejected_sender_can_retry_on_the_same_connection() {
    use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
    let variations = Variations::none().with(Variation::TooManyRequests);
    let server = TestServer::with(Config { variations, ..Config::default() }).await;
    let token = server.running.admin_token();
    let stream = tokio::net::TcpStream::connect(server.running.addr()).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let (read, mut write) = stream.into_split();
    let mut read = BufReader::new(read);
    let (mut turned_away, mut number) = (0, 0);
    while turned_away < 3 {
        number += 1;
        let body = config_map(&format!("c{number}")).to_string();
        let (length, half) = (body.len(), body.len() / 2);
        let head = format!(
            "POST {CONFIG_MAPS} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n\
             content-type: application/json\r\ncontent-length: {length}\r\n\r\n"
        );
        write
            .write_all(format!("{head}{}", &body[..half]).as_bytes())
            .await
            .expect("the connection stands");
        // The server can respond before the rest of the body arrives.
        server.get("/version").await;
        write.write_all(&body.as_bytes()[half..]).await.expect("the server reads on");
        let mut status = String::new();
        read.read_line(&mut status).await.expect("the server responds");
        let mut length = 0;
        loop {
            let mut line = String::new();
            read.read_line(&mut line).await.expect("a head");
            match line.trim_end().split_once(": ") {
                None => break,
                Some(("content-length", value)) => length = value.parse().unwrap(),
                Some(_) => {}
            }
        }
        read.read_exact(&mut vec![0; length]).await.expect("a whole body");
        match status.trim_end() {
            "HTTP/1.1 201 Created" => {}
            "HTTP/1.1 429 Too Many Requests" => turned_away += 1,
            other => panic!("request {number} is responded with {other:?}"),
        }
    }
}

#[tokio::test]
async fn a_client_with_the_kubeconfig_connects_over_tls() {
    let server: Running =
        Server::start(Config { tls: Some(Tls::default()), ..Config::default() }).await.unwrap();
    assert!(server.url().starts_with("https://127.0.0.1:"));
    assert!(server.ca_pem().is_some_and(|pem| pem.starts_with("-----BEGIN CERTIFICATE-----")));
    let config: serde_json::Value = serde_json::from_str(&server.kubeconfig()).unwrap();
    assert_eq!(config["clusters"][0]["cluster"]["server"], server.url());
    assert!(config["clusters"][0]["cluster"]["certificate-authority-data"].is_string());
    server.shutdown().await;
}

#[tokio::test]
async fn the_server_supports_http_2_with_prior_knowledge() {
    let server = TestServer::start().await;
    let stream = tokio::net::TcpStream::connect(server.running.addr()).await.unwrap();
    let executor = hyper_util::rt::TokioExecutor::new();
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(executor, hyper_util::rt::TokioIo::new(stream))
            .await
            .unwrap();
    tokio::spawn(connection);
    let request = http::Request::get("http://test/healthz")
        .body(http_body_util::Empty::<bytes::Bytes>::new())
        .unwrap();
    let reply = sender.send_request(request).await.unwrap();
    assert_eq!((reply.version(), reply.status()), (http::Version::HTTP_2, StatusCode::OK));
}

#[tokio::test]
async fn long_responses_are_compressed_for_clients_with_gzip() {
    let server = TestServer::start().await;
    let mut object = config_map("big");
    object["data"]["x"] = "x".repeat(200_000).into();
    server.post(CONFIG_MAPS, &object).await.expect(201);
    let plain = server.get(CONFIG_MAPS).await.expect(200);
    assert!(!plain.headers.contains_key("content-encoding"));
    let compressed = server.open("GET", CONFIG_MAPS, &[("accept-encoding", "gzip")], "").await;
    assert_eq!(compressed.headers()["content-encoding"], "gzip");
    let length: usize = compressed.headers()["content-length"].to_str().unwrap().parse().unwrap();
    assert!(length < plain.text.len() / 10);
}

#[tokio::test]
async fn responses_have_the_id_of_their_request() {
    let server = TestServer::start().await;
    let long = "a".repeat(70);
    for (given, expected) in [("client-1", "client-1"), (long.as_str(), &long[..64])] {
        let reply = server.send("GET", "/version", &[("audit-id", given)], "").await;
        assert_eq!(reply.headers["audit-id"], expected);
    }
    let ids = [server.get("/version").await, server.get("/none").await]
        .map(|reply| reply.headers["audit-id"].to_str().unwrap().to_owned());
    assert!(ids.iter().all(|id| id.len() == 36) && ids[0] != ids[1], "{ids:?}");
}

#[rstest]
#[case("/openapi/v2")]
#[case("/openapi/v3/apis/apps/v1")]
#[tokio::test]
async fn schemas_have_an_etag(#[case] path: &str) {
    let server = TestServer::start().await;
    let head = server.send("HEAD", path, &[], "").await.expect(200);
    let tag = head.headers["etag"].to_str().unwrap();
    let known = server.send("GET", path, &[("if-none-match", tag)], "").await;
    assert_eq!((known.status, known.text.as_str()), (StatusCode::NOT_MODIFIED, ""));
}

#[tokio::test]
async fn a_dropped_server_stops_serving() {
    let server = TestServer::start().await;
    let addr = server.running.addr();
    let mut watch = server.watch(&format!("{CONFIG_MAPS}?watch=1")).await;
    server.running.shutdown().await;
    assert!(tokio::net::TcpStream::connect(addr).await.is_err());
    assert!(watch.ended().await);
}

#[tokio::test]
async fn metrics_count_requests_for_served_resources() {
    let server = TestServer::start().await;
    server.post(CONFIG_MAPS, &config_map("a")).await.expect(201);
    for _ in 0..2 {
        server.post(CONFIG_MAPS, &config_map("a")).await.expect(409);
    }
    server.get("/api/v1/configmaps").await.expect(200);
    server.get("/api/v1/robots").await.expect(404);
    server.get("/api/v1/namespaces/default/configmaps/a/robot").await.expect(404);
    server.get("/healthz").await.expect(200);
    let metrics = server.get("/metrics").await.expect(200);
    assert_eq!(metrics.headers["content-type"], "text/plain; version=0.0.4; charset=utf-8");
    let count = |parts: &[&str]| {
        let mut lines = metrics.text.lines();
        let line = lines.find(|line| parts.iter().all(|part| line.contains(part)));
        line.and_then(|line| line.rsplit(' ').next()?.parse::<u64>().ok())
    };
    let post = ["resource=\"configmaps\"", "scope=\"resource\"", "verb=\"POST\""];
    assert_eq!(count(&[&post[..], &["code=\"201\""]].concat()), Some(1));
    assert_eq!(count(&[&post[..], &["code=\"409\""]].concat()), Some(2));
    assert_eq!(count(&["scope=\"cluster\"", "verb=\"LIST\"", "code=\"200\""]), Some(1));
    assert_eq!(count(&["subresource=\"/healthz\""]), Some(1));
    assert!(!metrics.text.contains("robot"), "{}", metrics.text);
    server.send("GET", "/metrics", &[("authorization", "Bearer user")], "").await.expect(403);
    server.send("POST", "/metrics", &[], "").await.rejected(405, "MethodNotAllowed");
}
