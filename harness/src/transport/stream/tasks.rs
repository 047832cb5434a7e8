//! The tasks that read and write a stream.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf as _, Bytes};
use http_body_util::BodyExt as _;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot};

use super::super::exact::OpenBody;
use super::{Shared, State};
use crate::exchange::{FrameError, StreamEnd};

/// Time for the server to close the connection after its close frame.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(3);

/// Limit on received bytes. No case receives as much.
const MAX_RECEIVED: u64 = 512 << 20;

#[derive(Debug)]
pub(super) struct QueuedWrite {
    pub(super) bytes: Bytes,
    pub(super) done: Option<oneshot::Sender<()>>,
}

pub(super) async fn read(
    mut io: impl AsyncRead + Unpin,
    shared: Arc<Shared>,
    replies: mpsc::Sender<QueuedWrite>,
    is_websocket: bool,
) {
    let mut buffer = vec![0; 16 << 10];
    let mut total = 0_u64;
    loop {
        let closed = is_websocket && shared.lock().transcript.close.is_some();
        let read = if closed {
            tokio::time::timeout(CLOSE_TIMEOUT, io.read(&mut buffer)).await.ok()
        } else {
            Some(io.read(&mut buffer).await)
        };
        let mut state = shared.lock();
        let end = match read {
            None => {
                state.transcript.violation("the server keeps the connection after its close");
                Some(StreamEnd::Server)
            }
            Some(Ok(0)) => Some(state.connection_end("it was closed")),
            Some(Err(error)) => Some(state.connection_end(&error.to_string())),
            Some(Ok(count)) => {
                total += count as u64;
                let at = shared.origin.elapsed();
                state.receive(&buffer[..count], total, at, &replies).err().map(StreamEnd::Broken)
            }
        };
        drop(state);
        if shared.report(end) {
            return;
        }
    }
}

/// Reads the body of a response as the only channel.
pub(super) async fn read_body(mut body: OpenBody, shared: Arc<Shared>) {
    // There is nothing to reply to.
    let (replies, _) = mpsc::channel(1);
    let mut total = 0_u64;
    loop {
        let end = match body.incoming.frame().await {
            None => Some(StreamEnd::Server),
            Some(Err(error)) => Some(StreamEnd::Dropped(error.to_string())),
            Some(Ok(frame)) => frame.into_data().ok().and_then(|data| {
                total += data.len() as u64;
                let at = shared.origin.elapsed();
                let received = shared.lock().receive(&data, total, at, &replies);
                received.err().map(StreamEnd::Broken)
            }),
        };
        if shared.report(end) {
            return;
        }
    }
}

impl Shared {
    /// Wakes the steps that wait. Returns whether the stream has ended.
    fn report(&self, end: Option<StreamEnd>) -> bool {
        let has_ended = end.is_some();
        if let Some(end) = end {
            self.lock().transcript.end.get_or_insert(end);
        }
        self.news.notify_waiters();
        has_ended
    }
}

impl State {
    /// Returns the end of a stream whose connection ended.
    fn connection_end(&self, why: &str) -> StreamEnd {
        let inside = if self.connection.is_inside_frame() { ", inside a frame" } else { "" };
        match &self.transcript.close {
            Some(_) => StreamEnd::Server,
            None => StreamEnd::Dropped(format!("{why}{inside}")),
        }
    }

    /// Parses received bytes and queues replies. An error ends the stream.
    fn receive(
        &mut self,
        bytes: &[u8],
        total: u64,
        at: Duration,
        replies: &mpsc::Sender<QueuedWrite>,
    ) -> Result<(), FrameError> {
        let Self { connection, transcript, .. } = self;
        let queued = match connection.feed(bytes, (&mut *transcript, at)) {
            Ok(queued) => queued,
            Err(error) => {
                transcript.violation(error.to_string());
                return Err(error);
            }
        };
        if total > MAX_RECEIVED {
            return Err(FrameError::StreamTooLong(MAX_RECEIVED));
        }
        for bytes in queued {
            // A server that floods us with pings and does not read gets no replies.
            let _ = replies.try_send(QueuedWrite { bytes, done: None });
        }
        Ok(())
    }
}

pub(super) async fn write(
    mut io: impl AsyncWrite + Unpin,
    mut queue: mpsc::Receiver<QueuedWrite>,
    shared: Arc<Shared>,
) {
    while let Some(QueuedWrite { mut bytes, done }) = queue.recv().await {
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
            // The sender may have timed out.
            let _ = done.send(());
        }
    }
}
