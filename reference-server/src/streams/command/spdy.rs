//! A command over SPDY: a stream of the connection for each stream of the command.

use std::future::Future;
use std::time::Duration;

use bytes::Buf as _;
use futures_util::FutureExt as _;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;

use super::output::{Kind, Outputs, Piece};
use super::resize::Sizes;
use super::shared::Session as Shared;
use super::{Version, status};
use crate::runtime::{ExecRequest, Exit, Pipe, Process, StartError, TerminalSize};
use crate::streams::spdy::session::{Received, Receiver, Sender, Session, Stream};
use crate::{Fault, Faults};

/// How long the client has to open all streams.
const CREATION: Duration = Duration::from_secs(30);

/// Runs the command to its end, or until the client leaves.
pub(super) async fn run<S, F, W>(
    connection: S,
    version: Version,
    request: ExecRequest,
    start: F,
    faults: Faults,
) where
    S: AsyncRead + AsyncWrite + Send + 'static,
    F: FnOnce(ExecRequest) -> W,
    W: Future<Output = Result<Process, StartError>>,
{
    let mut session = Session::start(connection, faults);
    // A client that does not open its streams is told nothing, as there is no stream to tell it on.
    let Ok(Some(mut streams)) =
        tokio::time::timeout(CREATION, collect(&mut session, &request, version)).await
    else {
        return;
    };
    let work = async {
        let status = match start(request).await {
            Ok(process) => drive(&mut streams, process, version, faults).await,
            Err(error) => {
                let why = format!("error executing command in container: {error}");
                status::of_failure(version, &why, faults)
            }
        };
        if faults.on(Fault::SpdyStatusOnStdout)
            && let (Some(stdout), Some(status)) = (&streams.stdout, &status)
        {
            stdout.data(status.clone().into()).await;
        } else if let Some(status) = status {
            streams.error.data(status.into()).await;
        }
    };
    let gone = async {
        // Streams that come late are accepted and lead nowhere.
        while let Some(offer) = session.accept().await {
            offer.accept().await;
        }
    };
    tokio::select! {
        () = work => {}
        () = gone => return,
    }
    for sender in streams.senders() {
        sender.reset().await;
    }
    session.finish().await;
}

/// The streams of a command. What the client sends on the others is not listened to.
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

/// Waits for the streams that the request calls for, in whatever order. None when the client leaves.
async fn collect(session: &mut Session, request: &ExecRequest, version: Version) -> Option<Streams> {
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
        let offer = session.accept().await?;
        let kind = offer.headers.get("streamtype").unwrap_or_default();
        let place = expected.iter().position(|(known, wanted)| *wanted && *known == kind);
        // One that nobody asked for is accepted too, and leads nowhere.
        let stream = offer.accept().await;
        if let Some(place) = place {
            open[place] = Some(stream);
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

/// Carries everything between the streams and the process, and says what to tell of its end.
async fn drive(streams: &mut Streams, process: Process, version: Version, faults: Faults) -> Option<String> {
    let Process { stdin, stdout, stderr, resize, exit } = process;
    let ends_late = faults.on(Fault::EndWaitsForClient) && stdin.is_some();
    let ends_early = faults.on(Fault::HalfCloseEndsSession) && stdin.is_some();
    let (stdout_sender, stderr_sender) = (streams.stdout.clone(), streams.stderr.clone());
    let output = async {
        let mut outputs = Outputs::new(stdout, stderr, faults);
        while let Some(piece) = outputs.next().await {
            let (Piece::Content(kind, _) | Piece::End(kind)) = &piece;
            let sender = match kind {
                Kind::Stdout => stdout_sender.as_ref(),
                Kind::Stderr => stderr_sender.as_ref(),
            };
            let Some(sender) = sender else { continue };
            match piece {
                Piece::Content(_, mut content) => {
                    // The room for a channel.
                    content.advance(1);
                    sender.data(content.freeze()).await;
                }
                Piece::End(_) => sender.end().await,
            }
        }
        let exit = exit.await.unwrap_or_else(|_| Exit::Failed("the container is gone".to_owned()));
        if ends_late {
            std::future::pending::<()>().await;
        }
        status::of_exit(version, &exit, faults)
    };
    let input = async {
        tokio::join!(
            feed(streams.stdin.as_mut().map(|(_, receiver)| receiver), stdin, faults),
            resizes(streams.resize.as_mut().map(|(_, receiver)| receiver), resize, faults),
        );
        if !ends_early {
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        status = output => status,
        () = input => None,
    }
}

/// Hands on stdin. Dropping the pipe is its end.
async fn feed(receiver: Option<&mut Receiver>, stdin: Option<Pipe>, faults: Faults) {
    let (Some(receiver), Some(mut stdin)) = (receiver, stdin) else { return };
    let shared = Shared::new(faults);
    while let Received::Data(mut bytes) = receiver.next().await {
        bytes = shared.input(bytes);
        if faults.on(Fault::StdinFramesCut) {
            bytes.truncate(4096);
        }
        if faults.on(Fault::StdinDroppedWhenFull) {
            // What does not fit now never will.
            let _ = stdin.write(&bytes).now_or_never();
            continue;
        }
        if stdin.write_all(&bytes).await.is_err() {
            // The command reads no more; what is left is thrown away.
            while matches!(receiver.next().await, Received::Data(_)) {}
        }
    }
}

async fn resizes(receiver: Option<&mut Receiver>, resize: mpsc::Sender<TerminalSize>, faults: Faults) {
    let Some(receiver) = receiver else { return };
    let mut sizes = Sizes::default();
    while let Received::Data(bytes) = receiver.next().await {
        for size in sizes.push(&bytes, faults) {
            // A command that has ended has no terminal.
            let _ = resize.send(size).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use tokio::sync::oneshot;

    use super::*;
    use crate::runtime::PIPE_CAPACITY;
    use crate::streams::testing::unhex;

    /// What a Go client sends for a terminal: the streams error, stdin, stdout and resize, and a size.
    const TERMINAL: &str = "80030001000000280000000100000000000078f9e3c6a7c202a62346703a2b294a4dcc851625aca9a08006000000ffff\
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
    async fn terminals_are_resized_since_the_third_version(#[case] version: Version, #[case] resizes: bool) {
        let (connection, mut client) = tokio::io::duplex(PIPE_CAPACITY);
        let mut session = Session::start(connection, Faults::none());
        client.write_all(&unhex(TERMINAL)).await.expect("room");
        let streams = collect(&mut session, &request(), version).await.expect("all streams are there");
        assert_eq!(streams.resize.is_some(), resizes);
    }

    #[tokio::test]
    async fn the_size_of_a_terminal_reaches_its_command() {
        let (connection, mut client) = tokio::io::duplex(PIPE_CAPACITY);
        let (resize, mut sizes) = mpsc::channel(1);
        let (_exit, exit) = oneshot::channel();
        let process = Process { stdin: None, stdout: None, stderr: None, resize, exit };
        let start = async |_| Ok(process);
        tokio::spawn(run(connection, Version::V4, request(), start, Faults::none()));
        client.write_all(&unhex(TERMINAL)).await.expect("room");
        let size = sizes.recv().await.map(|size| (size.width, size.height));
        assert_eq!(size, Some((1, 2)));
    }
}
