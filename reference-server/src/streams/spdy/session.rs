//! A connection and its streams.
//!
//! Two tasks: one reads frames and hands them to the streams that they belong to, one writes what the streams send. Between
//! them and the streams stand queues of a few pieces. A stream whose reader is slow therefore holds up the whole connection
//! once its queue is full, and by TCP the client: without the windows of the protocol, which no peer uses, the one
//! alternative were to keep without bound what a client sends.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadHalf, WriteHalf};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinSet;

use super::frame::{self, Decoder, Frame, ResetStatus};
use super::header_block::{self, Headers};
use crate::{Fault, Faults};

/// How many pieces wait for the reader of a stream.
const INBOUND: usize = 4;
/// How many frames wait for the connection.
const OUTBOUND: usize = 4;
/// How many streams wait to be taken.
const OFFERS: usize = 32;
/// How many streams a client may have open, and how many it has ended may still be answered.
const MAX_STREAMS: usize = 1024;
/// How much is read at once.
const READ: usize = 16 * 1024;
/// How long the peer has to take note of the end before the connection is cut.
const LINGER: Duration = Duration::from_secs(5);
/// The window that a stream would begin with, if there were windows.
const INITIAL_WINDOW: usize = 64 * 1024;

/// The server's end of a connection.
#[derive(Debug)]
pub(crate) struct Session {
    offers: mpsc::Receiver<Offer>,
    out: mpsc::Sender<Outgoing>,
    last: u32,
    /// Aborted with the session.
    tasks: JoinSet<()>,
}

impl Session {
    /// Takes over a connection right behind its handshake.
    pub(crate) fn start<S>(connection: S, faults: Faults) -> Self
    where
        S: AsyncRead + AsyncWrite + Send + 'static,
    {
        let (read, write) = tokio::io::split(connection);
        let (offer, offers) = mpsc::channel(OFFERS);
        let (out, queue) = mpsc::channel(OUTBOUND);
        let alive = Arc::new(Semaphore::new(MAX_STREAMS));
        let reader = Reader { out: out.clone(), offer, streams: HashMap::new(), alive, last: 0, faults };
        let mut tasks = JoinSet::new();
        // A broken connection shows as the end of everything that was open on it.
        tasks.spawn(async move {
            let _ = reader.run(read).await;
        });
        tasks.spawn(async move {
            let _ = Writer { blocks: header_block::Writer::new(faults), faults }.run(write, queue).await;
        });
        Self { offers, out, last: 0, tasks }
    }

    /// The next stream that the client opens; none when the connection is gone.
    pub(crate) async fn accept(&mut self) -> Option<Offer> {
        let offer = self.offers.recv().await?;
        self.last = offer.stream.id;
        Some(offer)
    }

    /// Ends the connection from this side: everything that was sent goes out first.
    pub(crate) async fn finish(mut self) {
        // Streams that come now find nobody.
        self.offers.close();
        let _ = self.out.send(Outgoing::GoAway { last: self.last }).await;
        // Reading on until the client has seen the end: closing a socket that holds unread bytes would destroy what is
        // still on its way to the client.
        let _ = tokio::time::timeout(LINGER, async { while self.tasks.join_next().await.is_some() {} }).await;
    }
}

/// A stream that the client has opened and that waits for an answer.
#[derive(Debug)]
pub(crate) struct Offer {
    pub(crate) headers: Headers,
    stream: Stream,
    faults: Faults,
}

impl Offer {
    pub(crate) fn id(&self) -> u32 {
        self.stream.id
    }

    pub(crate) async fn accept(self) -> Stream {
        if !self.faults.on(Fault::SpdyReplyMissing) {
            self.stream.sender.send(Outgoing::Reply { stream: self.stream.id }).await;
        }
        self.stream
    }

    /// Resets the stream. The connection goes on.
    pub(crate) async fn refuse(self) {
        self.stream.sender.reset().await;
    }
}

/// An open stream. Its halves can be used apart.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) id: u32,
    pub(crate) receiver: Receiver,
    pub(crate) sender: Sender,
}

/// What the client sends on a stream. When it is dropped, what comes is thrown away.
#[derive(Debug)]
pub(crate) struct Receiver(mpsc::Receiver<Received>);

/// One piece of what the client sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Received {
    Data(Bytes),
    /// The client sends nothing more, and still listens.
    End,
    /// The client gave the stream up, or the connection is gone.
    Reset,
}

impl Receiver {
    pub(crate) async fn next(&mut self) -> Received {
        self.0.recv().await.unwrap_or(Received::Reset)
    }
}

/// Sends on a stream. Sending waits while the client takes nothing, and does nothing once the connection is gone.
#[derive(Clone, Debug)]
pub(crate) struct Sender {
    stream: u32,
    out: mpsc::Sender<Outgoing>,
    /// The stream counts as long as anybody may send on it.
    _alive: Arc<OwnedSemaphorePermit>,
}

impl Sender {
    pub(crate) async fn data(&self, bytes: Bytes) {
        self.send(Outgoing::Data { stream: self.stream, fin: false, bytes }).await;
    }

    /// The last frame of this side; the client may go on sending.
    pub(crate) async fn end(&self) {
        self.send(Outgoing::Data { stream: self.stream, fin: true, bytes: Bytes::new() }).await;
    }

    /// Ends both directions at once.
    pub(crate) async fn reset(&self) {
        self.send(Outgoing::Reset { stream: self.stream, status: ResetStatus::Cancel }).await;
    }

    async fn send(&self, what: Outgoing) {
        let _ = self.out.send(what).await;
    }
}

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
    offer: mpsc::Sender<Offer>,
    /// The streams on which the client may still send.
    streams: HashMap<u32, mpsc::Sender<Received>>,
    /// A place for each stream that this side has not let go of.
    alive: Arc<Semaphore>,
    last: u32,
    faults: Faults,
}

/// Why reading ended.
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
        let (mut decoder, mut blocks) = (Decoder::default(), header_block::Reader::new());
        let mut buffer = BytesMut::new();
        loop {
            while let Some(frame) = decoder.decode(&mut buffer)? {
                self.take(frame, &mut blocks).await?;
            }
            buffer.reserve(READ);
            if connection.read_buf(&mut buffer).await? == 0 {
                return Ok(());
            }
        }
    }

    async fn take(&mut self, frame: Frame, blocks: &mut header_block::Reader) -> Result<(), ReadError> {
        match frame {
            Frame::SynStream { stream, fin, block } => self.open(stream, fin, blocks.read(&block)?).await,
            Frame::Data { stream, fin, bytes } => self.deliver(stream, fin, bytes).await,
            Frame::RstStream { stream } => {
                if let Some(receiver) = self.streams.remove(&stream) {
                    let _ = receiver.send(Received::Reset).await;
                }
            }
            Frame::Ping(id) if !self.faults.on(Fault::SpdyPingUnanswered) => {
                self.send(Outgoing::Ping(id)).await;
            }
            Frame::Headers { block } => {
                blocks.read(&block)?;
            }
            Frame::Ping(_) | Frame::GoAway | Frame::Other(_) => {}
        }
        Ok(())
    }

    async fn open(&mut self, stream: u32, fin: bool, headers: Headers) {
        // Clients open odd streams, each with a higher number than the one before.
        if stream.is_multiple_of(2) || stream <= self.last {
            return self.send(Outgoing::Reset { stream, status: ResetStatus::ProtocolError }).await;
        }
        self.last = stream;
        if self.streams.len() >= MAX_STREAMS {
            // Those that only the client has yet to end do not count.
            self.streams.retain(|_, receiver| !receiver.is_closed());
        }
        let alive = self.alive.clone().try_acquire_owned().ok().filter(|_| self.streams.len() < MAX_STREAMS);
        let Some(alive) = alive.map(Arc::new) else {
            return self.send(Outgoing::Reset { stream, status: ResetStatus::RefusedStream }).await;
        };
        let (sender, receiver) = mpsc::channel(INBOUND);
        if fin {
            // The queue is new and has room.
            let _ = sender.try_send(Received::End);
        } else {
            self.streams.insert(stream, sender);
        }
        let sender = Sender { stream, out: self.out.clone(), _alive: alive };
        let stream = Stream { id: stream, receiver: Receiver(receiver), sender };
        let offer = Offer { headers, stream, faults: self.faults };
        if let Err(mpsc::error::SendError(offer)) = self.offer.send(offer).await {
            let status = ResetStatus::RefusedStream;
            self.send(Outgoing::Reset { stream: offer.id(), status }).await;
        }
    }

    async fn deliver(&mut self, stream: u32, fin: bool, bytes: Bytes) {
        let fin = fin && !self.faults.on(Fault::SpdyHalfCloseIgnored);
        match self.streams.entry(stream) {
            Entry::Occupied(receiver) => {
                // Nobody may be listening any more, which is no business of the client's.
                if !bytes.is_empty() {
                    let _ = receiver.get().send(Received::Data(bytes)).await;
                }
                if fin {
                    let _ = receiver.remove().send(Received::End).await;
                }
            }
            // On a stream that was closed, data may have crossed the news.
            Entry::Vacant(_) if stream <= self.last => {}
            Entry::Vacant(_) => {
                self.send(Outgoing::Reset { stream, status: ResetStatus::InvalidStream }).await;
            }
        }
    }

    async fn send(&self, what: Outgoing) {
        let _ = self.out.send(what).await;
    }
}

struct Writer {
    blocks: header_block::Writer,
    faults: Faults,
}

impl Writer {
    async fn run<S: AsyncWrite>(
        mut self,
        mut connection: WriteHalf<S>,
        mut queue: mpsc::Receiver<Outgoing>,
    ) -> io::Result<()> {
        let mut sent: HashMap<u32, usize> = HashMap::new();
        while let Some(outgoing) = queue.recv().await {
            let ends = matches!(outgoing, Outgoing::GoAway { .. });
            match outgoing {
                Outgoing::Reply { stream } => {
                    let reply = frame::syn_reply(stream, &self.blocks.empty());
                    self.control(&mut connection, reply).await?;
                }
                Outgoing::Data { stream, fin, bytes } => {
                    if self.faults.on(Fault::SpdyWindowsHeeded) {
                        let sent = sent.entry(stream).or_default();
                        *sent += bytes.len();
                        if *sent > INITIAL_WINDOW {
                            // Waits for an update of the window, which no peer sends.
                            continue;
                        }
                    }
                    self.data(&mut connection, stream, fin, bytes).await?;
                }
                Outgoing::Reset { stream, status } => {
                    sent.remove(&stream);
                    self.control(&mut connection, frame::rst_stream(stream, status)).await?;
                }
                Outgoing::Ping(id) => {
                    let id = if self.faults.on(Fault::SpdyPingRenumbered) { id + 1 } else { id };
                    self.control(&mut connection, frame::ping(id)).await?;
                }
                Outgoing::GoAway { last } => self.control(&mut connection, frame::go_away(last)).await?,
            }
            if queue.is_empty() || ends {
                connection.flush().await?;
            }
            if ends {
                break;
            }
        }
        // The client sees the end at once, and this side can still read.
        connection.shutdown().await
    }

    async fn control<S: AsyncWrite>(
        &self,
        connection: &mut WriteHalf<S>,
        mut frame: BytesMut,
    ) -> io::Result<()> {
        if self.faults.on(Fault::SpdyFramesOfVersion2)
            && let Some(version) = frame.get_mut(1)
        {
            *version = 2;
        }
        connection.write_all_buf(&mut frame).await
    }

    async fn data<S: AsyncWrite>(
        &self,
        connection: &mut WriteHalf<S>,
        stream: u32,
        fin: bool,
        mut bytes: Bytes,
    ) -> io::Result<()> {
        if fin && self.faults.on(Fault::SpdyFinMissing) {
            return Ok(());
        }
        if self.faults.on(Fault::SpdyFrameBorderLosesByte) && bytes.len() > 1 {
            bytes.truncate(bytes.len() - 1);
        }
        let stream = if self.faults.on(Fault::SpdyDataOnEvenStreams) { stream + 1 } else { stream };
        let head = frame::data_head(stream, fin, bytes.len());
        connection.write_all_buf(&mut Buf::chain(head.as_slice(), bytes)).await
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{BufWriter, DuplexStream};

    use super::*;
    use crate::streams::testing::unhex;

    /// `SYN_STREAM` frames of a Go client: error, stdin, stdout.
    const ERROR: &str =
        "80030001000000280000000100000000000078f9e3c6a7c202a62346703a2b294a4dcc851625aca9a08006000000ffff";
    const STDIN: &str = "800300010000001700000003000000000000c22e555c02cc2e00000000ffff";
    const STDOUT: &str = "800300010000001900000005000000000000c22a054ce729f9a52500000000ffff";

    /// A session and the bytes of its client. The connection keeps what it is not told to pass on.
    fn session() -> (Session, DuplexStream) {
        let (ours, theirs) = tokio::io::duplex(1024);
        (Session::start(BufWriter::new(ours), Faults::none()), theirs)
    }

    async fn sends(client: &mut DuplexStream, hex: &str) {
        client.write_all(&unhex(hex)).await.expect("the session reads");
    }

    async fn frames(client: &mut DuplexStream, count: usize) -> Vec<Frame> {
        let (mut decoder, mut buffer, mut frames) = (Decoder::default(), BytesMut::new(), Vec::new());
        while frames.len() < count {
            match decoder.decode(&mut buffer).expect("frames") {
                Some(frame) => frames.push(frame),
                None => assert_ne!(client.read_buf(&mut buffer).await.expect("bytes"), 0, "{frames:?}"),
            }
        }
        frames
    }

    #[tokio::test]
    async fn a_stream_is_answered_and_carries_data_both_ways() {
        let (mut session, mut client) = session();
        sends(&mut client, ERROR).await;
        sends(&mut client, STDIN).await;
        sends(&mut client, "0000000300000007737064792d696e0000000301000000").await;
        let error = session.accept().await.expect("an offer");
        assert_eq!((error.id(), error.headers.get("streamtype")), (1, Some("error")));
        let stdin = session.accept().await.expect("an offer");
        assert_eq!(stdin.id(), 3);
        let mut stdin = stdin.accept().await;
        assert_eq!(stdin.receiver.next().await, Received::Data(Bytes::from_static(b"spdy-in")));
        assert_eq!(stdin.receiver.next().await, Received::End);
        stdin.sender.data(Bytes::from_static(b"out\n")).await;
        let expected = Frame::Data { stream: 3, fin: false, bytes: Bytes::from_static(b"out\n") };
        assert_eq!(frames(&mut client, 2).await[1], expected);
        stdin.sender.end().await;
        error.refuse().await;
        let ends =
            [Frame::Data { stream: 3, fin: true, bytes: Bytes::new() }, Frame::RstStream { stream: 1 }];
        assert_eq!(frames(&mut client, 2).await, ends);
    }

    #[tokio::test]
    async fn data_that_crossed_the_end_of_its_stream_is_dropped() {
        let (mut session, mut client) = session();
        sends(&mut client, ERROR).await;
        sends(
            &mut client,
            "00000001010000016100000001000000016280030006000000040000000180030006000000040000000b",
        )
        .await;
        let mut error = session.accept().await.expect("an offer").accept().await;
        assert_eq!(error.receiver.next().await, Received::Data(Bytes::from_static(b"a")));
        assert_eq!(error.receiver.next().await, Received::End);
        let answers = frames(&mut client, 3).await;
        assert!(answers.contains(&Frame::Ping(1)) && answers.contains(&Frame::Ping(11)), "{answers:?}");
        assert!(!answers.contains(&Frame::RstStream { stream: 1 }), "{answers:?}");
    }

    #[tokio::test]
    async fn a_session_that_finishes_says_so_and_closes() {
        let (mut session, mut client) = session();
        sends(&mut client, ERROR).await;
        let stream = session.accept().await.expect("an offer").accept().await;
        stream.sender.data(Bytes::from_static(b"last")).await;
        stream.sender.reset().await;
        tokio::join!(session.finish(), async {
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
    async fn pings_come_back_and_bad_streams_are_reset() {
        let (_session, mut client) = session();
        sends(&mut client, "800300060000000400000001").await;
        // An even stream, a number that was used, and data on a stream that was never opened.
        sends(&mut client, ERROR).await;
        sends(&mut client, "800300010000001700000002000000000000c22e555c02cc2e00000000ffff").await;
        sends(&mut client, "0000000900000000").await;
        let mut bytes = vec![0; 12 + 16 + 16];
        client.read_exact(&mut bytes).await.expect("bytes");
        let expected = "80030006000000040000000180030003000000080000000200000001800300030000000800000009\
                        00000002";
        assert_eq!(bytes, unhex(expected));
    }

    /// The stream of this number; the first block is longer than the others, and none carries a header.
    fn syn_stream(number: usize, fin: bool) -> Vec<u8> {
        let block = unhex(if number == 0 { "78f9e3c6a7c26260606000000000ffff" } else { "026100000000ffff" });
        let id = u32::try_from(2 * number + 1).expect("a number");
        let length = u32::try_from(10 + block.len()).expect("short") | u32::from(fin) << 24;
        let head = [[0x80, 3, 0, 1], length.to_be_bytes(), id.to_be_bytes(), [0; 4]].concat();
        [&head, [0; 2].as_slice(), &block].concat()
    }

    /// As many streams as there may be, each ended by the client at once or not.
    async fn all_streams(fin: bool) -> (Session, DuplexStream, Vec<Stream>) {
        let (ours, mut client) = tokio::io::duplex(1 << 20);
        let mut session = Session::start(ours, Faults::none());
        let mut streams = Vec::new();
        for number in 0..MAX_STREAMS {
            client.write_all(&syn_stream(number, fin)).await.expect("the session reads");
            streams.push(session.accept().await.expect("an offer").stream);
        }
        (session, client, streams)
    }

    async fn one_more_is_refused(client: &mut DuplexStream) {
        client.write_all(&syn_stream(MAX_STREAMS, false)).await.expect("the session reads");
        let mut refusal = [0; 16];
        client.read_exact(&mut refusal).await.expect("the one too many is refused");
        assert_eq!(refusal, *unhex("80030003000000080000080100000003"));
    }

    #[tokio::test]
    async fn streams_that_the_client_has_ended_count_until_they_are_let_go() {
        let (_session, mut client, streams) = all_streams(true).await;
        one_more_is_refused(&mut client).await;
        drop(streams);
    }

    #[tokio::test]
    async fn streams_on_which_the_client_may_send_count_although_nobody_answers() {
        let (_session, mut client, streams) = all_streams(false).await;
        let receivers: Vec<_> = streams.into_iter().map(|stream| stream.receiver).collect();
        one_more_is_refused(&mut client).await;
        drop(receivers);
    }

    #[tokio::test]
    async fn streams_that_were_let_go_make_room() {
        let (mut session, mut client, streams) = all_streams(false).await;
        drop(streams);
        client.write_all(&syn_stream(MAX_STREAMS, false)).await.expect("the session reads");
        assert_eq!(session.accept().await.expect("an offer").id(), 2 * 1024 + 1);
    }

    #[tokio::test]
    async fn a_slow_reader_holds_the_client_back() {
        let (mut session, mut client) = session();
        sends(&mut client, ERROR).await;
        sends(&mut client, STDIN).await;
        sends(&mut client, STDOUT).await;
        let flood = async {
            let frame = [frame::data_head(3, false, 512).as_slice(), &[0; 512]].concat();
            let mut sent = 0;
            loop {
                client.write_all(&frame).await.expect("the session reads");
                sent += frame.len();
                assert!(sent < 256 * 1024, "nobody reads, and still the session takes everything");
            }
        };
        // The connection holds a kilobyte, the session a few pieces: the client must come to a stop.
        let stopped = tokio::time::timeout(Duration::from_millis(200), flood).await;
        assert!(stopped.is_err());
        session.accept().await.expect("an offer");
        let mut stdin = session.accept().await.expect("an offer").accept().await;
        assert!(matches!(stdin.receiver.next().await, Received::Data(_)));
    }

    #[tokio::test]
    async fn streams_end_with_their_connection() {
        let (mut session, mut client) = session();
        sends(&mut client, ERROR).await;
        let mut error = session.accept().await.expect("an offer").accept().await;
        drop(client);
        assert_eq!(error.receiver.next().await, Received::Reset);
        assert!(session.accept().await.is_none());
    }
}
