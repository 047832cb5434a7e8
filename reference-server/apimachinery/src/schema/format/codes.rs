//! Numbers with a check digit, and colours.

use std::sync::LazyLock;

use regex::Regex;

/// The numbers of the companies, which differ in length and first digits.
static CARD: LazyLock<Regex> = LazyLock::new(|| {
    super::regex(concat!(
        r"^(4[0-9]{12}([0-9]{3})?|5[1-5][0-9]{14}|6(011|5[0-9]{2})[0-9]{12}|3[47][0-9]{13}",
        r"|3(0[0-5]|[68][0-9])[0-9]{11}|(2131|1800|35[0-9]{3})[0-9]{11})$",
    ))
});

pub(super) fn is_isbn10(text: &str) -> bool {
    let symbols = without_gaps(text);
    let value = |(index, c): (usize, char)| match c {
        'X' if index == 9 => Some(10),
        c => c.to_digit(10),
    };
    let digits: Option<Vec<u32>> = symbols.chars().enumerate().map(value).collect();
    let Some(digits) = digits.filter(|digits| digits.len() == 10) else { return false };
    let sum: u32 = (1..).zip(&digits).map(|(weight, digit)| weight * digit).sum();
    sum.is_multiple_of(11)
}

pub(super) fn is_isbn13(text: &str) -> bool {
    let Some(digits) = digits(&without_gaps(text)).filter(|digits| digits.len() == 13) else {
        return false;
    };
    let sum: u32 = [1, 3].iter().cycle().zip(&digits).map(|(weight, digit)| weight * digit).sum();
    sum.is_multiple_of(10)
}

/// Reports whether a text is the number of a card. All other characters than digits are ignored.
pub(super) fn is_card(text: &str) -> bool {
    let number: String = text.chars().filter(char::is_ascii_digit).collect();
    let doubled = |digit: u32| if digit < 5 { 2 * digit } else { 2 * digit - 9 };
    let sum: u32 = number
        .chars()
        .rev()
        .filter_map(|c| c.to_digit(10))
        .enumerate()
        .map(|(index, digit)| if index % 2 == 1 { doubled(digit) } else { digit })
        .sum();
    CARD.is_match(&number) && sum.is_multiple_of(10)
}

/// Reports whether a text is a number of the social security with separators.
pub(super) fn is_ssn(text: &str) -> bool {
    let is_separator = |index: usize| index == 3 || index == 6;
    text.len() == 11
        && text.bytes().enumerate().all(|(index, byte)| {
            if is_separator(index) { matches!(byte, b'-' | b' ') } else { byte.is_ascii_digit() }
        })
}

pub(super) fn is_hex_color(text: &str) -> bool {
    let digits = text.strip_prefix('#').unwrap_or(text);
    matches!(digits.len(), 3 | 6) && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

pub(super) fn is_rgb_color(text: &str) -> bool {
    let inner = text.strip_prefix("rgb(").and_then(|text| text.strip_suffix(')'));
    let is_byte = |part: &str| {
        let number = part.trim_matches([' ', '\t', '\n', '\r', '\x0c']);
        let has_zero = number.len() > 1 && number.starts_with('0');
        digits(number).is_some() && !has_zero && number.parse::<u8>().is_ok()
    };
    inner.is_some_and(|inner| inner.split(',').count() == 3 && inner.split(',').all(is_byte))
}

fn digits(text: &str) -> Option<Vec<u32>> {
    text.chars().map(|c| c.to_digit(10)).collect()
}

/// Removes spaces and hyphens.
fn without_gaps(text: &str) -> String {
    text.chars().filter(|c| !matches!(c, ' ' | '\t' | '\n' | '\r' | '\x0c' | '-')).collect()
}
