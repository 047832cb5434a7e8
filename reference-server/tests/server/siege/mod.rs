//! The server under attack: it refuses or hangs up, goes on serving others, keeps its memory, and loses nothing.
//!
//! It runs in a process of its own, whose memory the system measures. While an attack is on, and its connections are still
//! open, a bystander goes on writing objects over connections of its own; in the end every object that the server has
//! acknowledged must be there as it was written.

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

/// How long anything may take. The machine may be busy; what hangs takes for ever.
const PATIENCE: Duration = Duration::from_mins(1);
/// What the server may ever hold, in MiB. It needs some thirty to stand there.
const MEMORY: u64 = 256;
/// How often the bystander writes, so that it leaves the machine to the attack.
const PACE: Duration = Duration::from_millis(10);
/// How many writes of the bystander show that it is served.
const SERVED: usize = 3;

const ENVIRONMENT: &str = "KUBEPROOF_SIEGE";
const JSON: &str = "application/json";

/// How a server under attack is started.
#[derive(Clone, Copy, Debug)]
struct Walls {
    /// Of heads, bodies and stalled readers; the real ones would be waited for too long.
    times: Duration,
    bodies: usize,
    waiting: usize,
    /// How many descriptors the process has.
    files: u64,
    node: bool,
}

impl Default for Walls {
    fn default() -> Self {
        Self { times: PATIENCE, bodies: 16 << 20, waiting: 1024, files: 4096, node: false }
    }
}

impl Walls {
    /// Those that a slow client runs into.
    fn impatient() -> Self {
        Self { times: Duration::from_millis(300), ..Self::default() }
    }
}

/// Not a test: the process that the tests attack.
#[test]
#[ignore = "serves when the tests start it, until its input ends"]
fn serve() {
    let Ok(walls) = std::env::var(ENVIRONMENT) else { return };
    let walls: Vec<u64> = walls.split(' ').map(|number| number.parse().expect("a number")).collect();
    let [times, bodies, waiting, files, node] = walls[..] else { panic!("five numbers: {walls:?}") };
    let times = Duration::from_millis(times);
    let size = |number| usize::try_from(number).expect("a size");
    rlimit::setrlimit(rlimit::Resource::NOFILE, files, files).expect("a limit of descriptors");
    let limits =
        Limits { head: times, body: times, stall: times, bodies: size(bodies), waiting: size(waiting) };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().worker_threads(2).build();
    runtime.expect("a runtime").block_on(async {
        let server = Server::start(Config { limits, node: node == 1, ..Config::default() })
            .await
            .expect("a free port");
        let hello = format!("\nlistening {} {}\n", server.addr(), server.admin_token());
        std::io::stdout().write_all(hello.as_bytes()).expect("somebody listens");
        let end = tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new()));
        end.await.expect("a thread").expect("the end");
    });
}

/// The server under attack. It ends with its owner.
#[derive(Debug)]
struct Fortress {
    child: Child,
    addr: SocketAddr,
    token: String,
}

impl Drop for Fortress {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An answer of which nothing but this matters.
type Answer = (u16, String);

impl Fortress {
    fn start(walls: Walls) -> Self {
        let numbers = [
            u64::try_from(walls.times.as_millis()).expect("a short time"),
            walls.bodies as u64,
            walls.waiting as u64,
            walls.files,
            u64::from(walls.node),
        ];
        let mut child = Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", "siege::serve", "--ignored", "--nocapture"])
            .env(ENVIRONMENT, numbers.map(|number| number.to_string()).join(" "))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a process");
        let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
        let hello = lines.find_map(|line| line.ok()?.strip_prefix("listening ").map(str::to_owned));
        let hello = hello.expect("the server says where it listens");
        let (addr, token) = hello.split_once(' ').expect("an address and a token");
        Self { child, addr: addr.parse().expect("an address"), token: token.to_owned() }
    }

    /// The most memory that it has held, in MiB; nothing where the system does not tell.
    fn peak(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap_or_default() / 1024
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.addr).await.expect("the server listens")
    }

    /// A connection over which this is sent. The server may hang up before the end.
    async fn sends(&self, bytes: &[u8]) -> TcpStream {
        let mut stream = self.connect().await;
        let _ = stream.write_all(bytes).await;
        stream
    }

    /// The first lines of a request, without the empty one.
    fn head(&self, line: &str) -> String {
        format!("{line} HTTP/1.1\r\nhost: test\r\nauthorization: Bearer {}\r\n", self.token)
    }

    async fn open(&self, method: &str, path: &str, media: &str, body: Bytes) -> http::Response<Incoming> {
        let stream = self.connect().await;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.expect("HTTP/1.1");
        tokio::spawn(connection);
        let request = Request::builder()
            .method(Method::from_bytes(method.as_bytes()).expect("a method"))
            .uri(path)
            .header("host", "test")
            .header("authorization", format!("Bearer {}", self.token))
            .header("content-type", media)
            .body(Full::new(body))
            .expect("a request");
        sender.send_request(request).await.expect("an answer")
    }

    async fn ask(&self, method: &str, path: &str, media: &str, body: impl Into<Bytes>) -> Answer {
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

/// Somebody who minds their own business.
struct Bystander {
    stop: Arc<AtomicBool>,
    done: watch::Receiver<usize>,
    work: JoinHandle<BTreeMap<String, Value>>,
}

impl Bystander {
    fn start(fortress: &Arc<Fortress>) -> Self {
        let (stop, fortress) = (Arc::new(AtomicBool::new(false)), fortress.clone());
        let (progress, done) = watch::channel(0);
        let stopped = stop.clone();
        let work = tokio::spawn(async move {
            let mut written = BTreeMap::new();
            let mut pace = tokio::time::interval(PACE);
            while !stopped.load(Ordering::Relaxed) {
                let name = format!("bystander-{}", written.len());
                let data = json!({ "n": written.len().to_string() });
                let object = json!({ "metadata": { "name": name }, "data": data });
                fortress.create(CONFIG_MAPS, &object).await;
                written.insert(name, data);
                progress.send_replace(written.len());
                pace.tick().await;
            }
            written
        });
        Self { stop, done, work }
    }

    /// Waits until it has got on.
    async fn progress(&mut self) {
        let enough = *self.done.borrow() + SERVED;
        self.done.wait_for(|done| *done >= enough).await.expect("the bystander is served");
    }

    async fn stop(self) -> BTreeMap<String, Value> {
        self.stop.store(true, Ordering::Relaxed);
        self.work.await.expect("the bystander was served to the end")
    }
}

/// Lets an attack loose. What it returns is kept until the bystander has got on: the connections that it holds.
async fn besiege<T>(walls: Walls, attack: impl AsyncFnOnce(Arc<Fortress>) -> T) {
    besiege_within(walls, MEMORY, attack).await;
}

async fn besiege_within<T>(walls: Walls, memory: u64, attack: impl AsyncFnOnce(Arc<Fortress>) -> T) {
    let siege = async {
        let fortress = Arc::new(Fortress::start(walls));
        let mut bystander = Bystander::start(&fortress);
        bystander.progress().await;
        let held = attack(fortress.clone()).await;
        bystander.progress().await;
        drop(held);
        bystander.progress().await;
        let written = bystander.stop().await;
        let (code, text) = fortress.ask("GET", CONFIG_MAPS, JSON, "").await;
        assert_eq!(code, 200);
        let list: Value = serde_json::from_str(&text).expect("a list");
        let mut there = BTreeMap::new();
        for item in list["items"].as_array().expect("items") {
            let name = item["metadata"]["name"].as_str().expect("a name").to_owned();
            if name.starts_with("bystander-") {
                there.insert(name, item["data"].clone());
            }
        }
        assert_eq!(there, written, "what was acknowledged is there, and nothing else");
        assert!(fortress.peak() < memory, "the server held {} MiB", fortress.peak());
    };
    tokio::time::timeout(PATIENCE, siege).await.expect("nobody waits for ever");
}

/// What comes back on a connection until the server hangs up.
async fn rest(mut stream: TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    // A reset is an end like another.
    let _ = stream.read_to_end(&mut bytes).await;
    bytes
}

/// The code of the first answer on a connection; none when the server just hangs up.
async fn code(stream: &mut TcpStream) -> Option<u16> {
    let mut bytes = Vec::new();
    while bytes.len() < 12 {
        if !matches!(stream.read_buf(&mut bytes).await, Ok(1..)) {
            return None;
        }
    }
    String::from_utf8_lossy(&bytes).strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok()
}
