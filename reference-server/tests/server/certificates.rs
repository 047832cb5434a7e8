//! Client certificates, given serving certificates, token files and the mode that allows all.

use std::sync::Arc;

use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use kubeproof_reference_server::{
    AuthorizationMode, Config, Fault, Faults, Running, Server, ServingCertificate, Tls, TokenUser,
};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, KeyPair,
};
use rstest::rstest;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::support::TestServer;

/// An authority and the certificates that it signs.
struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().expect("a key");
        Self(CertifiedIssuer::self_signed(params, key).expect("an authority"))
    }

    /// Signs a certificate for a client or for `localhost`.
    fn sign(&self, name: &str, groups: &[&str], usage: ExtendedKeyUsagePurpose) -> Signed {
        let mut params = CertificateParams::new(["localhost".to_owned()]).expect("a name");
        params.extended_key_usages = vec![usage];
        params.distinguished_name = DistinguishedName::new();
        // The generator keeps one value for each type, so the second group has a custom type.
        let organization = DnType::CustomDnType(vec![2, 5, 4, 10]);
        for (kind, group) in [DnType::OrganizationName, organization].into_iter().zip(groups) {
            params.distinguished_name.push(kind, *group);
        }
        if !name.is_empty() {
            params.distinguished_name.push(DnType::CommonName, name);
        }
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.0).expect("a certificate");
        Signed { chain_pem: certificate.pem() + &self.0.pem(), key_pem: key.serialize_pem() }
    }
}

struct Signed {
    chain_pem: String,
    key_pem: String,
}

/// A client with or without a certificate, which trusts the authority of the server.
fn client(ca_pem: &str, identity: Option<&Signed>) -> TlsConnector {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(ca_pem.as_bytes()).expect("PEM")).expect("a root");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("TLS 1.2 and 1.3")
        .with_root_certificates(roots);
    let config = match identity {
        None => builder.with_no_client_auth(),
        Some(Signed { chain_pem, key_pem }) => {
            let chain = CertificateDer::pem_slice_iter(chain_pem.as_bytes());
            let chain = chain.collect::<Result<_, _>>().expect("certificates");
            let key = PrivateKeyDer::from_pem_slice(key_pem.as_bytes()).expect("a key");
            builder.with_client_auth_cert(chain, key).expect("a client certificate")
        }
    };
    TlsConnector::from(Arc::new(config))
}

/// Asks the server for the user of a request. Returns the code and the `UserInfo`.
async fn whoami(server: &Running, client: &TlsConnector, token: &str) -> (u16, Value) {
    let stream = TcpStream::connect(server.addr()).await.expect("the server listens");
    let name = ServerName::try_from("localhost").expect("a name");
    let stream = client.connect(name, stream).await.expect("a handshake");
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.expect("HTTP/1.1");
    tokio::spawn(connection);
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let request = http::Request::post("/apis/authentication.k8s.io/v1/selfsubjectreviews")
        .header("host", "localhost")
        .header("content-type", "application/json")
        .header("authorization", token)
        .body(Full::new(Bytes::from(review.to_string())))
        .expect("a request");
    let response = sender.send_request(request).await.expect("a response");
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.expect("a body").to_bytes();
    let review: Value = serde_json::from_slice(&body).expect("JSON");
    (status, review["status"]["userInfo"].clone())
}

async fn server(client_ca: &Authority, faults: Faults) -> Running {
    let tls = Tls { client_ca_pem: Some(client_ca.0.pem()), ..Tls::default() };
    let config =
        Config { tls: Some(tls), admin_token: "admin".to_owned(), faults, ..Config::default() };
    Server::start(config).await.expect("a server")
}

#[rstest]
#[case::server(Faults::none())]
#[case::proxy(Faults::from(Fault::from_name("put-creates").expect("a fault")))]
#[tokio::test]
async fn a_certificate_names_the_user_and_the_groups(#[case] faults: Faults) {
    let authority = Authority::new("clients");
    let server = server(&authority, faults).await;
    let ca_pem = server.ca_pem().expect("a certificate authority");
    let jane = authority.sign("jane", &["a", "b"], ExtendedKeyUsagePurpose::ClientAuth);
    let jane = client(ca_pem, Some(&jane));
    for token in ["", "Bearer admin", "Bearer wrong"] {
        let (code, user) = whoami(&server, &jane, token).await;
        assert_eq!((code, &user["username"]), (201, &json!("jane")), "{token}: {user}");
        assert_eq!(user["groups"], json!(["a", "b", "system:authenticated"]));
        let id = &user["extra"]["authentication.kubernetes.io/credential-id"][0];
        assert!(id.as_str().is_some_and(|id| id.starts_with("X509SHA256=")), "{user}");
    }
}

/// As in kube-apiserver, the handshake succeeds, and a token can still authenticate.
#[tokio::test]
async fn another_certificate_is_rejected_unless_a_token_is_valid() {
    let authority = Authority::new("clients");
    let server = server(&authority, Faults::none()).await;
    let ca_pem = server.ca_pem().expect("a certificate authority");
    // rustls sends a certificate only if the server named its issuer.
    let other = Authority::new("clients").sign("jane", &[], ExtendedKeyUsagePurpose::ClientAuth);
    let purpose = authority.sign("jane", &[], ExtendedKeyUsagePurpose::ServerAuth);
    for wrong in [&other, &purpose] {
        let client = client(ca_pem, Some(wrong));
        assert_eq!(whoami(&server, &client, "").await.0, 401);
        assert_eq!(whoami(&server, &client, "Bearer wrong").await.0, 401);
        let (code, user) = whoami(&server, &client, "Bearer admin").await;
        assert_eq!((code, &user["username"]), (201, &json!("kubeproof-admin")));
    }
}

#[tokio::test]
async fn no_certificate_and_no_name_are_anonymous() {
    let authority = Authority::new("clients");
    let server = server(&authority, Faults::none()).await;
    let ca_pem = server.ca_pem().expect("a certificate authority");
    let nameless = authority.sign("", &["system:masters"], ExtendedKeyUsagePurpose::ClientAuth);
    for identity in [None, Some(&nameless)] {
        assert_eq!(whoami(&server, &client(ca_pem, identity), "").await.0, 403);
    }
}

#[tokio::test]
async fn a_given_certificate_is_served() {
    let authority = Authority::new("servers");
    let Signed { chain_pem, key_pem } =
        authority.sign("server", &[], ExtendedKeyUsagePurpose::ServerAuth);
    let certificate = Some(ServingCertificate { chain_pem, key_pem });
    let config = Config {
        tls: Some(Tls { certificate, ..Tls::default() }),
        admin_token: "admin".to_owned(),
        ..Config::default()
    };
    let server = Server::start(config).await.expect("a server");
    assert_eq!(server.ca_pem(), Some(authority.0.pem().as_str()));
    assert!(server.url().starts_with("https://"));
    let client = client(&authority.0.pem(), None);
    assert_eq!(whoami(&server, &client, "Bearer admin").await.0, 201);
}

#[tokio::test]
async fn a_server_that_allows_everything_rejects_anonymous_requests() {
    let user = TokenUser { token: "t".into(), name: "jane".into(), ..TokenUser::default() };
    let config = Config {
        authorization: AuthorizationMode::AlwaysAllow,
        users: vec![user],
        ..Config::default()
    };
    let server = TestServer::with(config).await;
    let path = "/api/v1/namespaces/default/configmaps";
    server.send("GET", path, &[("authorization", "Bearer t")], "").await.expect(200);
    server.send("GET", path, &[("authorization", "")], "").await.rejected(401, "Unauthorized");
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
        "spec": {"user": "x", "resourceAttributes": {"verb": "delete", "resource": "pods"}},
    });
    let reply = server.post("/apis/authorization.k8s.io/v1/subjectaccessreviews", &review).await;
    assert_eq!(reply.expect(201).json["status"]["allowed"], true);
}
