//! The builder, many servers in one process, and objects that exist from the start.

use kubeproof_reference_server::{Config, LoadError, Server, StartError};
use rstest::rstest;
use serde_json::json;

use crate::support::{CONFIG_MAPS, TestServer, config_map};

/// The number of servers side by side.
const SERVERS: usize = 200;

#[tokio::test]
async fn many_servers_are_independent() {
    let mut servers = Vec::new();
    for number in 0..SERVERS {
        let running = Server::builder().user("user", "user", &[]).start().await.expect("a server");
        let server = TestServer { running };
        let name = format!("of-{number}");
        server.post(CONFIG_MAPS, &config_map(&name)).await.expect(201);
        servers.push((name, server));
    }
    for (name, server) in &servers {
        assert_eq!(server.get(CONFIG_MAPS).await.names(), [name]);
    }
}

const WIDGETS: &str = "
apiVersion: v1
kind: List
items:
- {apiVersion: example.com/v1, kind: Widget, metadata: {name: a, namespace: shop}, size: 1}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: shop}
data: {a: '1'}
---
---
{apiVersion: v1, kind: ConfigMap, metadata: {generateName: free-}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: shop}}
";

const DEFINITION: &str = r#"{
    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com", "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": {
            "openAPIV3Schema": {"type": "object", "properties": {"size": {"type": "integer"}}}
        }}]
    }
}"#;

#[tokio::test]
async fn definitions_and_namespaces_are_applied_first() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("definition.json");
    std::fs::write(&file, DEFINITION).expect("written");
    let builder = Server::builder().manifest(WIDGETS).load(&file);
    let server = TestServer { running: builder.start().await.expect("a server") };
    let widget = server.get("/apis/example.com/v1/namespaces/shop/widgets/a").await.expect(200);
    assert_eq!(widget.json["size"], 1);
    assert_eq!(widget.text_at("/metadata/managedFields/0/manager"), "kubeproof-load");
    let settings = server.get("/api/v1/namespaces/shop/configmaps/settings").await.expect(200);
    assert_eq!(settings.json["data"], json!({"a": "1"}));
    let generated = server.get(CONFIG_MAPS).await;
    assert!(generated.names()[0].starts_with("free-"), "{}", generated.text);
}

#[rstest]
#[case::syntax("a: [", "manifest 1: expected YAML or JSON:")]
#[case::text("text", "manifest 1: document 1: expected an object with apiVersion and kind")]
#[case::kind(
    "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n---\n{apiVersion: v1, kind: Robot}",
    "manifest 1: document 2, Robot \"\": the server has no kind \"Robot\" in \"v1\""
)]
#[case::invalid(
    "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, dada: {}}",
    "manifest 1: document 1, ConfigMap \"a\": "
)]
#[case::namespace(
    "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: none}}",
    "manifest 1: document 1, ConfigMap \"none/a\": namespaces \"none\" not found"
)]
#[tokio::test]
async fn errors_name_the_document_and_the_object(#[case] manifest: &str, #[case] expected: &str) {
    let error = Server::builder().manifest(manifest).start().await.expect_err("an error");
    assert!(error.to_string().starts_with(expected), "{error}");
}

#[tokio::test]
async fn a_missing_file_is_an_error() {
    let error = Server::builder().load("no/such.yaml").build().expect_err("an error");
    assert!(matches!(error, StartError::Load(LoadError::Read { .. })), "{error}");
    assert!(error.to_string().starts_with("cannot read no/such.yaml"), "{error}");
}

#[tokio::test]
async fn the_builder_sets_the_options_of_the_configuration() {
    let builder = Server::builder().admin_token("t").node().user("u", "jane", &["g"]);
    let Config { admin_token, node, users, tls, history, .. } =
        builder.tls().configure(|config| config.history = 7).build().expect("a configuration");
    assert_eq!((admin_token.as_str(), node, tls.is_some(), history), ("t", true, true, 7));
    assert_eq!(
        (users[0].name.as_str(), users[0].groups.as_slice()),
        ("jane", &["g".to_owned()][..])
    );
}
