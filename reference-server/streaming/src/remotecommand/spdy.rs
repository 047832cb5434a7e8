//! A command over SPDY. Each stream of the command is a stream of the connection.

use std::fmt::Display;
use std::future::Future;
use std::time::Duration;

use bytes::Buf as _;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;

use super::output::{Kind, Outputs, Piece};
use super::resize::SizeParser;
use super::{ExecRequest, Exit, Pipe, Process, TerminalSize, Version, status};
use crate::spdy::connection::{Connection, Received, Receiver, Sender, Stream};

/// The time for the client to open all streams.
const STREAM_CREATION_TIMEOUT: Duration = Duration::from_secs(30);

/// Runs the command until it ends or the client disconnects.
pub(super) async fn run<S, F, W, E>(transport: S, version: Version, request: ExecRequest, start: F)
where
    S: AsyncRead + AsyncWrite + Send + 'static,
    F: FnOnce(ExecRequest) -> W,
    W: Future<Output = Result<Process, E>>,
    E: Display,
{
    let mut connection = Connection::start(transport);
    let opened = tokio::time::timeout(
        STREAM_CREATION_TIMEOUT,
        open_streams(&mut connection, &request, version),
    );
    // Without an error stream there is no way to report the timeout.
    let Ok(Some(mut streams)) = opened.await else { return };
    let work = async {
        let started = start(request).await.map_err(|error| error.to_string());
        let status = match started {
            Ok(process) => drive(&mut streams, process, version).await,
            Err(error) => {
                let reason = format!("error executing command in container: {error}");
                Some(status::of_failure(version, &reason))
            }
        };
        if let Some(status) = status {
            streams.error.data(status.into()).await;
        }
    };
    let late_streams = async {
        // The server accepts late streams and ignores them.
        while let Some(stream) = connection.next_stream().await {
            stream.accept().await;
        }
    };
    tokio::select! {
        () = work => {}
        () = late_streams => return,
    }
    for sender in streams.senders() {
        sender.reset().await;
    }
    connection.finish().await;
}

/// The streams of a command. Data that the client sends on the other ones is discarded.
struct Streams {
    error: Sender,
    stdout: Option<Sender>,
    stderr: Option<Sender>,
    stdin: Option<(Sender, Receiver)>,
    resize: Option<(Sender, Receiver)>,
}

impl Streams {
    fn senders(&self) -> impl Iterator<Item = &Sender> {
        let two_way = [&self.stdin, &self.resize].into_iter().flatten().map(|(sender, _)| sender);
        [&self.stdout, &self.stderr].into_iter().flatten().chain([&self.error]).chain(two_way)
    }
}

/// Waits for the streams of the request, in any order. Returns none when the client disconnects.
async fn open_streams(
    connection: &mut Connection,
    request: &ExecRequest,
    version: Version,
) -> Option<Streams> {
    let resizes = request.tty && version >= Version::V3;
    let expected = [
        ("error", true),
        ("stdin", request.stdin),
        ("stdout", request.stdout),
        ("stderr", request.stderr),
        ("resize", resizes),
    ];
    let mut open: [Option<Stream>; 5] = Default::default();
    while expected.iter().zip(&open).any(|((_, wanted), stream)| *wanted && stream.is_none()) {
        let incoming = connection.next_stream().await?;
        let kind = incoming.headers.get("streamtype").unwrap_or_default();
        let index = expected.iter().position(|(known, wanted)| *wanted && *known == kind);
        // The server accepts unexpected streams too, and ignores them.
        let stream = incoming.accept().await;
        if let Some(index) = index {
            open[index] = Some(stream);
        }
    }
    let [error, stdin, stdout, stderr, resize] = open;
    let both = |stream: Stream| (stream.sender, stream.receiver);
    Some(Streams {
        error: error?.sender,
        stdout: stdout.map(|stream| stream.sender),
        stderr: stderr.map(|stream| stream.sender),
        stdin: stdin.map(both),
        resize: resize.map(both),
    })
}

/// Connects the streams to the process, and returns the exit status for the error stream.
async fn drive(streams: &mut Streams, process: Process, version: Version) -> Option<String> {
    let Process { stdin, stdout, stderr, resize, exit } = process;
    let (stdout_sender, stderr_sender) = (streams.stdout.clone(), streams.stderr.clone());
    let output = async {
        let mut outputs = Outputs::new(stdout, stderr);
        while let Some(piece) = outputs.next().await {
            let (Piece::Content(kind, _) | Piece::End(kind)) = &piece;
            let sender = match kind {
                Kind::Stdout => stdout_sender.as_ref(),
                Kind::Stderr => stderr_sender.as_ref(),
            };
            let Some(sender) = sender else { continue };
            match piece {
                Piece::Content(_, mut content) => {
                    // SPDY needs no channel byte.
                    content.advance(1);
                    sender.data(content.freeze()).await;
                }
                Piece::End(_) => sender.end().await,
            }
        }
        let exit = exit.await.unwrap_or_else(|_| Exit::Failed("the container is gone".to_owned()));
        status::of_exit(version, &exit)
    };
    let input = async {
        tokio::join!(
            copy_stdin(streams.stdin.as_mut().map(|(_, receiver)| receiver), stdin),
            copy_sizes(streams.resize.as_mut().map(|(_, receiver)| receiver), resize),
        );
        std::future::pending::<()>().await;
    };
    tokio::select! {
        status = output => status,
        () = input => None,
    }
}

/// Copies stdin. Dropping the pipe at the end closes it.
async fn copy_stdin(receiver: Option<&mut Receiver>, stdin: Option<Pipe>) {
    let (Some(receiver), Some(mut stdin)) = (receiver, stdin) else { return };
    while let Received::Data(bytes) = receiver.next().await {
        if stdin.write_all(&bytes).await.is_err() {
            // The command no longer reads, so further input is discarded.
            while matches!(receiver.next().await, Received::Data(_)) {}
        }
    }
}

async fn copy_sizes(receiver: Option<&mut Receiver>, resize: mpsc::Sender<TerminalSize>) {
    let Some(receiver) = receiver else { return };
    let mut sizes = SizeParser::default();
    while let Received::Data(bytes) = receiver.next().await {
        for size in sizes.push(&bytes) {
            // The send fails when the command has ended.
            let _ = resize.send(size).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use rstest::rstest;
    use tokio::sync::oneshot;

    use super::*;
    use crate::PIPE_CAPACITY;
    use crate::testing::unhex;

    /// The frames of a Go client for a terminal: error, stdin, stdout, resize and a size.
    const TERMINAL: &str = "\
         800300010000002800000001000000000000\
         78f9e3c6a7c202a62346703a2b294a4dcc851625aca9a08006000000ffff\
         800300010000001700000003000000000000c22e555c02cc2e00000000ffff\
         800300010000001900000005000000000000c22a054ce729f9a52500000000ffff\
         800300010000001700000007000000000000c22e072c7e80f10d000000ffff\
         00000007000000187b225769647468223a312c22486569676874223a327d";

    fn request() -> ExecRequest {
        ExecRequest { stdin: true, stdout: true, tty: true, ..ExecRequest::default() }
    }

    #[rstest]
    #[case(Version::V2, false)]
    #[case(Version::V3, true)]
    #[tokio::test]
    async fn terminal_sizes_exist_since_v3(#[case] version: Version, #[case] resizes: bool) {
        let (server, mut client) = tokio::io::duplex(PIPE_CAPACITY);
        let mut connection = Connection::start(server);
        client.write_all(&unhex(TERMINAL)).await.expect("the connection has space");
        let streams =
            open_streams(&mut connection, &request(), version).await.expect("all streams");
        assert_eq!(streams.resize.is_some(), resizes);
    }

    #[tokio::test]
    async fn the_size_of_a_terminal_reaches_its_command() {
        let (connection, mut client) = tokio::io::duplex(PIPE_CAPACITY);
        let (resize, mut sizes) = mpsc::channel(1);
        let (_exit, exit) = oneshot::channel();
        let process = Process { stdin: None, stdout: None, stderr: None, resize, exit };
        let start = async |_| Ok::<_, Infallible>(process);
        tokio::spawn(run(connection, Version::V4, request(), start));
        client.write_all(&unhex(TERMINAL)).await.expect("the connection has space");
        let size = sizes.recv().await.map(|size| (size.width, size.height));
        assert_eq!(size, Some((1, 2)));
    }
}
