//! What a watch makes of bytes, to be compared.

use bytes::Bytes;

use super::lines::Lines;

/// The lines of a stream that comes in these pieces, its rest, and whether a line was too long.
pub(crate) fn lines(pieces: &[&[u8]], max_line: usize) -> (Vec<Bytes>, Bytes, bool) {
    let mut lines = Lines::new(max_line, usize::MAX);
    let mut found = Vec::new();
    for piece in pieces {
        lines.push(piece);
        loop {
            match lines.next() {
                Ok(Some(line)) => found.push(line),
                Ok(None) => break,
                Err(_) => return (found, Bytes::new(), true),
            }
        }
    }
    (found, lines.rest(), false)
}
