//! A client of streams that writes the bytes of a test and records the received bytes.
//!
//! It shares no framing code with the server. The record groups the bytes by channel, because the
//! order between channels and the borders of messages are random.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::support::TestServer;

/// The timeout of an exchange whose server stays silent.
const TIMEOUT: Duration = Duration::from_secs(2);

/// An upgrade request, and the bytes that the client sends after the response head.
#[derive(Clone, Debug, Default)]
pub(crate) struct Exchange {
    pub(crate) method: &'static str,
    pub(crate) path: String,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) sends: Vec<u8>,
    /// The client disconnects after it has received all of these. If empty, it reads to the end.
    pub(crate) enough: Vec<Vec<u8>>,
}

impl Exchange {
    pub(crate) fn websocket(path: &str, protocols: &str) -> Self {
        let mut headers = vec![
            ("Connection", "Upgrade".to_owned()),
            ("Upgrade", "websocket".to_owned()),
            ("Sec-WebSocket-Version", "13".to_owned()),
            ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==".to_owned()),
        ];
        if !protocols.is_empty() {
            headers.push(("Sec-WebSocket-Protocol", protocols.to_owned()));
        }
        Self { method: "GET", path: path.to_owned(), headers, ..Self::default() }
    }

    pub(crate) fn spdy(path: &str, protocols: &str) -> Self {
        let headers = vec![
            ("Connection", "Upgrade".to_owned()),
            ("Upgrade", "SPDY/3.1".to_owned()),
            ("X-Stream-Protocol-Version", protocols.to_owned()),
            ("Content-Length", "0".to_owned()),
        ];
        Self { method: "POST", path: path.to_owned(), headers, ..Self::default() }
    }

    /// Describes a request without an upgrade.
    pub(crate) fn plain(method: &'static str, path: &str) -> Self {
        Self { method, path: path.to_owned(), ..Self::default() }
    }

    pub(crate) fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    /// Adds a masked WebSocket frame.
    pub(crate) fn frame(mut self, opcode: u8, payload: &[u8]) -> Self {
        const MASK: [u8; 4] = [1, 2, 3, 4];
        self.sends.push(0x80 | opcode);
        if let Ok(length @ 0..126) = u8::try_from(payload.len()) {
            self.sends.push(0x80 | length);
        } else {
            let length = u16::try_from(payload.len()).expect("tests send short frames");
            self.sends.push(0xfe);
            self.sends.extend(length.to_be_bytes());
        }
        self.sends.extend(MASK);
        self.sends.extend(payload.iter().zip(MASK.iter().cycle()).map(|(byte, mask)| byte ^ mask));
        self
    }

    pub(crate) fn message(self, payload: &[u8]) -> Self {
        self.frame(2, payload)
    }

    pub(crate) fn bytes(mut self, bytes: &[u8]) -> Self {
        self.sends.extend(bytes);
        self
    }

    /// Adds a `SYN_STREAM` frame. Its header block is stored without compression, and the first one
    /// of a connection begins with the zlib header.
    pub(crate) fn stream(self, id: u32, headers: &[(&str, &str)]) -> Self {
        let mut plain = u32::try_from(headers.len()).expect("few headers").to_be_bytes().to_vec();
        for text in headers.iter().flat_map(|(name, value)| [name, value]) {
            plain.extend(u32::try_from(text.len()).expect("short headers").to_be_bytes());
            plain.extend(text.bytes());
        }
        let length = u16::try_from(plain.len()).expect("short headers");
        let mut block = if id == 1 { vec![0x78, 0xf9, 0xe3, 0xc6, 0xa7, 0xc2] } else { Vec::new() };
        block.push(0);
        block.extend(length.to_le_bytes());
        block.extend((!length).to_le_bytes());
        block.extend(plain);
        let frame = [id.to_be_bytes().as_slice(), &[0; 6], &block].concat();
        self.control(1, &frame)
    }

    pub(crate) fn control(self, kind: u8, body: &[u8]) -> Self {
        let length = u32::try_from(body.len()).expect("short frames").to_be_bytes();
        self.bytes(&[0x80, 3, 0, kind]).bytes(&length).bytes(body)
    }

    pub(crate) fn data(self, stream: u32, fin: bool, bytes: &[u8]) -> Self {
        let length = u32::try_from(bytes.len()).expect("short frames").to_be_bytes();
        self.bytes(&stream.to_be_bytes()).bytes(&[u8::from(fin)]).bytes(&length[1..]).bytes(bytes)
    }

    pub(crate) fn until(mut self, enough: &[u8]) -> Self {
        self.enough.push(enough.to_vec());
        self
    }

    /// Runs the exchange and returns a readable record of the received bytes.
    pub(crate) async fn run(self, server: &TestServer) -> String {
        let mut socket =
            TcpStream::connect(server.running.addr()).await.expect("the server listens");
        let mut request = format!("{} {} HTTP/1.1\r\nHost: test\r\n", self.method, self.path);
        if !self.headers.iter().any(|(_, value)| value.contains("bearer.authorization")) {
            let _ = write!(request, "Authorization: Bearer {}\r\n", server.running.admin_token());
        }
        for (name, value) in &self.headers {
            let _ = write!(request, "{name}: {value}\r\n");
        }
        request.push_str("\r\n");
        socket.write_all(request.as_bytes()).await.expect("the server reads");
        let mut received = Vec::new();
        let mut begun = false;
        let read = async {
            loop {
                if !begun && find(&received, b"\r\n\r\n").is_some() {
                    begun = true;
                    // A server that rejects the request may close the connection first.
                    let _ = socket.write_all(&self.sends).await;
                }
                let mut enough = self.enough.iter();
                let done =
                    !self.enough.is_empty() && enough.all(|one| find(&received, one).is_some());
                let rejected = begun && !received.starts_with(b"HTTP/1.1 101") && ends(&received);
                if done || rejected || !matches!(socket.read_buf(&mut received).await, Ok(1..)) {
                    return;
                }
            }
        };
        let late = tokio::time::timeout(TIMEOUT, read).await.is_err();
        let end = find(&received, b"\r\n\r\n").map_or(received.len(), |end| end + 4);
        let (head, body) = received.split_at(end);
        let upgraded = head.starts_with(b"HTTP/1.1 101");
        let spdy = self.headers.iter().any(|(_, value)| value == "SPDY/3.1");
        let record = match (upgraded, spdy) {
            (false, _) => String::from_utf8_lossy(body).into_owned(),
            (true, true) => spdy_words(body),
            (true, false) => websocket_words(body),
        };
        let head: Vec<_> = String::from_utf8_lossy(head)
            .lines()
            .filter(|line| !line.to_ascii_lowercase().starts_with("date:"))
            .map(str::to_owned)
            .collect();
        format!("{} {}\n{}\n{record}late: {late}\n", self.method, self.path, head.join("\n"))
    }
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

/// Returns whether a response with a length is complete.
fn ends(received: &[u8]) -> bool {
    let Some(end) = find(received, b"\r\n\r\n") else { return false };
    let head = String::from_utf8_lossy(&received[..end]).to_ascii_lowercase();
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length:")?.trim().parse::<usize>().ok());
    length.is_some_and(|length| received.len() >= end + 4 + length)
}

/// Describes the bytes of each channel or stream.
fn describe(parts: &BTreeMap<String, Vec<u8>>) -> String {
    let mut text = String::new();
    for (name, bytes) in parts {
        let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(400)]);
        let _ = writeln!(text, "{name}: {} bytes {shown:?}", bytes.len());
    }
    text
}

fn websocket_words(mut bytes: &[u8]) -> String {
    let (mut parts, mut last) = (BTreeMap::<String, Vec<u8>>::new(), String::new());
    let mut ends = String::new();
    while let [first, second, rest @ ..] = bytes {
        let (length, rest) = match (second & 0x7f, rest) {
            (126, [a, b, rest @ ..]) => (usize::from(u16::from_be_bytes([*a, *b])), rest),
            (length, rest) => (usize::from(length), rest),
        };
        let payload = &rest[..length.min(rest.len())];
        bytes = &rest[length.min(rest.len())..];
        if *first & 0x0f >= 8 || !ends.is_empty() {
            let _ = writeln!(ends, "{first:02x} {payload:02x?}");
            continue;
        }
        let (channel, content) = payload.split_at(payload.len().min(1));
        last = format!("{first:02x} {channel:02x?}");
        parts.entry(last.clone()).or_default().extend(content);
    }
    format!("{}last: {last}\n{ends}", describe(&parts))
}

fn spdy_words(mut bytes: &[u8]) -> String {
    let mut parts = BTreeMap::<String, Vec<u8>>::new();
    let mut controls = Vec::new();
    while bytes.len() >= 8 {
        let (head, rest) = bytes.split_at(8);
        let length = u32::from_be_bytes([0, head[5], head[6], head[7]]) as usize;
        let body = &rest[..length.min(rest.len())];
        bytes = &rest[length.min(rest.len())..];
        if head[0] & 0x80 == 0 {
            let part = parts.entry(format!("stream {}", head[3])).or_default();
            part.extend(body);
            if head[4] & 1 == 1 {
                part.extend(b"<fin>");
            }
        } else {
            controls.push(format!("{:02x?} {body:02x?}", &head[..5]));
        }
    }
    // The order of the responses to several streams is random.
    controls.sort();
    format!("{}{}\n", describe(&parts), controls.join("\n"))
}
