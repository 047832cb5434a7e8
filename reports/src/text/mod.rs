//! Results, causes and exchanges as text: the same lines for the console, JUnit, HTML and Markdown.

mod cause;
mod detail;
mod exchange;
mod lines;

use kubeproof_cases::plural;

pub(crate) use self::cause::{Size, cause};
pub(crate) use self::detail::{detail, is_in_message, items, place, title};
pub(crate) use self::exchange::exchange;

/// Maximum size of a body, a value or a diff in a report.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Maximum lines of each.
    pub(crate) lines: usize,
    /// Maximum characters of a line.
    pub(crate) columns: usize,
}

impl Limits {
    /// Enough to understand a failure.
    pub(crate) const SHORT: Self = Self { lines: 24, columns: 200 };
    /// No limits.
    pub(crate) const NONE: Self = Self { lines: usize::MAX, columns: usize::MAX };
}

/// Shortens a line to `columns` characters, and appends the number of missing characters. A line
/// that would not get shorter stays whole.
pub(crate) fn shorten(line: &str, columns: usize) -> String {
    let Some((cut, _)) = line.char_indices().nth(columns) else { return line.to_owned() };
    let missing = line[cut..].chars().count();
    let note = format!("... ({})", plural(missing, "more character"));
    if missing <= note.len() { line.to_owned() } else { format!("{}{note}", &line[..cut]) }
}

/// Shortens a title to `columns` characters.
pub(crate) fn clip(title: &str, columns: usize) -> String {
    match title.char_indices().nth(columns) {
        None => title.to_owned(),
        Some((cut, _)) => format!("{}...", title[..cut].trim_end()),
    }
}

/// Escapes control characters, so that text of the server cannot control the terminal.
pub(crate) fn printable(text: &str) -> String {
    let is_control = |c: char| c.is_control() && c != '\t';
    if !text.contains(is_control) {
        return text.to_owned();
    }
    text.chars().fold(String::new(), |mut safe, c| {
        if is_control(c) {
            safe.extend(c.escape_unicode());
        } else {
            safe.push(c);
        }
        safe
    })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(0)]
    #[case(24)]
    fn lines_that_would_not_get_shorter_stay_whole(#[case] beyond: usize) {
        let line = "é".repeat(10 + beyond);
        assert_eq!(shorten(&line, 10), line);
    }

    #[test]
    fn long_lines_end_with_the_number_of_missing_characters() {
        let line = "é".repeat(40);
        let start = "é".repeat(10);
        assert_eq!(shorten(&line, 10), format!("{start}... (30 more characters)"));
    }
}
