//! Limits for each client, which protect the other clients: timeouts and connection counts.
//!
//! Each connection has a [`ConnectionState`]. Before its first request it is one of the limited
//! number of `WaitingConnections`. While the server sends a response, a `StallGuard` closes the
//! connection if the client reads nothing. Streams that a client may pause (logs, commands,
//! forwarded ports) cost one buffer each and are exempt.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http::{Response, StatusCode};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::certificates::PeerCertificates;
use crate::config::Limits;
use crate::http::respond::{MayPause, Payload};

/// The number of connections to close at once if there is no place for another.
const EVICTED: usize = 16;

/// The state of one connection that limits depend on.
#[derive(Debug, Default)]
pub struct ConnectionState {
    /// The connection has received a request.
    requested: AtomicBool,
    /// The client may pause reading.
    may_pause: AtomicBool,
    /// The certificates of the client.
    peer: OnceLock<Arc<PeerCertificates>>,
    /// The address of the client.
    remote: OnceLock<SocketAddr>,
    /// The server prepares to stop.
    drain: OnceLock<CancellationToken>,
    leave: CancellationToken,
}

impl ConnectionState {
    /// Returns the state of a connection in memory, which has no limits.
    pub fn unlimited() -> Arc<Self> {
        let state = Self::default();
        state.may_pause.store(true, Ordering::Relaxed);
        Arc::new(state)
    }

    /// Records the certificates of the client, once.
    pub fn set_peer(&self, peer: Arc<PeerCertificates>) {
        // A connection has one handshake.
        let _ = self.peer.set(peer);
    }

    /// Records the address of the client, once.
    pub(crate) fn set_remote(&self, remote: SocketAddr) {
        // A connection has one peer.
        let _ = self.remote.set(remote);
    }

    /// Sets what tells the connection to finish, once.
    pub(crate) fn set_drain(&self, drain: CancellationToken) {
        // A connection belongs to one listener.
        let _ = self.drain.set(drain);
    }

    /// Waits until the connection must finish. A connection in memory goes on.
    pub async fn drained(&self) {
        match self.drain.get() {
            Some(drain) => drain.cancelled().await,
            None => std::future::pending().await,
        }
    }

    /// Returns the address of the client. A connection in memory has none.
    pub fn remote(&self) -> Option<SocketAddr> {
        self.remote.get().copied()
    }

    /// Returns the certificates of the client, if it presented any.
    pub fn peer(&self) -> Option<Arc<PeerCertificates>> {
        self.peer.get().cloned()
    }

    /// Records the first request.
    pub fn request_received(&self) {
        self.requested.store(true, Ordering::Relaxed);
    }

    /// Records the response. Some responses have no stall timeout.
    pub(crate) fn response_started(&self, response: &Response<Payload>) {
        let may_pause = response.status() == StatusCode::SWITCHING_PROTOCOLS
            || response.extensions().get::<MayPause>().is_some();
        self.may_pause.store(may_pause, Ordering::Relaxed);
    }

    /// Disables the stall timeout of the connection.
    pub fn disable_stall_timeout(&self) {
        self.may_pause.store(true, Ordering::Relaxed);
    }

    fn has_request(&self) -> bool {
        self.requested.load(Ordering::Relaxed)
    }

    /// Returns when the server must close the connection: the first request took too long, or
    /// another connection needs the place.
    pub(crate) async fn expired(&self, limits: &Limits) {
        tokio::select! {
            () = sleep(limits.head), if !self.has_request() => {
                if self.has_request() {
                    std::future::pending::<()>().await;
                }
            }
            () = self.leave.cancelled() => {}
        }
    }
}

/// The connections without a request.
#[derive(Debug)]
pub(crate) struct WaitingConnections {
    places: usize,
    waiting: Mutex<VecDeque<Arc<ConnectionState>>>,
}

impl WaitingConnections {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self { places: limits.waiting.max(1), waiting: Mutex::default() }
    }

    /// Adds a connection. If all places are taken, the oldest connections are closed.
    pub(crate) fn add(&self) -> Arc<ConnectionState> {
        let state = Arc::new(ConnectionState::default());
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() >= self.places {
            // One reference is in this list. Without another one, the connection is closed.
            waiting.retain(|state| !state.has_request() && Arc::strong_count(state) > 1);
        }
        if waiting.len() >= self.places {
            evict(&mut waiting);
        }
        waiting.push_back(state.clone());
        state
    }

    /// Closes connections because the system has no free descriptor.
    pub(crate) fn make_room(&self) {
        evict(&mut self.waiting.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

fn evict(waiting: &mut VecDeque<Arc<ConnectionState>>) {
    for state in waiting.drain(..EVICTED.min(waiting.len())) {
        if !state.has_request() {
            state.leave.cancel();
        }
    }
}

/// A connection that fails if its client reads nothing for too long.
#[derive(Debug)]
pub(crate) struct StallGuard<S> {
    stream: S,
    state: Arc<ConnectionState>,
    limit: Duration,
    /// The timer runs while a write is pending.
    stalled: Option<Pin<Box<Sleep>>>,
}

impl<S> StallGuard<S> {
    pub(crate) fn new(stream: S, state: Arc<ConnectionState>, limits: &Limits) -> Self {
        Self { stream, state, limit: limits.stall, stalled: None }
    }

    /// Returns the result of a write, or an error after the stall timeout.
    fn check_stall<T>(
        &mut self,
        cx: &mut Context<'_>,
        attempt: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if attempt.is_ready() {
            self.stalled = None;
            return attempt;
        }
        let limit = self.limit;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(limit)));
        ready!(stalled.as_mut().poll(cx));
        if self.state.may_pause.load(Ordering::Relaxed) {
            // The exemption may end later, so the timer starts again.
            stalled.set(sleep_until(Instant::now() + limit));
            let _ = stalled.as_mut().poll(cx);
            return Poll::Pending;
        }
        Poll::Ready(Err(io::Error::new(
            io::ErrorKind::TimedOut,
            "the client does not read the response",
        )))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for StallGuard<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for StallGuard<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let attempt = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.check_stall(cx, attempt)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let attempt = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.check_stall(cx, attempt)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let attempt = Pin::new(&mut self.stream).poll_flush(cx);
        self.check_stall(cx, attempt)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let attempt = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.check_stall(cx, attempt)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    /// Limits with short timeouts.
    const LIMITS: Limits = Limits {
        head: Duration::from_millis(5),
        stall: Duration::from_millis(5),
        waiting: 20,
        ..Limits::DEFAULT
    };

    fn guard(
        state: &Arc<ConnectionState>,
    ) -> (StallGuard<tokio::io::DuplexStream>, tokio::io::DuplexStream) {
        let (near, far) = tokio::io::duplex(16);
        (StallGuard::new(near, state.clone(), &LIMITS), far)
    }

    #[tokio::test]
    async fn a_client_that_reads_nothing_times_out() {
        let (mut near, mut far) = guard(&Arc::default());
        let error = near.write_all(&[0; 17]).await.expect_err("the client reads nothing");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        // Any progress starts the full timeout again.
        far.read_u8().await.expect("a byte");
        near.write_all(&[0]).await.expect("there is room");
        assert!(near.stalled.is_none());
    }

    #[tokio::test]
    async fn a_stream_that_may_pause_has_no_timeout() {
        let (mut near, mut far) = guard(&ConnectionState::unlimited());
        let write = near.write_all(&[0; 17]);
        tokio::pin!(write);
        assert!(tokio::time::timeout(LIMITS.stall * 10, write.as_mut()).await.is_err());
        let (written, read) = tokio::join!(write, far.read_u8());
        written.expect("the reader has come back");
        read.expect("a byte");
    }

    #[tokio::test]
    async fn only_a_connection_without_a_request_expires() {
        let waiting = WaitingConnections::new(&LIMITS);
        waiting.add().expired(&LIMITS).await;
        let state = waiting.add();
        state.request_received();
        let stayed = tokio::time::timeout(LIMITS.head * 10, state.expired(&LIMITS)).await;
        assert!(stayed.is_err());
    }

    #[tokio::test]
    async fn a_full_list_closes_the_oldest_connections_without_a_request() {
        let waiting = WaitingConnections::new(&LIMITS);
        let all: Vec<_> = (0..LIMITS.waiting).map(|_| waiting.add()).collect();
        all[0].request_received();
        assert!(all.iter().all(|state| !state.leave.is_cancelled()));
        // The connection with a request has left its place.
        let next = waiting.add();
        assert!(all.iter().all(|state| !state.leave.is_cancelled()));
        waiting.add();
        let gone: Vec<bool> = all.iter().map(|state| state.leave.is_cancelled()).collect();
        assert_eq!(
            gone,
            (0..LIMITS.waiting).map(|n| (1..=EVICTED).contains(&n)).collect::<Vec<_>>()
        );
        assert!(!next.leave.is_cancelled());
    }
}
