//! A command over WebSocket. The first byte of each message is the channel.

use std::fmt::Display;
use std::future::Future;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{mpsc, oneshot};

use super::output::{Kind, Outputs, Piece};
use super::resize::SizeParser;
use super::{ExecRequest, Exit, Pipe, Process, TerminalSize, Version, status};
use crate::websocket::channel::Coding;
use crate::websocket::socket::{Ended, Incoming, Outgoing, Socket, bytes_of};

const STDIN: u8 = 0;
const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const ERROR: u8 = 3;
const RESIZE: u8 = 4;
/// Closes the channel in the one byte of content.
const CLOSE: u8 = 255;

/// The close code for a close message with an unknown channel. kube-apiserver sends it too.
const NORMAL: u16 = 1000;

#[derive(Clone, Copy, Debug)]
pub(super) struct Dialect {
    pub(super) version: Version,
    pub(super) coding: Coding,
}

/// Runs the command until it ends or the client closes. With `rejected`, it only sends that reason.
pub(super) async fn run<S, F, W, E>(
    connection: S,
    dialect: Dialect,
    request: ExecRequest,
    rejected: Option<String>,
    start: F,
) where
    S: AsyncRead + AsyncWrite + Unpin,
    F: FnOnce(ExecRequest) -> W,
    W: Future<Output = Result<Process, E>>,
    E: Display,
{
    let (mut incoming, outgoing) = Socket::new(connection).await.split();
    let mut output = Output { outgoing, dialect };
    let first = match &request {
        request if request.stdout => STDOUT,
        request if request.stderr => STDERR,
        _ => ERROR,
    };
    let end = async {
        // An empty message shows the client that the connection is open.
        output.send(first, b"").await?;
        if let Some(reason) = rejected {
            return output.send(ERROR, status::of_rejection(&reason).as_bytes()).await;
        }
        // The error is formatted at once: it need not be Send.
        let started = start(request).await.map_err(|error| error.to_string());
        match started {
            Ok(process) => output.drive(&mut incoming, process).await,
            Err(error) => {
                let reason = format!("error executing command in container: {error}");
                output.send_status(Some(status::of_failure(dialect.version, &reason))).await
            }
        }
    }
    .await;
    output.outgoing.close(incoming, end).await;
}

struct Output<S> {
    outgoing: Outgoing<S>,
    dialect: Dialect,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Output<S> {
    async fn send(&mut self, channel: u8, content: &[u8]) -> Result<(), Ended> {
        self.outgoing.send(self.dialect.coding.message(channel, content)).await
    }

    async fn send_status(&mut self, status: Option<String>) -> Result<(), Ended> {
        match status {
            Some(status) => self.send(ERROR, status.as_bytes()).await,
            None => Ok(()),
        }
    }

    async fn drive(&mut self, incoming: &mut Incoming<S>, process: Process) -> Result<(), Ended> {
        let Process { stdin, stdout, stderr, resize, exit } = process;
        let input = Input { stdin, resize, sizes: SizeParser::default(), dialect: self.dialect };
        let outputs = Outputs::new(stdout, stderr);
        tokio::select! {
            end = self.write(outputs, exit) => end,
            end = input.read(incoming) => Err(end),
        }
    }

    /// Sends the output and then the exit status.
    async fn write(
        &mut self,
        mut outputs: Outputs,
        exit: oneshot::Receiver<Exit>,
    ) -> Result<(), Ended> {
        while let Some(piece) = outputs.next().await {
            let Piece::Content(kind, mut message) = piece else { continue };
            if let Some(channel) = message.first_mut() {
                *channel = match kind {
                    Kind::Stdout => STDOUT,
                    Kind::Stderr => STDERR,
                };
            }
            self.outgoing.send(self.dialect.coding.message_of(message.freeze())).await?;
        }
        let exit = exit.await.unwrap_or_else(|_| Exit::Failed("the container is gone".to_owned()));
        self.send_status(status::of_exit(self.dialect.version, &exit)).await
    }
}

/// The direction from the client.
struct Input {
    stdin: Option<Pipe>,
    resize: mpsc::Sender<TerminalSize>,
    sizes: SizeParser,
    dialect: Dialect,
}

impl Input {
    /// Handles messages until the connection ends.
    async fn read<S: AsyncRead + AsyncWrite + Unpin>(
        mut self,
        incoming: &mut Incoming<S>,
    ) -> Ended {
        loop {
            let message = match incoming.next().await {
                Ok(message) => message,
                Err(end) => return end,
            };
            match self.dialect.coding.decode(bytes_of(message)) {
                Ok(Some((channel, content))) => {
                    if let Err(end) = self.handle(channel, content).await {
                        return end;
                    }
                }
                Ok(None) => {}
                // A gap in stdin could change the meaning of the rest, so stdin ends here.
                Err(_) => self.stdin = None,
            }
        }
    }

    async fn handle(&mut self, channel: u8, content: Bytes) -> Result<(), Ended> {
        match channel {
            STDIN => self.write(content).await,
            RESIZE => {
                for size in self.sizes.push(&content) {
                    // The send fails when the command has ended.
                    let _ = self.resize.send(size).await;
                }
            }
            CLOSE if self.dialect.version >= Version::V5 => match content.as_ref() {
                [STDIN] => self.stdin = None,
                // These channels exist, but closing them has no effect.
                [STDOUT..=RESIZE] => {}
                _ => return Err(Ended::Violation(NORMAL)),
            },
            _ => {}
        }
        Ok(())
    }

    async fn write(&mut self, content: Bytes) {
        if let Some(stdin) = &mut self.stdin
            && stdin.write_all(&content).await.is_err()
        {
            // The command no longer reads, so further input is discarded.
            self.stdin = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    /// Handles one message of a client with v5.
    async fn handle(channel: u8, content: &[u8]) -> Result<(), Ended> {
        let mut input = Input {
            stdin: None,
            resize: mpsc::channel(1).0,
            sizes: SizeParser::default(),
            dialect: Dialect { version: Version::V5, coding: Coding::Binary },
        };
        input.handle(channel, Bytes::copy_from_slice(content)).await
    }

    #[rstest]
    #[case(&[STDOUT], Ok(()))]
    #[case(&[RESIZE], Ok(()))]
    #[case(&[RESIZE + 1], Err(Ended::Violation(NORMAL)))]
    #[case(&[STDIN, STDIN], Err(Ended::Violation(NORMAL)))]
    #[tokio::test]
    async fn only_existing_channels_can_be_closed(
        #[case] content: &[u8],
        #[case] expected: Result<(), Ended>,
    ) {
        assert_eq!(handle(CLOSE, content).await, expected);
    }

    #[tokio::test]
    async fn input_may_be_longer_than_64_kib() {
        assert_eq!(handle(STDIN, &vec![b'x'; (64 << 10) + 1]).await, Ok(()));
    }
}
