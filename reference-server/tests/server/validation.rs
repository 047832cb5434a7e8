//! The causes of rejections, and what the server does with metadata, as in kube-apiserver.

use rstest::rstest;
use serde_json::{Value, json};

use crate::support::{Reply, TestServer};

const AUTOSCALERS: &str = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers";
const CLAIMS: &str = "/api/v1/namespaces/default/persistentvolumeclaims";
const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const PODS: &str = "/api/v1/namespaces/default/pods";
const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles";

fn named(spec: &Value) -> Value {
    json!({"metadata": {"name": "a", "labels": {"a": "b"}}, "spec": spec})
}

/// Returns the fields and the messages of the causes.
fn causes(reply: &Reply) -> Vec<(String, String)> {
    let causes = reply.json["details"]["causes"].as_array().expect("causes");
    let text = |cause: &Value, field: &str| cause[field].as_str().expect("a text").to_owned();
    causes.iter().map(|cause| (text(cause, "field"), text(cause, "message"))).collect()
}

#[rstest]
#[case::volumes(PODS, json!({
    "volumes": [{"name": "v", "secret": {}, "configMap": {}, "hostPath": {"path": ""}}],
    "containers": [{"name": "C", "image": ""}],
    "restartPolicy": "Odd",
}), &[
    "spec.volumes[0].hostPath.path",
    "spec.volumes[0].secret",
    "spec.volumes[0].configMap",
    "spec.containers[0].name",
    "spec.containers[0].image",
    "spec.restartPolicy",
])]
#[case::label_keys(PODS, json!({
    "containers": [{"name": "c", "image": "i"}],
    "topologySpreadConstraints": [{
        "maxSkew": 1, "topologyKey": "t", "whenUnsatisfiable": "DoNotSchedule", "minDomains": 0,
        "labelSelector": {"matchLabels": {"a": "b"}}, "matchLabelKeys": ["a"],
    }],
}), &["spec.topologySpreadConstraints[0].minDomains", "spec.topologySpreadConstraints[0][0]"])]
#[case::claim(CLAIMS, json!({
    "accessModes": [], "storageClassName": "A", "volumeMode": "Odd",
    "dataSource": {"kind": "PersistentVolumeClaim", "name": ""},
}), &[
    "spec.accessModes",
    "spec.resources[storage]",
    "spec.storageClassName",
    "spec.volumeMode",
    "spec.dataSource.name",
    "spec.dataSourceRef.name",
])]
#[case::autoscaler(AUTOSCALERS, json!({
    "behavior": {"scaleUp": {"policies": []}, "scaleDown": {"policies": [{}]}},
    "metrics": [{"type": "Pods", "pods": {}, "resource": {}}],
    "minReplicas": -1,
}), &[
    "spec.minReplicas",
    "spec.maxReplicas",
    "spec.scaleTargetRef.kind",
    "spec.scaleTargetRef.name",
    "spec.scaleTargetRef.apiVersion",
    "spec.metrics[0].pods.metric.name",
    "spec.metrics[0].pods.target.type",
    "spec.metrics[0].pods.target.type",
    "spec.metrics[0].pods.target.averageValue",
    "spec.metrics[0].resource",
    "spec.behavior.scaleUp.policies",
    "spec.behavior.scaleDown.policies[0].type",
    "spec.behavior.scaleDown.policies[0].value",
    "spec.behavior.scaleDown.policies[0].periodSeconds",
])]
#[tokio::test]
async fn causes_follow_the_checks_of_kube_apiserver(
    #[case] path: &str,
    #[case] spec: Value,
    #[case] expected: &[&str],
) {
    let server = TestServer::start().await;
    let reply = server.post(path, &named(&spec)).await.rejected(422, "Invalid");
    let fields: Vec<_> = causes(&reply).into_iter().map(|(field, _)| field).collect();
    assert_eq!(fields, expected, "{}", reply.text);
}

/// The key of the item has a published default, so the configuration is complete.
#[rstest]
#[case::deployment(
    "/apis/apps/v1/namespaces/default/deployments/a",
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "spec": {
            "selector": {"matchLabels": {"a": "b"}},
            "template": {
                "metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"image": "i"}]},
            },
        },
    }),
    "spec.template.spec.containers[0].name"
)]
#[case::owner(
    "/api/v1/namespaces/default/configmaps/a",
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "name": "a", "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p"}],
        },
    }),
    "metadata.ownerReferences.uid"
)]
#[tokio::test]
async fn validation_rejects_an_applied_item_without_its_key(
    #[case] path: &str,
    #[case] config: Value,
    #[case] field: &str,
) {
    let server = TestServer::start().await;
    let headers = [("content-type", "application/apply-patch+yaml")];
    let path = format!("{path}?fieldManager=m");
    let reply = server.send("PATCH", &path, &headers, &config.to_string()).await;
    let reply = reply.rejected(422, "Invalid");
    assert_eq!(causes(&reply)[0].0, field, "{}", reply.text);
}

#[tokio::test]
async fn absent_policies_have_defaults_and_empty_ones_are_rejected() {
    let server = TestServer::start().await;
    let mut spec = json!({
        "maxReplicas": 2, "behavior": {"scaleDown": {"policies": []}},
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"},
    });
    let reply = server.post(AUTOSCALERS, &named(&spec)).await.rejected(422, "Invalid");
    let message = "Required value: must specify at least one Policy".to_owned();
    assert_eq!(causes(&reply), [("spec.behavior.scaleDown.policies".to_owned(), message)]);
    spec["behavior"] = json!({"scaleDown": {"policies": null}});
    let created = server.post(AUTOSCALERS, &named(&spec)).await.expect(201).json;
    assert_eq!(created["spec"]["behavior"]["scaleDown"]["policies"][0]["value"], 100);
    assert_eq!(created["status"], json!({"desiredReplicas": 0, "currentMetrics": null}));
}

#[tokio::test]
async fn base64_may_have_line_breaks_and_unused_bits() {
    let server = TestServer::start().await;
    let secret = json!({"metadata": {"name": "a"}, "data": {"a": "YWJ=", "b": "aGVs\nbG8="}});
    let path = "/api/v1/namespaces/default/secrets";
    let created = server.post(path, &secret).await.expect(201).json;
    assert_eq!(created["data"], json!({"a": "YWI=", "b": "aGVsbG8="}));
}

#[tokio::test]
async fn absent_lists_are_null() {
    let server = TestServer::start().await;
    let role = json!({"metadata": {"name": "a"}, "rules": []});
    let created = server.post(ROLES, &role).await.expect(201).json;
    assert_eq!(created.get("rules"), Some(&Value::Null));
    let read = server.get(&format!("{ROLES}/a")).await.expect(200).json;
    assert_eq!(read, created);
    let changed = json!({"rules": [{"verbs": ["get"], "nonResourceURLs": []}]});
    server.merge(&format!("{ROLES}/a"), &changed).await.rejected(422, "Invalid");
}

#[rstest]
#[case(json!([]))]
#[case(json!([{}]))]
#[tokio::test]
async fn empty_managed_fields_remove_all_owners(#[case] empty: Value) {
    let server = TestServer::start().await;
    let body = json!({"metadata": {"name": "a"}, "data": {"a": "1"}});
    let mut created = server.post(CONFIG_MAPS, &body).await.expect(201).json;
    assert_eq!(created["metadata"]["managedFields"][0]["manager"], "unknown");
    created["metadata"]["managedFields"] = empty;
    let path = format!("{CONFIG_MAPS}/a");
    let changed = server.put(&path, &created).await.expect(200).json;
    assert_eq!(changed["metadata"].get("managedFields"), None);
}

#[tokio::test]
async fn a_client_can_choose_the_generation_and_the_prefix() {
    let server = TestServer::start().await;
    let body = |metadata: Value| json!({"metadata": metadata});
    let wrong = body(json!({"name": "a", "generation": -1}));
    let reply = server.post(CONFIG_MAPS, &wrong).await.rejected(422, "Invalid");
    assert_eq!(causes(&reply)[0].0, "metadata.generation");
    let right = body(json!({"name": "a", "generation": 7, "generateName": "a-"}));
    let mut stored = server.post(CONFIG_MAPS, &right).await.expect(201).json;
    assert_eq!(stored["metadata"]["generation"], 7);
    let path = format!("{CONFIG_MAPS}/a");
    stored["metadata"]["generation"] = 9.into();
    assert_eq!(server.put(&path, &stored).await.expect(200).json["metadata"]["generation"], 7);
    stored["metadata"]["generateName"] = "A_".into();
    let reply = server.put(&path, &stored).await.rejected(422, "Invalid");
    assert_eq!(causes(&reply)[0].0, "metadata.generateName");
}

#[rstest]
#[case("authorization.k8s.io/v1/subjectaccessreviews", json!({
    "user": "u", "resourceAttributes": {"verb": "get"},
}), true)]
#[case("authorization.k8s.io/v1/selfsubjectaccessreviews", json!({
    "resourceAttributes": {"verb": "get"},
}), true)]
#[case("authentication.k8s.io/v1/tokenreviews", json!({"token": "user"}), false)]
#[tokio::test]
async fn a_review_has_owners(#[case] path: &str, #[case] spec: Value, #[case] is_access: bool) {
    let server = TestServer::start().await;
    let path = format!("/apis/{path}");
    let created = server.post(&path, &json!({ "spec": spec })).await.expect(201).json;
    let owned = &created["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"];
    assert_eq!(
        owned.as_object().map(serde_json::Map::len),
        spec.as_object().map(serde_json::Map::len)
    );
    let reply = server.post(&path, &json!({"metadata": {"name": "a"}, "spec": spec})).await;
    if is_access {
        assert_eq!(causes(&reply.rejected(422, "Invalid"))[0].0, "metadata");
    } else {
        reply.expect(201);
    }
}

/// The messages are those of kube-apiserver: rules are skipped if the structure is wrong, the
/// object itself is `<nil>`, and a write to the status names paths inside of the status.
#[tokio::test]
async fn causes_of_custom_resources_follow_kube_apiserver() {
    const DOORS: &str = "/apis/example.com/v1/namespaces/default/doors";
    let server = TestServer::start().await;
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    server.post(definitions, &doors()).await.expect(201);
    server.until(DOORS, |reply| reply.status == 200).await;
    let door = |spec: &Value| {
        json!({
            "apiVersion": "example.com/v1", "kind": "Door",
            "metadata": {"name": "a"}, "spec": spec,
        })
    };

    let reply = server.post(DOORS, &door(&json!({"color": 5}))).await;
    let skipped = "Invalid value: null: some validation rules were not checked because the object \
                   was invalid; correct the existing errors to complete validation";
    let expected = [
        (
            "spec.color",
            r#"Invalid value: "integer": spec.color in body must be of type string: "integer""#,
        ),
        ("spec.color", r#"Unsupported value: 5: supported values: "red", "blue""#),
        ("<nil>", skipped),
    ];
    assert_eq!(causes(&reply.rejected(422, "Invalid")), owned(&expected));

    let reply = server.post(DOORS, &door(&json!({"color": "blue"}))).await;
    let expected = [
        ("<nil>", "Invalid value: a door named a is red"),
        ("spec", r#"Invalid value: "object": no such key: size evaluating rule: has a size"#),
    ];
    assert_eq!(causes(&reply.rejected(422, "Invalid")), owned(&expected));

    let mut stored = server.post(DOORS, &door(&json!({"color": "red", "size": 1}))).await.json;
    stored["status"] = json!({"lock": "rusty"});
    let reply = server.put(&format!("{DOORS}/a/status"), &stored).await;
    let why = r#"Invalid value: "rusty": lock in body should match '^(open|closed)$'"#;
    assert_eq!(causes(&reply.rejected(422, "Invalid")), owned(&[("status.lock", why)]));
}

#[tokio::test]
async fn a_violation_in_an_unchanged_part_is_a_warning() {
    const DOORS: &str = "/apis/example.com/v1/namespaces/default/doors";
    const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let server = TestServer::start().await;
    let mut definition = server.post(DEFINITIONS, &doors()).await.expect(201).json;
    server.until(DOORS, |reply| reply.status == 200).await;
    let door = json!({
        "apiVersion": "example.com/v1", "kind": "Door",
        "metadata": {"name": "a"}, "spec": {"color": "red", "size": 1},
    });
    server.post(DOORS, &door).await.expect(201);
    let schema = &mut definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    schema["properties"]["spec"]["x-kubernetes-validations"] =
        json!([{"rule": "self.size > 5", "message": "too small"}]);
    server.put(&format!("{DEFINITIONS}/doors.example.com"), &definition).await.expect(200);

    let path = format!("{DOORS}/a");
    let reply = server.merge(&path, &json!({"metadata": {"labels": {"a": "b"}}})).await.expect(200);
    assert_eq!(reply.headers["warning"], r#"299 - "spec: Invalid value: too small""#);
    let reply = server.merge(&path, &json!({"spec": {"size": 2}})).await.rejected(422, "Invalid");
    assert_eq!(causes(&reply), owned(&[("spec", "Invalid value: too small")]));
}

fn owned(causes: &[(&str, &str)]) -> Vec<(String, String)> {
    causes.iter().map(|(field, message)| ((*field).to_owned(), (*message).to_owned())).collect()
}

fn doors() -> Value {
    let spec = json!({
        "type": "object",
        "properties": {
            "color": {"type": "string", "enum": ["red", "blue"]}, "size": {"type": "integer"},
        },
        "x-kubernetes-validations": [{"rule": "self.size > 0", "message": "has a size"}],
    });
    let status = json!({
        "type": "object",
        "properties": {"lock": {"type": "string", "pattern": "^(open|closed)$"}},
    });
    let schema = json!({
        "type": "object",
        "properties": {"spec": spec, "status": status},
        "x-kubernetes-validations": [{
            "rule": "self.metadata.name != 'a' || self.spec.color == 'red'",
            "message": "a door named a is red",
        }],
    });
    json!({
        "metadata": {"name": "doors.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "doors", "kind": "Door"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": schema}, "subresources": {"status": {}},
            }],
        },
    })
}
