//! Helpers that the tests share.

use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::task::yield_now;

/// An upper bound for the bytes in flight: a pipe, the connection and a few queued pieces.
pub(crate) const MAX_IN_FLIGHT: usize = 1 << 20;

/// Parses hexadecimal digits.
pub(crate) fn unhex(digits: &str) -> Vec<u8> {
    let digits: Vec<u32> =
        digits.chars().map(|digit| digit.to_digit(16).expect("a hexadecimal digit")).collect();
    digits.chunks(2).map(|pair| u8::try_from(pair[0] * 16 + pair[1]).expect("a byte")).collect()
}

/// Returns how many bytes a writer accepts while its peer reads nothing.
///
/// It stops after 1,000 turns of the scheduler without progress.
pub(crate) async fn write_until_blocked(
    mut writer: impl AsyncWrite + Unpin,
    piece: &[u8],
) -> usize {
    let (mut total, mut turns) = (0, 0);
    while turns < 1_000 && total <= MAX_IN_FLIGHT {
        tokio::select! {
            biased;
            written = writer.write(&piece[total % piece.len()..]) => {
                total += written.expect("the session is open");
                turns = 0;
            }
            () = yield_now() => turns += 1,
        }
    }
    total
}
