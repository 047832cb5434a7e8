//! A TCP peer that follows a script.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http::HeaderName;
use kubeproof_cases::case::Identity;
use kubeproof_harness::target::{Credential, TargetConfig};
use kubeproof_harness::transport::{Client, Limits, Outgoing};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::{Duration, Instant};

/// A token that must not appear in records, messages or debug output.
pub(crate) const TOKEN: &str = "s3cr3t-t0ken";

/// A step of the script.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    /// Reads a request head.
    Head,
    /// Sends bytes.
    Send(Bytes),
    /// Sends bytes one by one.
    Trickle(Bytes),
    /// Sends bytes until the client closes the connection.
    Flood(Bytes),
    /// Waits until the client closes the connection.
    Hang,
    /// Resets the connection.
    Reset,
}

pub(crate) fn send(text: impl Into<Bytes>) -> Act {
    Act::Send(text.into())
}

/// A listening peer. Every connection follows the same script and is closed at its end.
pub(crate) struct Peer {
    pub(crate) addr: SocketAddr,
    heads: mpsc::UnboundedReceiver<String>,
    hung_up: mpsc::UnboundedReceiver<()>,
    connections: Arc<AtomicUsize>,
}

impl Peer {
    pub(crate) async fn start(script: Vec<Act>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let (head, heads) = mpsc::unbounded_channel();
        let (end, hung_up) = mpsc::unbounded_channel();
        let connections = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&connections);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::SeqCst);
                let (script, head, end) = (script.clone(), head.clone(), end.clone());
                tokio::spawn(async move {
                    // The client may close the connection early.
                    let _ = follow(stream, script, &head, &end).await;
                });
            }
        });
        Self { addr, heads, hung_up, connections }
    }

    /// Starts a peer with this response.
    pub(crate) async fn responding(response: impl Into<Bytes>) -> Self {
        Self::start(vec![Act::Head, send(response)]).await
    }

    /// Returns the next request head.
    pub(crate) async fn head(&mut self) -> String {
        tokio::time::timeout(Duration::from_secs(10), self.heads.recv()).await.unwrap().unwrap()
    }

    /// Waits until the client closed the connection.
    pub(crate) async fn hung_up(&mut self) {
        tokio::time::timeout(Duration::from_secs(10), self.hung_up.recv()).await.unwrap().unwrap();
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    pub(crate) fn config(&self) -> TargetConfig {
        let mut config = TargetConfig::new(&format!("http://{}", self.addr)).unwrap();
        config.credential = Credential::token(TOKEN).unwrap();
        config
    }

    pub(crate) fn client(&self) -> Client {
        self.client_with(Limits::default())
    }

    pub(crate) fn client_with(&self, limits: Limits) -> Client {
        Client::new(&self.config(), limits).unwrap()
    }
}

async fn follow(
    mut stream: TcpStream,
    script: Vec<Act>,
    heads: &mpsc::UnboundedSender<String>,
    hung_up: &mpsc::UnboundedSender<()>,
) -> io::Result<()> {
    for act in script {
        match act {
            Act::Head => {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    head.push(stream.read_u8().await?);
                }
                let _ = heads.send(String::from_utf8_lossy(&head).into_owned());
            }
            Act::Send(bytes) => stream.write_all(&bytes).await?,
            Act::Trickle(bytes) => {
                stream.set_nodelay(true)?;
                for byte in bytes {
                    stream.write_u8(byte).await?;
                    tokio::task::yield_now().await;
                }
            }
            Act::Flood(bytes) => while stream.write_all(&bytes).await.is_ok() {},
            Act::Hang => {
                let mut rest = Vec::new();
                let _ = stream.read_to_end(&mut rest).await;
                let _ = hung_up.send(());
            }
            Act::Reset => {
                stream.set_zero_linger()?;
                return Ok(());
            }
        }
    }
    stream.shutdown().await?;
    // A close with unread bytes would reset the connection.
    stream.read_to_end(&mut Vec::new()).await.map(|_| ())
}

pub(crate) fn get(target: &str) -> Outgoing {
    Outgoing {
        method: "GET".to_owned(),
        target: target.to_owned(),
        headers: vec![("accept".to_owned(), "application/json".to_owned())],
        body: Bytes::new(),
        identity: Identity::Admin,
        exact: false,
    }
}

pub(crate) fn exact(target: &str) -> Outgoing {
    Outgoing { exact: true, ..get(target) }
}

/// A deadline that correct clients meet easily.
pub(crate) fn ample() -> Instant {
    Instant::now() + Duration::from_secs(20)
}

/// A deadline that expires soon.
pub(crate) fn soon() -> Instant {
    Instant::now() + Duration::from_millis(150)
}

/// Returns the values of a header in a raw head.
pub(crate) fn values<'a>(head: &'a str, name: &HeaderName) -> Vec<&'a str> {
    let fields = head.lines().skip(1).filter_map(|line| line.split_once(": "));
    fields
        .filter(|(field, _)| field.eq_ignore_ascii_case(name.as_str()))
        .map(|(_, value)| value)
        .collect()
}
