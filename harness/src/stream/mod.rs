//! An open stream: what comes is read by a task of its own, what goes out is written by another, so that a server that
//! waits for us to read can never wait for ever, and neither can we.
//!
//! The bytes of both ways pass one `connection::Connection`, which frames them and records all of it in a
//! [`Transcript`].

mod connection;
mod framing;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
mod handshake;
mod patience;
mod spdy;
mod transcript;
mod websocket;

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::{Buf as _, Bytes};
use kubeproof_cases::stream::{Carrier, FrameHead, StreamKind};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use self::connection::Connection;
pub use self::handshake::Handshake;
pub use self::patience::{Impatience, Patience};
pub use self::transcript::{Channel, Close, Flow, Frame, StreamEnd, Transcript};
use crate::exchange::{Exchange, Outcome};

/// Writes that wait. Beyond, whoever sends is made to wait.
const BACKLOG: usize = 8;

/// How long a server may keep the connection after it has said goodbye.
const PARTING: Duration = Duration::from_secs(3);

/// More than any case makes a server send.
const MAX_RECEIVED: u64 = 512 << 20;

/// A stream, from the answer to its handshake to its end. Dropping it hangs up.
#[derive(Debug)]
pub struct OpenStream {
    /// The handshake.
    pub head: Exchange,
    /// What is wrong with a 101.
    pub problems: Vec<String>,
    live: Option<Live>,
    opened: Instant,
}

/// What its channels are.
#[derive(Clone, Debug)]
pub struct Shape {
    /// As the case says.
    pub kind: StreamKind,
    /// Of a port-forward.
    pub ports: Vec<u16>,
}

#[derive(Debug)]
struct Live {
    shared: Arc<Shared>,
    writes: mpsc::Sender<Write>,
    tasks: [JoinHandle<()>; 2],
}

impl Drop for Live {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    news: Notify,
    /// Told when the connection has taken some of what is to be written.
    taken: Notify,
    origin: Instant,
}

#[derive(Debug)]
struct State {
    connection: Connection,
    transcript: Transcript,
    /// Frames of the server that a step has taken.
    seen: usize,
}

#[derive(Debug)]
struct Write {
    bytes: Bytes,
    done: Option<oneshot::Sender<()>>,
}

/// Something to send.
#[derive(Clone, Debug)]
pub enum Sent {
    /// Data of a channel, in one message; or, with `end`, what ends the channel.
    Data {
        /// By name or number.
        channel: String,
        /// The data.
        bytes: Bytes,
        /// Nothing follows.
        end: bool,
    },
    /// A WebSocket frame of any kind.
    Frame(FrameHead, Vec<u8>),
    /// A ping.
    Ping(String),
    /// `RST_STREAM`.
    Reset(String, u32),
    /// A new SPDY stream.
    Create {
        /// The name of its channel.
        channel: String,
        /// Where it is not to be the next.
        number: Option<u32>,
        /// Its headers.
        headers: Vec<(String, String)>,
        /// Nothing will be sent on it.
        end: bool,
    },
    /// Bytes below all framing.
    Raw(Vec<u8>),
}

/// Why something was not sent.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum SendError {
    /// The connection that is there cannot carry it.
    #[error("{0}")]
    Unfit(String),
    /// The server reads no more, or too slowly.
    #[error("the server does not take what is sent")]
    Untaken(Impatience),
    /// The connection has ended; how, the transcript says.
    #[error("the connection has ended")]
    Ended,
}

/// What became of waiting.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Waited<T> {
    /// It came.
    Came(T),
    /// The stream ended first, or what came broke its framing.
    Ended,
    /// Nothing, for as long as there was patience.
    Not(Impatience),
}

impl OpenStream {
    /// A stream that did not open.
    pub(crate) fn refused(head: Exchange, problems: Vec<String>) -> Self {
        Self { head, problems, live: None, opened: Instant::now() }
    }

    /// A stream over a connection that was upgraded.
    pub(crate) fn over(
        io: impl AsyncRead + AsyncWrite + Send + 'static,
        head: Exchange,
        (over, protocol): (Carrier, String),
        shape: &Shape,
        origin: Instant,
    ) -> Self {
        let connection = match Connection::new(over, shape.kind, &protocol, shape.ports.clone()) {
            Ok(connection) => connection,
            Err(problem) => return Self::refused(head, vec![problem]),
        };
        let mut transcript = Transcript::new(protocol);
        for name in channels(shape) {
            transcript.channel(&name);
        }
        let state = State { connection, transcript, seen: 0 };
        let shared =
            Arc::new(Shared { state: Mutex::new(state), news: Notify::new(), taken: Notify::new(), origin });
        let (writes, queue) = mpsc::channel(BACKLOG);
        let (incoming, outgoing) = tokio::io::split(io);
        let is_websocket = over == Carrier::Websocket;
        let tasks = [
            tokio::spawn(read(incoming, Arc::clone(&shared), writes.clone(), is_websocket)),
            tokio::spawn(write(outgoing, queue, Arc::clone(&shared))),
        ];
        Self { live: Some(Live { shared, writes, tasks }), ..Self::refused(head, Vec::new()) }
    }

    /// Whether there is a stream.
    pub fn is_open(&self) -> bool {
        self.live.is_some()
    }

    /// Whether channels are SPDY streams.
    pub fn is_spdy(&self) -> bool {
        self.live.as_ref().is_some_and(|live| live.shared.lock().connection.is_spdy())
    }

    /// Whether the end of a channel rides on its last data, where channels can be ended at all.
    pub fn ends_with_data(&self) -> Option<bool> {
        let live = self.live.as_ref()?;
        let state = live.shared.lock();
        state.connection.half_closes().then(|| state.connection.ends_with_data())
    }

    /// Sends, and waits until the server's side of the connection has room for it. What moves meanwhile moves the deadline.
    pub async fn send(&self, sent: Sent, patience: &mut Patience) -> Result<(), SendError> {
        let live = self.live.as_ref().ok_or(SendError::Ended)?;
        let mut since = Instant::now();
        let bytes = {
            let mut state = live.shared.lock();
            if state.transcript.end.is_some() {
                return Err(SendError::Ended);
            }
            state.frame(sent, live.shared.origin.elapsed()).map_err(SendError::Unfit)?
        };
        let (done, written) = oneshot::channel();
        let written = async {
            live.writes.send(Write { bytes, done: Some(done) }).await.map_err(|_| SendError::Ended)?;
            written.await.map_err(|_| SendError::Ended)
        };
        tokio::pin!(written);
        loop {
            let (end, why) = patience.ends_write(since);
            let moved = tokio::select! {
                biased;
                written = &mut written => Some(written),
                () = live.shared.taken.notified() => None,
                () = tokio::time::sleep_until(end) => return Err(SendError::Untaken(why)),
            };
            patience.moved(since.elapsed());
            since = Instant::now();
            if let Some(written) = moved {
                return written;
            }
        }
    }

    /// Waits until the transcript holds something, for as long as there is patience. What comes meanwhile moves the deadline.
    pub async fn wait<T>(
        &self,
        patience: &mut Patience,
        mut holds: impl FnMut(&Transcript, &mut usize) -> Option<T>,
    ) -> Waited<T> {
        let Some(live) = &self.live else { return Waited::Ended };
        let (mut messages, mut since) = (None, Instant::now());
        loop {
            let news = live.shared.news.notified();
            tokio::pin!(news);
            news.as_mut().enable();
            {
                let mut state = live.shared.lock();
                let State { transcript, seen, .. } = &mut *state;
                // Pings, and what else costs a server nothing, buy no time.
                let now = transcript.channels.values().map(|channel| channel.received.messages).sum::<u64>();
                if messages.replace(now).is_some_and(|before| before < now) {
                    patience.moved(since.elapsed());
                    since = Instant::now();
                }
                if let Some(found) = holds(transcript, seen) {
                    return Waited::Came(found);
                }
                if transcript.end.is_some() || !transcript.violations.is_empty() {
                    return Waited::Ended;
                }
            }
            let (end, why) = patience.ends();
            if tokio::time::timeout_at(end, news).await.is_err() {
                return Waited::Not(why);
            }
        }
    }

    /// Waits for the end that the server makes.
    pub async fn finish(&self, patience: &mut Patience) -> Waited<StreamEnd> {
        let is_spdy = self.is_spdy();
        let waited = self.wait(patience, |transcript, _| ended(transcript, is_spdy)).await;
        if let (Waited::Came(end), Some(live)) = (&waited, &self.live) {
            live.shared.lock().transcript.end.get_or_insert(end.clone());
        }
        waited
    }

    /// Hangs up. What was not read is gone.
    pub fn hang_up(&self) {
        if let Some(live) = &self.live {
            for task in &live.tasks {
                task.abort();
            }
            live.shared.lock().transcript.end.get_or_insert(StreamEnd::Client);
            live.shared.news.notify_waiters();
        }
    }

    /// The handshake with everything that came and went so far.
    pub fn snapshot(&self) -> Exchange {
        let mut exchange = self.head.clone();
        if let (Some(live), Outcome::Answered(received)) = (&self.live, &mut exchange.outcome) {
            received.stream = Some(Arc::new(live.shared.lock().transcript.clone()));
            exchange.took = self.opened.elapsed();
        }
        exchange
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn frame(&mut self, sent: Sent, at: Duration) -> Result<Bytes, String> {
        let Self { connection, transcript, .. } = self;
        let record = (transcript, at);
        match sent {
            Sent::Data { channel, bytes, end } => connection.data(&channel, bytes, end, record),
            Sent::Frame(head, payload) => Ok(connection.exact(head, &payload, record)),
            Sent::Ping(payload) => connection.ping(&payload, record),
            Sent::Reset(channel, status) => connection.reset(&channel, status, record),
            Sent::Create { channel, number, headers, end } => {
                connection.create((&channel, number), &headers, end, record)
            }
            Sent::Raw(bytes) => Ok(Connection::raw(bytes, record)),
        }
    }
}

/// The channels that a stream has from the beginning.
fn channels(shape: &Shape) -> Vec<String> {
    match shape.kind {
        StreamKind::Command => ["stdin", "stdout", "stderr", "error", "resize"].map(str::to_owned).into(),
        StreamKind::Plain => vec!["data".to_owned()],
        StreamKind::Ports => (0..shape.ports.len())
            .flat_map(|n| {
                if n == 0 {
                    ["data".to_owned(), "error".to_owned()]
                } else {
                    [format!("data{n}"), format!("error{n}")]
                }
            })
            .collect(),
    }
}

/// Whether the server has nothing more to say. A SPDY connection stays for streams to come, so there it is the end of
/// all streams that the server writes.
fn ended(transcript: &Transcript, is_spdy: bool) -> Option<StreamEnd> {
    if let Some(end) = &transcript.end {
        return Some(end.clone());
    }
    if !is_spdy {
        return None;
    }
    let created = |name: &str| {
        transcript.frames.iter().any(|frame| !frame.from_server && frame.channel.as_deref() == Some(name))
    };
    let mut written = transcript
        .channels
        .iter()
        .filter(|(name, _)| !matches!(name.as_str(), "stdin" | "resize") && created(name))
        .peekable();
    let all = written.peek().is_some() && written.all(|(_, channel)| channel.ended);
    (all || transcript.close.is_some()).then_some(StreamEnd::Server)
}

async fn read(
    mut io: impl AsyncRead + Unpin,
    shared: Arc<Shared>,
    replies: mpsc::Sender<Write>,
    is_websocket: bool,
) {
    let mut buffer = vec![0; 16 << 10];
    let mut total = 0_u64;
    loop {
        let closed = is_websocket && shared.lock().transcript.close.is_some();
        let patience = if closed { Some(PARTING) } else { None };
        let read = match patience {
            None => io.read(&mut buffer).await,
            Some(patience) => {
                if let Ok(read) = tokio::time::timeout(patience, io.read(&mut buffer)).await {
                    read
                } else {
                    let mut state = shared.lock();
                    state.transcript.violation("the server keeps the connection after its close");
                    state.transcript.end.get_or_insert(StreamEnd::Server);
                    break;
                }
            }
        };
        let mut state = shared.lock();
        let State { connection, transcript, .. } = &mut *state;
        match read {
            Ok(0) | Err(_) => {
                let why = read.err().map_or_else(|| "it was closed".to_owned(), |error| error.to_string());
                let inside = if connection.is_inside_frame() { ", inside a frame" } else { "" };
                let end = match &transcript.close {
                    Some(_) => StreamEnd::Server,
                    None => StreamEnd::Dropped(format!("{why}{inside}")),
                };
                transcript.end.get_or_insert(end);
                break;
            }
            Ok(count) => {
                total += count as u64;
                let fed = connection.feed(&buffer[..count], (transcript, shared.origin.elapsed()));
                match fed {
                    Ok(answers) if total <= MAX_RECEIVED => {
                        for bytes in answers {
                            // A server that floods us with pings and takes no answers gets none.
                            let _ = replies.try_send(Write { bytes, done: None });
                        }
                    }
                    Ok(_) => {
                        let why = format!("more than {MAX_RECEIVED} bytes came");
                        transcript.end.get_or_insert(StreamEnd::Broken(why));
                        break;
                    }
                    Err(why) => {
                        transcript.violation(why.clone());
                        transcript.end.get_or_insert(StreamEnd::Broken(why));
                        break;
                    }
                }
            }
        }
        drop(state);
        shared.news.notify_waiters();
    }
    shared.news.notify_waiters();
}

async fn write(mut io: impl AsyncWrite + Unpin, mut queue: mpsc::Receiver<Write>, shared: Arc<Shared>) {
    while let Some(Write { mut bytes, done }) = queue.recv().await {
        let written = async {
            while bytes.has_remaining() {
                if io.write_buf(&mut bytes).await? == 0 {
                    return Err(io::Error::from(io::ErrorKind::WriteZero));
                }
                shared.taken.notify_waiters();
            }
            io.flush().await
        };
        if written.await.is_err() {
            return;
        }
        if let Some(done) = done {
            // Whoever sent it may have stopped waiting.
            let _ = done.send(());
        }
    }
}
