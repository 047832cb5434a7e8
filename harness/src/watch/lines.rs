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

    /// The bytes of the line that is not complete.
    pub(super) fn unfinished(&self) -> usize {
        self.buffer.len()
    }

    /// What came after the last newline.
    pub(super) fn rest(self) -> Bytes {
        self.buffer.freeze()
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    /// The lines of a stream that comes in pieces of this size, the complaint that ended it, and the rest.
    fn read(
        text: &str,
        piece: usize,
        max_line: usize,
        max_total: usize,
    ) -> (Vec<String>, Option<Overrun>, String) {
        let mut lines = Lines::new(max_line, max_total);
        let mut found = Vec::new();
        let as_text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        for chunk in text.as_bytes().chunks(piece) {
            lines.push(chunk);
            loop {
                match lines.next() {
                    Ok(Some(line)) => found.push(as_text(&line)),
                    Ok(None) => break,
                    Err(overrun) => return (found, Some(overrun), String::new()),
                }
            }
        }
        (found, None, as_text(&lines.rest()))
    }

    #[rstest]
    fn lines_come_whole_however_they_are_cut(#[values(1, 2, 3, 5, 100)] piece: usize) {
        let (lines, overrun, rest) = read("one\n\ntwo words\nthr", piece, 100, 100);
        assert_eq!(lines, ["one", "", "two words"]);
        assert_eq!((overrun, rest.as_str()), (None, "thr"));
    }

    #[rstest]
    fn a_line_may_be_as_long_as_the_budget_and_no_longer(#[values(1, 2, 100)] piece: usize) {
        assert_eq!(read("12345\n12345", piece, 5, 100), (vec!["12345".to_owned()], None, "12345".to_owned()));
        assert_eq!(read("12\n123456", piece, 5, 100).1, Some(Overrun::Line(5)));
        assert_eq!(read("123456\n", piece, 5, 100).1, Some(Overrun::Line(5)));
    }

    #[test]
    fn a_watch_may_be_as_long_as_the_budget_and_its_last_lines_are_told() {
        assert_eq!(read("12\n45\n", 3, 5, 6), (vec!["12".to_owned(), "45".to_owned()], None, String::new()));
        let (lines, overrun, _) = read("12\n45\n7", 7, 5, 6);
        assert_eq!(lines, ["12", "45"]);
        assert_eq!(overrun, Some(Overrun::Total(6)));
    }
    /// Memory is asked for by what has come of a line.
    #[test]
    fn what_is_not_complete_is_known() {
        let mut lines = Lines::new(100, 100);
        lines.push(b"one\ntw");
        assert!(lines.next().is_ok_and(|line| line.is_some()));
        assert_eq!(lines.unfinished(), 2);
        lines.push(b"o\n");
        assert!(lines.next().is_ok_and(|line| line.is_some()));
        assert_eq!(lines.unfinished(), 0);
    }
}
