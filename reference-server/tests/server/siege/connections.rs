//! Connections that ask for nothing, for too much, or in no language.

use rstest::rstest;

use super::*;

/// Those that begin a request and leave it there are sent away.
#[rstest]
#[case::silent(b"")]
#[case::half_a_line(b"GET /api/v1/names")]
#[case::half_a_header(b"GET /healthz HTTP/1.1\r\nhost: x\r\nx-y")]
#[case::half_a_preface(b"PRI * HTTP/2.0\r\n")]
#[case::a_preface_without_settings(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")]
#[tokio::test]
async fn a_head_that_does_not_come_is_not_waited_for(#[case] bytes: &'static [u8]) {
    besiege(Walls::impatient(), async |fortress| {
        let mut streams = Vec::new();
        for _ in 0..50 {
            streams.push(fortress.sends(bytes).await);
        }
        for stream in streams {
            rest(stream).await;
        }
    })
    .await;
}

/// The same, but each keeps sending: the head as a whole has its time.
#[tokio::test]
async fn a_head_in_drops_is_not_waited_for() {
    besiege(Walls::impatient(), async |fortress| {
        let mut stream = fortress.sends(b"GET /healthz HTTP/1.1\r\n").await;
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
async fn a_flood_of_connections_takes_no_place_from_those_who_ask() {
    let walls = Walls { files: 200, ..Walls::default() };
    besiege(walls, async |fortress| {
        let mut streams = Vec::new();
        for _ in 0..600 {
            streams.push(fortress.connect().await);
        }
        streams
    })
    .await;
}

#[tokio::test]
async fn a_body_that_does_not_come_is_not_waited_for() {
    besiege(Walls::impatient(), async |fortress| {
        let head = fortress.head(&format!("POST {CONFIG_MAPS}"));
        for length in ["content-length: 1000", "transfer-encoding: chunked"] {
            let mut streams = Vec::new();
            for _ in 0..50 {
                let request = format!("{head}content-type: {JSON}\r\n{length}\r\n\r\n");
                streams.push(fortress.sends(request.as_bytes()).await);
            }
            for mut stream in streams {
                assert_eq!(code(&mut stream).await, Some(408));
            }
        }
    })
    .await;
}

/// Many large bodies at once have one room, and small ones always find some.
#[tokio::test]
async fn bodies_under_way_have_a_bound_together() {
    const SENDERS: usize = 20;
    besiege(Walls::default(), async |fortress| {
        let length = 3 << 20;
        let head = fortress.head(&format!("POST {CONFIG_MAPS}"));
        let head = format!("{head}content-type: {JSON}\r\ncontent-length: {length}\r\n\r\n");
        let request = [head.as_bytes(), &vec![b' '; length - 1]].concat();
        let mut answers = tokio::task::JoinSet::new();
        for _ in 0..SENDERS {
            let (fortress, request) = (fortress.clone(), request.clone());
            // A body that is taken is held until its last byte comes: there is no answer.
            answers.spawn(async move { code(&mut fortress.sends(&request).await).await });
        }
        for _ in 0..SENDERS - Walls::default().bodies / (length - (64 << 10)) {
            assert!(matches!(answers.join_next().await, Some(Ok(Some(429) | None))));
        }
        let (status, text) = fortress.ask("POST", CONFIG_MAPS, JSON, vec![b' '; 2 << 20]).await;
        assert_eq!(status, 429, "{text}");
        answers
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
async fn what_is_too_much_or_no_request_is_refused(#[case] rest: &str, #[case] expected: u16) {
    besiege(Walls::default(), async |fortress| {
        let head = fortress.head(&format!("POST {CONFIG_MAPS}"));
        let request = format!("{head}content-type: {JSON}\r\n{rest}");
        let mut stream = fortress.sends(request.as_bytes()).await;
        // A client that is still sending may see no more than the end.
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
async fn a_url_of_a_megabyte_is_refused(#[case] start: &str, #[case] again: &str) {
    besiege(Walls::default(), async |fortress| {
        let head = fortress.head(&format!("GET {start}{}", again.repeat((1 << 20) / again.len())));
        let mut stream = fortress.sends(format!("{head}\r\n").as_bytes()).await;
        let code = code(&mut stream).await;
        assert!(matches!(code, None | Some(400 | 414 | 431)), "{code:?}");
    })
    .await;
}

#[tokio::test]
async fn a_body_without_end_is_refused() {
    besiege(Walls::default(), async |fortress| {
        let head = fortress.head(&format!("POST {CONFIG_MAPS}"));
        let head = format!("{head}content-type: {JSON}\r\ntransfer-encoding: chunked\r\n\r\n");
        let mut stream = fortress.sends(head.as_bytes()).await;
        let (mut read, mut write) = stream.split();
        let chunk = [b"10000\r\n".as_slice(), &vec![b' '; 0x10000], b"\r\n"].concat();
        let flood = async {
            // It has to end by itself: the server reads so much and no more.
            while write.write_all(&chunk).await.is_ok() {}
        };
        let answer = async {
            let mut answer = [0; 12];
            read.read_exact(&mut answer).await.expect("an answer");
            assert_eq!(answer, *b"HTTP/1.1 413");
        };
        tokio::join!(flood, answer);
    })
    .await;
}

#[tokio::test]
async fn requests_in_a_row_are_answered_in_a_row() {
    besiege(Walls::default(), async |fortress| {
        let head = fortress.head("GET /version");
        let requests = format!("{head}\r\n").repeat(2_000)
            + &fortress.head("GET /healthz")
            + "connection: close\r\n\r\n";
        let mut stream = fortress.connect().await;
        let (mut read, mut write) = stream.split();
        let mut answers = Vec::new();
        let (sent, received) =
            tokio::join!(write.write_all(requests.as_bytes()), read.read_to_end(&mut answers));
        sent.expect("the server reads");
        received.expect("the server answers");
        let answers = String::from_utf8_lossy(&answers);
        assert_eq!(answers.matches("HTTP/1.1 200 OK").count(), 2_001);
    })
    .await;
}

/// And those who read none of the answers are left alone with them.
#[tokio::test]
async fn who_asks_in_a_row_and_reads_nothing_is_stopped() {
    besiege(Walls::impatient(), async |fortress| {
        let request = format!("{}\r\n", fortress.head("GET /openapi/v2"));
        let mut stream = fortress.connect().await;
        while stream.write_all(request.as_bytes()).await.is_ok() {}
    })
    .await;
}

#[tokio::test]
async fn what_is_no_http_is_hung_up_on() {
    besiege(Walls::impatient(), async |fortress| {
        let hello = [b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".as_slice(), &[7; 500]].concat();
        for bytes in [hello.as_slice(), &vec![0; 100_000], &vec![0xff; 100_000], b"SSH-2.0-OpenSSH_9.9\r\n"] {
            let mut stream = fortress.sends(bytes).await;
            assert!(matches!(code(&mut stream).await, None | Some(400 | 431)));
        }
    })
    .await;
}

/// A frame of HTTP/2.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("a short frame").to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// The headers of `GET /version`, none of them new to the peer's table.
const GET: [u8; 12] = *b"\x82\x86\x04\x08/version";

#[rstest]
#[case::pings(|_| frame(6, 0, 0, &[0; 8]))]
#[case::settings(|_| frame(4, 0, 0, &[0, 3, 0, 0, 0, 100]))]
#[case::rapid_resets(|n| [frame(1, 5, 2 * n + 1, &GET), frame(3, 0, 2 * n + 1, &[0, 0, 0, 8])].concat())]
#[case::endless_headers(|n| if n == 0 { frame(1, 0, 1, &GET) } else { frame(9, 0, 1, b"\x00\x01a\x01b") })]
#[case::streams_without_end(|n| frame(1, 4, 2 * n + 1, &GET))]
#[case::window_updates(|_| frame(8, 0, 0, &[0x7f, 0xff, 0xff, 0xff]))]
#[case::oversized_frames(|_| [&[0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 1], [0; 1000].as_slice()].concat())]
#[tokio::test]
async fn a_flood_of_frames_is_stopped_or_borne(#[case] flood: fn(u32) -> Vec<u8>) {
    besiege(Walls::impatient(), async |fortress| {
        let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
        bytes.extend(frame(4, 0, 0, &[]));
        for n in 0..20_000 {
            bytes.extend(flood(n));
        }
        // It reads nothing of what the server has to say to that.
        let mut stream = fortress.connect().await;
        let _ = tokio::time::timeout(Duration::from_secs(1), stream.write_all(&bytes)).await;
        stream
    })
    .await;
}

/// Says hello in HTTP/2, with these settings beside.
fn hello(settings: &[u8]) -> Vec<u8> {
    [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".as_slice(), &frame(4, 0, 0, settings)].concat()
}

/// A header that is not kept in the peer's table; the name and the value are short.
fn header(name: &str, value: &str) -> Vec<u8> {
    let text = |text: &str| [&[u8::try_from(text.len()).expect("short")], text.as_bytes()].concat();
    [vec![0], text(name), text(value)].concat()
}

/// What is no HTTP/2, or more of it than anybody needs, ends a connection also for a client that reads all it is told.
#[rstest]
#[case::pings_to_a_stream(|_| frame(6, 0, 1, &[0; 8]))]
#[case::settings_of_five_bytes(|_| frame(4, 0, 0, &[0; 5]))]
#[case::a_window_beyond_its_bound(|_| frame(8, 0, 0, &[0x7f, 0xff, 0xff, 0xff]))]
#[case::data_of_nobody(|_| frame(0, 0, 1, b"x"))]
#[case::a_continuation_of_nothing(|_| frame(9, 4, 1, &GET))]
#[case::a_push(|_| frame(5, 4, 1, &[0, 0, 0, 2, 0x82]))]
#[case::streams_with_even_numbers(|n| frame(1, 5, 2 * n + 2, &GET))]
#[case::an_index_that_leads_nowhere(|n| frame(1, 5, 2 * n + 1, &[0xff, 0xff, 0xff, 0x7f]))]
#[case::rapid_resets(|n| [frame(1, 5, 2 * n + 1, &GET), frame(3, 0, 2 * n + 1, &[0, 0, 0, 8])].concat())]
#[case::endless_headers(|n| if n == 0 { frame(1, 0, 1, &GET) } else { frame(9, 0, 1, &header("a", "b").repeat(1000)) })]
#[tokio::test]
async fn what_breaks_the_rules_of_http_2_is_hung_up_on(#[case] attack: fn(u32) -> Vec<u8>) {
    besiege(Walls::default(), async |fortress| {
        let mut stream = fortress.sends(&hello(&[])).await;
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
        // There is an end of one of them, since the server makes it.
        tokio::select! {
            () = sending => {}
            () = reading => {}
        }
    })
    .await;
}

/// Streams that are open and idle: watches of a client that lets nothing of them come, and bodies that do not come. There are so many
/// to a connection, and what they hold is bounded.
#[rstest]
#[case::watches("GET", "/api/v1/configmaps?watch=true", 5)]
#[case::large_lists("GET", "/openapi/v2", 5)]
#[case::bodies("POST", CONFIG_MAPS, 4)]
#[tokio::test]
async fn thousands_of_idle_streams_are_borne(#[case] method: &str, #[case] path: &str, #[case] flags: u8) {
    besiege(Walls::default(), async |fortress| {
        let token = format!("Bearer {}", fortress.token);
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
            // The window of each stream is closed.
            let mut bytes = hello(&[0, 4, 0, 0, 0, 0]);
            for n in 0..500 {
                bytes.extend(frame(1, flags, 2 * n + 1, &block));
            }
            streams.push(fortress.sends(&bytes).await);
        }
        streams
    })
    .await;
}

/// TLS that does not come to an end, and garbage in its place.
#[tokio::test]
async fn a_handshake_of_tls_is_not_waited_for() {
    let limits = Limits { head: Duration::from_millis(300), ..Limits::default() };
    let config =
        Config { tls: Some(kubeproof_reference_server::Tls::default()), limits, ..Config::default() };
    let server = Server::start(config).await.expect("a free port");
    let hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03";
    let mut streams = Vec::new();
    for bytes in [b"".as_slice(), hello, &[0; 1000], b"GET / HTTP/1.1\r\n\r\n", &vec![0x16; 20_000]] {
        for _ in 0..20 {
            let mut stream = TcpStream::connect(server.addr()).await.expect("the server listens");
            let _ = stream.write_all(bytes).await;
            streams.push(stream);
        }
    }
    let all = async {
        for stream in streams {
            let answer = rest(stream).await;
            assert!(!answer.starts_with(b"HTTP"), "{answer:?}");
        }
    };
    tokio::time::timeout(PATIENCE, all).await.expect("the server hangs up");
}
