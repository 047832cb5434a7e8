//! A front that speaks HTTP/2 over TLS: frames pass both ways, until a request that is marked is met by others.
//!
//! Headers are packed, bodies are not: the mark stands in the body of a request, and nothing has to be unpacked to find it. The
//! server behind is made to pack without a table, so that its answers can be left out.

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
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::server::TlsStream;

use super::frames::{
    ACK, DATA, Frame, INITIAL_WINDOW_SIZE, NO_TABLE, RST_STREAM, SETTINGS, WINDOW_UPDATE, setting, to_stream,
};
use crate::hostile::front::{Act, Front, Hostility, marked};

/// What suffers from a hostility.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Scope {
    /// A request; whatever else is under way goes on.
    Stream,
    /// The connection of a request, which is closed at the end.
    Connection,
    /// Each connection, from its beginning.
    All,
}

/// What connections have in common.
struct Shared {
    behind: String,
    acceptor: TlsAcceptor,
    hostilities: Vec<Hostility>,
    scope: Scope,
    turn: AtomicUsize,
    met: Arc<Mutex<Vec<&'static str>>>,
}

/// Starts a front. What does not speak HTTP/2 is passed on as it is.
pub(super) fn start(behind: &str, hostilities: Vec<Hostility>, scope: Scope) -> Front {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.set_nonblocking(true).expect("a socket");
    let url = format!("https://{}", listener.local_addr().expect("its address"));
    let behind = behind.trim_start_matches("http://").to_owned();
    let met = Arc::new(Mutex::new(Vec::new()));
    let shared = Arc::new(Shared {
        behind,
        acceptor: acceptor(),
        hostilities,
        scope,
        turn: AtomicUsize::new(0),
        met: Arc::clone(&met),
    });
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async {
            let listener = TcpListener::from_std(listener).expect("a socket");
            while let Ok((client, _)) = listener.accept().await {
                // A client that has gone is what most of this is about.
                tokio::spawn(serve(client, Arc::clone(&shared)));
            }
        });
    });
    Front { url, met }
}

fn acceptor() -> TlsAcceptor {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("a certificate");
    let key = PrivateKeyDer::Pkcs8(signing_key.serialize_der().into());
    let mut config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
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
        met: Mutex::default(),
        first_window: AtomicUsize::new(0),
        settled: watch::channel(false).0,
    };
    if connection.shared.scope == Scope::All {
        connection.meet(0, 1).await;
        return copy(&mut from_client, &mut sink()).await.map(drop);
    }
    let (mut from_server, mut to_server) = TcpStream::connect(&connection.shared.behind).await?.into_split();
    if speaks_http2 {
        tokio::select! {
            ended = connection.upwards(from_client, to_server) => ended,
            ended = connection.downwards(from_server) => ended,
        }
    } else {
        let mut to_client = connection.to_client.lock().await;
        tokio::select! {
            ended = copy(&mut from_client, &mut to_server) => ended.map(drop),
            ended = copy(&mut from_server, &mut *to_client) => ended.map(drop),
        }
    }
}

type ToClient = WriteHalf<TlsStream<TcpStream>>;

/// A stream, as the client has left it.
#[derive(Clone, Copy)]
struct Stream {
    is_reset: bool,
    /// Bytes that the client has asked for so far.
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
    /// The streams that have been met.
    met: Mutex<HashMap<u32, watch::Sender<Stream>>>,
    /// What the client takes of a stream before it has to ask.
    first_window: AtomicUsize,
    /// Whether the client has been told that its settings hold. What it bears may depend on them.
    settled: watch::Sender<bool>,
}

impl Connection {
    /// What the client sends, but for the streams that have been met.
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
            if let Some(met) = self.met.lock().expect("nobody died").get(&frame.stream) {
                met.send_modify(|stream| stream.receive(&frame));
                continue;
            }
            if frame.kind == DATA
                && let Some(index) = self.turn(&String::from_utf8_lossy(&frame.payload))
            {
                let _ = self.settled.subscribe().wait_for(|settled| *settled).await;
                self.meet(index, frame.stream).await;
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

    /// What the server sends, but for the streams that have been met.
    async fn downwards(&self, mut server: OwnedReadHalf) -> io::Result<()> {
        loop {
            let frame = Frame::read(&mut server).await?;
            if !self.met.lock().expect("nobody died").contains_key(&frame.stream) {
                let mut client = self.to_client.lock().await;
                client.write_all(&frame.bytes()).await?;
                client.flush().await?;
                if (frame.kind, frame.flags) == (SETTINGS, ACK) {
                    self.settled.send_replace(true);
                }
            }
        }
    }

    /// The hostility that a request with this body is to meet.
    fn turn(&self, body: &str) -> Option<usize> {
        let turn = &self.shared.turn;
        let next = || body.contains("ConfigMap").then(|| turn.fetch_add(1, Ordering::SeqCst));
        marked(body).or_else(next).map(|turn| turn % self.shared.hostilities.len())
    }

    /// A stream meets the hostility at this index.
    async fn meet(&self, index: usize, stream: u32) {
        let hostility = &self.shared.hostilities[index];
        self.shared.met.lock().expect("nobody died").push(hostility.name);
        let window = self.first_window.load(Ordering::SeqCst);
        let (sender, state) = watch::channel(Stream { is_reset: false, window });
        self.met.lock().expect("nobody died").insert(stream, sender);
        let script: Vec<Act> = hostility.script.iter().map(|act| to_stream(act, stream)).collect();
        let client = Arc::clone(&self.to_client);
        if self.shared.scope == Scope::Stream {
            tokio::spawn(harm_stream(script, client, state));
        } else {
            tokio::spawn(harm_connection(script, client.lock_owned().await));
        }
    }
}

/// Others have their turn between what is sent.
async fn harm_stream(
    script: Vec<Act>,
    client: Arc<Turn<ToClient>>,
    mut stream: watch::Receiver<Stream>,
) -> io::Result<()> {
    for act in script {
        match act {
            Act::Send(bytes) => write(&mut *client.lock().await, &bytes).await?,
            Act::Flood(bytes) => {
                while !stream.borrow().is_reset {
                    write(&mut *client.lock().await, &bytes).await?;
                }
            }
            Act::FloodWithin(bytes) => {
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
            // Whoever has gone altogether has left, too.
            Act::Hang | Act::Answer => drop(stream.wait_for(|stream| stream.is_reset).await),
        }
    }
    Ok(())
}

/// Nobody else has a turn any more.
async fn harm_connection(script: Vec<Act>, mut client: OwnedMutexGuard<ToClient>) -> io::Result<()> {
    for act in script {
        match act {
            Act::Send(bytes) => write(&mut client, &bytes).await?,
            Act::Flood(bytes) | Act::FloodWithin(bytes) => loop {
                write(&mut client, &bytes).await?;
            },
            Act::Hang | Act::Answer => std::future::pending().await,
        }
    }
    client.shutdown().await
}

async fn write(client: &mut ToClient, bytes: &[u8]) -> io::Result<()> {
    client.write_all(bytes).await?;
    client.flush().await
}
