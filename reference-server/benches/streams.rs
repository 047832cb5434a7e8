//! How fast bytes go through commands and forwarded ports, both ways, over WebSocket and SPDY.
//!
//! The client is nothing but bytes that were made before, so what is measured is the server: its framing, and the pipes and
//! programs of its scripted runtime.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use kubeproof_reference_server::{Config, Running, Server};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;

/// How much goes through a command.
const AMOUNT: usize = 16 * 1024 * 1024;
/// How much goes into one frame.
const FRAME: usize = 32 * 1024;
/// How many connections are made to a port, one after the other.
const CONNECTIONS: u32 = 500;
const PODS: &str = "/api/v1/namespaces/default/pods";

criterion_group!(benches, commands, ports);
criterion_main!(benches);

fn commands(c: &mut Criterion) {
    let runtime = Runtime::new().expect("a runtime");
    let server = runtime.block_on(serve());
    let mut group = c.benchmark_group("exec");
    group.sample_size(10).throughput(Throughput::Bytes(AMOUNT as u64));
    let upload = "command=wc&command=-c&stdin=true&stdout=true";
    let download = format!("command=sh&command=-c&command=yes%7Chead%20-c%20{AMOUNT}&stdout=true");
    let websocket = websocket_input();
    let [spdy_upload, spdy_download] = [spdy_input(true), spdy_input(false)];
    for (name, query, handshake, input) in [
        ("WebSocket, stdin", upload, WEBSOCKET, websocket.as_slice()),
        ("WebSocket, stdout", &download, WEBSOCKET, &[]),
        ("SPDY, stdin", upload, SPDY, &spdy_upload),
        ("SPDY, stdout", &download, SPDY, &spdy_download),
    ] {
        group.bench_function(name, |b| {
            b.to_async(&runtime).iter(async || {
                let mut socket = open(&server, &format!("exec?{query}"), handshake).await;
                let (mut read, mut write) = socket.split();
                let (sent, received) = tokio::join!(write.write_all(input), drain(&mut read));
                sent.expect("the server reads");
                assert!(
                    received > 0 && (name.ends_with("stdin") || received > AMOUNT),
                    "{name}: {received} bytes"
                );
            });
        });
    }
    group.finish();
    runtime.block_on(server.shutdown());
}

fn ports(c: &mut Criterion) {
    let runtime = Runtime::new().expect("a runtime");
    let server = runtime.block_on(serve());
    let mut group = c.benchmark_group("portforward");
    group.sample_size(10).throughput(Throughput::Elements(u64::from(CONNECTIONS)));
    group.bench_function("connections over one SPDY connection", |b| {
        b.to_async(&runtime).iter(async || {
            let mut socket = open(&server, "portforward", FORWARD).await;
            let mut received = Vec::new();
            for number in 0..CONNECTIONS {
                let error = 4 * number + 1;
                let data = error + 2;
                let request = number.to_string();
                let mut bytes =
                    stream(error, &[("streamtype", "error"), ("port", "7"), ("requestid", &request)]);
                bytes.extend(stream(data, &[("streamtype", "data"), ("port", "7"), ("requestid", &request)]));
                bytes.extend(frame(data, true, b"ping"));
                socket.write_all(&bytes).await.expect("the server reads");
                received.clear();
                let end = frame(data, true, b"");
                while !received.windows(end.len()).any(|window| window == end) {
                    assert_ne!(socket.read_buf(&mut received).await.expect("bytes"), 0, "the server goes on");
                }
            }
        });
    });
    group.finish();
    runtime.block_on(server.shutdown());
}

const WEBSOCKET: (&str, &str) = (
    "GET",
    "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
     Sec-WebSocket-Protocol: v5.channel.k8s.io\r\n",
);
const SPDY: (&str, &str) =
    ("POST", "Upgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: v4.channel.k8s.io\r\nContent-Length: 0\r\n");
const FORWARD: (&str, &str) =
    ("POST", "Upgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: portforward.k8s.io\r\nContent-Length: 0\r\n");

/// Messages for stdin, masked with zeroes, and its end.
fn websocket_input() -> Vec<u8> {
    let mut input = Vec::with_capacity(AMOUNT + AMOUNT / FRAME * 16);
    for _ in 0..AMOUNT / FRAME {
        input.extend([0x82, 0xff]);
        input.extend((FRAME as u64 + 1).to_be_bytes());
        input.extend([0; 5]);
        input.resize(input.len() + FRAME, b'x');
    }
    input.extend(b"\x82\x82\0\0\0\0\xff\0");
    input
}

/// The streams of a command, and what goes to stdin.
fn spdy_input(stdin: bool) -> Vec<u8> {
    let mut input = stream(1, &[("streamtype", "error")]);
    input.extend(stream(3, &[("streamtype", "stdout")]));
    if stdin {
        input.extend(stream(5, &[("streamtype", "stdin")]));
        for _ in 0..AMOUNT / FRAME {
            input.extend(frame(5, false, &vec![b'x'; FRAME]));
        }
        input.extend(frame(5, true, b""));
    }
    input
}

/// A frame that opens a stream. Its header block is a stored one; the first names the dictionary.
fn stream(id: u32, headers: &[(&str, &str)]) -> Vec<u8> {
    let length = |length: usize| u32::try_from(length).expect("few and short").to_be_bytes();
    let mut plain = length(headers.len()).to_vec();
    for text in headers.iter().flat_map(|(name, value)| [name, value]) {
        plain.extend(length(text.len()));
        plain.extend(text.bytes());
    }
    let stored = u16::try_from(plain.len()).expect("few and short");
    let begin: &[u8] = if id == 1 { b"\x78\xf9\xe3\xc6\xa7\xc2" } else { b"" };
    let block = [begin, &[0], &stored.to_le_bytes(), &(!stored).to_le_bytes(), &plain].concat();
    [&[0x80, 3, 0, 1], length(10 + block.len()).as_slice(), &id.to_be_bytes(), &[0; 6], &block].concat()
}

fn frame(stream: u32, fin: bool, bytes: &[u8]) -> Vec<u8> {
    let length = u32::try_from(bytes.len()).expect("short frames").to_be_bytes();
    [stream.to_be_bytes().as_slice(), &[u8::from(fin)], &length[1..], bytes].concat()
}

/// Reads to the end, and counts.
async fn drain(read: &mut (impl AsyncReadExt + Unpin)) -> usize {
    let mut buffer = vec![0; 256 * 1024];
    let mut total = 0;
    while let Ok(count @ 1..) = read.read(&mut buffer).await {
        total += count;
    }
    total
}

/// A server with a pod that runs.
async fn serve() -> Running {
    let server = Server::start(Config { node: true, ..Config::default() }).await.expect("a free port");
    let pod = r#"{"metadata":{"name":"one"},"spec":{"containers":[{"name":"c","image":"x","ports":[{"containerPort":7}]}]}}"#;
    let length = pod.len();
    let body = format!("Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{pod}");
    request(&server, "POST", PODS, &body, "201 Created").await;
    request(&server, "GET", &format!("{PODS}?watch=true"), "\r\n", "\"phase\":\"Running\"").await;
    server
}

async fn open(server: &Running, what: &str, (method, headers): (&str, &str)) -> TcpStream {
    let headers = format!("Connection: Upgrade\r\n{headers}\r\n");
    request(server, method, &format!("{PODS}/one/{what}"), &headers, "\r\n\r\n").await
}

/// Sends a request and reads until something has come.
async fn request(server: &Running, method: &str, path: &str, rest: &str, until: &str) -> TcpStream {
    let mut socket = TcpStream::connect(server.addr()).await.expect("the server listens");
    socket.set_nodelay(true).expect("an open socket");
    let token = server.admin_token();
    let head = format!("{method} {path} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {token}\r\n{rest}");
    socket.write_all(head.as_bytes()).await.expect("the server reads");
    let mut read = Vec::new();
    while !read.windows(until.len()).any(|window| window == until.as_bytes()) {
        // A byte at a time: what is behind belongs to the stream.
        let byte = socket.read_u8().await.expect("the server goes on");
        read.push(byte);
    }
    socket
}
