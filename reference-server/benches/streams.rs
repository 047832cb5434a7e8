//! The throughput of commands and forwarded ports over WebSocket and SPDY, in both directions.
//!
//! The client sends prepared bytes, so the benchmark measures the server: its framing, its pipes
//! and its scripted programs. Two baselines move the same bytes: a plain socket, and
//! `tokio-tungstenite`. Compare ratios to the baselines, not absolute numbers.

use std::net::SocketAddr;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use futures_util::{SinkExt, StreamExt};
use kubeproof_reference_server::{Config, Running, Server};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::Role;

/// The bytes of one command.
const AMOUNT: usize = 16 * 1024 * 1024;
/// The bytes of one frame.
const FRAME: usize = 32 * 1024;
/// The sequential connections to a port.
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
    let plain = vec![b'x'; AMOUNT];
    for (name, peer, input) in [
        ("a socket, in", Peer::Reads, plain.as_slice()),
        ("a socket, out", Peer::Writes, &[]),
        ("tokio-tungstenite, in", Peer::ReadsMessages, &websocket),
        ("tokio-tungstenite, out", Peer::WritesMessages, &[]),
    ] {
        let address = runtime.block_on(peer.listen());
        group.bench_function(name, |b| {
            b.to_async(&runtime).iter(async || {
                let mut socket = TcpStream::connect(address).await.expect("the peer listens");
                socket.write_all(input).await.expect("the peer reads");
                if !input.is_empty() {
                    socket.shutdown().await.expect("an open socket");
                }
                let received = drain(&mut socket).await;
                assert!(!input.is_empty() || received >= AMOUNT, "{name}: {received} bytes");
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
    for (name, handshake, tunnelled) in [
        ("over one SPDY connection", FORWARD, false),
        ("through one tunnel over WebSocket", TUNNEL, true),
    ] {
        group.bench_function(name, |b| {
            b.to_async(&runtime).iter(async || {
                let mut socket = open(&server, "portforward", handshake).await;
                let mut received = Vec::new();
                for number in 0..CONNECTIONS {
                    let (bytes, end) = connection(number);
                    let bytes = if tunnelled { message(&bytes) } else { bytes };
                    socket.write_all(&bytes).await.expect("the server reads");
                    read_until(&mut socket, &mut received, &end).await;
                }
            });
        });
    }
    let address = runtime.block_on(Peer::Echoes.listen());
    group.bench_function("a socket for each", |b| {
        b.to_async(&runtime).iter(async || {
            for _ in 0..CONNECTIONS {
                let mut socket = TcpStream::connect(address).await.expect("the peer listens");
                socket.write_all(b"ping").await.expect("the peer reads");
                socket.shutdown().await.expect("an open socket");
                assert_eq!(drain(&mut socket).await, 4);
            }
        });
    });
    group.finish();
    runtime.block_on(server.shutdown());
}

/// A baseline.
#[derive(Clone, Copy)]
enum Peer {
    Reads,
    Writes,
    ReadsMessages,
    WritesMessages,
    Echoes,
}

impl Peer {
    /// Serves until the runtime is dropped.
    async fn listen(self) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                tokio::spawn(self.serve(socket));
            }
        });
        address
    }

    async fn serve(self, mut socket: TcpStream) {
        let piece = vec![b'x'; FRAME];
        match self {
            Self::Reads => {
                drain(&mut socket).await;
            }
            Self::Writes => {
                for _ in 0..AMOUNT / FRAME {
                    socket.write_all(&piece).await.expect("the client reads");
                }
            }
            Self::ReadsMessages => {
                let mut messages =
                    WebSocketStream::from_raw_socket(socket, Role::Server, None).await;
                while let Some(Ok(Message::Binary(_))) = messages.next().await {}
            }
            Self::WritesMessages => {
                let mut messages =
                    WebSocketStream::from_raw_socket(socket, Role::Server, None).await;
                for _ in 0..AMOUNT / FRAME {
                    messages.send(Message::binary(piece.clone())).await.expect("the client reads");
                }
            }
            Self::Echoes => {
                let (mut read, mut write) = socket.split();
                tokio::io::copy(&mut read, &mut write).await.expect("an echo");
            }
        }
    }
}

const WEBSOCKET: (&str, &str) = (
    "GET",
    "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
     Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
     Sec-WebSocket-Protocol: v5.channel.k8s.io\r\n",
);
const SPDY: (&str, &str) = (
    "POST",
    "Upgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: v4.channel.k8s.io\r\nContent-Length: 0\r\n",
);
const TUNNEL: (&str, &str) = (
    "GET",
    "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
     Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
     Sec-WebSocket-Protocol: SPDY/3.1+portforward.k8s.io\r\n",
);
const FORWARD: (&str, &str) = (
    "POST",
    "Upgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: portforward.k8s.io\r\nContent-Length: 0\r\n",
);

/// Messages for stdin and its end. The mask is zero.
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

/// The frames that open the streams of a command, and its input.
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

/// The frames of a connection to the echo port with one word, and the end of the response.
fn connection(number: u32) -> (Vec<u8>, Vec<u8>) {
    let error = 4 * number + 1;
    let data = error + 2;
    let request = number.to_string();
    let headers = |kind| [("streamtype", kind), ("port", "7"), ("requestid", &request)];
    let bytes = [
        stream(error, &headers("error")),
        stream(data, &headers("data")),
        frame(data, true, b"ping"),
    ];
    (bytes.concat(), frame(data, true, b""))
}

/// A short message. The mask is zero.
fn message(bytes: &[u8]) -> Vec<u8> {
    let length = u16::try_from(bytes.len()).expect("a short message").to_be_bytes();
    [&[0x82, 0xfe], length.as_slice(), &[0; 4], bytes].concat()
}

/// A frame that opens a stream, with an uncompressed header block.
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
    [&[0x80, 3, 0, 1], length(10 + block.len()).as_slice(), &id.to_be_bytes(), &[0; 6], &block]
        .concat()
}

fn frame(stream: u32, fin: bool, bytes: &[u8]) -> Vec<u8> {
    let length = u32::try_from(bytes.len()).expect("short frames").to_be_bytes();
    [stream.to_be_bytes().as_slice(), &[u8::from(fin)], &length[1..], bytes].concat()
}

/// Reads to the end and returns the number of bytes.
async fn drain(read: &mut (impl AsyncReadExt + Unpin)) -> usize {
    let mut buffer = vec![0; 256 * 1024];
    let mut total = 0;
    while let Ok(count @ 1..) = read.read(&mut buffer).await {
        total += count;
    }
    total
}

/// Reads until these bytes arrive, and discards them.
async fn read_until(socket: &mut TcpStream, received: &mut Vec<u8>, wanted: &[u8]) {
    received.clear();
    while !received.windows(wanted.len()).any(|window| window == wanted) {
        assert_ne!(socket.read_buf(received).await.expect("bytes"), 0, "the server goes on");
    }
}

/// Starts a server with a running pod.
async fn serve() -> Running {
    let server =
        Server::start(Config { node: true, ..Config::default() }).await.expect("a free port");
    let pod = r#"{
        "metadata": {"name": "one"},
        "spec": {"containers": [{"name": "c", "image": "x", "ports": [{"containerPort": 7}]}]}
    }"#;
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

/// Sends a request and reads until `until` arrives.
async fn request(server: &Running, method: &str, path: &str, rest: &str, until: &str) -> TcpStream {
    let mut socket = TcpStream::connect(server.addr()).await.expect("the server listens");
    socket.set_nodelay(true).expect("an open socket");
    let token = server.admin_token();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {token}\r\n{rest}"
    );
    socket.write_all(head.as_bytes()).await.expect("the server reads");
    let mut read = Vec::new();
    while !read.windows(until.len()).any(|window| window == until.as_bytes()) {
        // Reads single bytes, since the following ones belong to the stream.
        let byte = socket.read_u8().await.expect("the server goes on");
        read.push(byte);
    }
    socket
}
