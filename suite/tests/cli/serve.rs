//! `kubeproof serve`.

use std::fs;
use std::io;
use std::net::{TcpStream, UdpSocket};
use std::path::Path;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore};

use crate::program::kubeproof;
use crate::server::{TestServer, USER_TOKEN};

#[test]
fn faults_are_listed_and_an_unknown_name_gets_a_suggestion() {
    let output = kubeproof(&["serve", "--list-faults"]).with(0);
    assert!(output.stdout.lines().count() > 40);
    assert!(output.stdout.contains("put-creates"), "{}", output.stdout);
    let output = kubeproof(&["serve", "--fault", "put-create"]).with(2);
    assert!(output.stderr.contains("did you mean \"put-creates\"?"), "{}", output.stderr);
    let output = kubeproof(&["serve", "--fault", "xyzzy"]).with(2);
    let expected = "; `kubeproof serve --list-faults` prints all faults";
    assert!(output.stderr.contains(expected), "{}", output.stderr);
}

#[test]
fn an_unknown_version_of_kubernetes_gets_the_known_ones() {
    let output = kubeproof(&["serve", "--kubernetes-version", "1.20"]).with(2);
    assert!(output.stderr.contains("possible values: 1.35, 1.36"), "{}", output.stderr);
}

#[cfg(unix)]
#[test]
fn the_kubeconfig_exists_when_the_server_is_ready_and_is_private() {
    use std::os::unix::fs::PermissionsExt as _;

    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("kubeconfig");
    fs::write(&path, "an older file that is readable by all").expect("written");
    let _server = TestServer::start(&["--kubeconfig-out", path.to_str().expect("a path")]);
    let kubeconfig = fs::read_to_string(&path).expect("a kubeconfig");
    assert!(kubeconfig.contains("current-context"), "{kubeconfig}");
    assert!(!kubeconfig.contains(USER_TOKEN), "{kubeconfig}");
    assert_eq!(fs::metadata(&path).expect("its mode").permissions().mode() & 0o777, 0o600);
}

#[cfg(unix)]
#[test]
fn a_signal_stops_the_server_with_exit_code_0() {
    for name in ["INT", "TERM"] {
        let mut server = TestServer::start(&[]);
        crate::server::signal(&server.process, name);
        assert_eq!(server.process.wait().expect("it ends").code(), Some(0), "{name}");
    }
}

#[test]
fn tokens_are_neither_empty_nor_shared() {
    let empty = kubeproof(&["serve", "--token", ""]).with(2);
    assert!(empty.stderr.contains("expected a token, got an empty text"), "{}", empty.stderr);
    let shared = kubeproof(&["serve", "--token", "t", "--viewer-token", "t"]).with(2);
    let expected =
        "error: --token and --viewer-token are equal; each user needs a token of its own";
    assert!(shared.stderr.contains(expected), "{}", shared.stderr);
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("users").display().to_string();
    fs::write(&file, "t,jane,1\n").expect("written");
    let users = kubeproof(&["serve", "--user-token", "t", "--token-auth-file", &file]).with(2);
    assert!(users.stderr.contains("the token of \"jane\""), "{}", users.stderr);
}

/// The server does not know the names of its files.
#[test]
fn errors_about_files_name_them() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("policy.yaml").display().to_string();
    fs::write(&file, "{apiVersion: v1, kind: Pod, spec: {}}").expect("written");
    let audit = ["serve", "--audit-log-path", "-", "--audit-policy-file", &file];
    let audit = kubeproof(&audit).with(2);
    let expected = format!("error: {file}: expected a Policy of audit.k8s.io/v1, found a \"Pod\"");
    assert!(audit.stderr.starts_with(&expected), "{}", audit.stderr);
    let ca = kubeproof(&["serve", "--client-ca-file", &file]).with(2);
    let expected = format!("error: {file}: expected PEM with a certificate");
    assert!(ca.stderr.starts_with(&expected), "{}", ca.stderr);
    let directory = kubeproof(&["serve", "--data-dir", &file]).with(2);
    assert!(directory.stderr.contains(&file), "{}", directory.stderr);
}

/// Other machines reach a server on all interfaces by names that it does not know.
#[test]
fn clients_accept_the_names_of_tls_san() {
    let dir = tempfile::tempdir().expect("a directory");
    let kubeconfig = dir.path().join("kubeconfig");
    let names = ["--tls-san", "api.example,10.1.2.3", "--tls-san", "fd00::1"];
    let path = kubeconfig.to_str().expect("a path");
    let listen = ["--listen", "0.0.0.0:0", "--kubeconfig-out", path];
    let server = TestServer::start(&[&names[..], &listen].concat());
    let address = server.url.strip_prefix("https://").expect("TLS").to_owned();
    let config = trusting(&kubeconfig);
    let handshake = |name: &str| handshake(&address, &config, name);
    let own = UdpSocket::bind("0.0.0.0:0").and_then(|socket| {
        socket.connect("192.0.2.1:9")?;
        Ok(socket.local_addr()?.ip().to_string())
    });
    // A machine without a network has no address.
    let own = own.unwrap_or_else(|_| "127.0.0.1".to_owned());
    for name in ["api.example", "10.1.2.3", "fd00::1", "localhost", "127.0.0.1", &own] {
        handshake(name).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    let error = handshake("other.example").expect_err("another name").to_string();
    assert!(error.contains("not valid for name"), "{error}");
    let both = ["serve", "--tls-san", "a", "--tls-cert-file", "a", "--tls-private-key-file", "b"];
    assert!(kubeproof(&both).with(2).stderr.contains("cannot be used with"));
    let wrong = kubeproof(&["serve", "--tls-san", "https://api.example"]).with(2);
    assert!(wrong.stderr.contains("expected a host name or an address"), "{}", wrong.stderr);
}

/// Returns a client configuration with the authority of a kubeconfig.
fn trusting(kubeconfig: &Path) -> Arc<ClientConfig> {
    let text = fs::read(kubeconfig).expect("a kubeconfig");
    let config: Value = serde_json::from_slice(&text).expect("JSON");
    let data = &config["clusters"][0]["cluster"]["certificate-authority-data"];
    let pem = STANDARD.decode(data.as_str().expect("an authority")).expect("base64");
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(&pem).expect("PEM")).expect("an authority");
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider);
    let builder = builder.with_safe_default_protocol_versions().expect("TLS");
    Arc::new(builder.with_root_certificates(roots).with_no_client_auth())
}

fn handshake(address: &str, config: &Arc<ClientConfig>, name: &str) -> io::Result<()> {
    let name = ServerName::try_from(name.to_owned()).expect("a name");
    let mut client = ClientConnection::new(Arc::clone(config), name).map_err(io::Error::other)?;
    let mut stream = TcpStream::connect(address)?;
    while client.is_handshaking() {
        client.complete_io(&mut stream)?;
    }
    Ok(())
}

#[test]
fn an_address_in_use_is_an_error() {
    let server = TestServer::start(&[]);
    let address = server.url.strip_prefix("http://").expect("an address");
    let output = kubeproof(&["serve", "--listen", address]).with(2);
    assert!(output.stderr.contains("choose another address"), "{}", output.stderr);
}
