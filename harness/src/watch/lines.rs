//! Lines out of chunks with arbitrary boundaries, within budgets.

use bytes::{Bytes, BytesMut};

/// Splits a stream into lines.
#[derive(Debug)]
pub(super) struct Lines {
    buffer: BytesMut,
    /// No newline stands before this.
    searched: usize,
    total: usize,
    max_line: usize,
    max_total: usize,
}

/// A budget was spent.
#[derive(Debug, Eq, PartialEq, thiserror::Error)]
pub(super) enum Overrun {
    #[error("a line is longer than {0} bytes")]
    Line(usize),
    #[error("the watch is longer than {0} bytes")]
    Total(usize),
}

impl Lines {
    pub(super) fn new(max_line: usize, max_total: usize) -> Self {
        Self { buffer: BytesMut::new(), searched: 0, total: 0, max_line, max_total }
    }

    /// Takes a chunk in. The lines it completes are there before the total is complained of.
    pub(super) fn push(&mut self, chunk: &[u8]) {
        self.total += chunk.len();
        self.buffer.extend_from_slice(chunk);
    }

    /// The next complete line, without its end; `None` when more has to come.
    pub(super) fn next(&mut self) -> Result<Option<Bytes>, Overrun> {
        let newline = self.buffer[self.searched..].iter().position(|&b| b == b'\n');
        let length = newline.map_or(self.buffer.len(), |at| self.searched + at);
        if length > self.max_line {
            return Err(Overrun::Line(self.max_line));
        }
        if newline.is_none() {
            self.searched = length;
            return if self.total > self.max_total { Err(Overrun::Total(self.max_total)) } else { Ok(None) };
        }
        let mut line = self.buffer.split_to(length + 1).freeze();
        line.truncate(length);
        self.searched = 0;
        Ok(Some(line))
    }

    /// What came after the last newline.
    pub(super) fn rest(self) -> Bytes {
        self.buffer.freeze()
    }
}
