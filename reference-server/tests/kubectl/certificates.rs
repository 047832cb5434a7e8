//! kubectl approves and denies requests for certificates, and uses a signed one.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use serde_json::{Value, json};

use crate::support::Kubectl;

/// Returns a request for a client certificate of jane, and its key as PEM.
fn request(name: &str) -> (Value, String) {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::OrganizationName, "developers");
    params.distinguished_name.push(DnType::CommonName, "jane");
    let key = KeyPair::generate().expect("a key");
    let pem = params.serialize_request(&key).and_then(|it| it.pem()).expect("a request");
    let request = json!({
        "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
        "metadata": {"name": name},
        "spec": {
            "request": STANDARD.encode(pem), "usages": ["client auth"], "expirationSeconds": 3600,
            "signerName": "kubernetes.io/kube-apiserver-client",
        },
    });
    (request, key.serialize_pem())
}

#[tokio::test]
async fn kubectl_gets_a_certificate_that_authenticates() {
    let Some(kubectl) = Kubectl::start().await else { return };
    let (body, key) = request("jane");
    kubectl.create(&body).await;
    let approved = kubectl.run(&["certificate", "approve", "jane"]).await;
    assert_eq!(approved, "certificatesigningrequest.certificates.k8s.io/jane approved\n");
    let signed = loop {
        let certificate = kubectl.value("csr/jane", ".status.certificate").await;
        if !certificate.is_empty() {
            break certificate;
        }
    };
    let table = kubectl.run(&["get", "csr", "jane"]).await;
    assert!(table.contains("Approved,Issued"), "{table}");

    let path = |name: &str| kubectl.home().join(name).display().to_string();
    let (certificate, key_file) = (path("jane.crt"), path("jane.key"));
    std::fs::write(&certificate, STANDARD.decode(signed).expect("base64")).expect("a file");
    std::fs::write(&key_file, key).expect("a file");
    let config = path("config");
    for arguments in [
        vec!["set-credentials", "jane", "--client-certificate", &certificate],
        vec!["set-credentials", "jane", "--client-key", &key_file],
        vec!["set-context", "jane", "--cluster", "kubeproof", "--user", "jane"],
    ] {
        let arguments = [vec!["--kubeconfig", &config, "config"], arguments].concat();
        kubectl.run(&arguments).await;
    }
    let denied = kubectl.fail(&["--context", "jane", "get", "secrets"], "").await;
    assert!(denied.contains("User \"jane\" cannot list resource \"secrets\""), "{denied}");
}

#[tokio::test]
async fn kubectl_denies_a_request() {
    let Some(kubectl) = Kubectl::start().await else { return };
    kubectl.create(&request("jane").0).await;
    let denied = kubectl.run(&["certificate", "deny", "jane"]).await;
    assert_eq!(denied, "certificatesigningrequest.certificates.k8s.io/jane denied\n");
    let both = kubectl.fail(&["certificate", "approve", "jane"], "").await;
    assert!(both.contains("already Denied"), "{both}");
    let table = kubectl.run(&["get", "csr", "jane"]).await;
    assert!(table.contains("Denied"), "{table}");
}
