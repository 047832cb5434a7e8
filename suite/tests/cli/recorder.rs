//! A TCP proxy that records the requests to a server.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Instant;

use serde_json::Value;

/// A proxy in front of a server. It forwards every byte.
pub(crate) struct Recorder {
    pub(crate) url: String,
    seen: Arc<Mutex<Vec<RecordedRequest>>>,
}

/// A recorded request.
#[derive(Clone, Debug)]
pub(crate) struct RecordedRequest {
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) body: Vec<u8>,
    pub(crate) at: Instant,
}

impl Recorder {
    /// Starts a proxy for the server at this URL.
    pub(crate) fn start(url: &str) -> Self {
        let server: SocketAddr =
            url.strip_prefix("http://").expect("plain HTTP").parse().expect("an address");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("its address"));
        let seen = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&seen);
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let seen = Arc::clone(&kept);
                thread::spawn(move || forward(client, server, &seen));
            }
        });
        Self { url, seen }
    }

    /// Returns all requests so far, in the order of arrival.
    pub(crate) fn requests(&self) -> Vec<RecordedRequest> {
        self.seen.lock().expect("its lock").clone()
    }

    /// Returns all requests that are not reads.
    pub(crate) fn writes(&self) -> Vec<RecordedRequest> {
        let mut writes = self.requests();
        writes.retain(|one| !["GET", "HEAD", "OPTIONS"].contains(&one.method.as_str()));
        writes
    }
}

impl RecordedRequest {
    pub(crate) fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }

    /// Returns `metadata.name` or `metadata.generateName` of the body.
    pub(crate) fn object_name(&self) -> String {
        let body: Value = serde_json::from_slice(&self.body).unwrap_or_default();
        let name = |member: &str| body["metadata"][member].as_str().map(str::to_owned);
        name("name").or_else(|| name("generateName")).unwrap_or_default()
    }
}

/// Forwards a connection until either side closes it.
fn forward(mut client: TcpStream, server: SocketAddr, seen: &Mutex<Vec<RecordedRequest>>) {
    let Ok(mut upstream) = TcpStream::connect(server) else { return };
    // Nagle's algorithm would delay each small frame by 40 ms.
    let _ = (client.set_nodelay(true), upstream.set_nodelay(true));
    let (Ok(mut responses), Ok(mut back)) = (upstream.try_clone(), client.try_clone()) else {
        return;
    };
    let responding = thread::spawn(move || {
        let _ = std::io::copy(&mut responses, &mut back);
        let _ = back.shutdown(Shutdown::Write);
    });
    let mut requests = RequestParser::default();
    let mut chunk = vec![0; 64 << 10];
    while let Ok(length @ 1..) = client.read(&mut chunk) {
        seen.lock().expect("its lock").extend(requests.add(&chunk[..length]));
        if upstream.write_all(&chunk[..length]).is_err() {
            break;
        }
    }
    let _ = upstream.shutdown(Shutdown::Write);
    let _ = responding.join();
}

/// Parses the requests of a connection.
#[derive(Default)]
struct RequestParser {
    bytes: Vec<u8>,
    /// The recorder does not parse the rest of the connection: after an upgrade it is not HTTP,
    /// or it is chunked.
    is_opaque: bool,
}

impl RequestParser {
    /// Returns the requests that these bytes complete.
    fn add(&mut self, bytes: &[u8]) -> Vec<RecordedRequest> {
        let mut complete = Vec::new();
        if self.is_opaque {
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
            let length: usize =
                header("content-length").and_then(|value| value.parse().ok()).unwrap_or(0);
            self.is_opaque = header("upgrade").is_some() || header("transfer-encoding").is_some();
            let whole = end + 4 + length;
            if self.bytes.len() < whole && !self.is_opaque {
                break;
            }
            let body = self.bytes.get(end + 4..whole).unwrap_or_default().to_vec();
            let mut line = head.lines().next().unwrap_or_default().split(' ');
            let mut word = || line.next().unwrap_or_default().to_owned();
            complete.push(RecordedRequest {
                method: word(),
                target: word(),
                body,
                at: Instant::now(),
            });
            if self.is_opaque {
                break;
            }
            self.bytes.drain(..whole);
        }
        complete
    }
}
