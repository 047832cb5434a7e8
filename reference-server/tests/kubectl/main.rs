//! kubectl with the reference server. The oldest tested version is 1.20, which requests OpenAPI v2
//! as protobuf. Since about 1.32 kubectl sends typed commands (`create configmap NAME`) as
//! protobuf. All versions send objects from files as JSON.
//!
//! Without kubectl on `PATH` the tests are skipped and print a message. With
//! `KUBEPROOF_REQUIRE_KUBECTL=1` a missing kubectl is a failure. `KUBEPROOF_KUBECTLS` names
//! additional programs, separated by colons, the oldest first.

mod certificates;
mod session;
mod streams;
mod support;

use std::process::Stdio;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Child;
use tokio::time::timeout;

use crate::support::{DEADLINE, Kubectl};

fn config_map(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name},
        "data": {"a": "1", "b": "2"},
    })
}

fn deployment(containers: &Value) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {
            "replicas": 2, "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}}, "spec": {"containers": containers},
            },
        },
    })
}

#[tokio::test]
async fn kubectl_creates_shows_and_deletes() {
    let Some(kubectl) = Kubectl::start().await else { return };
    assert_eq!(kubectl.create(&config_map("one")).await, "configmap/one created\n");
    let again = kubectl.fail(&["create", "-f", "-"], &config_map("one").to_string()).await;
    assert!(again.contains("AlreadyExists"), "{again}");

    let table = kubectl.run(&["get", "cm", "-o", "wide"]).await;
    let rows: Vec<Vec<&str>> =
        table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["NAME", "DATA", "AGE"]);
    assert_eq!(rows[1][..2], ["one", "2"]);
    assert_eq!(kubectl.value("configmap/one", ".data.a").await, "1");

    kubectl
        .create(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}}))
        .await;
    assert_eq!(kubectl.run(&["get", "cm", "--namespace", "other"]).await, "");
    let missing = kubectl.fail(&["get", "cm", "none"], "").await;
    assert_eq!(missing.trim(), "Error from server (NotFound): configmaps \"none\" not found");

    assert_eq!(kubectl.run(&["delete", "cm", "one"]).await, "configmap \"one\" deleted\n");
    kubectl.fail(&["get", "cm", "one"], "").await;
    kubectl.run(&["delete", "namespace", "other"]).await;
    kubectl.fail(&["get", "namespace", "other"], "").await;
}

#[tokio::test]
async fn kubectl_applies_a_changed_file() {
    let Some(kubectl) = Kubectl::start().await else { return };
    let two = json!([{"name": "a", "image": "a:1"}, {"name": "b", "image": "b:1"}]);
    assert_eq!(kubectl.apply(&deployment(&two)).await, "deployment.apps/web created\n");
    assert_eq!(kubectl.apply(&deployment(&two)).await, "deployment.apps/web unchanged\n");
    kubectl.run(&["scale", "deployment", "web", "--replicas", "5"]).await;

    let one = json!([{"name": "b", "image": "b:2"}]);
    assert_eq!(kubectl.apply(&deployment(&one)).await, "deployment.apps/web configured\n");
    let containers = ".spec.template.spec.containers[*]['name','image']";
    assert_eq!(kubectl.value("deployment/web", containers).await, "b b:2");
    assert_eq!(kubectl.value("deployment/web", ".spec.replicas").await, "2");

    let dry = kubectl
        .run_with(&["apply", "--dry-run=server", "-f", "-"], &deployment(&two).to_string())
        .await;
    assert!(dry.contains("configured (server dry run)"), "{dry}");
    assert_eq!(kubectl.value("deployment/web", containers).await, "b b:2");

    let mut unknown = config_map("x");
    unknown["bogus"] = json!(1);
    let rejected = kubectl.fail(&["apply", "-f", "-"], &unknown.to_string()).await;
    assert!(rejected.contains("unknown field \"bogus\""), "{rejected}");
}

#[tokio::test]
async fn kubectl_applies_on_the_server_and_shows_differences() {
    let Some(kubectl) = Kubectl::start().await else { return };
    let apply = ["apply", "--server-side", "-f", "-"];
    let created = kubectl.run_with(&apply, &config_map("shared").to_string()).await;
    assert_eq!(created, "configmap/shared serverside-applied\n");

    let mut other = config_map("shared");
    other["data"] = json!({"a": "9", "c": "3"});
    let second = ["apply", "--server-side", "--field-manager", "second", "-f", "-"];
    let rejected = kubectl.fail(&second, &other.to_string()).await;
    assert!(rejected.contains(".data.a"), "{rejected}");
    let forced = [&second[..], &["--force-conflicts"]].concat();
    kubectl.run_with(&forced, &other.to_string()).await;
    let data: Value =
        serde_json::from_str(&kubectl.value("configmap/shared", ".data").await).unwrap();
    assert_eq!(data, json!({"a": "9", "b": "2", "c": "3"}));

    let kept = other.clone();
    other["data"]["c"] = json!("4");
    let diff = ["diff", "--server-side", "--field-manager", "second", "-f", "-"];
    kubectl.run_with(&diff, &kept.to_string()).await;
    let output = kubectl.output(&diff, &other.to_string()).await;
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1), "{shown}");
    assert!(shown.contains("-  c: \"3\"") && shown.contains("+  c: \"4\""), "{shown}");
    assert_eq!(kubectl.value("configmap/shared", ".data.c").await, "3");
}

#[tokio::test]
async fn kubectl_generates_objects() {
    for kubectl in Kubectl::start_all().await {
        // kubectl 1.20 creates budgets in policy/v1beta1, which Kubernetes 1.25 removed.
        let budget = "create poddisruptionbudget one --selector=a=b --min-available=1";
        let budget = (kubectl.minor().await > 20).then_some(budget);
        let commands = [
            "create namespace other",
            "create configmap one --from-literal=a=b",
            "create secret generic one --from-literal=a=b",
            "create serviceaccount one",
            "create deployment web --image=a:1",
            "create service clusterip web --tcp=80:8080",
            "create role one --verb=get --resource=pods",
            "create rolebinding one --role=one --user=someone",
            "create clusterrole one --verb=get --resource=pods",
            "create clusterrolebinding one --clusterrole=one --user=someone",
            "auth can-i get pods",
            "auth can-i --list",
        ];
        for command in commands.into_iter().chain(budget) {
            kubectl.run(&command.split(' ').collect::<Vec<_>>()).await;
        }
        let version = kubectl.name();
        assert_eq!(kubectl.value("configmap/one", ".data.a").await, "b", "{version}");
        assert_eq!(kubectl.value("secret/one", ".data.a").await, "Yg==", "{version}");
        let ports = ".spec.ports[0]['port','targetPort']";
        assert_eq!(kubectl.value("service/web", ports).await, "80 8080", "{version}");
        let image = ".spec.template.spec.containers[0].image";
        assert_eq!(kubectl.value("deployment/web", image).await, "a:1", "{version}");
        let again = kubectl.fail(&["create", "configmap", "one"], "").await;
        assert!(again.contains("already exists"), "{version}: {again}");
    }
}

#[tokio::test]
async fn kubectl_sends_three_types_of_patches() {
    let Some(kubectl) = Kubectl::start().await else { return };
    kubectl.create(&config_map("one")).await;
    let patch = async |object: &str, kind: &str, patch: &Value| {
        kubectl.run(&["patch", object, "--type", kind, "--patch", &patch.to_string()]).await
    };
    patch("configmap/one", "json", &json!([{"op": "add", "path": "/data/c", "value": "3"}])).await;
    patch("configmap/one", "merge", &json!({"data": {"a": null}})).await;
    let data: Value = serde_json::from_str(&kubectl.value("configmap/one", ".data").await).unwrap();
    assert_eq!(data, json!({"b": "2", "c": "3"}));

    kubectl.create(&deployment(&json!([{"name": "a", "image": "a:1"}]))).await;
    let sidecar =
        json!({"spec": {"template": {"spec": {"containers": [{"name": "b", "image": "b:1"}]}}}});
    patch("deployment/web", "strategic", &sidecar).await;
    let names = kubectl.value("deployment/web", ".spec.template.spec.containers[*].name").await;
    assert_eq!(names.split(' ').collect::<std::collections::BTreeSet<_>>(), ["a", "b"].into());

    let failing = json!([{"op": "test", "path": "/data/b", "value": "no"}]).to_string();
    let rejected =
        kubectl.fail(&["patch", "cm", "one", "--type", "json", "--patch", &failing], "").await;
    assert!(rejected.contains("invalid") || rejected.contains("Invalid"), "{rejected}");
}

#[tokio::test]
async fn kubectl_labels_and_scales() {
    let Some(kubectl) = Kubectl::start().await else { return };
    kubectl.create(&config_map("one")).await;
    kubectl.create(&config_map("two")).await;
    assert_eq!(kubectl.run(&["label", "cm", "one", "tier=fe"]).await, "configmap/one labeled\n");
    let by_label =
        async |selector: &str| kubectl.run(&["get", "cm", "-o", "name", "-l", selector]).await;
    assert_eq!(by_label("tier in (fe,be)").await, "configmap/one\n");
    assert_eq!(by_label("tier!=fe").await, "configmap/two\n");
    let by_field =
        kubectl.run(&["get", "cm", "-o", "name", "--field-selector", "metadata.name=two"]).await;
    assert_eq!(by_field, "configmap/two\n");

    kubectl.create(&deployment(&json!([{"name": "a", "image": "a:1"}]))).await;
    let scaled = kubectl
        .run(&["scale", "deployment", "web", "--replicas", "4", "--current-replicas", "2"])
        .await;
    assert_eq!(scaled, "deployment.apps/web scaled\n");
    assert_eq!(kubectl.value("deployment/web", ".spec.replicas").await, "4");
}

#[tokio::test]
async fn kubectl_watches_and_waits() {
    let Some(kubectl) = Kubectl::start().await else { return };
    let mut command = kubectl.command(&["get", "cm", "--watch", "--output-watch-events"]);
    let mut watch: Child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    let mut sees = async |event: &str| loop {
        let line = timeout(DEADLINE, lines.next_line())
            .await
            .unwrap_or_else(|_| panic!("no {event} is shown"));
        let line = line.unwrap().expect("the watch ended");
        if line.split_whitespace().take(2).eq([event, "seen"]) {
            return;
        }
    };
    // Each step waits for the previous one, so the first list of the watch can arrive at any time.
    kubectl.create(&config_map("seen")).await;
    sees("ADDED").await;
    kubectl.run(&["label", "cm", "seen", "a=b"]).await;
    sees("MODIFIED").await;
    let wait = kubectl.command(&["wait", "--for=delete", "cm/seen", "--timeout=60s"]).output();
    let (waited, _) = tokio::join!(timeout(DEADLINE, wait), kubectl.run(&["delete", "cm", "seen"]));
    sees("DELETED").await;
    watch.kill().await.unwrap();

    // kubectl observed the deletion, or the object was already absent.
    let waited = waited.expect("kubectl wait hangs").unwrap();
    let complaint = String::from_utf8_lossy(&waited.stderr).into_owned();
    assert!(waited.status.success() || complaint.contains("NotFound"), "{complaint}");
}

#[tokio::test]
async fn kubectl_explains_built_in_and_custom_resources() {
    let Some(kubectl) = Kubectl::start().await else { return };
    let resources = kubectl.run(&["api-resources", "--no-headers"]).await;
    let deployments = resources.lines().find(|line| line.starts_with("deployments ")).unwrap();
    let words: Vec<_> = deployments.split_whitespace().collect();
    assert_eq!(words, ["deployments", "deploy", "apps/v1", "true", "Deployment"]);
    let explained = kubectl.run(&["explain", "pod.spec.containers.ports"]).await;
    assert!(explained.contains("containerPort") && explained.contains("<integer>"), "{explained}");
    let explained = kubectl.run(&["explain", "configmap"]).await;
    assert!(
        explained.contains("Configuration for programs") && explained.contains("Values by key."),
        "{explained}"
    );

    kubectl.create(&widgets()).await;
    kubectl
        .run(&["wait", "--for=condition=Established", "crd/widgets.example.com", "--timeout=60s"])
        .await;
    let widget = json!({
        "apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"},
        "spec": {"size": 3},
    });
    assert_eq!(kubectl.apply(&widget).await, "widget.example.com/w created\n");
    let table = kubectl.run(&["get", "wg"]).await;
    let rows: Vec<Vec<&str>> =
        table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows, [["NAME", "SIZE"], ["w", "3"]]);
    let explained = kubectl.run(&["explain", "widget.spec.size"]).await;
    assert!(explained.contains("how big it is"), "{explained}");
}

fn widgets() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {
                "plural": "widgets", "singular": "widget", "kind": "Widget", "shortNames": ["wg"],
            },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": {
                        "size": {"type": "integer", "description": "how big it is"},
                    }},
                }}},
                "additionalPrinterColumns": [{
                    "name": "Size", "type": "integer", "jsonPath": ".spec.size",
                }],
            }],
        },
    })
}
