//! The versions of Kubernetes that a server can have.

use kubeproof_reference_server::{Config, KubernetesVersion};
use rstest::rstest;
use serde_json::json;

use crate::support::TestServer;

const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies";

#[rstest]
#[case(KubernetesVersion::V1_35, "35", false)]
#[case(KubernetesVersion::V1_36, "36", true)]
#[tokio::test]
async fn a_server_has_the_resources_of_its_version(
    #[case] version: KubernetesVersion,
    #[case] minor: &str,
    #[case] has_policies: bool,
) {
    let server = TestServer::with(Config { version, node: true, ..Config::default() }).await;
    let reply = server.get("/version").await.expect(200);
    assert_eq!((reply.text_at("/major"), reply.text_at("/minor")), ("1", minor));
    assert!(reply.text_at("/gitVersion").starts_with(&format!("v{version}.0")), "{}", reply.text);
    let node = server.get("/api/v1/nodes/kubeproof").await.expect(200);
    let kubelet = node.text_at("/status/nodeInfo/kubeletVersion");
    assert!(kubelet.starts_with(&format!("v{version}.")), "{kubelet}");

    assert_eq!(server.get(POLICIES).await.status.is_success(), has_policies);
    let group = server.get("/apis/admissionregistration.k8s.io/v1").await.expect(200);
    assert_eq!(group.text.contains("\"mutatingadmissionpolicies\""), has_policies);
    let openapi = server.get("/openapi/v2").await.expect(200);
    assert_eq!(openapi.json["info"]["version"], version.as_str());
    let definitions = &openapi.json["definitions"];
    let policy = "io.k8s.api.admissionregistration.v1.MutatingAdmissionPolicy";
    assert_eq!(definitions[policy].is_object(), has_policies);
    let driver = &definitions["io.k8s.api.storage.v1.CSIDriverSpec"]["properties"];
    assert_eq!(driver["preventPodSchedulingIfMissing"].is_object(), has_policies);
    assert!(driver["attachRequired"].is_object());
}

#[rstest]
#[case(KubernetesVersion::V1_35, false)]
#[case(KubernetesVersion::V1_36, true)]
#[tokio::test]
async fn objects_have_the_fields_of_the_version(
    #[case] version: KubernetesVersion,
    #[case] has_field: bool,
) {
    let server = TestServer::with(Config { version, ..Config::default() }).await;
    let driver = json!({
        "metadata": {"name": "d"}, "spec": {"preventPodSchedulingIfMissing": true},
    });
    let created = server.post("/apis/storage.k8s.io/v1/csidrivers", &driver).await.expect(201);
    // Its feature is off by default, so the version that has the field removes it, too.
    assert!(created.json["spec"]["preventPodSchedulingIfMissing"].is_null());
    assert_eq!(created.headers.contains_key("warning"), !has_field);
}

#[tokio::test]
async fn new_fields_of_containers_are_kept() {
    let server = TestServer::start().await;
    let container = json!({
        "name": "c", "image": "i", "restartPolicy": "Never",
        "restartPolicyRules": [
            {"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}},
        ],
        "env": [{"name": "A", "valueFrom": {"fileKeyRef": {
            "volumeName": "v", "path": "f", "key": "k", "optional": false,
        }}}],
    });
    let pod = json!({
        "metadata": {"name": "p"},
        "spec": {"hostnameOverride": "h", "containers": [container]},
    });
    let path = "/api/v1/namespaces/default/pods?fieldValidation=Strict";
    let created = server.post(path, &pod).await.expect(201).json;
    let spec = &created["spec"];
    assert_eq!(spec["hostnameOverride"], "h");
    let field = |name: &str| &spec["containers"][0][name];
    assert_eq!(field("restartPolicyRules"), &container["restartPolicyRules"]);
    assert_eq!(field("env"), &container["env"]);
}

#[rstest]
#[case(KubernetesVersion::V1_35, "workloadRef", "schedulingGroup", true)]
#[case(KubernetesVersion::V1_36, "schedulingGroup", "workloadRef", false)]
#[tokio::test]
async fn pods_and_templates_have_the_fields_of_the_version(
    #[case] version: KubernetesVersion,
    #[case] known: &str,
    #[case] unknown: &str,
    #[case] is_on: bool,
) {
    let server = TestServer::with(Config { version, ..Config::default() }).await;
    let mut spec = json!({"containers": [{"name": "c", "image": "i"}]});
    spec["workloadRef"] = json!({"name": "w", "podGroup": "g"});
    spec["schedulingGroup"] = json!({"podGroupName": "g"});
    let pod = json!({"metadata": {"name": "p"}, "spec": spec});
    let created = server.post("/api/v1/namespaces/default/pods", &pod).await.expect(201);
    assert_eq!(created.json["spec"][known].is_object(), is_on, "{}", created.text);
    assert!(created.json["spec"][unknown].is_null(), "{}", created.text);
    let warning = created.headers["warning"].to_str().expect("a text");
    assert!(warning.contains(&format!("unknown field \\\"spec.{unknown}\\\"")), "{warning}");

    // The version that lacks the field does not validate it, either.
    spec[unknown] = json!("no object");
    let labels = json!({"a": "b"});
    let template = json!({"metadata": {"labels": labels}, "spec": spec});
    let selector = json!({ "matchLabels": labels });
    let set =
        json!({"metadata": {"name": "s"}, "spec": {"selector": selector, "template": template}});
    let path = "/apis/apps/v1/namespaces/default/replicasets";
    let created = server.post(path, &set).await.expect(201).json;
    let spec = &created["spec"]["template"]["spec"];
    assert_eq!((spec[known].is_object(), spec[unknown].is_null()), (is_on, true), "{created}");
}

#[tokio::test]
async fn null_means_absent() {
    let server = TestServer::start().await;
    let pod = json!({
        "metadata": {
            "name": "p", "creationTimestamp": null, "labels": null, "ownerReferences": null,
        },
        "spec": {
            "volumes": null, "nodeSelector": null, "imagePullSecrets": null,
            "securityContext": null,
            "containers": [{"name": "c", "image": "i", "ports": null, "env": null}],
        },
    });
    let path = "/api/v1/namespaces/default/pods?fieldValidation=Strict";
    let spec = server.post(path, &pod).await.expect(201).json["spec"].clone();
    assert_eq!(spec["securityContext"], json!({}));
    for field in ["volumes", "nodeSelector", "imagePullSecrets"] {
        assert_eq!(spec.get(field), None);
    }
    let pod = json!({"metadata": {"name": "q"}, "spec": {"containers": null}});
    let rejected = server.post(path, &pod).await.expect(422);
    assert_eq!(rejected.text_at("/details/causes/0/field"), "spec.containers");
}
