//! A server for one test, and a client that sends requests unchanged.

use std::time::Duration;

use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use kubeproof_reference_server::{Config, Running, Server};
use serde_json::{Value, json};
use tokio::net::TcpStream;

/// The timeout for each expected event.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(10);

pub(crate) struct TestServer {
    pub(crate) running: Running,
}

/// A complete response.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
    pub(crate) json: Value,
}

impl Reply {
    /// Returns the text at a JSON pointer.
    pub(crate) fn text_at(&self, pointer: &str) -> &str {
        self.json.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
    }

    pub(crate) fn reason(&self) -> &str {
        self.text_at("/reason")
    }

    pub(crate) fn version(&self) -> u64 {
        self.text_at("/metadata/resourceVersion").parse().expect("a version")
    }

    pub(crate) fn names(&self) -> Vec<&str> {
        let items = self.json["items"].as_array().expect("a list");
        items.iter().map(|item| item["metadata"]["name"].as_str().expect("a name")).collect()
    }

    #[track_caller]
    pub(crate) fn expect(self, status: u16) -> Self {
        assert_eq!(self.status.as_u16(), status, "{}", self.text);
        self
    }

    /// Expects a failure with this code and reason, in the status line and in the body.
    #[track_caller]
    pub(crate) fn rejected(self, code: u16, reason: &str) -> Self {
        let reply = self.expect(code);
        assert_eq!(reply.json["kind"], "Status", "{}", reply.text);
        assert_eq!(reply.json["status"], "Failure", "{}", reply.text);
        assert_eq!(reply.json["code"], code, "{}", reply.text);
        assert_eq!(reply.reason(), reason, "{}", reply.text);
        reply
    }
}

impl TestServer {
    pub(crate) async fn start() -> Self {
        Self::with(Config::default()).await
    }

    pub(crate) async fn with(config: Config) -> Self {
        let config = Config { user_token: Some("user".to_owned()), ..config };
        Self { running: Server::start(config).await.expect("a free port") }
    }

    /// Permits the service account `default/reader` to read the namespace `default`.
    pub(crate) async fn bind_reader(&self) {
        let binding = json!({
            "metadata": {"name": "readers"},
            "roleRef": {"kind": "ClusterRole", "name": "view"},
            "subjects": [{"kind": "ServiceAccount", "name": "reader"}],
        });
        let bindings = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings";
        self.post(bindings, &binding).await.expect(201);
    }

    /// Sends a request and returns the response before its body.
    pub(crate) async fn open(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> http::Response<Incoming> {
        let stream = TcpStream::connect(self.running.addr()).await.expect("the server listens");
        let (mut sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.expect("HTTP/1.1");
        tokio::spawn(connection.with_upgrades());
        let method = Method::from_bytes(method.as_bytes()).expect("a method");
        let mut request = Request::builder().method(method).uri(path).header("host", "test");
        if !headers.iter().any(|(name, _)| *name == "authorization") {
            request =
                request.header("authorization", format!("Bearer {}", self.running.admin_token()));
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(Bytes::from(body.to_owned()))).expect("a request");
        sender.send_request(request).await.expect("a response")
    }

    pub(crate) async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Reply {
        let response = self.open(method, path, headers, body).await;
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.expect("a whole body").to_bytes();
        let text = String::from_utf8(bytes.to_vec()).expect("text");
        let json = serde_json::from_str(&text).unwrap_or_default();
        Reply { status: parts.status, headers: parts.headers, text, json }
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.send("GET", path, &[], "").await
    }

    pub(crate) async fn delete(&self, path: &str, body: &str) -> Reply {
        self.send("DELETE", path, &[("content-type", "application/json")], body).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Reply {
        self.send("POST", path, &[("content-type", "application/json")], &body.to_string()).await
    }

    pub(crate) async fn put(&self, path: &str, body: &Value) -> Reply {
        self.send("PUT", path, &[("content-type", "application/json")], &body.to_string()).await
    }

    pub(crate) async fn merge(&self, path: &str, body: &Value) -> Reply {
        self.send(
            "PATCH",
            path,
            &[("content-type", "application/merge-patch+json")],
            &body.to_string(),
        )
        .await
    }

    /// Opens a watch and expects a stream.
    pub(crate) async fn watch(&self, path: &str) -> Watch {
        let response = self.open("GET", path, &[], "").await;
        assert_eq!(response.status(), StatusCode::OK);
        Watch::new(response.into_body())
    }

    /// Reads an object until `done` returns true. The loop has no fixed wait between reads.
    pub(crate) async fn until(&self, path: &str, done: impl Fn(&Reply) -> bool) -> Reply {
        let wait = async {
            loop {
                let reply = self.get(path).await;
                if done(&reply) {
                    return reply;
                }
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(TIMEOUT, wait).await.expect("the expected state within the timeout")
    }
}

/// The events of a watch.
pub(crate) struct Watch {
    body: Incoming,
    rest: Vec<u8>,
}

impl Watch {
    pub(crate) fn new(body: Incoming) -> Self {
        Self { body, rest: Vec::new() }
    }

    /// Returns the next event, or `None` at the end of the stream.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        let wait = async {
            loop {
                if let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
                    let line: Vec<u8> = self.rest.drain(..=end).collect();
                    return Some(serde_json::from_slice(&line).expect("one event in each line"));
                }
                let frame = self.body.frame().await?.expect("a whole stream");
                if let Ok(data) = frame.into_data() {
                    self.rest.extend_from_slice(&data);
                }
            }
        };
        tokio::time::timeout(TIMEOUT, wait).await.expect("an event or the end of the stream")
    }

    /// Returns the next line, or `None` at the end of the stream.
    pub(crate) async fn line(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=end).collect();
                return Some(String::from_utf8_lossy(&line[..end]).into_owned());
            }
            let frame = self.body.frame().await?.ok()?;
            if let Ok(data) = frame.into_data() {
                self.rest.extend_from_slice(&data);
            }
        }
    }

    /// Returns whether the stream ends before the timeout, with or without an error.
    pub(crate) async fn ended(&mut self) -> bool {
        let wait = async {
            loop {
                match self.body.frame().await {
                    None | Some(Err(_)) => return true,
                    Some(Ok(_)) => {}
                }
            }
        };
        tokio::time::timeout(TIMEOUT, wait).await.unwrap_or_default()
    }

    /// Returns the types and names of the next `count` events.
    pub(crate) async fn take(&mut self, count: usize) -> Vec<String> {
        let mut events = Vec::new();
        for _ in 0..count {
            let event = self.next().await.expect("another event");
            let name = event["object"]["metadata"]["name"].as_str().unwrap_or_default();
            events.push(format!("{} {name}", event["type"].as_str().expect("a type")));
        }
        events
    }
}

pub(crate) fn config_map(name: &str) -> Value {
    serde_json::json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name }, "data": { "a": "1" },
    })
}

/// The collection that most tests use.
pub(crate) const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
