//! The grammar of numbers, and their conversion.

use serde_json::Value;

/// Returns the length of the number at the start, or the offset of the first invalid byte.
pub(super) fn scan(bytes: &[u8]) -> Result<usize, usize> {
    let digits = |from: usize| bytes[from..].iter().take_while(|b| b.is_ascii_digit()).count();
    let mut end = usize::from(bytes.first() == Some(&b'-'));
    match digits(end) {
        0 => return Err(end),
        // A leading zero ends the integer part: 017 is invalid.
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

/// Converts a number with `serde_json`, so that bodies and patterns of cases round the same way. A
/// number beyond the range of a double becomes the largest double, since JSON sets no limit.
pub(super) fn to_value(text: &str) -> Value {
    serde_json::from_str(text)
        .unwrap_or(if text.starts_with('-') { f64::MIN } else { f64::MAX }.into())
}
