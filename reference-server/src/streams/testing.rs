//! What the tests of the framing share.

use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::task::yield_now;

/// What may be on its way: a pipe, what waits for a connection, and a few pieces between them.
pub(crate) const ON_ITS_WAY: usize = 1 << 20;

/// The bytes that hexadecimal digits stand for.
pub(crate) fn unhex(digits: &str) -> Vec<u8> {
    let digits: Vec<u32> =
        digits.chars().map(|digit| digit.to_digit(16).expect("a hexadecimal digit")).collect();
    digits.chunks(2).map(|pair| u8::try_from(pair[0] * 16 + pair[1]).expect("a byte")).collect()
}

/// How much a writer gets rid of while nobody reads: all others have had their turn many times when it stops.
pub(crate) async fn taken(mut writer: impl AsyncWrite + Unpin, piece: &[u8]) -> usize {
    let (mut taken, mut turns) = (0, 0);
    while turns < 1_000 && taken <= ON_ITS_WAY {
        tokio::select! {
            biased;
            written = writer.write(&piece[taken % piece.len()..]) => {
                taken += written.expect("the session goes on");
                turns = 0;
            }
            () = yield_now() => turns += 1,
        }
    }
    taken
}
