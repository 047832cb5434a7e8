//! Silent connections, oversized requests, invalid HTTP, and floods of HTTP/2 frames.

use rstest::rstest;

use super::*;

/// The server closes connections whose request head stays incomplete.
#[rstest]
#[case::silent(b"")]
#[case::half_a_line(b"GET /api/v1/names")]
#[case::half_a_header(b"GET /healthz HTTP/1.1\r\nhost: x\r\nx-y")]
#[case::half_a_preface(b"PRI * HTTP/2.0\r\n")]
#[case::a_preface_without_settings(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")]
#[tokio::test]
async fn an_incomplete_head_times_out(#[case] bytes: &'static [u8]) {
    stress(Options::short_timeouts(), async |server| {
        let mut streams = Vec::new();
        for _ in 0..50 {
            streams.push(server.sends(bytes).await);
        }
        for stream in streams {
            rest(stream).await;
        }
    })
    .await;
}

/// The timeout applies to the whole head, so a slow trickle of headers cannot extend it.
#[tokio::test]
async fn a_slow_head_times_out() {
    stress(Options::short_timeouts(), async |server| {
        let mut stream = server.sends(b"GET /healthz HTTP/1.1\r\n").await;
        let (mut read, mut write) = stream.split();
        let drops = async {
            let mut pace = tokio::time::interval(Duration::from_millis(20));
            while write.write_all(b"x: y\r\n").await.is_ok() {
                pace.tick().await;
            }
        };
        let end = async {
            let _ = read.read_to_end(&mut Vec::new()).await;
        };
        tokio::select! {
            () = drops => {}
            () = end => {}
        }
    })
    .await;
}

#[tokio::test]
async fn idle_connections_do_not_block_active_clients() {
    let options = Options { files: 200, ..Options::default() };
    stress(options, async |server| {
        let mut streams = Vec::new();
        for _ in 0..600 {
            streams.push(server.connect().await);
        }
        streams
    })
    .await;
}

#[tokio::test]
async fn a_missing_body_times_out() {
    stress(Options::short_timeouts(), async |server| {
        let head = server.head(&format!("POST {CONFIG_MAPS}"));
        for length in ["content-length: 1000", "transfer-encoding: chunked"] {
            let mut streams = Vec::new();
            for _ in 0..50 {
                let request = format!("{head}content-type: {JSON}\r\n{length}\r\n\r\n");
                streams.push(server.sends(request.as_bytes()).await);
            }
            for mut stream in streams {
                assert_eq!(code(&mut stream).await, Some(408));
            }
        }
    })
    .await;
}

/// Concurrent large bodies share one memory limit, and the bystander still creates small objects.
#[tokio::test]
async fn concurrent_bodies_share_a_memory_limit() {
    const SENDERS: usize = 20;
    stress(Options::default(), async |server| {
        let length = 3 << 20;
        let head = server.head(&format!("POST {CONFIG_MAPS}"));
        let head = format!("{head}content-type: {JSON}\r\ncontent-length: {length}\r\n\r\n");
        let request = [head.as_bytes(), &vec![b' '; length - 1]].concat();
        let mut responses = tokio::task::JoinSet::new();
        for _ in 0..SENDERS {
            let (server, request) = (server.clone(), request.clone());
            // The body lacks its last byte, so the server cannot respond to an accepted request.
            responses.spawn(async move { code(&mut server.sends(&request).await).await });
        }
        for _ in 0..SENDERS - Options::default().bodies / (length - (64 << 10)) {
            assert!(matches!(responses.join_next().await, Some(Ok(Some(429) | None))));
        }
        let (status, text) = server.ask("POST", CONFIG_MAPS, JSON, vec![b' '; 2 << 20]).await;
        assert_eq!(status, 429, "{text}");
        responses
    })
    .await;
}

#[rstest]
#[case::length(&format!("content-length: {}\r\n\r\n", 4 << 20), 413)]
#[case::huge_length("content-length: 18446744073709551615\r\n\r\n", 431)]
#[case::negative_length("content-length: -1\r\n\r\n", 400)]
#[case::two_lengths("content-length: 1\r\ncontent-length: 2\r\n\r\n", 400)]
#[case::no_chunk("transfer-encoding: chunked\r\n\r\nnonsense\r\n", 400)]
#[case::huge_chunk("transfer-encoding: chunked\r\n\r\nffffffffffffffff0\r\n", 400)]
#[case::many_headers(&("x: y\r\n".repeat(10_000) + "\r\n"), 431)]
#[case::a_long_header(&format!("x: {}\r\n\r\n", "y".repeat(1 << 20)), 431)]
#[tokio::test]
async fn oversized_and_invalid_requests_are_rejected(#[case] rest: &str, #[case] expected: u16) {
    stress(Options::default(), async |server| {
        let head = server.head(&format!("POST {CONFIG_MAPS}"));
        let request = format!("{head}content-type: {JSON}\r\n{rest}");
        let mut stream = server.sends(request.as_bytes()).await;
        // A client that is still sending may receive only the end of the connection.
        let code = code(&mut stream).await;
        assert!(code.is_none() || code == Some(expected), "{code:?}");
        stream
    })
    .await;
}

#[rstest]
#[case("/api/v1/configmaps?labelSelector=", "a,")]
#[case("/api/v1/configmaps?continue=", "a")]
#[case("/", "a/")]
#[case("/", "%2f")]
#[tokio::test]
async fn a_url_of_a_megabyte_is_rejected(#[case] start: &str, #[case] again: &str) {
    stress(Options::default(), async |server| {
        let head = server.head(&format!("GET {start}{}", again.repeat((1 << 20) / again.len())));
        let mut stream = server.sends(format!("{head}\r\n").as_bytes()).await;
        let code = code(&mut stream).await;
        assert!(matches!(code, None | Some(400 | 414 | 431)), "{code:?}");
    })
    .await;
}

#[tokio::test]
async fn an_endless_body_is_rejected() {
    stress(Options::default(), async |server| {
        let head = server.head(&format!("POST {CONFIG_MAPS}"));
        let head = format!("{head}content-type: {JSON}\r\ntransfer-encoding: chunked\r\n\r\n");
        let mut stream = server.sends(head.as_bytes()).await;
        let (mut read, mut write) = stream.split();
        let chunk = [b"10000\r\n".as_slice(), &vec![b' '; 0x10000], b"\r\n"].concat();
        let flood = async {
            // The write fails when the server stops reading and closes the connection.
            while write.write_all(&chunk).await.is_ok() {}
        };
        let response = async {
            let mut response = [0; 12];
            read.read_exact(&mut response).await.expect("a response");
            assert_eq!(response, *b"HTTP/1.1 413");
        };
        tokio::join!(flood, response);
    })
    .await;
}

#[tokio::test]
async fn pipelined_requests_are_all_served() {
    stress(Options::default(), async |server| {
        let head = server.head("GET /version");
        let requests = format!("{head}\r\n").repeat(2_000)
            + &server.head("GET /healthz")
            + "connection: close\r\n\r\n";
        let mut stream = server.connect().await;
        let (mut read, mut write) = stream.split();
        let mut responses = Vec::new();
        let (sent, received) =
            tokio::join!(write.write_all(requests.as_bytes()), read.read_to_end(&mut responses));
        sent.expect("the server reads");
        received.expect("the server responds");
        let responses = String::from_utf8_lossy(&responses);
        assert_eq!(responses.matches("HTTP/1.1 200 OK").count(), 2_001);
    })
    .await;
}

/// The server closes the connection of a client that reads no responses.
#[tokio::test]
async fn a_pipelining_client_that_does_not_read_is_disconnected() {
    stress(Options::short_timeouts(), async |server| {
        let request = format!("{}\r\n", server.head("GET /openapi/v2"));
        let mut stream = server.connect().await;
        while stream.write_all(request.as_bytes()).await.is_ok() {}
    })
    .await;
}

#[tokio::test]
async fn other_protocols_are_rejected() {
    stress(Options::short_timeouts(), async |server| {
        let hello =
            [b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".as_slice(), &[7; 500]].concat();
        for bytes in
            [hello.as_slice(), &vec![0; 100_000], &vec![0xff; 100_000], b"SSH-2.0-OpenSSH_9.9\r\n"]
        {
            let mut stream = server.sends(bytes).await;
            assert!(matches!(code(&mut stream).await, None | Some(400 | 431)));
        }
    })
    .await;
}

/// Builds an HTTP/2 frame.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("a short frame").to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// The headers of `GET /version`, which add no entry to the dynamic table.
const GET: [u8; 12] = *b"\x82\x86\x04\x08/version";

#[rstest]
#[case::pings(|_| frame(6, 0, 0, &[0; 8]))]
#[case::settings(|_| frame(4, 0, 0, &[0, 3, 0, 0, 0, 100]))]
#[case::rapid_resets(
    |n| [frame(1, 5, 2 * n + 1, &GET), frame(3, 0, 2 * n + 1, &[0, 0, 0, 8])].concat()
)]
#[case::endless_headers(
    |n| if n == 0 { frame(1, 0, 1, &GET) } else { frame(9, 0, 1, b"\x00\x01a\x01b") }
)]
#[case::streams_without_end(|n| frame(1, 4, 2 * n + 1, &GET))]
#[case::window_updates(|_| frame(8, 0, 0, &[0x7f, 0xff, 0xff, 0xff]))]
#[case::oversized_frames(
    |_| [&[0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 1], [0; 1000].as_slice()].concat()
)]
#[tokio::test]
async fn the_server_survives_a_flood_of_http_2_frames(#[case] flood: fn(u32) -> Vec<u8>) {
    stress(Options::short_timeouts(), async |server| {
        let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
        bytes.extend(frame(4, 0, 0, &[]));
        for n in 0..20_000 {
            bytes.extend(flood(n));
        }
        // The client does not read the responses.
        let mut stream = server.connect().await;
        let _ = tokio::time::timeout(Duration::from_secs(1), stream.write_all(&bytes)).await;
        stream
    })
    .await;
}

/// Builds an HTTP/2 preface with these settings.
fn hello(settings: &[u8]) -> Vec<u8> {
    [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".as_slice(), &frame(4, 0, 0, settings)].concat()
}

/// Builds a short header that adds no entry to the dynamic table.
fn header(name: &str, value: &str) -> Vec<u8> {
    let text = |text: &str| [&[u8::try_from(text.len()).expect("short")], text.as_bytes()].concat();
    [vec![0], text(name), text(value)].concat()
}

/// The server closes the connection even if the client reads all responses.
#[rstest]
#[case::pings_to_a_stream(|_| frame(6, 0, 1, &[0; 8]))]
#[case::settings_of_five_bytes(|_| frame(4, 0, 0, &[0; 5]))]
#[case::a_window_overflow(|_| frame(8, 0, 0, &[0x7f, 0xff, 0xff, 0xff]))]
#[case::data_of_an_unopened_stream(|_| frame(0, 0, 1, b"x"))]
#[case::a_continuation_without_headers(|_| frame(9, 4, 1, &GET))]
#[case::a_push(|_| frame(5, 4, 1, &[0, 0, 0, 2, 0x82]))]
#[case::streams_with_even_numbers(|n| frame(1, 5, 2 * n + 2, &GET))]
#[case::an_unknown_table_index(|n| frame(1, 5, 2 * n + 1, &[0xff, 0xff, 0xff, 0x7f]))]
#[case::rapid_resets(
    |n| [frame(1, 5, 2 * n + 1, &GET), frame(3, 0, 2 * n + 1, &[0, 0, 0, 8])].concat()
)]
#[case::endless_headers(
    |n| if n == 0 { frame(1, 0, 1, &GET) } else { frame(9, 0, 1, &header("a", "b").repeat(1000)) }
)]
#[tokio::test]
async fn http_2_violations_close_the_connection(#[case] attack: fn(u32) -> Vec<u8>) {
    stress(Options::default(), async |server| {
        let mut stream = server.sends(&hello(&[])).await;
        let (mut read, mut write) = stream.split();
        let sending = async {
            let mut n = 0;
            while write.write_all(&attack(n)).await.is_ok() {
                n += 1;
            }
        };
        let reading = async {
            let _ = read.read_to_end(&mut Vec::new()).await;
        };
        // One of them ends because the server closes the connection.
        tokio::select! {
            () = sending => {}
            () = reading => {}
        }
    })
    .await;
}

/// Idle streams are watches with a closed flow-control window, and requests without their body.
/// The server limits the streams of a connection and their memory.
#[rstest]
#[case::watches("GET", "/api/v1/configmaps?watch=true", 5)]
#[case::large_lists("GET", "/openapi/v2", 5)]
#[case::bodies("POST", CONFIG_MAPS, 4)]
#[tokio::test]
async fn the_server_survives_thousands_of_idle_streams(
    #[case] method: &str,
    #[case] path: &str,
    #[case] flags: u8,
) {
    stress(Options::default(), async |server| {
        let token = format!("Bearer {}", server.token);
        let block = [
            header(":method", method),
            header(":scheme", "http"),
            header(":path", path),
            header("authorization", &token),
            header("content-type", JSON),
        ]
        .concat();
        let mut streams = Vec::new();
        for _ in 0..20 {
            // The initial flow-control window of each stream is 0.
            let mut bytes = hello(&[0, 4, 0, 0, 0, 0]);
            for n in 0..500 {
                bytes.extend(frame(1, flags, 2 * n + 1, &block));
            }
            streams.push(server.sends(&bytes).await);
        }
        streams
    })
    .await;
}

/// The handshakes are incomplete, or contain garbage.
#[tokio::test]
async fn an_incomplete_tls_handshake_times_out() {
    let limits = Limits { head: Duration::from_millis(300), ..Limits::default() };
    let config = Config {
        tls: Some(kubeproof_reference_server::Tls::default()),
        limits,
        ..Config::default()
    };
    let server = Server::start(config).await.expect("a free port");
    let hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03";
    let mut streams = Vec::new();
    for bytes in [b"".as_slice(), hello, &[0; 1000], b"GET / HTTP/1.1\r\n\r\n", &vec![0x16; 20_000]]
    {
        for _ in 0..20 {
            let mut stream = TcpStream::connect(server.addr()).await.expect("the server listens");
            let _ = stream.write_all(bytes).await;
            streams.push(stream);
        }
    }
    let all = async {
        for stream in streams {
            let response = rest(stream).await;
            assert!(!response.starts_with(b"HTTP"), "{response:?}");
        }
    };
    tokio::time::timeout(TIMEOUT, all).await.expect("the server hangs up");
}
