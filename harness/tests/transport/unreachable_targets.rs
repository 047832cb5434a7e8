//! Tests the errors of targets that do not respond, reject the credential or are invalid.

use std::io::Write;

use kubeproof_harness::target::TlsOptions;
use kubeproof_harness::target::{Credential, TargetConfig, TargetError};
use kubeproof_harness::transport::{Client, Limits};
use rstest::rstest;
use tokio::net::TcpListener;
use tokio::time::Instant;

use crate::scripted_peer::{Act, Peer, TOKEN, ample, get, send, soon, values};

fn response(status: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{body}",
        body.len()
    )
}

#[rstest]
#[case::version("200 OK", r#"{"gitVersion": "v1.36.0"}"#, true)]
#[case::empty_object("200 OK", "{}", true)]
#[case::not_found("404 Not Found", "", false)]
#[case::forbidden("403 Forbidden", "{}", false)]
#[case::failing("500 Internal Server Error", "oh", false)]
#[tokio::test]
async fn any_response_but_401_reaches(
    #[case] status: &str,
    #[case] body: &str,
    #[case] has_version: bool,
) {
    let peer = Peer::responding(response(status, body)).await;
    let reached = peer.client().ping(ample()).await.unwrap();
    assert_eq!(reached.version.is_some(), has_version);
}

#[tokio::test]
async fn a_rejected_credential_is_reported_with_what_to_do() {
    let peer = Peer::responding(response("401 Unauthorized", "{}")).await;
    let error = peer.client().ping(ample()).await.unwrap_err();
    assert!(matches!(error, TargetError::Unauthenticated { path: "/version", .. }), "{error:?}");
    let message = error.to_string();
    assert!(message.contains("is the token right") && !message.contains(TOKEN), "{message}");
}

#[rstest]
#[case::garbage(vec![Act::Head, send("nonsense\r\n\r\n")], "no HTTP server at all?")]
#[case::hang(vec![Act::Head, Act::Hang], "sent no response")]
#[tokio::test]
async fn no_response_is_not_reached(#[case] script: Vec<Act>, #[case] advice: &str) {
    let peer = Peer::start(script).await;
    let error = peer.client().ping(soon()).await.unwrap_err();
    assert!(error.to_string().contains(advice), "{error}");
}

#[tokio::test]
async fn nobody_listening_is_not_reached() {
    let addr = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let config = TargetConfig::new(&format!("http://{addr}")).unwrap();
    let error = Client::new(&config, Limits::default()).unwrap().ping(ample()).await.unwrap_err();
    assert!(
        error.to_string().contains("refused") && error.to_string().contains("does the server run?"),
        "{error}"
    );
}

#[rstest]
#[case("host:6443", "the scheme is neither http nor https")]
#[case("127.0.0.1:6443", "it has no scheme")]
#[case("https://", "empty host")]
#[case("ftp://host", "the scheme is neither http nor https")]
#[case("https://jane:s3cr3t-t0ken@host", "it has a user name or password")]
#[case("https://jane:s3cr3t-t0ken@host:99999/x", "invalid port")]
#[case("https://host/?a=b", "it has a query")]
fn what_is_no_server_is_reported(#[case] url: &str, #[case] reason: &str) {
    let message = TargetConfig::new(url).unwrap_err().to_string();
    assert!(message.contains(reason) && !message.contains(TOKEN), "{message}");
}

#[rstest]
#[case("")]
#[case(" \n")]
#[case("two\nlines")]
fn what_is_no_token_is_reported(#[case] token: &str) {
    assert!(matches!(Credential::token(token), Err(TargetError::Token { .. })));
}

#[tokio::test]
async fn a_token_file_gives_its_token_without_the_newline() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    writeln!(file, "{TOKEN}").unwrap();
    let mut peer = Peer::responding(response("200 OK", "{}")).await;
    let mut config = peer.config();
    config.credential = Credential::token_file(file.path()).unwrap();
    let client = Client::new(&config, Limits::default()).unwrap();
    assert!(client.by_token());
    client.send(get("/x"), ample()).await;
    // Deleting a file after it was read is allowed.
    drop(file);
    client.send(get("/x"), ample()).await;
    for _ in 0..2 {
        assert_eq!(
            values(&peer.head().await, &http::header::AUTHORIZATION),
            [format!("Bearer {TOKEN}")]
        );
    }
}

#[test]
fn files_that_are_missing_or_wrong_are_named() {
    let missing = Credential::token_file("no/such/file".as_ref()).unwrap_err();
    assert!(
        missing.to_string().starts_with("cannot read the token file no/such/file: "),
        "{missing}"
    );

    let file = tempfile::NamedTempFile::new().unwrap();
    let mut config = TargetConfig::new("https://127.0.0.1:1").unwrap();
    let tls =
        TlsOptions { certificate_authority: Some(file.path().to_owned()), ..TlsOptions::default() };
    config.tls = kubeproof_harness::target::TlsConfig::Options(tls);
    let error = Client::new(&config, Limits::default()).unwrap_err().to_string();
    assert!(
        error.contains("the certificate authority cannot be used: no certificate in it"),
        "{error}"
    );
}

#[tokio::test]
async fn requests_keep_to_the_rate() {
    let peer = Peer::responding(response("200 OK", "{}")).await;
    let client = peer.client_with(Limits { max_rps: Some(50), ..Limits::default() });
    let before = Instant::now();
    for _ in 0..6 {
        client.send(get("/x"), ample()).await;
    }
    assert!(
        before.elapsed().as_millis() >= 100,
        "six requests at 50 a second take five intervals of 20 ms"
    );
    let late = client.send(get("/x"), Instant::now()).await;
    assert!(format!("{:?}", late.outcome).contains("request rate limit"), "{late:?}");
}
