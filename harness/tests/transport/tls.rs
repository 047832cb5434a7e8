//! Tests TLS: trust, client certificates and protocols.

use futures_util::future::join_all;
use kubeproof_cases::case::Identity;
use kubeproof_harness::exchange::{BrokenKind, Exchange, Outcome, Received};
use kubeproof_harness::target::TlsOptions;
use kubeproof_harness::target::{Credential, TargetConfig, TlsConfig};
use kubeproof_harness::transport::watch::Next;
use kubeproof_harness::transport::{Client, Limits, Outgoing};
use rstest::rstest;
use tokio::time::Duration;

use crate::scripted_peer::{Act, Peer, ample, exact, get, send, soon};
use crate::tls_server::{Certificate, Rejection, Setup, TlsServer, issuer};

fn client(server: &TlsServer, tls: TlsOptions) -> Client {
    let mut config = TargetConfig::new(&format!("https://{}", server.addr)).unwrap();
    config.second = Some(Credential::token("other").unwrap());
    config.tls = TlsConfig::Options(tls);
    Client::new(&config, Limits::default()).unwrap()
}

fn trusting(server: &TlsServer) -> TlsOptions {
    let certificate_authority = Some(server.file("ca.pem", &server.pem[0]));
    TlsOptions { certificate_authority, ..TlsOptions::default() }
}

fn with_certificate(server: &TlsServer) -> TlsOptions {
    let files = (server.file("client.pem", &server.pem[1]), server.file("key.pem", &server.pem[2]));
    TlsOptions { client_certificate: Some(files), ..trusting(server) }
}

fn responded(exchange: Exchange) -> Received {
    match exchange.outcome {
        Outcome::Response(response) => response,
        Outcome::Broken(broken) => panic!("broken: {broken:?}"),
    }
}

fn broken_kind(exchange: &Exchange) -> BrokenKind {
    match &exchange.outcome {
        Outcome::Broken(broken) => broken.kind,
        Outcome::Response(response) => panic!("responded: {response:?}"),
    }
}

#[rstest]
#[tokio::test]
async fn only_who_is_trusted_is_talked_to(#[values(get("/x"), exact("/x"))] outgoing: Outgoing) {
    let server = TlsServer::start(Setup::default()).await;
    let insecure = TlsOptions { insecure_skip_verify: true, ..TlsOptions::default() };
    let stranger = TlsOptions {
        certificate_authority: Some(server.file("other.pem", &issuer().pem())),
        ..TlsOptions::default()
    };
    for options in [trusting(&server), insecure] {
        assert_eq!(
            responded(client(&server, options).send(outgoing.clone(), ample()).await).status,
            200
        );
    }
    let rejected = client(&server, stranger).send(outgoing, ample()).await;
    assert_eq!(broken_kind(&rejected), BrokenKind::Tls, "{rejected:?}");
    assert!(format!("{rejected:?}").contains("invalid peer certificate"), "{rejected:?}");
}

#[rstest]
#[tokio::test]
async fn a_certificate_for_another_name_is_rejected(
    #[values(get("/x"), exact("/x"))] outgoing: Outgoing,
) {
    let server =
        TlsServer::start(Setup { names: vec!["elsewhere.example"], ..Setup::default() }).await;
    let rejected = client(&server, trusting(&server)).send(outgoing, ample()).await;
    assert_eq!(broken_kind(&rejected), BrokenKind::Tls, "{rejected:?}");
}

#[rstest]
#[tokio::test]
async fn an_expired_certificate_is_rejected(#[values(get("/x"), exact("/x"))] outgoing: Outgoing) {
    let server =
        TlsServer::start(Setup { certificate: Certificate::Expired, ..Setup::default() }).await;
    let rejected = client(&server, trusting(&server)).send(outgoing, ample()).await;
    assert_eq!(broken_kind(&rejected), BrokenKind::Tls, "{rejected:?}");
    assert!(format!("{rejected:?}").contains("expired"), "{rejected:?}");
}

/// Rejections of a server per RFC 8446: alerts 70 (protocol version) and 80 (internal error), and a
/// hello of TLS 1.0.
#[rstest]
#[case::too_old_for_it(b"\x15\x03\x01\0\x02\x02\x46".to_vec(), "ProtocolVersion")]
#[case::alert(b"\x15\x03\x03\0\x02\x02\x50".to_vec(), "InternalError")]
#[case::too_old_for_us(
    [&b"\x16\x03\x01\0\x2a\x02\0\0\x26\x03\x01"[..], &[7; 32], b"\0\0\x2f\0"].concat(),
    "peer is incompatible"
)]
#[tokio::test]
async fn a_handshake_that_fails_reports_why(
    #[case] record: Vec<u8>,
    #[case] why: &str,
    #[values(get("/x"), exact("/x"))] outgoing: Outgoing,
) {
    let peer = Peer::start(vec![Act::Send(record.into()), Act::Hang]).await;
    let mut config = TargetConfig::new(&format!("https://{}", peer.addr)).unwrap();
    config.tls =
        TlsConfig::Options(TlsOptions { insecure_skip_verify: true, ..TlsOptions::default() });
    let rejected = Client::new(&config, Limits::default()).unwrap().send(outgoing, ample()).await;
    assert_eq!(broken_kind(&rejected), BrokenKind::Tls, "{rejected:?}");
    assert!(format!("{rejected:?}").contains(why), "{rejected:?}");
}

#[tokio::test]
async fn tls_behind_http_is_reported_with_what_to_do() {
    let server = TlsServer::start(Setup::default()).await;
    let config = TargetConfig::new(&format!("http://{}", server.addr)).unwrap();
    let error = Client::new(&config, Limits::default()).unwrap().ping(ample()).await.unwrap_err();
    assert!(error.to_string().contains("is it https where http was given"), "{error}");
}

#[tokio::test]
async fn http_behind_https_is_reported_with_what_to_do() {
    let rejection = send("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
    let peer = Peer::start(vec![rejection, Act::Hang]).await;
    let mut config = TargetConfig::new(&format!("https://{}", peer.addr)).unwrap();
    config.tls =
        TlsConfig::Options(TlsOptions { insecure_skip_verify: true, ..TlsOptions::default() });
    let error = Client::new(&config, Limits::default()).unwrap().ping(ample()).await.unwrap_err();
    let expected = format!("the server does not speak TLS; use http://{}", peer.addr);
    assert!(error.to_string().contains(&expected), "{error}");
}

#[tokio::test]
async fn an_unknown_issuer_is_reported_with_the_options() {
    let server = TlsServer::start(Setup::default()).await;
    let stranger = TlsOptions {
        certificate_authority: Some(server.file("other.pem", &issuer().pem())),
        ..TlsOptions::default()
    };
    let error = client(&server, stranger).ping(ample()).await.unwrap_err().to_string();
    let expected = "no trusted authority signed its certificate; pass its authority with \
                    --certificate-authority FILE, or use --insecure-skip-tls-verify";
    assert!(error.ends_with(expected), "{error}");
}

#[rstest]
#[case::expired(Certificate::Expired, "127.0.0.1", "its certificate has expired; renew")]
#[case::early(Certificate::NotYetValid, "127.0.0.1", "is not valid yet; compare the clocks")]
#[case::authority(Certificate::Authority, "127.0.0.1", "authority (CA:TRUE); pass it with")]
#[case::name(Certificate::Good, "other.example", "has other names than the URL; use one of its")]
#[tokio::test]
async fn a_wrong_certificate_is_reported_with_what_to_do(
    #[case] certificate: Certificate,
    #[case] name: &'static str,
    #[case] expected: &str,
) {
    let setup = Setup { certificate, names: vec![name], ..Setup::default() };
    let server = TlsServer::start(setup).await;
    let error = client(&server, trusting(&server)).ping(ample()).await.unwrap_err().to_string();
    assert!(error.contains(expected), "{error}");
}

/// As Go clients do: k3s and many test servers have such certificates.
#[rstest]
#[case::good(Certificate::Authority, "127.0.0.1", "")]
#[case::expired(Certificate::ExpiredAuthority, "127.0.0.1", "certificate expired")]
#[case::name(Certificate::Authority, "other.example", "certificate not valid for name")]
#[tokio::test]
async fn an_authority_may_be_the_certificate_of_the_server(
    #[case] certificate: Certificate,
    #[case] name: &'static str,
    #[case] error: &str,
    #[values(get("/x"), exact("/x"))] outgoing: Outgoing,
) {
    let setup = Setup { certificate, names: vec![name], ..Setup::default() };
    let server = TlsServer::start(setup).await;
    let own = Some(server.file("own.pem", &server.own_pem));
    let trusting_it = TlsOptions { certificate_authority: own, ..TlsOptions::default() };
    let exchange = client(&server, trusting_it).send(outgoing.clone(), ample()).await;
    if error.is_empty() {
        assert_eq!(responded(exchange).status, 200);
    } else {
        assert_eq!(broken_kind(&exchange), BrokenKind::Tls);
        assert!(format!("{exchange:?}").contains(error), "{exchange:?}");
    }
    // Its issuer does not make it a certificate of a server.
    let rejected = client(&server, trusting(&server)).send(outgoing, ample()).await;
    assert_eq!(broken_kind(&rejected), BrokenKind::Tls, "{rejected:?}");
}

#[tokio::test]
async fn a_missing_client_certificate_is_reported_with_the_options() {
    let server = TlsServer::start(Setup { requires_certificate: true, ..Setup::default() }).await;
    let error = client(&server, trusting(&server)).ping(ample()).await.unwrap_err().to_string();
    let expected = "it requires a client certificate; use --client-certificate and --client-key";
    assert!(error.ends_with(expected), "{error}");
}

#[rstest]
#[case(vec!["h2", "http/1.1"], get("/x"), "HTTP/2")]
#[case(vec!["h2", "http/1.1"], exact("/x"), "HTTP/1.1")]
#[case(vec!["http/1.1"], get("/x"), "HTTP/1.1")]
#[case(vec![], get("/x"), "HTTP/1.1")]
#[tokio::test]
async fn http_2_is_spoken_where_it_is_offered(
    #[case] protocols: Vec<&'static str>,
    #[case] outgoing: Outgoing,
    #[case] version: &str,
) {
    let server = TlsServer::start(Setup { protocols, ..Setup::default() }).await;
    let response = responded(client(&server, trusting(&server)).send(outgoing, ample()).await);
    assert_eq!(response.version, version);
    assert_eq!(response.json.unwrap()["host"], server.addr.to_string());
}

#[rstest]
#[case(Identity::Admin, true)]
#[case(Identity::Second, false)]
#[case(Identity::Anonymous, false)]
#[case(Identity::Invalid, false)]
#[tokio::test]
async fn the_client_certificate_goes_with_the_runs_own_requests_alone(
    #[case] identity: Identity,
    #[case] recognised: bool,
    #[values(get("/x"), exact("/x"))] outgoing: Outgoing,
) {
    let server = TlsServer::start(Setup::default()).await;
    let client = client(&server, with_certificate(&server));
    // An open connection must not share its certificate.
    client.send(outgoing.clone(), ample()).await;
    let response = responded(client.send(Outgoing { identity, ..outgoing }, ample()).await);
    assert_eq!(response.json.unwrap()["certificate"], recognised);
}

#[rstest]
#[tokio::test]
async fn a_server_that_requires_a_certificate_refuses_by_tls(
    #[values(get("/x"), exact("/x"))] outgoing: Outgoing,
) {
    let server = TlsServer::start(Setup { requires_certificate: true, ..Setup::default() }).await;
    let client = client(&server, with_certificate(&server));
    assert_eq!(responded(client.send(outgoing.clone(), ample()).await).status, 200);
    let rejected =
        client.send(Outgoing { identity: Identity::Anonymous, ..outgoing }, ample()).await;
    assert_eq!(broken_kind(&rejected), BrokenKind::Tls, "{rejected:?}");
}

#[rstest]
#[case::http(vec![Act::Head, send("HTTP/1.1 400 Bad Request\r\n\r\n")])]
#[case::garbage(vec![send("hello, this is no TLS\r\n"), Act::Hang])]
#[tokio::test]
async fn what_is_no_tls_is_reported(
    #[case] script: Vec<Act>,
    #[values(get("/x"), exact("/x"))] outgoing: Outgoing,
) {
    let script = script.into_iter().filter(|act| !matches!(act, Act::Head)).collect();
    let peer = Peer::start(script).await;
    let mut config = TargetConfig::new(&format!("https://{}", peer.addr)).unwrap();
    config.tls =
        TlsConfig::Options(TlsOptions { insecure_skip_verify: true, ..TlsOptions::default() });
    let exchange = Client::new(&config, Limits::default()).unwrap().send(outgoing, ample()).await;
    assert_eq!(broken_kind(&exchange), BrokenKind::Tls, "{exchange:?}");
}

#[rstest]
#[tokio::test]
async fn a_handshake_that_hangs_is_no_connection(
    #[values(get("/x"), exact("/x"))] outgoing: Outgoing,
) {
    let mut peer = Peer::start(vec![Act::Hang]).await;
    let mut config = TargetConfig::new(&format!("https://{}", peer.addr)).unwrap();
    config.tls =
        TlsConfig::Options(TlsOptions { insecure_skip_verify: true, ..TlsOptions::default() });
    let limits = Limits { connect_timeout: Duration::from_millis(150), ..Limits::default() };
    let exchange = Client::new(&config, limits).unwrap().send(outgoing, ample()).await;
    assert!(
        matches!(broken_kind(&exchange), BrokenKind::Connect | BrokenKind::Tls),
        "{exchange:?}"
    );
    peer.hung_up().await;
}

#[rstest]
#[case::http_2(vec!["h2", "http/1.1"])]
#[case::http_1(vec!["http/1.1"])]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hundreds_at_once_are_all_replied(#[case] protocols: Vec<&'static str>) {
    let server = TlsServer::start(Setup { protocols, max_streams: 64, ..Setup::default() }).await;
    let client = client(&server, trusting(&server));
    let exchanges = join_all((0..300).map(|_| client.send(get("/x"), ample()))).await;
    for exchange in exchanges {
        assert_eq!(responded(exchange).status, 200);
    }
}

#[tokio::test]
async fn requests_that_hang_do_not_starve_others() {
    let server = TlsServer::start(Setup { max_streams: 64, ..Setup::default() }).await;
    let client = client(&server, trusting(&server));
    responded(client.send(get("/x"), ample()).await);
    let hung: Vec<_> = (0..200)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move { client.send(get("/hang"), ample()).await })
        })
        .collect();
    // Later requests may use any remaining connection.
    tokio::task::yield_now().await;
    let response = responded(client.send(get("/x"), ample()).await);
    assert_eq!(response.version, "HTTP/2");
    for task in &hung {
        task.abort();
    }
}

/// A hanging HTTP/2 connection affects all of its requests.
#[tokio::test]
async fn a_connection_that_gave_no_response_in_time_is_not_used_again() {
    let server = TlsServer::start(Setup::default()).await;
    let client = client(&server, trusting(&server));
    assert_eq!(responded(client.send(get("/x"), ample()).await).version, "HTTP/2");
    let hung = client.send(get("/hang"), soon()).await;
    assert_eq!((broken_kind(&hung), server.connections()), (BrokenKind::Deadline, 1));
    assert_eq!(responded(client.send(get("/x"), ample()).await).version, "HTTP/2");
    assert_eq!(server.connections(), 2);
}

#[rstest]
#[case(Rejection::Stream)]
#[case(Rejection::Connection)]
#[tokio::test]
async fn what_a_server_did_not_look_at_is_asked_again_over_http_1(#[case] rejection: Rejection) {
    let server = TlsServer::start(Setup { rejection: Some(rejection), ..Setup::default() }).await;
    let response = responded(client(&server, trusting(&server)).send(get("/x"), ample()).await);
    assert_eq!((response.status, response.version, server.connections()), (200, "HTTP/1.1", 2));
}

#[tokio::test]
async fn watches_have_connections_of_their_own() {
    let server = TlsServer::start(Setup::default()).await;
    let client = client(&server, with_certificate(&server));
    let mut watches = join_all((0..20).map(|_| client.watch(get("/x?watch=true"), ample()))).await;
    for watch in &mut watches {
        let Next::Event(event) = watch.next(ample()).await else { panic!("no event") };
        assert_eq!(event.object["certificate"], true);
    }
    assert_eq!(server.connections(), 20);
}
