//! What one client is granted, so that the others are served: times for those who are slow, room for those who are greedy.
//!
//! A connection is watched by its [`Standing`]: until its first request it waits in a lobby that holds only so many, and while an
//! answer is on its way it is [guarded](Guarded) against a reader who takes nothing. Streams that a client may pause for as
//! long as it likes (logs, commands, forwarded ports) cost one buffer each and are exempt.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http::{Response, StatusCode};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::config::Limits;
use crate::respond::{Patient, Payload};

/// How many connections go at once when there is no room for another.
const EVICTED: usize = 16;

/// What is known of one connection.
#[derive(Debug, Default)]
pub(crate) struct Standing {
    /// A request has come.
    begun: AtomicBool,
    /// The client may leave what is sent to it unread.
    patient: AtomicBool,
    leave: CancellationToken,
}

impl Standing {
    /// A connection that nothing is known against: one in memory.
    pub(crate) fn trusted() -> Arc<Self> {
        let standing = Self::default();
        standing.patient.store(true, Ordering::Relaxed);
        Arc::new(standing)
    }

    /// A request has come.
    pub(crate) fn asked(&self) {
        self.begun.store(true, Ordering::Relaxed);
    }

    /// It is answered with this.
    pub(crate) fn answered(&self, response: &Response<Payload>) {
        let patient = response.status() == StatusCode::SWITCHING_PROTOCOLS
            || response.extensions().get::<Patient>().is_some();
        self.patient.store(patient, Ordering::Relaxed);
    }

    /// Its answers are not watched.
    pub(crate) fn trust(&self) {
        self.patient.store(true, Ordering::Relaxed);
    }

    fn has_begun(&self) -> bool {
        self.begun.load(Ordering::Relaxed)
    }

    /// Returns when the connection has to go: it took too long for its first request, or its place is needed.
    pub(crate) async fn overstayed(&self, limits: &Limits) {
        tokio::select! {
            () = sleep(limits.head), if !self.has_begun() => {
                if self.has_begun() {
                    std::future::pending::<()>().await;
                }
            }
            () = self.leave.cancelled() => {}
        }
    }
}

/// The connections that have asked for nothing yet.
#[derive(Debug)]
pub(crate) struct Lobby {
    places: usize,
    waiting: Mutex<VecDeque<Arc<Standing>>>,
}

impl Lobby {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self { places: limits.waiting.max(1), waiting: Mutex::default() }
    }

    /// Lets a connection in. When all places are taken, those go that have waited longest.
    pub(crate) fn enter(&self) -> Arc<Standing> {
        let standing = Arc::new(Standing::default());
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() >= self.places {
            // One reference is that of the lobby: the connection is gone.
            waiting.retain(|standing| !standing.has_begun() && Arc::strong_count(standing) > 1);
        }
        if waiting.len() >= self.places {
            evict(&mut waiting);
        }
        waiting.push_back(standing.clone());
        standing
    }

    /// Makes room: the system has no descriptor left.
    pub(crate) fn clear(&self) {
        evict(&mut self.waiting.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

fn evict(waiting: &mut VecDeque<Arc<Standing>>) {
    for standing in waiting.drain(..EVICTED.min(waiting.len())) {
        if !standing.has_begun() {
            standing.leave.cancel();
        }
    }
}

/// A connection that fails when its peer takes nothing for too long.
#[derive(Debug)]
pub(crate) struct Guarded<S> {
    stream: S,
    standing: Arc<Standing>,
    limit: Duration,
    /// Runs while something waits to be taken.
    stalled: Option<Pin<Box<Sleep>>>,
}

impl<S> Guarded<S> {
    pub(crate) fn new(stream: S, standing: Arc<Standing>, limits: &Limits) -> Self {
        Self { stream, standing, limit: limits.stall, stalled: None }
    }

    /// What came of an attempt to write, unless it waits too long for the peer.
    fn judge<T>(&mut self, cx: &mut Context<'_>, attempt: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if attempt.is_ready() {
            self.stalled = None;
            return attempt;
        }
        let limit = self.limit;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(limit)));
        ready!(stalled.as_mut().poll(cx));
        if self.standing.patient.load(Ordering::Relaxed) {
            // It may be so no longer when the time is up again.
            stalled.set(sleep_until(Instant::now() + limit));
            let _ = stalled.as_mut().poll(cx);
            return Poll::Pending;
        }
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client takes nothing of its answer")))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Guarded<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Guarded<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let attempt = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.judge(cx, attempt)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let attempt = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.judge(cx, attempt)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let attempt = Pin::new(&mut self.stream).poll_flush(cx);
        self.judge(cx, attempt)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let attempt = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.judge(cx, attempt)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    /// Short enough to be waited for.
    const LIMITS: Limits = Limits {
        head: Duration::from_millis(5),
        stall: Duration::from_millis(5),
        waiting: 20,
        ..Limits::DEFAULT
    };

    fn guarded(standing: &Arc<Standing>) -> (Guarded<tokio::io::DuplexStream>, tokio::io::DuplexStream) {
        let (near, far) = tokio::io::duplex(16);
        (Guarded::new(near, standing.clone(), &LIMITS), far)
    }

    #[tokio::test]
    async fn a_reader_that_takes_nothing_is_given_up() {
        let (mut near, mut far) = guarded(&Arc::default());
        let error = near.write_all(&[0; 17]).await.expect_err("nobody reads");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        // Whatever it takes gives it all of its time anew.
        far.read_u8().await.expect("a byte");
        near.write_all(&[0]).await.expect("there is room");
        assert!(near.stalled.is_none());
    }

    #[tokio::test]
    async fn a_stream_that_may_be_paused_waits() {
        let (mut near, mut far) = guarded(&Standing::trusted());
        let write = near.write_all(&[0; 17]);
        tokio::pin!(write);
        assert!(tokio::time::timeout(LIMITS.stall * 10, write.as_mut()).await.is_err());
        let (written, read) = tokio::join!(write, far.read_u8());
        written.expect("the reader has come back");
        read.expect("a byte");
    }

    #[tokio::test]
    async fn who_asks_for_nothing_has_to_go_and_who_has_asked_stays() {
        let lobby = Lobby::new(&LIMITS);
        lobby.enter().overstayed(&LIMITS).await;
        let standing = lobby.enter();
        standing.asked();
        let stayed = tokio::time::timeout(LIMITS.head * 10, standing.overstayed(&LIMITS)).await;
        assert!(stayed.is_err());
    }

    #[tokio::test]
    async fn a_full_lobby_lets_those_go_that_came_first_and_none_that_has_asked() {
        let lobby = Lobby::new(&LIMITS);
        let all: Vec<_> = (0..LIMITS.waiting).map(|_| lobby.enter()).collect();
        all[0].asked();
        assert!(all.iter().all(|standing| !standing.leave.is_cancelled()));
        // The one that has asked has left its place.
        let next = lobby.enter();
        assert!(all.iter().all(|standing| !standing.leave.is_cancelled()));
        lobby.enter();
        let gone: Vec<bool> = all.iter().map(|standing| standing.leave.is_cancelled()).collect();
        assert_eq!(gone, (0..LIMITS.waiting).map(|n| (1..=EVICTED).contains(&n)).collect::<Vec<_>>());
        assert!(!next.leave.is_cancelled());
    }
}
