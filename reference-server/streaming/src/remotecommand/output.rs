//! The output of a command, in pieces in the order of arrival.

use bytes::{BufMut as _, BytesMut};
use tokio::io::AsyncReadExt as _;

use super::Pipe;
use crate::MAX_CHUNK;

/// The size of the first piece. Pieces grow for commands with much output, so idle ones use little
/// memory.
const FIRST_PIECE: usize = 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Stdout,
    Stderr,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// The content after one free byte for the channel, so that WebSocket messages copy nothing.
    Content(Kind, BytesMut),
    End(Kind),
}

pub(super) struct Outputs {
    stdout: Source,
    stderr: Source,
}

struct Source {
    kind: Kind,
    pipe: Option<Pipe>,
    piece_size: usize,
}

impl Outputs {
    pub(super) fn new(stdout: Option<Pipe>, stderr: Option<Pipe>) -> Self {
        let source = |kind, pipe| Source { kind, pipe, piece_size: FIRST_PIECE };
        Self { stdout: source(Kind::Stdout, stdout), stderr: source(Kind::Stderr, stderr) }
    }

    /// Returns the next piece, or none when both outputs have ended.
    pub(super) async fn next(&mut self) -> Option<Piece> {
        tokio::select! {
            piece = self.stdout.next(), if self.stdout.pipe.is_some() => Some(piece),
            piece = self.stderr.next(), if self.stderr.pipe.is_some() => Some(piece),
            else => None,
        }
    }
}

impl Source {
    /// Reads the next piece. Cancelling the future loses no output.
    async fn next(&mut self) -> Piece {
        let Some(pipe) = &mut self.pipe else { return Piece::End(self.kind) };
        let mut content = BytesMut::with_capacity(1 + self.piece_size);
        content.put_u8(0);
        let read = pipe.read_buf(&mut (&mut content).limit(self.piece_size)).await;
        match read {
            Ok(read) if read > 0 => {
                if read == self.piece_size {
                    self.piece_size = MAX_CHUNK.min(self.piece_size * 4);
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
    async fn all_output_arrives_in_order_before_both_ends() {
        let (stdout, mut out) = tokio::io::duplex(100);
        let (stderr, mut err) = tokio::io::duplex(100);
        let written: Vec<u8> = (0..100_000_u32).map(|n| (n % 251) as u8).collect();
        let expected = written.clone();
        let command = async move {
            err.write_all(b"err").await.expect("a reader");
            drop(err);
            out.write_all(&written).await.expect("a reader");
        };
        let mut outputs = Outputs::new(Some(stdout), Some(stderr));
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
        out.write_all(&vec![0; 100_000]).await.expect("the pipe has space");
        drop(out);
        let mut outputs = Outputs::new(Some(stdout), None);
        let mut lengths = Vec::new();
        while let Some(Piece::Content(_, content)) = outputs.next().await {
            lengths.push(content.len() - 1);
        }
        assert_eq!(
            lengths,
            [1024, 4096, 16_384, MAX_CHUNK, MAX_CHUNK, 100_000 - 21_504 - 2 * MAX_CHUNK]
        );
    }
}
