//! The server's end of a SPDY connection and its streams.
//!
//! One task reads frames and passes them to their streams. Another task writes what the streams
//! send. Between them are queues of a few pieces. When the reader of a stream is slow, its queue
//! fills up and the whole connection waits, and with it the client. Without flow control in SPDY,
//! the alternative would be an unbounded buffer.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{
    AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadHalf, WriteHalf,
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinSet;

use super::frame::{self, Decoder, Frame, ResetStatus};
use super::header_block::{self, Headers};

/// The pieces that wait for the reader of a stream.
const INBOUND_QUEUE: usize = 4;
/// The frames that wait for the connection.
const OUTBOUND_QUEUE: usize = 4;
/// The streams that wait for [`Connection::next_stream`].
const STREAM_QUEUE: usize = 32;
/// The most streams that a client may have open, and the most that the server still sends on.
const MAX_STREAMS: usize = 1024;
const READ_SIZE: usize = 16 * 1024;
/// The time for the client to see the end of the connection.
const LINGER: Duration = Duration::from_secs(5);

/// A connection. Dropping it aborts its tasks.
#[derive(Debug)]
pub(crate) struct Connection {
    incoming: mpsc::Receiver<IncomingStream>,
    out: mpsc::Sender<Outgoing>,
    last: u32,
    tasks: JoinSet<()>,
}

impl Connection {
    /// Takes over a connection after its handshake.
    pub(crate) fn start<S>(connection: S) -> Self
    where
        S: AsyncRead + AsyncWrite + Send + 'static,
    {
        let (read, write) = tokio::io::split(connection);
        let (opened, incoming) = mpsc::channel(STREAM_QUEUE);
        let (out, queue) = mpsc::channel(OUTBOUND_QUEUE);
        let permits = Arc::new(Semaphore::new(MAX_STREAMS));
        let reader = Reader { out: out.clone(), opened, streams: HashMap::new(), permits, last: 0 };
        let mut tasks = JoinSet::new();
        // All open streams end when the connection breaks, so the error itself is not needed.
        tasks.spawn(async move {
            let _ = reader.run(read).await;
        });
        tasks.spawn(async move {
            let _ = write_frames(write, queue).await;
        });
        Self { incoming, out, last: 0, tasks }
    }

    /// Returns the next stream that the client opens, or none when the connection has ended.
    pub(crate) async fn next_stream(&mut self) -> Option<IncomingStream> {
        let stream = self.incoming.recv().await?;
        self.last = stream.stream.id;
        Some(stream)
    }

    /// Writes all queued frames and a `GOAWAY`, then waits for the client to close.
    pub(crate) async fn finish(mut self) {
        self.incoming.close();
        let _ = self.out.send(Outgoing::GoAway { last: self.last }).await;
        // Closing a socket with unread bytes resets it, and the client would lose the last frames.
        let _ =
            tokio::time::timeout(LINGER, async { while self.tasks.join_next().await.is_some() {} })
                .await;
    }
}

/// A stream that the client has opened. The server accepts or resets it.
#[derive(Debug)]
pub(crate) struct IncomingStream {
    pub(crate) headers: Headers,
    stream: Stream,
}

impl IncomingStream {
    pub(crate) fn id(&self) -> u32 {
        self.stream.id
    }

    pub(crate) async fn accept(self) -> Stream {
        self.stream.sender.send(Outgoing::Reply { stream: self.stream.id }).await;
        self.stream
    }

    pub(crate) async fn reset(self) {
        self.stream.sender.reset().await;
    }
}

/// An open stream.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) id: u32,
    pub(crate) receiver: Receiver,
    pub(crate) sender: Sender,
}

/// The direction from the client. After a drop, the connection discards what arrives.
#[derive(Debug)]
pub(crate) struct Receiver(mpsc::Receiver<Received>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Received {
    Data(Bytes),
    /// The client ended its direction and still reads.
    End,
    /// The client reset the stream, or the connection broke.
    Reset,
}

impl Receiver {
    pub(crate) async fn next(&mut self) -> Received {
        self.0.recv().await.unwrap_or(Received::Reset)
    }
}

/// The direction to the client. Sending waits for the client, and has no effect on a broken
/// connection.
#[derive(Clone, Debug)]
pub(crate) struct Sender {
    stream: u32,
    out: mpsc::Sender<Outgoing>,
    /// The stream counts towards [`MAX_STREAMS`] until all its senders are dropped.
    _permit: Arc<OwnedSemaphorePermit>,
}

impl Sender {
    pub(crate) async fn data(&self, bytes: Bytes) {
        self.send(Outgoing::Data { stream: self.stream, fin: false, bytes }).await;
    }

    /// Ends this direction. The client may go on sending.
    pub(crate) async fn end(&self) {
        self.send(Outgoing::Data { stream: self.stream, fin: true, bytes: Bytes::new() }).await;
    }

    /// Ends both directions.
    pub(crate) async fn reset(&self) {
        self.send(Outgoing::Reset { stream: self.stream, status: ResetStatus::Cancel }).await;
    }

    async fn send(&self, frame: Outgoing) {
        let _ = self.out.send(frame).await;
    }
}

/// A frame for the writing task, which encodes the header blocks in order.
#[derive(Debug)]
enum Outgoing {
    Reply { stream: u32 },
    Data { stream: u32, fin: bool, bytes: Bytes },
    Reset { stream: u32, status: ResetStatus },
    Ping(u32),
    GoAway { last: u32 },
}

struct Reader {
    out: mpsc::Sender<Outgoing>,
    opened: mpsc::Sender<IncomingStream>,
    /// The streams on which the client may still send.
    streams: HashMap<u32, mpsc::Sender<Received>>,
    permits: Arc<Semaphore>,
    last: u32,
}

#[derive(Debug, thiserror::Error)]
enum ReadError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Frame(#[from] frame::FrameError),
    #[error(transparent)]
    Block(#[from] header_block::BlockError),
}

impl Reader {
    async fn run<S: AsyncRead>(mut self, mut connection: ReadHalf<S>) -> Result<(), ReadError> {
        let (mut decoder, mut blocks) = (Decoder::default(), header_block::Decoder::default());
        let mut buffer = BytesMut::new();
        loop {
            while let Some(frame) = decoder.decode(&mut buffer)? {
                self.handle(frame, &mut blocks).await?;
            }
            buffer.reserve(READ_SIZE);
            if connection.read_buf(&mut buffer).await? == 0 {
                return Ok(());
            }
        }
    }

    async fn handle(
        &mut self,
        frame: Frame,
        blocks: &mut header_block::Decoder,
    ) -> Result<(), ReadError> {
        match frame {
            Frame::SynStream { stream, fin, block, .. } => {
                self.open(stream, fin, blocks.decode(&block)?).await;
            }
            Frame::Data { stream, fin, bytes } => self.deliver(stream, fin, bytes).await,
            Frame::RstStream { stream, .. } => {
                if let Some(receiver) = self.streams.remove(&stream) {
                    let _ = receiver.send(Received::Reset).await;
                }
            }
            Frame::Ping(id) => self.send(Outgoing::Ping(id)).await,
            // The headers are not needed, but every block is part of one zlib stream.
            Frame::SynReply { block, .. } | Frame::Headers { block, .. } => {
                blocks.decode(&block)?;
            }
            Frame::GoAway { .. } | Frame::Other { .. } => {}
        }
        Ok(())
    }

    async fn open(&mut self, stream: u32, fin: bool, headers: Headers) {
        // Clients open streams with odd, increasing ids.
        if stream.is_multiple_of(2) || stream <= self.last {
            return self.send(Outgoing::Reset { stream, status: ResetStatus::ProtocolError }).await;
        }
        self.last = stream;
        if self.streams.len() >= MAX_STREAMS {
            // Streams that the server no longer reads do not count.
            self.streams.retain(|_, receiver| !receiver.is_closed());
        }
        let permit = self.permits.clone().try_acquire_owned().ok();
        let Some(permit) = permit.filter(|_| self.streams.len() < MAX_STREAMS).map(Arc::new) else {
            return self.send(Outgoing::Reset { stream, status: ResetStatus::RefusedStream }).await;
        };
        let (sender, receiver) = mpsc::channel(INBOUND_QUEUE);
        if fin {
            // A new queue is empty, so this cannot fail.
            let _ = sender.try_send(Received::End);
        } else {
            self.streams.insert(stream, sender);
        }
        let sender = Sender { stream, out: self.out.clone(), _permit: permit };
        let stream = Stream { id: stream, receiver: Receiver(receiver), sender };
        if let Err(mpsc::error::SendError(rejected)) =
            self.opened.send(IncomingStream { headers, stream }).await
        {
            let status = ResetStatus::RefusedStream;
            self.send(Outgoing::Reset { stream: rejected.id(), status }).await;
        }
    }

    async fn deliver(&mut self, stream: u32, fin: bool, bytes: Bytes) {
        match self.streams.entry(stream) {
            Entry::Occupied(receiver) => {
                // The send fails when the server no longer reads this stream.
                if !bytes.is_empty() {
                    let _ = receiver.get().send(Received::Data(bytes)).await;
                }
                if fin {
                    let _ = receiver.remove().send(Received::End).await;
                }
            }
            // The client may have sent data before it saw the end of the stream.
            Entry::Vacant(_) if stream <= self.last => {}
            Entry::Vacant(_) => {
                self.send(Outgoing::Reset { stream, status: ResetStatus::InvalidStream }).await;
            }
        }
    }

    async fn send(&self, frame: Outgoing) {
        let _ = self.out.send(frame).await;
    }
}

async fn write_frames<S: AsyncWrite>(
    mut connection: WriteHalf<S>,
    mut queue: mpsc::Receiver<Outgoing>,
) -> io::Result<()> {
    let mut blocks = header_block::Encoder::default();
    while let Some(outgoing) = queue.recv().await {
        let last_frame = matches!(outgoing, Outgoing::GoAway { .. });
        let frame = match outgoing {
            Outgoing::Data { stream, fin, bytes } => {
                // Data is the hot path, which copies nothing.
                let head = frame::data_head(stream, fin, bytes.len());
                connection.write_all_buf(&mut Buf::chain(head.as_slice(), bytes)).await?;
                None
            }
            Outgoing::Reply { stream } => {
                let block = blocks.encode(&Headers::default()).freeze();
                Some(Frame::SynReply { stream, fin: false, block })
            }
            Outgoing::Reset { stream, status } => {
                Some(Frame::RstStream { stream, status: status as u32 })
            }
            Outgoing::Ping(id) => Some(Frame::Ping(id)),
            Outgoing::GoAway { last } => Some(Frame::GoAway { last, status: 0 }),
        };
        if let Some(frame) = frame {
            connection.write_all_buf(&mut frame.to_bytes()).await?;
        }
        if queue.is_empty() || last_frame {
            connection.flush().await?;
        }
        if last_frame {
            break;
        }
    }
    // The client sees the end, and the reading task still runs.
    connection.shutdown().await
}

#[cfg(test)]
mod tests;
