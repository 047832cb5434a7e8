//! A command over WebSocket: a channel for each stream, told apart by the first byte of a message.

use std::future::Future;

use bytes::Bytes;
use futures_util::FutureExt as _;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;

use super::output::{Kind, Outputs, Piece};
use super::resize::Sizes;
use super::shared::Session;
use super::{Version, status};
use crate::runtime::{ExecRequest, Exit, Pipe, Process, StartError, TerminalSize};
use crate::streams::websocket::channels::{Channels, Coding};
use crate::streams::websocket::socket::{Ended, Incoming, Outgoing, Socket};
use crate::{Fault, Faults};

const STDIN: u8 = 0;
const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const ERROR: u8 = 3;
const RESIZE: u8 = 4;
/// Ends the channel that its one byte of content names.
const CLOSE: u8 = 255;

/// The code of a close frame that blames nobody.
const NORMAL: u16 = 1000;
const TOO_BIG: u16 = 1009;

/// How the two sides have agreed to talk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dialect {
    pub(super) version: Version,
    pub(super) coding: Coding,
    pub(super) faults: Faults,
}

/// Runs the command to its end, or until the client leaves.
///
/// With `refused` there is no command, only the reason to tell.
pub(super) async fn run<S, F, W>(
    connection: S,
    dialect: Dialect,
    request: ExecRequest,
    refused: Option<String>,
    start: F,
) where
    S: AsyncRead + AsyncWrite + Unpin,
    F: FnOnce(ExecRequest) -> W,
    W: Future<Output = Result<Process, StartError>>,
{
    let Dialect { version, coding, faults } = dialect;
    let channels = Channels { coding, faults };
    let (mut incoming, outgoing) = Socket::new(connection, faults).await.split();
    let mut output = Output { outgoing, channels };
    let first = if request.stdout {
        STDOUT
    } else if request.stderr {
        STDERR
    } else {
        ERROR
    };
    let end = async {
        // An empty message tells the client that the connection stands.
        output.send(first, b"").await?;
        if let Some(why) = refused {
            if faults.on(Fault::NodeRefusalUntold) {
                return Ok(());
            }
            return output.send(ERROR, status::of_refusal(&why).as_bytes()).await;
        }
        match start(request).await {
            Ok(process) => output.drive(&mut incoming, process, version).await,
            Err(error) => {
                let why = format!("error executing command in container: {error}");
                output.tell(status::of_failure(version, &why, faults)).await
            }
        }
    }
    .await;
    output.outgoing.close(incoming, end).await;
}

struct Output<S> {
    outgoing: Outgoing<S>,
    channels: Channels,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Output<S> {
    async fn send(&mut self, channel: u8, content: &[u8]) -> Result<(), Ended> {
        self.outgoing.send(self.channels.encode(channel, content)).await
    }

    async fn tell(&mut self, status: Option<String>) -> Result<(), Ended> {
        match status {
            Some(status) => self.send(ERROR, status.as_bytes()).await,
            None => Ok(()),
        }
    }

    async fn drive(
        &mut self,
        incoming: &mut Incoming<S>,
        process: Process,
        version: Version,
    ) -> Result<(), Ended> {
        let Process { stdin, stdout, stderr, resize, exit } = process;
        let faults = self.channels.faults;
        let session = Session::new(faults);
        let waits = faults.on(Fault::EndWaitsForClient) && stdin.is_some();
        let input = Input {
            stdin,
            resize,
            sizes: Sizes::default(),
            channels: self.channels,
            version,
            session: &session,
        };
        let outputs = Outputs::new(stdout, stderr, faults);
        tokio::select! {
            end = self.write(outputs, exit, version, waits) => end,
            end = input.read(incoming) => {
                if let Ended::Broken(_) = end {
                    session.has_broken();
                }
                Err(end)
            }
            () = session.ended_by_others() => Err(Ended::Gone),
        }
    }

    /// Sends what the command writes, and how it ended.
    async fn write(
        &mut self,
        mut outputs: Outputs,
        mut exit: tokio::sync::oneshot::Receiver<Exit>,
        version: Version,
        waits: bool,
    ) -> Result<(), Ended> {
        let faults = self.channels.faults;
        if faults.on(Fault::StatusBeforeOutput) {
            let exit = (&mut exit).await.unwrap_or(Exit::Code(0));
            self.tell(status::of_exit(version, &exit, faults)).await?;
        }
        while let Some(piece) = outputs.next().await {
            let Piece::Content(kind, mut message) = piece else { continue };
            if let Some(channel) = message.first_mut() {
                *channel = match kind {
                    Kind::Stdout => STDOUT,
                    Kind::Stderr => STDERR,
                };
            }
            self.outgoing.send(self.channels.finish(message.freeze())).await?;
        }
        if faults.on(Fault::StatusBeforeOutput) {
            return Ok(());
        }
        let exit = exit.await.unwrap_or_else(|_| Exit::Failed("the container is gone".to_owned()));
        if waits {
            std::future::pending::<()>().await;
        }
        self.tell(status::of_exit(version, &exit, faults)).await
    }
}

/// Where the messages of the client go.
struct Input<'a> {
    session: &'a Session,
    stdin: Option<Pipe>,
    resize: mpsc::Sender<TerminalSize>,
    sizes: Sizes,
    channels: Channels,
    version: Version,
}

impl Input<'_> {
    /// Hands on what comes until no more does; it is not for this side to end.
    async fn read<S: AsyncRead + AsyncWrite + Unpin>(mut self, incoming: &mut Incoming<S>) -> Ended {
        loop {
            let message = match incoming.next().await {
                Ok(message) => message,
                Err(end) => return end,
            };
            match self.channels.decode(message) {
                Ok(Some((channel, content))) => {
                    if let Err(end) = self.take(channel, content).await {
                        return end;
                    }
                }
                Ok(None) => {}
                // What stdin was meant to be nobody knows; that it has ended is all that can be said.
                Err(_) => self.stdin = None,
            }
        }
    }

    async fn take(&mut self, channel: u8, content: Bytes) -> Result<(), Ended> {
        let faults = self.channels.faults;
        let knows_close = self.version >= Version::V5 || faults.on(Fault::StdinCloseBeforeV5);
        match channel {
            STDIN if faults.on(Fault::LongMessagesEndSession) && content.len() > 64 << 10 => {
                return Err(Ended::Broken(TOO_BIG));
            }
            STDIN => self.write(content).await,
            RESIZE => {
                for size in self.sizes.push(&content, faults) {
                    // A command that has ended has no terminal.
                    let _ = self.resize.send(size).await;
                }
            }
            CLOSE if knows_close => match content.as_ref() {
                [STDIN] if faults.on(Fault::StdinCloseIgnored) => {}
                [STDIN] if faults.on(Fault::HalfCloseEndsSession) => return Err(Ended::Closed),
                [STDIN] => self.stdin = None,
                // Clients have nothing else to close, but these channels there are.
                [STDOUT..=RESIZE] => {}
                _ => return Err(Ended::Broken(NORMAL)),
            },
            _ if faults.on(Fault::UnknownChannelsAreStdin) => self.write(content).await,
            _ if faults.on(Fault::UnknownChannelEndsSession) => return Err(Ended::Broken(NORMAL)),
            _ => {}
        }
        Ok(())
    }

    async fn write(&mut self, mut content: Bytes) {
        let faults = self.channels.faults;
        if faults.on(Fault::EmptyStdinFrameEnds) && content.is_empty() {
            self.stdin = None;
        }
        if faults.on(Fault::StdinFramesCut) {
            content.truncate(4096);
        }
        if faults.on(Fault::StdinDroppedWhenFull) {
            // What does not fit now never will.
            let _ = self.stdin.as_mut().map(|stdin| stdin.write(&content).now_or_never());
            return;
        }
        if let Some(stdin) = &mut self.stdin
            && stdin.write_all(&self.session.input(content)).await.is_err()
        {
            // The command reads no more; what is left is thrown away.
            self.stdin = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    /// What one message of a client of the fifth version comes to.
    async fn taken(channel: u8, content: &[u8]) -> Result<(), Ended> {
        let faults = Faults::none();
        let mut input = Input {
            session: &Session::new(faults),
            stdin: None,
            resize: mpsc::channel(1).0,
            sizes: Sizes::default(),
            channels: Channels { coding: Coding::Binary, faults },
            version: Version::V5,
        };
        input.take(channel, Bytes::copy_from_slice(content)).await
    }

    #[rstest]
    #[case(&[STDOUT], Ok(()))]
    #[case(&[RESIZE], Ok(()))]
    #[case(&[RESIZE + 1], Err(Ended::Broken(NORMAL)))]
    #[case(&[STDIN, STDIN], Err(Ended::Broken(NORMAL)))]
    #[tokio::test]
    async fn only_channels_that_there_are_can_be_closed(
        #[case] content: &[u8],
        #[case] expected: Result<(), Ended>,
    ) {
        assert_eq!(taken(CLOSE, content).await, expected);
    }

    #[tokio::test]
    async fn input_may_be_long() {
        assert_eq!(taken(STDIN, &vec![b'x'; (64 << 10) + 1]).await, Ok(()));
    }
}
