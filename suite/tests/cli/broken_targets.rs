//! Targets that cannot be tested.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::Value;

use crate::program::{Finished, command, kubeproof};
use crate::server::{TOKEN, TestServer};

#[track_caller]
fn assert_one_message(output: &Finished) {
    assert_eq!(output.stdout, "");
    assert!(output.stderr.starts_with("error: "), "{}", output.stderr);
    assert_eq!(output.stderr.lines().count(), 1, "{}", output.stderr);
}

#[test]
fn a_wrong_token_ends_with_3() {
    let server = TestServer::start(&[]);
    let output = kubeproof(&["run", "--server", &server.url, "--token", "sesame-open"]).with(3);
    assert!(output.stderr.contains("rejects the credential"), "{}", output.stderr);
    assert!(output.stderr.contains("is the token right"), "{}", output.stderr);
    assert!(!output.stderr.contains("sesame-open"), "{}", output.stderr);
    assert_one_message(&output);
    let output = kubeproof(&["run", "--server", &server.url]).with(3);
    assert!(
        output.stderr.contains("403 Forbidden; use --token, --token-file"),
        "{}",
        output.stderr
    );
}

#[test]
fn a_closed_port_ends_with_3() {
    let free = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("its address");
    let output = kubeproof(&["run", "--server", &format!("http://{free}"), "--token", "t"]).with(3);
    assert!(output.stderr.contains("cannot be reached"), "{}", output.stderr);
    assert!(output.stderr.contains("does the server run?"), "{}", output.stderr);
    assert_one_message(&output);
    assert_one_message(&kubeproof(&["run", "--server", "ftp://localhost"]).with(2));
}

#[test]
fn an_untrusted_certificate_ends_with_3() {
    let dir = tempfile::tempdir().expect("a directory");
    let kubeconfig = dir.path().join("kubeconfig").display().to_string();
    let server = TestServer::start(&["--tls", "--kubeconfig-out", &kubeconfig]);
    assert!(server.url.starts_with("https://"));
    let output = kubeproof(&[&["run"], &server.target()[..]].concat()).with(3);
    assert!(output.stderr.contains("certificate"), "{}", output.stderr);
    let one = ["--only", "get/*@configmaps.v1", "-q"];
    kubeproof(&[&["run", "--insecure-skip-tls-verify"], &server.target()[..], &one].concat())
        .with(0);
    kubeproof(&[&["run", "--kubeconfig", &kubeconfig], &one[..]].concat()).with(0);
}

/// As with kubectl, an option replaces the setting of the file.
#[test]
fn options_replace_the_settings_of_a_kubeconfig() {
    let dir = tempfile::tempdir().expect("a directory");
    let kubeconfig = dir.path().join("kubeconfig").display().to_string();
    let _server = TestServer::start(&["--kubeconfig-out", &kubeconfig]);
    let run = ["run", "-q", "--only", "get/*@configmaps.v1", "--kubeconfig", &kubeconfig];
    kubeproof(&run).with(0);
    let other = kubeproof(&[&run[..], &["--token", "of-nobody"]].concat()).with(3);
    assert!(other.stderr.contains("is the token or the client certificate"), "{}", other.stderr);
    let mut variable = command(&run);
    let variable = variable.env("KUBEPROOF_TOKEN", "of-nobody").output().expect("the binary runs");
    assert_eq!(variable.status.code(), Some(3));
    for option in ["--certificate-authority", "--token-file"] {
        let missing = kubeproof(&[&run[..], &[option, "none.pem"]].concat()).with(2);
        assert!(missing.stderr.contains("none.pem"), "{option}: {}", missing.stderr);
    }
}

#[test]
fn a_server_that_is_no_kubernetes_api_ends_with_3() {
    let missing = "404 Not Found\r\nContent-Type: text/plain";
    let page = "200 OK\r\nContent-Type: text/html";
    let login = "302 Found\r\nLocation: https://login.example/start";
    let json = "200 OK\r\nContent-Type: application/json";
    let of_kubernetes = "does not look like a Kubernetes API";
    for (head, body, expected) in [
        (missing, "<p>hello</p>", "GET /apis returned 404"),
        (page, "<p>hello</p>", "GET /apis returned 200 with text/html"),
        (login, "", "GET /apis returned 302 to https://login.example/start"),
        (json, r#"{"hello": "world"}"#, "GET /apis returned 200 with JSON of another kind"),
        (json, "{}", "GET /apis returned 200 with JSON of another kind"),
    ] {
        assert_strange(head, body, &[of_kubernetes, expected]);
    }
}

/// All requests have one cause, so the run ends before it reports the cause for each case.
#[test]
fn a_server_that_fails_every_request_ends_with_3() {
    let head = "500 Internal Server Error\r\nContent-Type: text/plain";
    assert_strange(head, "panic", &["all requests fail", "GET /apis returned 500"]);
}

/// More requests would show nothing, and take seconds.
#[test]
fn a_server_that_is_no_kubernetes_api_gets_few_requests() {
    let status = r#"{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404}"#;
    for (head, body) in [
        ("404 Not Found\r\nContent-Type: text/plain", "404 page not found"),
        ("404 Not Found\r\nContent-Type: application/json", status),
        ("200 OK\r\nContent-Type: text/html", "<p>hello</p>"),
        ("200 OK\r\nContent-Type: application/json", r#"{"hello": "world"}"#),
    ] {
        let (url, lines) = start_recording_server(head, body);
        let run = ["run", "--server", &url, "--token", "t", "--second-token", "u"];
        let output = kubeproof(&run).with(3);
        assert!(output.stderr.contains("does not look like a Kubernetes API"), "{output:?}");
        let lines = lines.lock().expect("no panic");
        assert!(lines.len() <= 6, "{lines:#?}");
    }
    let server = TestServer::start(&[]);
    let url = format!("{}/wrong-prefix", server.url);
    let output = kubeproof(&["run", "--server", &url, "--token", TOKEN]).with(3);
    let expected = "/wrong-prefix does not look like a Kubernetes API: GET /apis returned 404";
    assert!(output.stderr.contains(expected), "{}", output.stderr);
}

/// Even if the user names a subject: its collection shows whether the server is an API.
#[track_caller]
fn assert_strange(head: &'static str, body: &'static str, expected: &[&str]) {
    let dir = tempfile::tempdir().expect("a directory");
    let json = dir.path().join("report.json").display().to_string();
    let url = start_server_with(head, body);
    for subject in [&[][..], &["--subject", "example.org/v1/things"]] {
        let arguments = ["run", "--server", &url, "--json", &json];
        let output = kubeproof(&[&arguments[..], subject].concat()).with(3);
        let first = output.stderr.lines().next().unwrap_or_default().to_owned();
        assert!(expected.iter().all(|text| first.contains(text)), "{first}");
        let report: Value =
            serde_json::from_slice(&std::fs::read(&json).expect("a report")).expect("JSON");
        assert_eq!(report["results"].as_array().map(Vec::len), Some(0));
    }
}

/// The credential must not reach another server.
#[test]
fn redirects_to_other_servers_are_not_followed() {
    let other = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = other.local_addr().expect("its address");
    let head = format!("307 Temporary Redirect\r\nLocation: http://{address}/api/v1");
    let url = start_server_with(head.leak(), "");
    let output = kubeproof(&["run", "--server", &url, "--token", "secret"]).with(3);
    assert!(output.stderr.contains(&format!("307 to http://{address}")), "{}", output.stderr);
    other.set_nonblocking(true).expect("a setting of the socket");
    assert!(other.accept().is_err(), "the other server received a connection");
}

/// A loop of redirects ends, and requests of discovery are few.
#[test]
fn redirects_to_themselves_are_bounded() {
    let url = start_server_with("307 Temporary Redirect\r\nLocation: /api", "");
    let output = kubeproof(&["run", "--server", &url]).with(3);
    assert!(output.stderr.contains("GET /apis returned 307 to /api"), "{}", output.stderr);
}

/// Starts a server with one response to every request. It closes the connection after each.
pub(crate) fn start_server_with(head: &'static str, body: &'static str) -> String {
    start_recording_server(head, body).0
}

/// Also returns the first lines of the requests.
fn start_recording_server(
    head: &'static str,
    body: &'static str,
) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("its address"));
    let lines: Arc<Mutex<Vec<String>>> = Arc::default();
    let received = Arc::clone(&lines);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let lines = Arc::clone(&lines);
            thread::spawn(move || respond(stream, head, body, &lines));
        }
    });
    (url, received)
}

fn respond(mut stream: TcpStream, head: &str, body: &str, lines: &Mutex<Vec<String>>) {
    let mut request = vec![0; 64 << 10];
    let response = format!(
        "HTTP/1.1 {head}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    // The client may have closed the connection.
    if let Ok(length) = stream.read(&mut request) {
        let request = String::from_utf8_lossy(&request[..length]);
        let line = request.lines().next().unwrap_or_default().to_owned();
        lines.lock().expect("no panic").push(line);
        let _ = stream.write_all(response.as_bytes());
    }
}
