//! The memory of a thousand concurrent commands over each protocol. This test has its own process,
//! because it measures the memory of the whole process.

use futures_util::future::join_all;
use kubeproof_reference_server::{Config, Running, Server};
use rstest::rstest;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::Mutex;

const SESSIONS: usize = 1_000;
/// The limit covers both ends of all sessions, because client and server share the process.
const BUDGET: usize = 300 * 1024 * 1024;
const PODS: &str = "/api/v1/namespaces/default/pods";

/// Makes the cases run one after the other, because they measure the same memory.
static TURN: Mutex<()> = Mutex::const_new(());

/// The bytes of a client: a handshake, then `opens` with the streams and a line. The server must
/// return `echo`.
struct Protocol {
    method: &'static str,
    handshake: &'static str,
    opens: Vec<u8>,
    echo: &'static [u8],
}

fn websocket() -> Protocol {
    Protocol {
        method: "GET",
        handshake: "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                    Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
                    Sec-WebSocket-Protocol: v5.channel.k8s.io\r\n",
        // A message for stdin, masked with zeroes.
        opens: b"\x82\x85\0\0\0\0\0line".to_vec(),
        echo: b"\x82\x05\x01line",
    }
}

fn spdy() -> Protocol {
    let mut opens = Vec::new();
    // The header blocks are stored without compression, and the first one names the dictionary.
    for (id, kind) in [(1, "error"), (3, "stdin"), (5, "stdout")] {
        let length = u8::try_from(kind.len()).expect("a short name");
        let headers =
            [b"\0\0\0\x01\0\0\0\x0astreamtype\0\0\0".as_slice(), &[length], kind.as_bytes()]
                .concat();
        let stored = u16::try_from(headers.len()).expect("a short block");
        let begin: &[u8] = if id == 1 { b"\x78\xf9\xe3\xc6\xa7\xc2" } else { b"" };
        let block =
            [begin, &[0], &stored.to_le_bytes(), &(!stored).to_le_bytes(), &headers].concat();
        let frame = u8::try_from(10 + block.len()).expect("a short frame");
        opens.extend([0x80, 3, 0, 1, 0, 0, 0, frame, 0, 0, 0, id, 0, 0, 0, 0, 0, 0]);
        opens.extend(block);
    }
    opens.extend(b"\0\0\0\x03\0\0\0\x04line");
    Protocol {
        method: "POST",
        handshake: "Upgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: v4.channel.k8s.io\r\n\
                    Content-Length: 0\r\n",
        opens,
        echo: b"\0\0\0\x05\0\0\0\x04line",
    }
}

impl Protocol {
    /// Opens a session and waits for output of its command.
    async fn open(&self, server: &Running) -> TcpStream {
        let mut socket = TcpStream::connect(server.addr()).await.expect("the server listens");
        let request = format!(
            "{} {PODS}/one/exec?command=cat&stdin=true&stdout=true HTTP/1.1\r\nHost: test\r\n\
             Authorization: Bearer {}\r\nConnection: Upgrade\r\n{}\r\n",
            self.method,
            server.admin_token(),
            self.handshake
        );
        socket.write_all(request.as_bytes()).await.expect("the server reads");
        read_until(&mut socket, b"\r\n\r\n").await;
        socket.write_all(&self.opens).await.expect("the server reads");
        read_until(&mut socket, self.echo).await;
        socket
    }
}

async fn read_until(socket: &mut TcpStream, wanted: &[u8]) {
    let mut read = Vec::new();
    while !read.windows(wanted.len()).any(|window| window == wanted) {
        let count = socket.read_buf(&mut read).await.expect("bytes");
        assert_ne!(count, 0, "the session ended after {}", String::from_utf8_lossy(&read));
    }
}

/// Returns the memory of this process, or `None` on systems without `/proc`.
fn memory() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().trim_end_matches(" kB").parse::<usize>().ok().map(|kilobytes| kilobytes * 1024)
}

#[rstest]
#[case::websocket(websocket())]
#[case::spdy(spdy())]
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_thousand_concurrent_commands_stay_within_the_memory_limit(#[case] protocol: Protocol) {
    let _turn = TURN.lock().await;
    rlimit::increase_nofile_limit(4 * SESSIONS as u64).expect("two sockets for each session");
    let server =
        Server::start(Config { node: true, ..Config::default() }).await.expect("a free port");
    let pod = r#"{"metadata":{"name":"one"},"spec":{"containers":[{"name":"c","image":"x"}]}}"#;
    let request = format!(
        "POST {PODS} HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{pod}",
        server.admin_token(),
        pod.len()
    );
    let mut socket = TcpStream::connect(server.addr()).await.expect("the server listens");
    socket.write_all(request.as_bytes()).await.expect("the server reads");
    read_until(&mut socket, b"201 Created").await;
    let watch = format!(
        "GET {PODS}?watch=true HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer {}\r\n\r\n",
        server.admin_token()
    );
    let mut events = TcpStream::connect(server.addr()).await.expect("the server listens");
    events.write_all(watch.as_bytes()).await.expect("the server reads");
    read_until(&mut events, b"\"phase\":\"Running\"").await;

    // The first session allocates memory that all sessions share.
    drop(protocol.open(&server).await);
    let before = memory();
    let sessions = join_all((0..SESSIONS).map(|_| protocol.open(&server))).await;
    assert_eq!(sessions.len(), SESSIONS);
    if let (Some(before), Some(after)) = (before, memory()) {
        let grown = after.saturating_sub(before);
        assert!(grown < BUDGET, "{SESSIONS} sessions hold {} MiB", grown / (1024 * 1024));
    }
    drop(sessions);
    server.shutdown().await;
}
