//! Stands between the program and a server, hands on every byte, and keeps the requests that went by.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Instant;

use serde_json::Value;

/// A way to a server on which everything is seen.
pub(crate) struct Recorder {
    pub(crate) url: String,
    seen: Arc<Mutex<Vec<Seen>>>,
}

/// A request as it went by.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) body: Vec<u8>,
    pub(crate) at: Instant,
}

impl Recorder {
    /// In front of the server at this URL.
    pub(crate) fn before(url: &str) -> Self {
        let server: SocketAddr =
            url.strip_prefix("http://").expect("plain HTTP").parse().expect("an address");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("its address"));
        let seen = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&seen);
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let seen = Arc::clone(&kept);
                thread::spawn(move || pass(client, server, &seen));
            }
        });
        Self { url, seen }
    }

    /// Everything so far, in the order of coming.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().expect("its lock").clone()
    }

    /// What was not a read.
    pub(crate) fn writes(&self) -> Vec<Seen> {
        let mut seen = self.seen();
        seen.retain(|one| !["GET", "HEAD", "OPTIONS"].contains(&one.method.as_str()));
        seen
    }
}

impl Seen {
    pub(crate) fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }

    /// The name, or the prefix of one, that the body gives.
    pub(crate) fn named(&self) -> String {
        let body: Value = serde_json::from_slice(&self.body).unwrap_or_default();
        let name = |member: &str| body["metadata"][member].as_str().map(str::to_owned);
        name("name").or_else(|| name("generateName")).unwrap_or_default()
    }
}

/// Either end that hangs up ends the other.
fn pass(mut client: TcpStream, server: SocketAddr, seen: &Mutex<Vec<Seen>>) {
    let Ok(mut upstream) = TcpStream::connect(server) else { return };
    // Small frames go both ways; held back, each would take 40 ms.
    let _ = (client.set_nodelay(true), upstream.set_nodelay(true));
    let (Ok(mut answers), Ok(mut back)) = (upstream.try_clone(), client.try_clone()) else { return };
    let answering = thread::spawn(move || {
        let _ = std::io::copy(&mut answers, &mut back);
        let _ = back.shutdown(Shutdown::Write);
    });
    let mut requests = Requests::default();
    let mut chunk = vec![0; 64 << 10];
    while let Ok(length @ 1..) = client.read(&mut chunk) {
        seen.lock().expect("its lock").extend(requests.take(&chunk[..length]));
        if upstream.write_all(&chunk[..length]).is_err() {
            break;
        }
    }
    let _ = upstream.shutdown(Shutdown::Write);
    let _ = answering.join();
}

/// Tells the requests of a connection apart.
#[derive(Default)]
struct Requests {
    bytes: Vec<u8>,
    /// What follows is no HTTP, or of a length that is not told in advance: a connection for one request.
    blind: bool,
}

impl Requests {
    /// The requests that these bytes complete.
    fn take(&mut self, bytes: &[u8]) -> Vec<Seen> {
        let mut complete = Vec::new();
        if self.blind {
            return complete;
        }
        self.bytes.extend_from_slice(bytes);
        while let Some(end) = self.bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&self.bytes[..end]).into_owned();
            let header = |wanted: &str| {
                let mut fields = head.lines().skip(1).filter_map(|line| line.split_once(':'));
                fields
                    .find(|(name, _)| name.eq_ignore_ascii_case(wanted))
                    .map(|(_, value)| value.trim().to_owned())
            };
            let length: usize = header("content-length").and_then(|value| value.parse().ok()).unwrap_or(0);
            self.blind = header("upgrade").is_some() || header("transfer-encoding").is_some();
            let whole = end + 4 + length;
            if self.bytes.len() < whole && !self.blind {
                break;
            }
            let body = self.bytes.get(end + 4..whole).unwrap_or_default().to_vec();
            let mut line = head.lines().next().unwrap_or_default().split(' ');
            let mut word = || line.next().unwrap_or_default().to_owned();
            complete.push(Seen { method: word(), target: word(), body, at: Instant::now() });
            if self.blind {
                break;
            }
            self.bytes.drain(..whole);
        }
        complete
    }
}
