//! Tests kubeconfigs: every login method, and the settings of the cluster.

use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use kubeproof_harness::exchange::{BrokenKind, Outcome};
use kubeproof_harness::target::{Credential, Overrides, TargetConfig, TlsOptions};
use kubeproof_harness::transport::{Client, Limits, Outgoing};
use rstest::rstest;
use serde_json::Value;
use tokio::time::Instant;

use crate::scripted_peer::{Act, Peer, TOKEN, ample, exact, get, send, values};
use crate::tls_server::{Setup, TlsServer};

/// A kubeconfig with the context `here` and an unusable one.
fn kubeconfig(server: &TlsServer, cluster: &str, user: &str) -> PathBuf {
    let authority = BASE64_STANDARD.encode(&server.pem[0]);
    let text = format!(
        r#"
apiVersion: v1
kind: Config
current-context: here
contexts:
- {{name: here, context: {{cluster: here, user: jane}}}}
- {{name: nowhere, context: {{cluster: nowhere, user: jane}}}}
clusters:
- name: nowhere
  cluster: {{server: "https://127.0.0.1:1"}}
- name: here
  cluster: {{certificate-authority-data: "{authority}", {cluster}}}
users:
- name: jane
  user: {user}
"#
    );
    server.file("kubeconfig", &text)
}

fn url(server: &TlsServer) -> String {
    format!("server: \"https://{}\"", server.addr)
}

async fn client(path: &Path) -> Client {
    Client::new(&TargetConfig::from_kubeconfig(Some(path), None).await.unwrap(), Limits::default())
        .unwrap()
}

/// Returns the request as the server received it.
async fn seen(client: &Client, outgoing: Outgoing) -> Value {
    let exchange = client.send(outgoing, ample()).await;
    let shown = format!("{:?} {client:?}", exchange.request);
    assert!(!shown.contains(TOKEN) && !shown.contains("uthorization"), "{shown}");
    match exchange.outcome {
        Outcome::Response(response) => response.json.unwrap().as_ref().clone(),
        Outcome::Broken(broken) => panic!("broken: {broken:?}"),
    }
}

#[rstest]
#[case::token("{token: s3cr3t-t0ken}", "Bearer s3cr3t-t0ken")]
#[case::basic("{username: jane, password: s3cr3t-t0ken}", "Basic amFuZTpzM2NyM3QtdDBrZW4=")]
#[case::token_file("{tokenFile: token}", "Bearer s3cr3t-t0ken")]
#[case::exec(
    "{exec: {apiVersion: client.authentication.k8s.io/v1, command: ./plugin, \
     interactiveMode: Never}}",
    "Bearer s3cr3t-t0ken"
)]
#[tokio::test]
async fn logins_become_an_authorization(
    #[case] user: &str,
    #[case] authorization: &str,
    #[values(get("/x"), exact("/x"))] outgoing: Outgoing,
) {
    let server = TlsServer::start(Setup::default()).await;
    server.file("token", &format!("{TOKEN}\n"));
    plugin(&server, 0);
    let client = client(&kubeconfig(&server, &url(&server), user)).await;
    assert_eq!(seen(&client, outgoing).await["authorization"], authorization);
    assert!(client.by_token());
}

/// Writes an exec plugin with this exit code.
fn plugin(server: &TlsServer, code: u8) {
    let status =
        format!(r#"{{"token": "{TOKEN}", "expirationTimestamp": "2999-01-01T00:00:00Z"}}"#);
    let credential = format!(
        r#"{{
            "apiVersion": "client.authentication.k8s.io/v1",
            "kind": "ExecCredential",
            "status": {status}
        }}"#
    );
    let path = server
        .file("plugin", &format!("#!/bin/sh\necho '{credential}'\necho sorry >&2\nexit {code}\n"));
    std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
}

#[tokio::test]
async fn a_plugin_that_fails_is_reported_without_what_it_printed() {
    let server = TlsServer::start(Setup::default()).await;
    plugin(&server, 3);
    let user = "{exec: {apiVersion: client.authentication.k8s.io/v1, command: ./plugin, \
                interactiveMode: Never}}";
    let error =
        TargetConfig::from_kubeconfig(Some(&kubeconfig(&server, &url(&server), user)), None)
            .await
            .unwrap_err();
    let message = error.to_string();
    assert!(message.contains("exit status: 3: sorry") && !message.contains(TOKEN), "{message}");
}

#[rstest]
#[tokio::test]
async fn inline_client_certificates_are_shown(
    #[values(get("/x"), exact("/x"))] outgoing: Outgoing,
) {
    let server = TlsServer::start(Setup { requires_certificate: true, ..Setup::default() }).await;
    let [certificate, key] = [1, 2].map(|index| BASE64_STANDARD.encode(&server.pem[index]));
    let user =
        format!("{{client-certificate-data: \"{certificate}\", client-key-data: \"{key}\"}}");
    let client = client(&kubeconfig(&server, &url(&server), &user)).await;
    assert_eq!(seen(&client, outgoing).await["certificate"], true);
    assert!(!client.by_token());
}

#[rstest]
#[tokio::test]
async fn impersonation_is_kept_and_the_command_line_names_the_user(
    #[values(get("/x"), exact("/x"))] outgoing: Outgoing,
) {
    let server = TlsServer::start(Setup::default()).await;
    let path = kubeconfig(&server, &url(&server), "{token: x, as: jane, as-groups: [a, b]}");
    let mut config = TargetConfig::from_kubeconfig(Some(&path), None).await.unwrap();
    for (user, expected) in [(None, "jane"), (Some("joe".to_owned()), "joe")] {
        config.impersonate = user;
        let found = seen(&Client::new(&config, Limits::default()).unwrap(), outgoing.clone()).await;
        assert_eq!(found["user"], expected);
        assert_eq!(found["groups"], serde_json::json!(["a", "b"]));
    }
}

#[rstest]
#[tokio::test]
async fn the_path_and_the_name_for_tls_are_kept(
    #[values(get("/x?a=b"), exact("/x?a=b"))] outgoing: Outgoing,
) {
    let server =
        TlsServer::start(Setup { names: vec!["kubernetes.example"], ..Setup::default() }).await;
    let cluster = format!(
        "server: \"https://{}/clusters/root:org\", tls-server-name: kubernetes.example",
        server.addr
    );
    let found = seen(&client(&kubeconfig(&server, &cluster, "{}")).await, outgoing).await;
    assert_eq!(found["target"], "/clusters/root:org/x?a=b");
    assert_eq!(found["serverName"], "kubernetes.example");
    assert_eq!(found["host"], server.addr.to_string());
}

#[rstest]
#[tokio::test]
async fn a_proxy_that_the_file_names_is_used(#[values(get("/x"), exact("/x"))] outgoing: Outgoing) {
    let server = TlsServer::start(Setup::default()).await;
    let rejection = "HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n";
    let mut proxy = Peer::start(vec![Act::Head, send(rejection)]).await;
    let cluster = format!("{}, proxy-url: \"http://{}\"", url(&server), proxy.addr);
    let exchange =
        client(&kubeconfig(&server, &cluster, "{token: x}")).await.send(outgoing, ample()).await;
    assert!(matches!(exchange.outcome, Outcome::Broken(_)), "{exchange:?}");
    let head = proxy.head().await;
    assert_eq!(head.lines().next().unwrap(), format!("CONNECT {} HTTP/1.1", server.addr));
    assert!(
        values(&head, &http::header::AUTHORIZATION).is_empty(),
        "the proxy is not shown the token"
    );
    assert_eq!(server.connections(), 0);
}

/// The proxy accepts the connection and does not respond.
#[rstest]
#[case::time_to_connect(Duration::from_millis(50), ample(), BrokenKind::Connect)]
#[case::time_of_the_request(
    Duration::from_mins(1),
    Instant::now() + Duration::from_millis(50),
    BrokenKind::NotSent
)]
#[tokio::test]
async fn only_a_connection_with_enough_time_shows_that_the_server_is_gone(
    #[case] connect_timeout: Duration,
    #[case] deadline: Instant,
    #[case] kind: BrokenKind,
) {
    let server = TlsServer::start(Setup::default()).await;
    let proxy = Peer::start(vec![Act::Head, Act::Hang]).await;
    let cluster = format!("{}, proxy-url: \"http://{}\"", url(&server), proxy.addr);
    let path = kubeconfig(&server, &cluster, "{token: x}");
    let config = TargetConfig::from_kubeconfig(Some(&path), None).await.unwrap();
    let client = Client::new(&config, Limits { connect_timeout, ..Limits::default() }).unwrap();
    match client.send(exact("/x"), deadline).await.outcome {
        Outcome::Broken(broken) => assert_eq!(broken.kind, kind, "{broken:?}"),
        Outcome::Response(response) => panic!("{response:?}"),
    }
}

#[tokio::test]
async fn contexts_are_chosen_by_name() {
    let server = TlsServer::start(Setup::default()).await;
    let path = kubeconfig(&server, &url(&server), "{}");
    let config = TargetConfig::from_kubeconfig(Some(&path), Some("nowhere")).await.unwrap();
    assert_eq!(config.display_url(), "https://127.0.0.1:1");
    let error = TargetConfig::from_kubeconfig(Some(&path), Some("elsewhere")).await.unwrap_err();
    let expected = format!(
        "the kubeconfig {} cannot be used: it has no context \"elsewhere\"; its contexts are here, \
         nowhere",
        path.display()
    );
    assert_eq!(error.to_string(), expected);
}

#[rstest]
#[case::empty("", "it has no contexts")]
#[case::no_yaml("users: [{user: {token: s3cr3t-t0ken}}", "line 1 column 8: unclosed bracket '['")]
#[case::no_current_context(
    "contexts: [{name: a, context: {cluster: c}}]",
    "it has no current context; use --context NAME; its contexts are a"
)]
#[case::unknown_cluster(
    "{current-context: a, contexts: [{name: a, context: {cluster: c}}]}",
    "its context \"a\" names the cluster \"c\", which it does not define"
)]
#[case::no_server(
    "{current-context: a, contexts: [{name: a, context: {cluster: c}}], \
     clusters: [{name: c, cluster: {}}]}",
    "its cluster \"c\" has no server"
)]
#[tokio::test]
async fn files_that_cannot_be_used_are_explained(#[case] text: &str, #[case] expected: &str) {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    let error = TargetConfig::from_kubeconfig(Some(file.path()), None).await.unwrap_err();
    let expected = format!("the kubeconfig {} cannot be used: {expected}", file.path().display());
    assert_eq!(error.to_string(), expected);
}

#[tokio::test]
async fn a_file_that_is_missing_is_named() {
    let error =
        TargetConfig::from_kubeconfig(Some("no/such/file".as_ref()), None).await.unwrap_err();
    let expected = "cannot read the kubeconfig no/such/file: No such file or directory";
    assert!(error.to_string().starts_with(expected), "{error}");
}

/// The exec plugin and the certificate of the file are not used.
#[rstest]
#[case::token(Credential::token("other").unwrap())]
#[case::token_file(Credential::TokenFile("token-file-of-the-test".into()))]
#[tokio::test]
async fn the_command_line_replaces_the_credential(
    #[case] credential: Credential,
    #[values(get("/x"), exact("/x"))] outgoing: Outgoing,
) {
    let server = TlsServer::start(Setup::default()).await;
    let credential = match credential {
        Credential::TokenFile(name) => {
            Credential::TokenFile(server.file(&name.display().to_string(), "other\n"))
        }
        other => other,
    };
    let [certificate, key] = [1, 2].map(|index| BASE64_STANDARD.encode(&server.pem[index]));
    let user = format!(
        "{{client-certificate-data: \"{certificate}\", client-key-data: \"{key}\", as: jane, \
         exec: {{apiVersion: client.authentication.k8s.io/v1, command: ./none, \
         interactiveMode: Never}}}}"
    );
    let path = kubeconfig(&server, &url(&server), &user);
    let overrides = Overrides { credential, ..Overrides::default() };
    let found = seen(&overriding(&path, &overrides).await, outgoing).await;
    assert_eq!(found["authorization"], "Bearer other");
    assert_eq!(found["certificate"], false);
    assert_eq!(found["user"], "jane");
}

#[rstest]
#[tokio::test]
async fn the_command_line_replaces_the_settings_of_tls(
    #[values(get("/x"), exact("/x"))] outgoing: Outgoing,
) {
    let server = TlsServer::start(Setup { requires_certificate: true, ..Setup::default() }).await;
    let other = TlsServer::start(Setup::default()).await;
    let [authority, certificate, key] = [("authority", 0), ("certificate", 1), ("key", 2)]
        .map(|(name, index)| server.file(name, &server.pem[index]));
    // The file trusts the authority of another server.
    let cluster = format!("server: \"https://{}\"", server.addr);
    let path = kubeconfig(&other, &cluster, "{token: s3cr3t-t0ken}");
    for (certificate_authority, insecure_skip_verify) in [(Some(authority), false), (None, true)] {
        let client_certificate = Some((certificate.clone(), key.clone()));
        let tls = TlsOptions { certificate_authority, insecure_skip_verify, client_certificate };
        let overrides = Overrides { tls, ..Overrides::default() };
        let found = seen(&overriding(&path, &overrides).await, outgoing.clone()).await;
        assert_eq!(found["certificate"], true);
        assert!(found["authorization"].is_null(), "{found}");
    }
}

async fn overriding(path: &Path, overrides: &Overrides) -> Client {
    let config = TargetConfig::from_kubeconfig_with(Some(path), None, overrides).await.unwrap();
    Client::new(&config, Limits::default()).unwrap()
}
