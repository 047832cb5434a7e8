//! What the tests of the framing share.

/// The bytes that hexadecimal digits stand for.
pub(crate) fn unhex(digits: &str) -> Vec<u8> {
    let digits: Vec<u32> =
        digits.chars().map(|digit| digit.to_digit(16).expect("a hexadecimal digit")).collect();
    digits.chunks(2).map(|pair| u8::try_from(pair[0] * 16 + pair[1]).expect("a byte")).collect()
}
