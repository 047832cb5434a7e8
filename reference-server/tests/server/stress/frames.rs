//! Malicious WebSocket and SPDY frames, and floods of valid ones.

use flate2::{Compress, Compression, FlushCompress};
use rstest::rstest;

use super::*;
use crate::raw_streams::Exchange;

const PODS: &str = "/api/v1/namespaces/default/pods";
/// A client that makes no progress for this long counts as blocked.
const STUCK: Duration = Duration::from_secs(1);
const V5: &str = "v5.channel.k8s.io";

async fn create_pod(server: &StressServer) {
    let container = json!({ "name": "c", "image": "x", "ports": [{ "containerPort": 7 }] });
    server
        .create(
            PODS,
            &json!({ "metadata": { "name": "one" }, "spec": { "containers": [container] } }),
        )
        .await;
    while !server
        .ask("GET", &format!("{PODS}/one"), JSON, "")
        .await
        .1
        .contains(r#""phase":"Running""#)
    {
        tokio::task::yield_now().await;
    }
}

/// Upgrades a connection and sends all bytes, while it reads the response. Returns when the server
/// closes the connection, or when the client has sent everything or is blocked.
async fn upgraded(server: &StressServer, exchange: &Exchange, floods: Vec<u8>) -> TcpStream {
    let mut request = server.head(&format!("{} {}", exchange.method, exchange.path));
    for (name, value) in &exchange.headers {
        request.extend([*name, ": ", value, "\r\n"]);
    }
    let mut stream = server.sends(format!("{request}\r\n").as_bytes()).await;
    let mut head = Vec::new();
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        assert!(
            matches!(stream.read_buf(&mut head).await, Ok(1..)),
            "{}",
            String::from_utf8_lossy(&head)
        );
    }
    assert!(head.starts_with(b"HTTP/1.1 101"), "{}", String::from_utf8_lossy(&head));
    let (mut read, mut write) = stream.split();
    let bytes = [exchange.sends.clone(), floods].concat();
    let sending = async {
        let _ = write.write_all(&bytes).await;
    };
    let reading = async {
        let mut waste = vec![0; 1 << 16];
        while matches!(read.read(&mut waste).await, Ok(1..)) {}
    };
    // The server may stop reading, or close the connection.
    tokio::select! {
        _ = tokio::time::timeout(STUCK, sending) => {}
        () = reading => {}
    }
    stream
}

fn exec(query: &str) -> String {
    format!("{PODS}/one/exec?{query}")
}

fn cat() -> Exchange {
    Exchange::websocket(&exec("command=cat&stdin=true&stdout=true"), V5)
}

/// A frame with this header. The mask is zero.
fn masked(head: &[u8], content: &[u8]) -> Vec<u8> {
    [head, &[0; 4], content].concat()
}

/// A frame with 1 MiB of this byte.
fn mebibyte(opcode: u8, content: u8) -> Vec<u8> {
    masked(&[opcode, 0xff, 0, 0, 0, 0, 0, 0x10, 0, 0], &vec![content; 1 << 20])
}

#[rstest]
#[case::unmasked(b"\x82\x04\0abc".to_vec())]
#[case::reserved_bits(masked(&[0xf2, 0x84], b"\0abc"))]
#[case::reserved_opcode(masked(&[0x83, 0x84], b"\0abc"))]
#[case::oversized_ping(masked(&[0x89, 0xfe, 0, 126], &[0; 126]))]
#[case::fragmented_ping(masked(&[0x09, 0x81], b"x"))]
#[case::a_continuation_without_headers(masked(&[0x80, 0x84], b"\0abc"))]
#[case::two_messages_at_once(
    [masked(&[0x02, 0x82], b"\0a"), masked(&[0x82, 0x82], b"\0b")].concat()
)]
#[case::a_length_that_lies(masked(
    &[0x82, 0xff, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
    b"\0abc"
))]
#[case::a_length_with_the_sign_bit(masked(&[0x82, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0], b"\0abc"))]
#[case::a_close_of_one_byte(masked(&[0x88, 0x81], b"\x03"))]
#[case::a_close_with_a_bad_code(masked(&[0x88, 0x82], b"\x03\xed"))]
#[case::text_that_is_no_text(masked(&[0x81, 0x84], b"\0\xff\xfe\xfd"))]
#[tokio::test]
async fn invalid_websocket_frames_close_the_connection(#[case] bytes: Vec<u8>) {
    stress(Options { node: true, ..Options::default() }, async |server| {
        create_pod(&server).await;
        let stream = upgraded(&server, &cat(), bytes).await;
        rest(stream).await;
    })
    .await;
}

#[rstest]
#[case::pings(masked(&[0x89, 0x81], b"x").repeat(100_000))]
#[case::empty_messages(masked(&[0x82, 0x80], b"").repeat(100_000))]
#[case::fragments(
    [masked(&[0x02, 0x81], b"\0"), masked(&[0x00, 0x81], b"x").repeat(100_000)].concat()
)]
#[case::large_fragments([masked(&[0x02, 0x81], b"\0"), mebibyte(0x00, 0).repeat(40)].concat())]
#[case::sizes(masked(&[0x82, 0x9b], b"\x04{\"Width\":1,\"Height\":65535}").repeat(100_000))]
#[case::half_a_size(mebibyte(0x82, 4).repeat(21))]
#[case::unknown_channels(masked(&[0x82, 0x82], b"\x09x").repeat(100_000))]
#[case::input(mebibyte(0x82, 0).repeat(40))]
#[tokio::test]
async fn the_server_survives_a_flood_of_messages(#[case] bytes: Vec<u8>) {
    stress(Options { node: true, ..Options::default() }, async |server| {
        create_pod(&server).await;
        let mut held = Vec::new();
        for exchange in [
            cat(),
            Exchange::websocket(
                &exec("command=sleep&command=1000&stdin=true&stdout=true&tty=true"),
                V5,
            ),
        ] {
            held.push(upgraded(&server, &exchange, bytes.clone()).await);
        }
        held
    })
    .await;
}

/// Clients of a watch or a log may send messages, which the server ignores.
#[tokio::test]
async fn messages_to_a_one_way_stream_are_ignored() {
    stress(Options { node: true, ..Options::default() }, async |server| {
        create_pod(&server).await;
        let bytes = masked(&[0x82, 0xff, 0, 0, 0, 0, 0, 0x10, 0, 0], &vec![0; 1 << 20]).repeat(40);
        let log = Exchange::websocket(&format!("{PODS}/one/log?follow=true"), "binary.k8s.io");
        let watch = Exchange::websocket(&format!("{CONFIG_MAPS}?watch=true"), "")
            .header("Origin", "https://test");
        (upgraded(&server, &log, bytes.clone()).await, upgraded(&server, &watch, bytes).await)
    })
    .await;
}

/// The zlib header with the id of the dictionary of SPDY/3.
const ZLIB: [u8; 6] = [0x78, 0xf9, 0xe3, 0xc6, 0xa7, 0xc2];

fn syn(id: u32, flags: u8, block: &[u8]) -> Vec<u8> {
    let length = u32::try_from(10 + block.len()).expect("a short block").to_be_bytes();
    [&[0x80, 3, 0, 1, flags], &length[1..], &id.to_be_bytes(), &[0; 6], block].concat()
}

/// A header block before compression.
fn headers(pairs: &[(&[u8], &[u8])]) -> Vec<u8> {
    let mut plain = u32::try_from(pairs.len()).expect("few").to_be_bytes().to_vec();
    for text in pairs.iter().flat_map(|(name, value)| [name, value]) {
        plain.extend(u32::try_from(text.len()).expect("short").to_be_bytes());
        plain.extend_from_slice(text);
    }
    plain
}

/// The header blocks of one connection with the best compression. They do not use the dictionary.
struct Blocks(Compress, bool);

impl Blocks {
    fn new() -> Self {
        Self(Compress::new(Compression::best(), false), false)
    }

    fn block(&mut self, plain: &[u8]) -> Vec<u8> {
        let mut block = Vec::with_capacity(plain.len() + 1024);
        self.0.compress_vec(plain, &mut block, FlushCompress::Sync).expect("room");
        if std::mem::replace(&mut self.1, true) {
            block
        } else {
            [ZLIB.as_slice(), &block].concat()
        }
    }
}

fn forward() -> Exchange {
    Exchange::spdy(&format!("{PODS}/one/portforward"), "portforward.k8s.io")
}

fn bomb(plain: &[u8]) -> Vec<u8> {
    syn(1, 0, &Blocks::new().block(plain))
}

/// Streams of a port-forward. `each` returns the headers of a stream and its flags.
fn streams(count: u32, each: impl Fn(u32) -> (Vec<u8>, u8)) -> Vec<u8> {
    opened((0..count).map(|n| {
        let (plain, flags) = each(n);
        (2 * n + 1, plain, flags)
    }))
}

/// The frames that open streams with these numbers, headers and flags.
fn opened(streams: impl Iterator<Item = (u32, Vec<u8>, u8)>) -> Vec<u8> {
    let mut blocks = Blocks::new();
    streams.flat_map(|(id, plain, flags)| syn(id, flags, &blocks.block(&plain))).collect()
}

fn half(kind: &[u8], request: &[u8]) -> Vec<u8> {
    headers(&[(b"streamtype", kind), (b"port", b"7"), (b"requestid", request)])
}

#[rstest]
#[case::another_version(b"\x80\x02\0\x01\0\0\0\0".to_vec())]
#[case::a_control_frame_of_16_mib(
    [b"\x80\x03\0\x01\0\xff\xff\xff".as_slice(), &vec![0; 100_000]].concat()
)]
#[case::too_short(b"\x80\x03\0\x01\0\0\0\x04\0\0\0\x01".to_vec())]
#[case::no_zlib(syn(1, 0, b"plain text"))]
#[case::a_bomb_of_zeroes(bomb(&vec![0; 60 << 20]))]
#[case::a_name_times_its_values(bomb(&headers(&[(&vec![b'n'; 30_000], &vec![0; 30_000])])))]
#[case::a_count_that_lies(bomb(&[0xff; 100]))]
#[case::a_length_that_lies(bomb(b"\0\0\0\x01\xff\xff\xff\xff"))]
#[tokio::test]
async fn invalid_spdy_frames_close_the_connection(#[case] bytes: Vec<u8>) {
    stress(Options { node: true, ..Options::default() }, async |server| {
        create_pod(&server).await;
        let stream = upgraded(&server, &forward(), bytes).await;
        rest(stream).await;
    })
    .await;
}

#[rstest]
#[case::pings(b"\x80\x03\0\x06\0\0\0\x04\0\0\0\x01".repeat(100_000))]
#[case::settings(b"\x80\x03\0\x04\0\0\0\x0c\0\0\0\x01\0\0\0\x07\xff\xff\xff\xff".repeat(100_000))]
#[case::windows(b"\x80\x03\0\x09\0\0\0\x08\0\0\0\x01\x7f\xff\xff\xff".repeat(100_000))]
#[case::resets(b"\x80\x03\0\x03\0\0\0\x08\0\0\0\x01\0\0\0\x05".repeat(100_000))]
#[case::empty_data(b"\0\0\0\x01\0\0\0\0".repeat(100_000))]
#[case::data_of_an_unopened_stream(
    [b"\0\0\0\x63\0\xff\xff\xff".as_slice(), &vec![0; 0x00ff_ffff]].concat()
)]
#[case::one_number_again_and_again(opened((0..20_000).map(|_| (1, half(b"error", b"0"), 0))))]
#[case::streams_that_wait_for_their_pair(streams(
    20_000,
    |n| (half(b"error", n.to_string().as_bytes()), 0)
))]
#[case::streams_that_have_ended(streams(20_000, |n| (half(b"error", n.to_string().as_bytes()), 1)))]
#[case::long_request_ids(streams(
    5_000,
    |n| (half(b"error", &[n.to_string().as_bytes(), &vec![b'x'; 50_000]].concat()), 1)
))]
#[case::streams_that_lead_nowhere(streams(20_000, |_| (headers(&[]), 0)))]
#[case::connections(streams(
    10_000,
    |n| (half(if n % 2 == 0 { b"error" } else { b"data" }, (n / 2).to_string().as_bytes()), 1)
))]
#[tokio::test]
async fn the_server_survives_a_flood_of_spdy_frames(#[case] bytes: Vec<u8>) {
    stress(Options { node: true, ..Options::default() }, async |server| {
        create_pod(&server).await;
        let command =
            Exchange::spdy(&exec("command=cat&stdin=true&stdout=true"), "v4.channel.k8s.io");
        (
            upgraded(&server, &forward(), bytes.clone()).await,
            upgraded(&server, &command, bytes).await,
        )
    })
    .await;
}
