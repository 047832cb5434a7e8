//! What a command writes, cut into pieces in the order in which they come.

use bytes::{BufMut as _, BytesMut};
use tokio::io::AsyncReadExt as _;

use crate::runtime::Pipe;
use crate::streams::websocket::channels::CHUNK;
use crate::{Fault, Faults};

/// Which output of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Stdout,
    Stderr,
}

/// Something that comes out of a command.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// One byte of room, for a channel, and then the content.
    Content(Kind, BytesMut),
    /// This output has ended.
    End(Kind),
}

/// The outputs of a command.
pub(super) struct Outputs {
    stdout: Source,
    stderr: Source,
    faults: Faults,
    held: Option<Piece>,
}

struct Source {
    kind: Kind,
    pipe: Option<Pipe>,
    /// How much is asked for. It grows with a command that writes much, so that idle ones cost little.
    room: usize,
    sent: usize,
}

/// What is asked for at first.
const FIRST_ROOM: usize = 1024;

impl Outputs {
    pub(super) fn new(stdout: Option<Pipe>, stderr: Option<Pipe>, faults: Faults) -> Self {
        let source = |kind, pipe| Source { kind, pipe, room: FIRST_ROOM, sent: 0 };
        let [first, second] = if faults.on(Fault::StdoutAndStderrSwapped) {
            [Kind::Stderr, Kind::Stdout]
        } else {
            [Kind::Stdout, if faults.on(Fault::StderrMerged) { Kind::Stdout } else { Kind::Stderr }]
        };
        Self { stdout: source(first, stdout), stderr: source(second, stderr), faults, held: None }
    }

    /// The next piece, until both outputs have ended.
    pub(super) async fn next(&mut self) -> Option<Piece> {
        if self.faults.on(Fault::LastOutputLost) {
            return self.next_but_last().await;
        }
        if self.faults.on(Fault::OutputHalvesSwapped) {
            return self.next_half().await;
        }
        self.read().await
    }

    /// Of each piece the second half, and then the first.
    async fn next_half(&mut self) -> Option<Piece> {
        if let Some(first) = self.held.take() {
            return Some(first);
        }
        let piece = self.read().await;
        let Some(Piece::Content(kind, mut first)) = piece else { return piece };
        let rest = first.split_off(first.len().div_ceil(2));
        let mut second = BytesMut::with_capacity(1 + rest.len());
        second.put_u8(0);
        second.extend_from_slice(&rest);
        self.held = Some(Piece::Content(kind, first));
        Some(Piece::Content(kind, second))
    }

    async fn read(&mut self) -> Option<Piece> {
        loop {
            let mut piece = tokio::select! {
                piece = self.stdout.next(), if self.stdout.pipe.is_some() => piece,
                piece = self.stderr.next(), if self.stderr.pipe.is_some() => piece,
                else => return None,
            };
            if let (true, Piece::Content(kind, content)) = (self.faults.on(Fault::OutputCutAt32K), &mut piece)
            {
                let source = if self.stdout.kind == *kind { &mut self.stdout } else { &mut self.stderr };
                content.truncate(1 + CHUNK.saturating_sub(source.sent));
                source.sent += content.len() - 1;
                if content.len() == 1 {
                    continue;
                }
            }
            return Some(piece);
        }
    }

    /// Holds a piece back until the next one is there, and so never sends the last.
    async fn next_but_last(&mut self) -> Option<Piece> {
        loop {
            match self.read().await {
                Some(piece @ Piece::Content(..)) => {
                    if let Some(held) = self.held.replace(piece) {
                        return Some(held);
                    }
                }
                end => return end,
            }
        }
    }
}

impl Source {
    /// Can be given up at any time without loss.
    async fn next(&mut self) -> Piece {
        let Some(pipe) = &mut self.pipe else { return Piece::End(self.kind) };
        let mut content = BytesMut::with_capacity(1 + self.room);
        content.put_u8(0);
        let read = pipe.read_buf(&mut (&mut content).limit(self.room)).await;
        match read {
            Ok(read) if read > 0 => {
                if read == self.room {
                    self.room = CHUNK.min(self.room * 4);
                }
                Piece::Content(self.kind, content)
            }
            _ => {
                self.pipe = None;
                Piece::End(self.kind)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt as _;

    use super::*;

    #[tokio::test]
    async fn everything_comes_in_order_and_both_ends_are_told() {
        let (stdout, mut out) = tokio::io::duplex(100);
        let (stderr, mut err) = tokio::io::duplex(100);
        let written: Vec<u8> = (0..100_000_u32).map(|n| (n % 251) as u8).collect();
        let expected = written.clone();
        let command = async move {
            err.write_all(b"err").await.expect("a reader");
            drop(err);
            out.write_all(&written).await.expect("a reader");
        };
        let mut outputs = Outputs::new(Some(stdout), Some(stderr), Faults::none());
        let reader = async {
            let (mut out, mut err, mut ends) = (Vec::new(), Vec::new(), Vec::new());
            while let Some(piece) = outputs.next().await {
                match piece {
                    Piece::Content(Kind::Stdout, content) => out.extend_from_slice(&content[1..]),
                    Piece::Content(Kind::Stderr, content) => err.extend_from_slice(&content[1..]),
                    Piece::End(kind) => ends.push(kind),
                }
            }
            (out, err, ends)
        };
        let ((), (out, err, ends)) = tokio::join!(command, reader);
        assert_eq!((out, err.as_slice(), ends.len()), (expected, b"err".as_slice(), 2));
    }

    #[tokio::test]
    async fn pieces_grow_while_a_command_fills_them() {
        let (stdout, mut out) = tokio::io::duplex(100_000);
        out.write_all(&vec![0; 100_000]).await.expect("room");
        drop(out);
        let mut outputs = Outputs::new(Some(stdout), None, Faults::none());
        let mut lengths = Vec::new();
        while let Some(Piece::Content(_, content)) = outputs.next().await {
            lengths.push(content.len() - 1);
        }
        assert_eq!(lengths, [1024, 4096, 16_384, CHUNK, CHUNK, 100_000 - 21_504 - 2 * CHUNK]);
    }
}
