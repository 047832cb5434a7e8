//! A proxy for HTTP/2 over TLS. It forwards frames in both directions, and attacks marked requests.
//!
//! The mark is in the body of a request, because header fields are compressed. The proxy disables
//! HPACK's dynamic table of the server, so that it can drop responses of the server.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use rcgen::{CertifiedKey, generate_simple_self_signed};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, ReadHalf, WriteHalf, copy, sink};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Mutex as Turn, OwnedMutexGuard, watch};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::server::TlsStream;

use super::frames::{
    ACK, DATA, Frame, INITIAL_WINDOW_SIZE, NO_TABLE, RST_STREAM, SETTINGS, WINDOW_UPDATE, setting,
    to_stream,
};
use crate::malicious_server::proxy::{Action, Attack, Proxy, marked};

/// The scope of an attack.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Scope {
    /// One request. Other requests go on.
    Stream,
    /// The connection of a request. The proxy closes it at the end.
    Connection,
    /// Every connection, from its start.
    All,
}

/// The state that all connections share.
struct Shared {
    behind: String,
    acceptor: TlsAcceptor,
    attacks: Vec<Attack>,
    scope: Scope,
    turn: AtomicUsize,
    used: Arc<Mutex<Vec<&'static str>>>,
}

/// Starts a proxy. It forwards connections without HTTP/2 unchanged.
pub(super) fn start(behind: &str, attacks: Vec<Attack>, scope: Scope) -> Proxy {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.set_nonblocking(true).expect("a socket");
    let url = format!("https://{}", listener.local_addr().expect("its address"));
    let behind = behind.trim_start_matches("http://").to_owned();
    let used = Arc::new(Mutex::new(Vec::new()));
    let shared = Arc::new(Shared {
        behind,
        acceptor: acceptor(),
        attacks,
        scope,
        turn: AtomicUsize::new(0),
        used: Arc::clone(&used),
    });
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async {
            let listener = TcpListener::from_std(listener).expect("a socket");
            while let Ok((client, _)) = listener.accept().await {
                // Most attacks end when the client closes the connection.
                tokio::spawn(serve(client, Arc::clone(&shared)));
            }
        });
    });
    Proxy { url, used }
}

fn acceptor() -> TlsAcceptor {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("a certificate");
    let key = PrivateKeyDer::Pkcs8(signing_key.serialize_der().into());
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)
        .expect("a key that fits");
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    TlsAcceptor::from(Arc::new(config))
}

async fn serve(client: TcpStream, shared: Arc<Shared>) -> io::Result<()> {
    client.set_nodelay(true)?;
    let client = shared.acceptor.accept(client).await?;
    let speaks_http2 = client.get_ref().1.alpn_protocol() == Some(b"h2");
    let (mut from_client, to_client) = tokio::io::split(client);
    let to_client = Arc::new(Turn::new(to_client));
    let connection = Connection {
        shared,
        to_client,
        attacked: Mutex::default(),
        first_window: AtomicUsize::new(0),
        settings_acknowledged: watch::channel(false).0,
    };
    if connection.shared.scope == Scope::All {
        connection.attack(0, 1).await;
        return copy(&mut from_client, &mut sink()).await.map(drop);
    }
    let (mut from_server, mut to_server) =
        TcpStream::connect(&connection.shared.behind).await?.into_split();
    if speaks_http2 {
        tokio::select! {
            output = connection.upwards(from_client, to_server) => output,
            output = connection.downwards(from_server) => output,
        }
    } else {
        let mut to_client = connection.to_client.lock().await;
        tokio::select! {
            output = copy(&mut from_client, &mut to_server) => output.map(drop),
            output = copy(&mut from_server, &mut *to_client) => output.map(drop),
        }
    }
}

type ToClient = WriteHalf<TlsStream<TcpStream>>;

/// The state of a stream on the side of the client.
#[derive(Clone, Copy)]
struct Stream {
    is_reset: bool,
    /// Bytes that the client has allowed so far.
    window: usize,
}

impl Stream {
    fn receive(&mut self, frame: &Frame) {
        self.is_reset |= frame.kind == RST_STREAM;
        if let (WINDOW_UPDATE, Ok(more)) = (frame.kind, frame.payload.as_slice().try_into()) {
            self.window += u32::from_be_bytes(more) as usize;
        }
    }
}

struct Connection {
    shared: Arc<Shared>,
    to_client: Arc<Turn<ToClient>>,
    /// The attacked streams.
    attacked: Mutex<HashMap<u32, watch::Sender<Stream>>>,
    /// The initial window of streams.
    first_window: AtomicUsize,
    /// The server has acknowledged the settings of the client. Its limits depend on them.
    settings_acknowledged: watch::Sender<bool>,
}

impl Connection {
    /// Forwards the frames of the client, except those of attacked streams.
    async fn upwards(
        &self,
        mut client: ReadHalf<TlsStream<TcpStream>>,
        mut server: OwnedWriteHalf,
    ) -> io::Result<()> {
        let mut preface = [0; b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".len()];
        client.read_exact(&mut preface).await?;
        server.write_all(&preface).await?;
        let mut is_first = true;
        loop {
            let mut frame = Frame::read(&mut client).await?;
            if let Some(attacked) = self.attacked.lock().expect("no panic").get(&frame.stream) {
                attacked.send_modify(|stream| stream.receive(&frame));
                continue;
            }
            if frame.kind == DATA
                && let Some(index) = self.turn(&String::from_utf8_lossy(&frame.payload))
            {
                let _ = self.settings_acknowledged.subscribe().wait_for(|settled| *settled).await;
                self.attack(index, frame.stream).await;
                continue;
            }
            if std::mem::take(&mut is_first) && frame.kind == SETTINGS {
                let window = setting(&frame.payload, INITIAL_WINDOW_SIZE).unwrap_or(65_535);
                self.first_window.store(window as usize, Ordering::SeqCst);
                frame.payload.extend(NO_TABLE);
            }
            server.write_all(&frame.bytes()).await?;
        }
    }

    /// Forwards the frames of the server, except those of attacked streams.
    async fn downwards(&self, mut server: OwnedReadHalf) -> io::Result<()> {
        loop {
            let frame = Frame::read(&mut server).await?;
            if !self.attacked.lock().expect("no panic").contains_key(&frame.stream) {
                let mut client = self.to_client.lock().await;
                client.write_all(&frame.bytes()).await?;
                client.flush().await?;
                if (frame.kind, frame.flags) == (SETTINGS, ACK) {
                    self.settings_acknowledged.send_replace(true);
                }
            }
        }
    }

    /// Returns the attack for a request with this body.
    fn turn(&self, body: &str) -> Option<usize> {
        let turn = &self.shared.turn;
        let next = || body.contains("ConfigMap").then(|| turn.fetch_add(1, Ordering::SeqCst));
        marked(body).or_else(next).map(|turn| turn % self.shared.attacks.len())
    }

    /// Attacks a stream with the attack at this index.
    async fn attack(&self, index: usize, stream: u32) {
        let attack = &self.shared.attacks[index];
        self.shared.used.lock().expect("no panic").push(attack.name);
        let window = self.first_window.load(Ordering::SeqCst);
        let (sender, state) = watch::channel(Stream { is_reset: false, window });
        self.attacked.lock().expect("no panic").insert(stream, sender);
        let script: Vec<Action> =
            attack.script.iter().map(|action| to_stream(action, stream)).collect();
        let client = Arc::clone(&self.to_client);
        if self.shared.scope == Scope::Stream {
            tokio::spawn(attack_stream(script, client, state));
        } else {
            tokio::spawn(attack_connection(script, client.lock_owned().await));
        }
    }
}

/// Executes an attack on a stream. Other streams can send between its frames.
async fn attack_stream(
    script: Vec<Action>,
    client: Arc<Turn<ToClient>>,
    mut stream: watch::Receiver<Stream>,
) -> io::Result<()> {
    for action in script {
        match action {
            Action::Send(bytes) => write(&mut *client.lock().await, &bytes).await?,
            Action::Flood(bytes) => {
                while !stream.borrow().is_reset {
                    write(&mut *client.lock().await, &bytes).await?;
                }
            }
            Action::FloodWithin(bytes) => {
                let mut sent = 0;
                while !stream.borrow().is_reset {
                    sent += bytes.len();
                    let goes_on = |stream: &Stream| stream.is_reset || sent <= stream.window;
                    if stream.wait_for(goes_on).await.is_err() {
                        break;
                    }
                    write(&mut *client.lock().await, &bytes).await?;
                }
            }
            // A closed connection ends all streams.
            Action::Hang | Action::RealHead => {
                drop(stream.wait_for(|stream| stream.is_reset).await);
            }
        }
    }
    Ok(())
}

/// Executes an attack on a connection. No other stream can send any more.
async fn attack_connection(
    script: Vec<Action>,
    mut client: OwnedMutexGuard<ToClient>,
) -> io::Result<()> {
    for action in script {
        match action {
            Action::Send(bytes) => write(&mut client, &bytes).await?,
            Action::Flood(bytes) | Action::FloodWithin(bytes) => loop {
                write(&mut client, &bytes).await?;
            },
            Action::Hang | Action::RealHead => std::future::pending().await,
        }
    }
    client.shutdown().await
}

async fn write(client: &mut ToClient, bytes: &[u8]) -> io::Result<()> {
    client.write_all(bytes).await?;
    client.flush().await
}
