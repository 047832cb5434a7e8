//! Counts in messages.

use std::fmt::Display;

/// Returns a count with its noun, such as `1 fault` or `2 faults`.
pub fn plural<N: Copy + Display + PartialEq + From<u8>>(count: N, noun: &str) -> String {
    if count == N::from(1) { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(0, "0 faults")]
    #[case(1, "1 fault")]
    #[case(2, "2 faults")]
    fn only_one_is_singular(#[case] count: usize, #[case] expected: &str) {
        assert_eq!(plural(count, "fault"), expected);
    }
}
