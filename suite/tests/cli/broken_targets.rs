//! Targets that cannot be tested, and one that answers the same to everything.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread;

use serde_json::Value;

use crate::kubeproof::kubeproof;
use crate::served::Served;

#[test]
fn a_wrong_token_ends_with_3_and_says_so() {
    let server = Served::start(&[]);
    let ended = kubeproof(&["run", "--server", &server.url, "--token", "sesame-open"]).with(3);
    assert!(ended.stderr.contains("does not accept the credential"), "{}", ended.stderr);
    assert!(ended.stderr.contains("is the token right"), "{}", ended.stderr);
    assert!(!ended.stderr.contains("sesame-open"), "{}", ended.stderr);
    let ended = kubeproof(&["run", "--server", &server.url]).with(3);
    assert!(ended.stderr.contains("403 Forbidden; give a token"), "{}", ended.stderr);
}

#[test]
fn a_port_where_nothing_listens_ends_with_3() {
    let free = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("its address");
    let ended = kubeproof(&["run", "--server", &format!("http://{free}"), "--token", "t"]).with(3);
    assert!(ended.stderr.contains("cannot be reached"), "{}", ended.stderr);
    assert!(ended.stderr.contains("does the server run?"), "{}", ended.stderr);
}

#[test]
fn a_certificate_that_nobody_vouches_for_ends_with_3() {
    let dir = tempfile::tempdir().expect("a directory");
    let kubeconfig = dir.path().join("kubeconfig").display().to_string();
    let server = Served::start(&["--tls", "--kubeconfig-out", &kubeconfig]);
    assert!(server.url.starts_with("https://"));
    let ended = kubeproof(&[&["run"], &server.target()[..]].concat()).with(3);
    assert!(ended.stderr.contains("certificate"), "{}", ended.stderr);
    let one = ["--only", "get/*@configmaps.v1", "-q"];
    kubeproof(&[&["run", "--insecure-skip-tls-verify"], &server.target()[..], &one].concat()).with(0);
    kubeproof(&[&["run", "--kubeconfig", &kubeconfig], &one[..]].concat()).with(0);
}

/// It offers nothing by discovery, but that alone is no way out: the cases about discovery itself find it wrong.
#[test]
fn a_server_that_answers_braces_to_everything_fails() {
    let dir = tempfile::tempdir().expect("a directory");
    let json = dir.path().join("report.json");
    let url = answering("{}");
    kubeproof(&["run", "--server", &url, "--json", &json.display().to_string()]).with(1);
    let report: Value = serde_json::from_slice(&std::fs::read(&json).expect("a report")).expect("JSON");
    assert!(report["summary"]["fail"].as_u64() > Some(0), "{}", report["summary"]);
    assert_eq!(report["interrupted"], false);
}

/// A server that has one answer, on one connection each.
fn answering(body: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("its address"));
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || answer(stream, body));
        }
    });
    url
}

fn answer(mut stream: TcpStream, body: &str) {
    let mut request = vec![0; 64 << 10];
    let answer = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    // A client that has gone away is the client's business.
    if stream.read(&mut request).is_ok() {
        let _ = stream.write_all(answer.as_bytes());
    }
}
