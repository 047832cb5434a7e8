//! Numbers: their grammar, and the machine number that a text stands for.

use serde_json::Value;

/// The length of the number that the bytes start with, or the offset at which they stop being one.
pub(super) fn scan(bytes: &[u8]) -> Result<usize, usize> {
    let digits = |from: usize| bytes[from..].iter().take_while(|b| b.is_ascii_digit()).count();
    let mut end = usize::from(bytes.first() == Some(&b'-'));
    match digits(end) {
        0 => return Err(end),
        // A leading zero stands alone: 017 is not JSON.
        count if count > 1 && bytes[end] == b'0' => return Err(end + 1),
        count => end += count,
    }
    if bytes.get(end) == Some(&b'.') {
        match digits(end + 1) {
            0 => return Err(end + 1),
            count => end += 1 + count,
        }
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        match digits(end + 1 + sign) {
            0 => return Err(end + 1 + sign),
            count => end += 1 + sign + count,
        }
    }
    Ok(end)
}

/// The number as `serde_json` reads it, so that a body and a case's pattern, which it reads, round alike.
/// What is too large for a double becomes the largest one: JSON sets no limit, so it is no fault.
pub(super) fn to_value(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or(if text.starts_with('-') { f64::MIN } else { f64::MAX }.into())
}
