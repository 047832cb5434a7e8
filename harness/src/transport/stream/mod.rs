//! An open stream.
//!
//! Two tasks read and write, so that neither side can block the other. `connection::Connection`
//! frames both directions and records them in a [`Transcript`].

mod connection;
mod framing;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
mod handshake;
mod spdy;
mod tasks;
mod timeout;
mod websocket;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use kubeproof_cases::case::FrameHead;
use kubeproof_cases::protocol::{Carrier, StreamKind};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use self::connection::Connection;
pub use self::handshake::Handshake;
use self::tasks::{QueuedWrite, read, read_body, write};
pub use self::timeout::{StreamTimeout, TimeoutCause};
use super::exact::OpenBody;
use crate::exchange::{Exchange, FrameError, Outcome, StreamEnd, Transcript};

/// Limit on queued writes. Senders wait beyond.
const BACKLOG: usize = 8;

/// A stream, from its handshake to its end. Drop closes it.
#[derive(Debug)]
pub struct OpenStream {
    /// The handshake.
    pub head: Exchange,
    /// Mistakes of the 101 response.
    pub problems: Vec<String>,
    live: Option<Live>,
    opened: Instant,
}

/// The channels of a stream.
#[derive(Clone, Debug)]
pub struct Shape {
    /// The kind of the case.
    pub kind: StreamKind,
    /// Ports of a port-forward.
    pub ports: Vec<u16>,
}

#[derive(Debug)]
struct Live {
    shared: Arc<Shared>,
    writes: mpsc::Sender<QueuedWrite>,
    tasks: Vec<JoinHandle<()>>,
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
    /// Notified when the connection accepted data.
    taken: Notify,
    origin: Instant,
}

#[derive(Debug)]
struct State {
    connection: Connection,
    transcript: Transcript,
    /// Server frames that steps have read.
    seen: usize,
}

/// Something to send.
#[derive(Clone, Debug)]
pub enum StreamWrite {
    /// Data of a channel in one message, or its end.
    Data {
        /// Name or number.
        channel: String,
        /// The data.
        bytes: Bytes,
        /// True to end the channel.
        end: bool,
    },
    /// A WebSocket frame with any header.
    Frame(FrameHead, Vec<u8>),
    /// A ping.
    Ping(String),
    /// `RST_STREAM`.
    Reset(String, u32),
    /// A new SPDY stream.
    Create {
        /// The name of its channel.
        channel: String,
        /// The stream number; `None` for the next one.
        number: Option<u32>,
        /// Its headers.
        headers: Vec<(String, String)>,
        /// True if no data follows.
        end: bool,
    },
    /// Bytes without framing.
    Raw(Vec<u8>),
}

/// Why data was not sent.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum SendError {
    /// The negotiated protocol cannot carry it.
    #[error(transparent)]
    Unsupported(#[from] FrameError),
    /// The server reads too slowly, or not at all.
    #[error("the server does not read what is sent")]
    TimedOut(TimeoutCause),
    /// The connection is closed. The transcript has the reason.
    #[error("the connection has ended")]
    Ended,
}

/// The outcome of a wait.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum WaitOutcome<T> {
    /// The awaited data arrived.
    Arrived(T),
    /// The stream ended first, or violated its framing.
    Ended,
    /// The timeout expired.
    TimedOut(TimeoutCause),
}

impl OpenStream {
    /// Creates a stream that did not open.
    pub(crate) fn rejected(head: Exchange, problems: Vec<String>) -> Self {
        Self { head, problems, live: None, opened: Instant::now() }
    }

    /// Creates a stream over an upgraded connection.
    pub(crate) fn over(
        io: impl AsyncRead + AsyncWrite + Send + 'static,
        head: Exchange,
        (over, protocol): (Carrier, String),
        shape: &Shape,
        origin: Instant,
    ) -> Self {
        let shared = match Shared::new((over, protocol), shape, origin) {
            Ok(shared) => Arc::new(shared),
            Err(error) => return Self::rejected(head, vec![error.to_string()]),
        };
        let (writes, queue) = mpsc::channel(BACKLOG);
        let (incoming, outgoing) = tokio::io::split(io);
        let is_websocket = over == Carrier::Websocket;
        let tasks = vec![
            tokio::spawn(read(incoming, Arc::clone(&shared), writes.clone(), is_websocket)),
            tokio::spawn(write(outgoing, queue, Arc::clone(&shared))),
        ];
        Self { live: Some(Live { shared, writes, tasks }), ..Self::rejected(head, Vec::new()) }
    }

    /// Creates a stream over the body of a response. The client cannot send on it.
    pub(crate) fn of_body(body: OpenBody, head: Exchange, shape: &Shape, origin: Instant) -> Self {
        let shared = match Shared::new((Carrier::Http, String::new()), shape, origin) {
            Ok(shared) => Arc::new(shared),
            Err(error) => return Self::rejected(head, vec![error.to_string()]),
        };
        // Without its other end, the queue accepts nothing.
        let (writes, _) = mpsc::channel(1);
        let tasks = vec![tokio::spawn(read_body(body, Arc::clone(&shared)))];
        Self { live: Some(Live { shared, writes, tasks }), ..Self::rejected(head, Vec::new()) }
    }

    /// Reports whether the stream opened.
    pub fn is_open(&self) -> bool {
        self.live.is_some()
    }

    /// Whether channels are SPDY streams.
    pub fn is_spdy(&self) -> bool {
        self.live.as_ref().is_some_and(|live| live.shared.lock().connection.is_spdy())
    }

    /// Reports whether the last data carries the end of a channel. `None` if the protocol cannot
    /// end channels.
    pub fn ends_with_data(&self) -> Option<bool> {
        let live = self.live.as_ref()?;
        let state = live.shared.lock();
        state.connection.half_closes().then(|| state.connection.ends_with_data())
    }

    /// Sends data, and waits until the connection accepts it. Progress extends the deadline.
    pub async fn send(
        &self,
        sent: StreamWrite,
        timeout: &mut StreamTimeout,
    ) -> Result<(), SendError> {
        let live = self.live.as_ref().ok_or(SendError::Ended)?;
        let mut since = Instant::now();
        let bytes = {
            let mut state = live.shared.lock();
            if state.transcript.end.is_some() {
                return Err(SendError::Ended);
            }
            state.frame(sent, live.shared.origin.elapsed()).map_err(SendError::Unsupported)?
        };
        let (done, written) = oneshot::channel();
        let written = async {
            live.writes
                .send(QueuedWrite { bytes, done: Some(done) })
                .await
                .map_err(|_| SendError::Ended)?;
            written.await.map_err(|_| SendError::Ended)
        };
        tokio::pin!(written);
        loop {
            let (end, why) = timeout.ends_write(since);
            let moved = tokio::select! {
                biased;
                written = &mut written => Some(written),
                () = live.shared.taken.notified() => None,
                () = tokio::time::sleep_until(end) => return Err(SendError::TimedOut(why)),
            };
            timeout.moved(since.elapsed());
            since = Instant::now();
            if let Some(written) = moved {
                return written;
            }
        }
    }

    /// Waits until the transcript fulfils a condition. New data extends the deadline.
    pub async fn wait<T>(
        &self,
        timeout: &mut StreamTimeout,
        mut holds: impl FnMut(&Transcript, &mut usize) -> Option<T>,
    ) -> WaitOutcome<T> {
        let Some(live) = &self.live else { return WaitOutcome::Ended };
        let (mut messages, mut since) = (None, Instant::now());
        loop {
            let news = live.shared.news.notified();
            tokio::pin!(news);
            news.as_mut().enable();
            {
                let mut state = live.shared.lock();
                let State { transcript, seen, .. } = &mut *state;
                // Pings cost a server nothing, so they do not extend the deadline.
                let now = transcript
                    .channels
                    .values()
                    .map(|channel| channel.received.messages)
                    .sum::<u64>();
                if messages.replace(now).is_some_and(|before| before < now) {
                    timeout.moved(since.elapsed());
                    since = Instant::now();
                }
                if let Some(found) = holds(transcript, seen) {
                    return WaitOutcome::Arrived(found);
                }
                if transcript.end.is_some() || !transcript.violations.is_empty() {
                    return WaitOutcome::Ended;
                }
            }
            let (end, why) = timeout.ends();
            if tokio::time::timeout_at(end, news).await.is_err() {
                return WaitOutcome::TimedOut(why);
            }
        }
    }

    /// Waits for the server to end the stream.
    pub async fn finish(&self, timeout: &mut StreamTimeout) -> WaitOutcome<StreamEnd> {
        let is_spdy = self.is_spdy();
        let waited = self.wait(timeout, |transcript, _| ended(transcript, is_spdy)).await;
        if let (WaitOutcome::Arrived(end), Some(live)) = (&waited, &self.live) {
            live.shared.lock().transcript.end.get_or_insert(end.clone());
        }
        waited
    }

    /// Closes the stream. Unread data is lost.
    pub fn hang_up(&self) {
        if let Some(live) = &self.live {
            for task in &live.tasks {
                task.abort();
            }
            live.shared.lock().transcript.end.get_or_insert(StreamEnd::Client);
            live.shared.news.notify_waiters();
        }
    }

    /// Returns the handshake with the transcript so far.
    pub fn snapshot(&self) -> Exchange {
        let mut exchange = self.head.clone();
        if let (Some(live), Outcome::Response(received)) = (&self.live, &mut exchange.outcome) {
            received.stream = Some(Arc::new(live.shared.lock().transcript.clone()));
            exchange.took = self.opened.elapsed();
        }
        exchange
    }
}

impl Shared {
    fn new(
        (over, protocol): (Carrier, String),
        shape: &Shape,
        origin: Instant,
    ) -> Result<Self, FrameError> {
        let connection = Connection::new(over, shape.kind, &protocol, shape.ports.clone())?;
        let mut transcript = Transcript::new(protocol);
        for name in channels(shape) {
            transcript.channel(&name);
        }
        let state = Mutex::new(State { connection, transcript, seen: 0 });
        Ok(Self { state, news: Notify::new(), taken: Notify::new(), origin })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn frame(&mut self, sent: StreamWrite, at: Duration) -> Result<Bytes, FrameError> {
        let Self { connection, transcript, .. } = self;
        let record = (transcript, at);
        match sent {
            StreamWrite::Data { channel, bytes, end } => {
                connection.data(&channel, bytes, end, record)
            }
            StreamWrite::Frame(head, payload) => Ok(connection.exact(head, &payload, record)),
            StreamWrite::Ping(payload) => connection.ping(&payload, record),
            StreamWrite::Reset(channel, status) => connection.reset(&channel, status, record),
            StreamWrite::Create { channel, number, headers, end } => {
                connection.create((&channel, number), &headers, end, record)
            }
            StreamWrite::Raw(bytes) => Ok(Connection::raw(bytes, record)),
        }
    }
}

/// Returns the initial channels.
fn channels(shape: &Shape) -> Vec<String> {
    match shape.kind {
        StreamKind::Command => {
            ["stdin", "stdout", "stderr", "error", "resize"].map(str::to_owned).into()
        }
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

/// Returns the end of the stream by the server. A SPDY connection stays open, so the end of all its
/// streams counts.
fn ended(transcript: &Transcript, is_spdy: bool) -> Option<StreamEnd> {
    if let Some(end) = &transcript.end {
        return Some(end.clone());
    }
    if !is_spdy {
        return None;
    }
    let created = |name: &str| {
        transcript
            .frames
            .iter()
            .any(|frame| !frame.from_server && frame.channel.as_deref() == Some(name))
    };
    let mut written = transcript
        .channels
        .iter()
        .filter(|(name, _)| !matches!(name.as_str(), "stdin" | "resize") && created(name))
        .peekable();
    let all = written.peek().is_some() && written.all(|(_, channel)| channel.ended);
    (all || transcript.close.is_some()).then_some(StreamEnd::Server)
}
