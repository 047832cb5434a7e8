//! etcd with TLS, and servers with TLS that share it.

use std::fs;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::KeyPair;
use reqwest::{Certificate, Client, Method};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use super::peer::EtcdServer;
use super::{MAPS, map, start, version};
use crate::program::kubeproof;
use crate::server::{TOKEN, TestServer};

const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
const PODS: &str = "/api/v1/namespaces/default/pods";

#[test]
fn etcd_requires_the_certificate_of_the_server() {
    let Some(etcd) = EtcdServer::with_tls() else { return };
    let [ca, leaf, key] = ["ca.pem", "leaf.pem", "key.pem"].map(|name| etcd.file(name));
    let identity = ["--etcd-certfile", &leaf, "--etcd-keyfile", &key];
    let trust = ["--etcd-cafile", &ca];
    let servers = [(); 2].map(|()| start(&etcd, &[&trust[..], &identity].concat()));
    servers[0].create(MAPS, &map("a", 1));
    assert_eq!(servers[1].names(MAPS), ["a"]);
    let read = servers[1].get(&format!("{MAPS}/a"));
    servers[1].request("DELETE", &format!("{MAPS}/a"), "", "200");
    let watch = format!("{MAPS}?watch=1&timeoutSeconds=1&resourceVersion={}", version(&read));
    assert_eq!(servers[0].events(&watch)[0]["type"], "DELETED");

    let serve = ["serve", "--listen", "127.0.0.1:0", "--etcd-servers", &etcd.url];
    for incomplete in [trust.to_vec(), identity.to_vec()] {
        let rejected = kubeproof(&[&serve[..], &incomplete].concat()).with(2);
        assert!(rejected.stderr.contains("etcd"), "{rejected:?}");
    }
}

/// A server with TLS, and a client that trusts it.
struct TlsServer {
    server: TestServer,
    client: Client,
    runtime: Runtime,
}

impl TlsServer {
    fn start(etcd: &EtcdServer, files: &TempDir, name: &str) -> Self {
        let path = |name: &str| files.path().join(name).to_str().expect("UTF-8").to_owned();
        let (kubeconfig, key) = (path(name), path("accounts.pem"));
        let arguments = ["--tls", "--kubeconfig-out", &kubeconfig];
        let accounts = ["--service-account-signing-key-file", &key];
        let server = start(etcd, &[&arguments[..], &accounts].concat());
        let authority = authority(Path::new(&kubeconfig));
        let _ = tokio_rustls::rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder().tls_certs_only([authority]).build().expect("a client");
        Self { server, client, runtime: Runtime::new().expect("a runtime") }
    }

    /// Sends a request, and asserts the status code. Returns the body.
    fn send(&self, method: Method, path: &str, token: &str, (body, status): (&str, u16)) -> String {
        let url = format!("{}{path}", self.server.url);
        let request = self.client.request(method, url).bearer_auth(token);
        let request = request.header("content-type", "application/json").body(body.to_owned());
        self.runtime.block_on(async {
            let response = request.send().await.expect("a response");
            let code = response.status().as_u16();
            let text = response.text().await.expect("text");
            assert_eq!(code, status, "{path}: {text}");
            text
        })
    }

    fn get(&self, path: &str, token: &str) -> String {
        self.send(Method::GET, path, token, ("", 200))
    }

    fn post(&self, path: &str, body: &Value) -> Value {
        let text = self.send(Method::POST, path, TOKEN, (&body.to_string(), 201));
        serde_json::from_str(&text).expect("JSON")
    }
}

/// Reads the authority of a kubeconfig.
fn authority(kubeconfig: &Path) -> Certificate {
    let text = fs::read(kubeconfig).expect("a kubeconfig");
    let config: Value = serde_json::from_slice(&text).expect("JSON");
    let data = &config["clusters"][0]["cluster"]["certificate-authority-data"];
    let pem = STANDARD.decode(data.as_str().expect("an authority")).expect("base64");
    Certificate::from_pem(&pem).expect("a certificate")
}

#[test]
fn servers_with_tls_share_tokens_and_forward_requests() {
    let Some(etcd) = EtcdServer::start() else { return };
    let files = tempfile::tempdir().expect("a directory");
    let key = KeyPair::generate().expect("a key").serialize_pem();
    fs::write(files.path().join("accounts.pem"), key).expect("a file");
    let servers = ["one", "two"].map(|name| TlsServer::start(&etcd, &files, name));

    servers[0].post(ACCOUNTS, &json!({"metadata": {"name": "robot"}}));
    let review = servers[0].post(&format!("{ACCOUNTS}/robot/token"), &json!({"spec": {}}));
    let token = review["status"]["token"].as_str().expect("a token");
    for server in &servers {
        server.get("/api", token);
    }

    let container = json!({"name": "c", "image": "busybox", "command": ["echo", "hello"]});
    let spec = json!({"restartPolicy": "Never", "containers": [container]});
    servers[0].post(PODS, &json!({"metadata": {"name": "p"}, "spec": spec}));
    let watch = format!("{PODS}?watch=1&timeoutSeconds=3&fieldSelector=status.phase%3DSucceeded");
    assert!(servers[1].get(&watch, TOKEN).contains("ADDED"), "the pod ends");
    for server in &servers {
        let log = server.get(&format!("{PODS}/p/log"), TOKEN);
        assert!(log.contains("hello"), "{log}");
    }
}
