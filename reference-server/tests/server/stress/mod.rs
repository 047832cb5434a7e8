//! Stress tests: the server rejects malicious clients, serves other clients, and limits its memory.
//!
//! The server runs in its own process, so that the test can read its peak memory from the system.
//! During an attack a bystander writes objects over its own connections. At the end the server must
//! have every object that it acknowledged, unchanged.

mod bodies;
mod connections;
mod definitions;
mod frames;
mod readers;

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::{Method, Request};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use kubeproof_reference_server::{Config, Limits, Server};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::support::CONFIG_MAPS;

/// The timeout of a test. It is long, because the machine may be busy.
const TIMEOUT: Duration = Duration::from_mins(1);
/// The limit for the peak memory of the server, in MiB. An idle server needs about 30.
const MEMORY: u64 = 256;
/// The interval between writes of the bystander, which leaves most CPU time to the attack.
const PACE: Duration = Duration::from_millis(10);
/// The number of writes that prove that the server serves the bystander.
const SERVED: usize = 3;

const ENVIRONMENT: &str = "KUBEPROOF_STRESS";
const JSON: &str = "application/json";

/// The options of a server under attack.
#[derive(Clone, Copy, Debug)]
struct Options {
    /// The timeouts for heads, bodies and stalled readers. The defaults are too long for tests.
    times: Duration,
    bodies: usize,
    waiting: usize,
    /// The limit of file descriptors.
    files: u64,
    node: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { times: TIMEOUT, bodies: 16 << 20, waiting: 1024, files: 4096, node: false }
    }
}

impl Options {
    /// Returns options with timeouts that a slow client exceeds.
    fn short_timeouts() -> Self {
        Self { times: Duration::from_millis(300), ..Self::default() }
    }
}

/// The process that the tests attack. It is not a test.
#[test]
#[ignore = "the other tests start it as a server"]
fn serve() {
    let Ok(options) = std::env::var(ENVIRONMENT) else { return };
    let options: Vec<u64> =
        options.split(' ').map(|number| number.parse().expect("a number")).collect();
    let [times, bodies, waiting, files, node] = options[..] else {
        panic!("five numbers: {options:?}")
    };
    let times = Duration::from_millis(times);
    let size = |number| usize::try_from(number).expect("a size");
    rlimit::setrlimit(rlimit::Resource::NOFILE, files, files).expect("a limit of descriptors");
    let limits = Limits {
        head: times,
        body: times,
        stall: times,
        bodies: size(bodies),
        waiting: size(waiting),
    };
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().worker_threads(2).build();
    runtime.expect("a runtime").block_on(async {
        let server = Server::start(Config { limits, node: node == 1, ..Config::default() })
            .await
            .expect("a free port");
        let hello = format!("\nlistening {} {}\n", server.addr(), server.admin_token());
        std::io::stdout().write_all(hello.as_bytes()).expect("the test reads the output");
        let end = tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new()));
        end.await.expect("a thread").expect("the end");
    });
}

/// The server under attack. Dropping it ends its process.
#[derive(Debug)]
struct StressServer {
    child: Child,
    addr: SocketAddr,
    token: String,
}

impl Drop for StressServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The code and the body of a response.
type CodeAndBody = (u16, String);

impl StressServer {
    fn start(options: Options) -> Self {
        let numbers = [
            u64::try_from(options.times.as_millis()).expect("a short time"),
            options.bodies as u64,
            options.waiting as u64,
            options.files,
            u64::from(options.node),
        ];
        let mut child = Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", "stress::serve", "--ignored", "--nocapture"])
            .env(ENVIRONMENT, numbers.map(|number| number.to_string()).join(" "))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a process");
        let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
        let hello = lines.find_map(|line| line.ok()?.strip_prefix("listening ").map(str::to_owned));
        let hello = hello.expect("the server prints its address");
        let (addr, token) = hello.split_once(' ').expect("an address and a token");
        Self { child, addr: addr.parse().expect("an address"), token: token.to_owned() }
    }

    /// Returns the peak memory in MiB, or 0 on systems without `/proc`.
    fn peak(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))
            .unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap_or_default() / 1024
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.addr).await.expect("the server listens")
    }

    /// Connects and sends bytes. The server may close the connection before the last byte.
    async fn sends(&self, bytes: &[u8]) -> TcpStream {
        let mut stream = self.connect().await;
        let _ = stream.write_all(bytes).await;
        stream
    }

    /// Builds a request head without the final empty line.
    fn head(&self, line: &str) -> String {
        format!("{line} HTTP/1.1\r\nhost: test\r\nauthorization: Bearer {}\r\n", self.token)
    }

    async fn open(
        &self,
        method: &str,
        path: &str,
        media: &str,
        body: Bytes,
    ) -> http::Response<Incoming> {
        let stream = self.connect().await;
        let (mut sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.expect("HTTP/1.1");
        tokio::spawn(connection);
        let request = Request::builder()
            .method(Method::from_bytes(method.as_bytes()).expect("a method"))
            .uri(path)
            .header("host", "test")
            .header("authorization", format!("Bearer {}", self.token))
            .header("content-type", media)
            .body(Full::new(body))
            .expect("a request");
        sender.send_request(request).await.expect("a response")
    }

    async fn ask(
        &self,
        method: &str,
        path: &str,
        media: &str,
        body: impl Into<Bytes>,
    ) -> CodeAndBody {
        let response = self.open(method, path, media, body.into()).await;
        let code = response.status().as_u16();
        let bytes = response.into_body().collect().await.expect("a whole body").to_bytes();
        (code, String::from_utf8_lossy(&bytes).into_owned())
    }

    async fn create(&self, path: &str, object: &Value) {
        let (code, text) = self.ask("POST", path, JSON, object.to_string()).await;
        assert_eq!(code, 201, "{text}");
    }
}

/// A well-behaved client that writes objects during an attack.
struct Bystander {
    stop: Arc<AtomicBool>,
    done: watch::Receiver<usize>,
    work: JoinHandle<BTreeMap<String, Value>>,
}

impl Bystander {
    fn start(server: &Arc<StressServer>) -> Self {
        let (stop, server) = (Arc::new(AtomicBool::new(false)), server.clone());
        let (progress, done) = watch::channel(0);
        let stopped = stop.clone();
        let work = tokio::spawn(async move {
            let mut written = BTreeMap::new();
            let mut pace = tokio::time::interval(PACE);
            while !stopped.load(Ordering::Relaxed) {
                let name = format!("bystander-{}", written.len());
                let data = json!({ "n": written.len().to_string() });
                let object = json!({ "metadata": { "name": name }, "data": data });
                server.create(CONFIG_MAPS, &object).await;
                written.insert(name, data);
                progress.send_replace(written.len());
                pace.tick().await;
            }
            written
        });
        Self { stop, done, work }
    }

    /// Waits until the server has served several more writes.
    async fn progress(&mut self) {
        let enough = *self.done.borrow() + SERVED;
        self.done.wait_for(|done| *done >= enough).await.expect("the bystander is served");
    }

    async fn stop(self) -> BTreeMap<String, Value> {
        self.stop.store(true, Ordering::Relaxed);
        self.work.await.expect("the bystander was served to the end")
    }
}

/// Runs an attack against a new server. The value that the attack returns, such as its open
/// connections, lives until the bystander has made progress.
async fn stress<T>(options: Options, attack: impl AsyncFnOnce(Arc<StressServer>) -> T) {
    stress_within(options, MEMORY, attack).await;
}

async fn stress_within<T>(
    options: Options,
    memory: u64,
    attack: impl AsyncFnOnce(Arc<StressServer>) -> T,
) {
    let run = async {
        let server = Arc::new(StressServer::start(options));
        let mut bystander = Bystander::start(&server);
        bystander.progress().await;
        let held = attack(server.clone()).await;
        bystander.progress().await;
        drop(held);
        bystander.progress().await;
        let written = bystander.stop().await;
        let (code, text) = server.ask("GET", CONFIG_MAPS, JSON, "").await;
        assert_eq!(code, 200);
        let list: Value = serde_json::from_str(&text).expect("a list");
        let mut there = BTreeMap::new();
        for item in list["items"].as_array().expect("items") {
            let name = item["metadata"]["name"].as_str().expect("a name").to_owned();
            if name.starts_with("bystander-") {
                there.insert(name, item["data"].clone());
            }
        }
        assert_eq!(there, written, "the stored objects are the acknowledged ones");
        assert!(
            server.peak() < memory,
            "expected less than {memory} MiB, got {} MiB",
            server.peak()
        );
    };
    tokio::time::timeout(TIMEOUT, run)
        .await
        .expect("the attack and the bystander end within the timeout");
}

/// Reads until the server closes the connection.
async fn rest(mut stream: TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    // A reset ends the connection as well.
    let _ = stream.read_to_end(&mut bytes).await;
    bytes
}

/// Returns the code of the first response; `None` if the server closes the connection instead.
async fn code(stream: &mut TcpStream) -> Option<u16> {
    let mut bytes = Vec::new();
    while bytes.len() < 12 {
        if !matches!(stream.read_buf(&mut bytes).await, Ok(1..)) {
            return None;
        }
    }
    String::from_utf8_lossy(&bytes).strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok()
}
