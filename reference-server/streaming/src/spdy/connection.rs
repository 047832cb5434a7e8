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
mod tests {
    use tokio::io::{BufWriter, DuplexStream};

    use super::*;
    use crate::testing::unhex;

    /// `SYN_STREAM` frames of a Go client: error, stdin, stdout.
    const ERROR: &str = "800300010000002800000001000000000000\
                         78f9e3c6a7c202a62346703a2b294a4dcc851625aca9a08006000000ffff";
    const STDIN: &str = "800300010000001700000003000000000000c22e555c02cc2e00000000ffff";
    const STDOUT: &str = "800300010000001900000005000000000000c22a054ce729f9a52500000000ffff";

    /// A connection and its client. The `BufWriter` shows whether the connection flushes.
    fn connect() -> (Connection, DuplexStream) {
        let (ours, theirs) = tokio::io::duplex(1024);
        (Connection::start(BufWriter::new(ours)), theirs)
    }

    async fn send(client: &mut DuplexStream, hex: &str) {
        client.write_all(&unhex(hex)).await.expect("the connection reads");
    }

    async fn receive(client: &mut DuplexStream, count: usize) -> Vec<Frame> {
        let (mut decoder, mut buffer, mut frames) =
            (Decoder::default(), BytesMut::new(), Vec::new());
        while frames.len() < count {
            match decoder.decode(&mut buffer).expect("frames") {
                Some(frame) => frames.push(frame),
                None => {
                    assert_ne!(client.read_buf(&mut buffer).await.expect("bytes"), 0, "{frames:?}");
                }
            }
        }
        frames
    }

    #[tokio::test]
    async fn an_accepted_stream_carries_data_in_both_directions() {
        let (mut connection, mut client) = connect();
        send(&mut client, ERROR).await;
        send(&mut client, STDIN).await;
        send(&mut client, "0000000300000007737064792d696e0000000301000000").await;
        let error = connection.next_stream().await.expect("a stream");
        assert_eq!((error.id(), error.headers.get("streamtype")), (1, Some("error")));
        let stdin = connection.next_stream().await.expect("a stream");
        assert_eq!(stdin.id(), 3);
        let mut stdin = stdin.accept().await;
        assert_eq!(stdin.receiver.next().await, Received::Data(Bytes::from_static(b"spdy-in")));
        assert_eq!(stdin.receiver.next().await, Received::End);
        stdin.sender.data(Bytes::from_static(b"out\n")).await;
        let expected = Frame::Data { stream: 3, fin: false, bytes: Bytes::from_static(b"out\n") };
        assert_eq!(receive(&mut client, 2).await[1], expected);
        stdin.sender.end().await;
        error.reset().await;
        let ends = [
            Frame::Data { stream: 3, fin: true, bytes: Bytes::new() },
            Frame::RstStream { stream: 1, status: ResetStatus::Cancel as u32 },
        ];
        assert_eq!(receive(&mut client, 2).await, ends);
    }

    #[tokio::test]
    async fn data_after_the_end_of_its_stream_is_dropped() {
        let (mut connection, mut client) = connect();
        send(&mut client, ERROR).await;
        send(
            &mut client,
            "00000001010000016100000001000000016280030006000000040000000180030006000000040000000b",
        )
        .await;
        let mut error = connection.next_stream().await.expect("a stream").accept().await;
        assert_eq!(error.receiver.next().await, Received::Data(Bytes::from_static(b"a")));
        assert_eq!(error.receiver.next().await, Received::End);
        let responses = receive(&mut client, 3).await;
        assert!(
            responses.contains(&Frame::Ping(1)) && responses.contains(&Frame::Ping(11)),
            "{responses:?}"
        );
        assert!(
            !responses.iter().any(|frame| matches!(frame, Frame::RstStream { .. })),
            "{responses:?}"
        );
    }

    #[tokio::test]
    async fn finish_sends_goaway_and_closes() {
        let (mut connection, mut client) = connect();
        send(&mut client, ERROR).await;
        let stream = connection.next_stream().await.expect("a stream").accept().await;
        stream.sender.data(Bytes::from_static(b"last")).await;
        stream.sender.reset().await;
        tokio::join!(connection.finish(), async {
            let mut rest = Vec::new();
            client.read_to_end(&mut rest).await.expect("bytes");
            let tail = unhex(
                "00000001000000046c617374800300030000000800000001000000058003000700000008\
                              0000000100000000",
            );
            assert!(rest.ends_with(&tail), "{rest:02x?}");
            drop(client);
        });
    }

    #[tokio::test]
    async fn pings_are_returned_and_invalid_streams_are_reset() {
        let (_connection, mut client) = connect();
        send(&mut client, "800300060000000400000001").await;
        // An even id, and data on a stream that was never opened.
        send(&mut client, ERROR).await;
        send(&mut client, "800300010000001700000002000000000000c22e555c02cc2e00000000ffff").await;
        send(&mut client, "0000000900000000").await;
        let mut bytes = vec![0; 12 + 16 + 16];
        client.read_exact(&mut bytes).await.expect("bytes");
        let expected = "800300060000000400000001\
                        80030003000000080000000200000001\
                        80030003000000080000000900000002";
        assert_eq!(bytes, unhex(expected));
    }

    /// A `SYN_STREAM` without headers. The first block of a connection is longer than the others.
    fn syn_stream(number: usize, fin: bool) -> Vec<u8> {
        let block = unhex(if number == 0 {
            "78f9e3c6a7c26260606000000000ffff"
        } else {
            "026100000000ffff"
        });
        let id = u32::try_from(2 * number + 1).expect("a number");
        let length = u32::try_from(10 + block.len()).expect("short") | u32::from(fin) << 24;
        let head = [[0x80, 3, 0, 1], length.to_be_bytes(), id.to_be_bytes(), [0; 4]].concat();
        [&head, [0; 2].as_slice(), &block].concat()
    }

    /// Opens as many streams as a client may have.
    async fn all_streams(fin: bool) -> (Connection, DuplexStream, Vec<Stream>) {
        let (ours, mut client) = tokio::io::duplex(1 << 20);
        let mut connection = Connection::start(ours);
        let mut streams = Vec::new();
        for number in 0..MAX_STREAMS {
            client.write_all(&syn_stream(number, fin)).await.expect("the connection reads");
            streams.push(connection.next_stream().await.expect("a stream").stream);
        }
        (connection, client, streams)
    }

    async fn one_more_is_reset(client: &mut DuplexStream) {
        client.write_all(&syn_stream(MAX_STREAMS, false)).await.expect("the connection reads");
        let mut reset = [0; 16];
        client.read_exact(&mut reset).await.expect("a frame");
        assert_eq!(reset, *unhex("80030003000000080000080100000003"));
    }

    #[tokio::test]
    async fn streams_that_the_client_ended_count_until_the_server_drops_them() {
        let (_connection, mut client, streams) = all_streams(true).await;
        one_more_is_reset(&mut client).await;
        drop(streams);
    }

    #[tokio::test]
    async fn streams_on_which_the_client_may_send_count_although_nobody_responses() {
        let (_connection, mut client, streams) = all_streams(false).await;
        let receivers: Vec<_> = streams.into_iter().map(|stream| stream.receiver).collect();
        one_more_is_reset(&mut client).await;
        drop(receivers);
    }

    #[tokio::test]
    async fn dropped_streams_do_not_count() {
        let (mut connection, mut client, streams) = all_streams(false).await;
        drop(streams);
        client.write_all(&syn_stream(MAX_STREAMS, false)).await.expect("the connection reads");
        assert_eq!(connection.next_stream().await.expect("a stream").id(), 2 * 1024 + 1);
    }

    #[tokio::test]
    async fn a_slow_reader_slows_the_client_down() {
        let (mut connection, mut client) = connect();
        send(&mut client, ERROR).await;
        send(&mut client, STDIN).await;
        send(&mut client, STDOUT).await;
        let flood = async {
            let frame = [frame::data_head(3, false, 512).as_slice(), &[0; 512]].concat();
            let mut sent = 0;
            loop {
                client.write_all(&frame).await.expect("the connection reads");
                sent += frame.len();
                assert!(sent < 256 * 1024, "the connection buffers without a bound");
            }
        };
        // The buffers hold a few kilobytes, so the client has to wait.
        let stopped = tokio::time::timeout(Duration::from_millis(200), flood).await;
        assert!(stopped.is_err());
        connection.next_stream().await.expect("a stream");
        let mut stdin = connection.next_stream().await.expect("a stream").accept().await;
        assert!(matches!(stdin.receiver.next().await, Received::Data(_)));
    }

    #[tokio::test]
    async fn streams_end_when_the_connection_ends() {
        let (mut connection, mut client) = connect();
        send(&mut client, ERROR).await;
        let mut error = connection.next_stream().await.expect("a stream").accept().await;
        drop(client);
        assert_eq!(error.receiver.next().await, Received::Reset);
        assert!(connection.next_stream().await.is_none());
    }
}
