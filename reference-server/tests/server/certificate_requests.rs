//! `CertificateSigningRequest` objects: their user, their approval, and the permissions for both.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kubeproof_reference_server::{Config, Controllers, TokenUser};
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use rstest::rstest;
use serde_json::{Value, json};

use crate::support::{Reply, TestServer};

const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
const CLIENT: &str = "kubernetes.io/kube-apiserver-client";
const KUBELET: &str = "kubernetes.io/kube-apiserver-client-kubelet";

fn request(signer: &str, organization: &str, common_name: &str, usages: &[&str]) -> Value {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::OrganizationName, organization);
    params.distinguished_name.push(DnType::CommonName, common_name);
    let key = KeyPair::generate().expect("a key");
    let pem = params.serialize_request(&key).and_then(|it| it.pem()).expect("a request");
    json!({
        "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
        // If a create records no manager, later updates record none.
        "metadata": {"name": "r", "labels": {"a": "b"}},
        "spec": {"request": STANDARD.encode(pem), "signerName": signer, "usages": usages},
    })
}

fn decision(kind: &str) -> Value {
    json!({"status": {"conditions": [{"type": kind, "status": "True", "reason": "Test"}]}})
}

fn is_signed(reply: &Reply) -> bool {
    reply.json["status"]["certificate"].is_string()
}

#[tokio::test]
async fn the_server_sets_the_user() {
    let server = TestServer::start().await;
    let mut body = request("example.com/s", "devs", "jane", &["client auth"]);
    body["spec"]["username"] = "root".into();
    body["spec"]["groups"] = json!(["system:masters"]);
    body["spec"]["extra"] = json!({"a": ["b"]});
    body["status"] = json!({"certificate": "QQ=="});
    let created = server.post(REQUESTS, &body).await.expect(201).json;
    assert_eq!(created["spec"]["username"], "kubeproof-admin");
    assert_eq!(created["spec"]["groups"], json!(["system:masters", "system:authenticated"]));
    assert_eq!(created["spec"].get("extra"), None);
    assert_eq!(created["status"], json!({}));

    let change = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"username": "root"}});
    let changed = server.merge(&format!("{REQUESTS}/r"), &change).await.expect(200).json;
    assert_eq!(changed["spec"], created["spec"]);
    assert_eq!(changed["metadata"]["labels"], json!({"a": "b"}));
}

#[rstest]
#[case(CLIENT, "devs", "jane", &["client auth"])]
#[case(KUBELET, "system:nodes", "system:node:n", &["client auth", "digital signature"])]
#[tokio::test]
async fn an_approved_request_is_signed(
    #[case] signer: &str,
    #[case] organization: &str,
    #[case] name: &str,
    #[case] usages: &[&str],
) {
    let server = TestServer::start().await;
    server.post(REQUESTS, &request(signer, organization, name, usages)).await.expect(201);
    let path = format!("{REQUESTS}/r");
    // The administrator may approve nodes, so the server has approved that request.
    if signer == CLIENT {
        server.merge(&format!("{path}/approval"), &decision("Approved")).await.expect(200);
    }
    let signed = server.until(&path, is_signed).await.json;
    let owners = signed["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    let signer = owners.iter().find(|it| it["manager"] == "kube-controller-manager");
    assert!(signer.is_some(), "{signed}");
    let certificate = signed["status"]["certificate"].as_str().unwrap_or_default();
    let pem = STANDARD.decode(certificate).expect("base64");
    assert!(pem.starts_with(b"-----BEGIN CERTIFICATE-----"));
}

#[tokio::test]
async fn a_signer_rejects_wrong_usages() {
    let server = TestServer::start().await;
    server.post(REQUESTS, &request(CLIENT, "devs", "jane", &["server auth"])).await.expect(201);
    let path = format!("{REQUESTS}/r");
    server.merge(&format!("{path}/approval"), &decision("Approved")).await.expect(200);
    let failed = |reply: &Reply| reply.json["status"]["conditions"][1]["type"] == "Failed";
    let failed = server.until(&path, failed).await.json;
    let condition = &failed["status"]["conditions"][1];
    assert_eq!(condition["reason"], "SignerValidationFailure");
    assert!(condition["lastTransitionTime"].is_string(), "{condition}");
}

#[tokio::test]
async fn decisions_need_the_approval_and_permission() {
    let jane = TokenUser { token: "jane".into(), name: "jane".into(), ..TokenUser::default() };
    let config = Config { users: vec![jane], controllers: Controllers::None, ..Config::default() };
    let server = TestServer::with(config).await;
    server.post(REQUESTS, &request(CLIENT, "devs", "jane", &["client auth"])).await.expect(201);
    let path = format!("{REQUESTS}/r");
    server.merge(&format!("{path}/status"), &decision("Approved")).await.rejected(422, "Invalid");

    let role = |resources: &[&str], verbs: &[&str]| {
        json!({
            "apiGroups": ["certificates.k8s.io"], "resources": resources, "verbs": verbs,
        })
    };
    let group = "/apis/rbac.authorization.k8s.io/v1";
    let requests = "certificatesigningrequests";
    let parts = [format!("{requests}/approval"), format!("{requests}/status")];
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let rules = json!([role(&parts, &["patch"])]);
    let body = json!({"metadata": {"name": "approver"}, "rules": rules});
    server.post(&format!("{group}/clusterroles"), &body).await.expect(201);
    let binding = json!({
        "metadata": {"name": "approver"},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "approver",
        },
        "subjects": [{"kind": "User", "name": "jane", "apiGroup": "rbac.authorization.k8s.io"}],
    });
    server.post(&format!("{group}/clusterrolebindings"), &binding).await.expect(201);
    let headers =
        [("content-type", "application/merge-patch+json"), ("authorization", "Bearer jane")];
    let approve = async || {
        let body = decision("Approved").to_string();
        server.send("PATCH", &format!("{path}/approval"), &headers, &body).await
    };
    approve().await.rejected(403, "Forbidden");
    let body = decision("Failed").to_string();
    let reply = server.send("PATCH", &format!("{path}/status"), &headers, &body).await;
    reply.rejected(403, "Forbidden");

    let mut signers = role(&["signers"], &["approve"]);
    signers["resourceNames"] = json!(["kubernetes.io/*"]);
    let change = json!({"rules": [rules[0], signers]});
    server.merge(&format!("{group}/clusterroles/approver"), &change).await.expect(200);
    approve().await.expect(200);
}

#[tokio::test]
async fn no_client_gets_the_group_of_administrators() {
    let server = TestServer::start().await;
    let body = request(CLIENT, "system:masters", "jane", &["client auth"]);
    let reply = server.post(REQUESTS, &body).await.rejected(403, "Forbidden");
    assert!(reply.text.contains("system:masters"), "{}", reply.text);
    let other = request("example.com/s", "system:masters", "jane", &["client auth"]);
    server.post(REQUESTS, &other).await.expect(201);
}

#[tokio::test]
async fn nobody_owns_the_spec() {
    let server = TestServer::start().await;
    let body = request("example.com/s", "devs", "jane", &["client auth"]);
    let created = server.post(REQUESTS, &body).await.expect(201).json;
    let owned = &created["metadata"]["managedFields"][0]["fieldsV1"];
    assert_eq!(*owned, json!({"f:metadata": {"f:labels": {".": {}, "f:a": {}}}}));
}
