//! Other forms of opaque values: resource versions, UIDs and continue tokens.
//!
//! Each form is distinct and can be reversed, so the front stores no table of them.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
const BITS: usize = 5;

/// An odd number, so that the multiplication can be reversed. Neighbours become distant and lose
/// their order.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

const VERSION: &str = "kpv";
const UID: &str = "kpu";
const CONTINUE: &str = "kpc";

const VERSION_LEN: usize = VERSION.len() + 13;
const UID_LEN: usize = UID.len() + 26;

/// Encodes a version. Texts that are not a version stay as they are, and so does 0, which has a
/// special meaning.
pub(super) fn version(text: &str) -> Option<String> {
    let number: u64 = text.parse().ok().filter(|number| *number > 0)?;
    Some(format!("{VERSION}{}", digits(number.wrapping_mul(SPREAD).into(), 13)))
}

/// Encodes a UUID.
pub(super) fn uid(text: &str) -> Option<String> {
    let hex = text.replace('-', "");
    let number =
        (hex.len() == 32 && text.len() == 36).then(|| u128::from_str_radix(&hex, 16).ok())??;
    Some(format!("{UID}{}", digits(number, 26)))
}

/// Encodes a continue token.
pub(super) fn next_page(text: &str) -> String {
    let reversed: Vec<u8> = text.bytes().rev().collect();
    format!("{CONTINUE}{}", URL_SAFE_NO_PAD.encode(reversed))
}

/// Decodes a continue token.
pub(super) fn original_page(text: &str) -> Option<String> {
    let mut bytes = URL_SAFE_NO_PAD.decode(text.strip_prefix(CONTINUE)?).ok()?;
    bytes.reverse();
    String::from_utf8(bytes).ok()
}

/// Decodes every version and every UID in a text.
pub(super) fn restored(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("kp") {
        let (before, token) = rest.split_at(at);
        out.push_str(before);
        let found =
            token.get(..VERSION_LEN).and_then(original_version).map(|text| (text, VERSION_LEN));
        let found = found
            .or_else(|| token.get(..UID_LEN).and_then(original_uid).map(|text| (text, UID_LEN)));
        let (original, len) = found.unwrap_or_else(|| ("kp".to_owned(), 2));
        out.push_str(&original);
        rest = &token[len..];
    }
    out.push_str(rest);
    out
}

fn original_version(token: &str) -> Option<String> {
    let number = u64::try_from(number(token.strip_prefix(VERSION)?)?).ok()?;
    Some(number.wrapping_mul(inverse(SPREAD)).to_string())
}

fn original_uid(token: &str) -> Option<String> {
    let hex = format!("{:032x}", number(token.strip_prefix(UID)?)?);
    Some(format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]))
}

/// Returns the multiplicative inverse of an odd number with Newton's method. Each round gives twice
/// as many correct bits.
const fn inverse(odd: u64) -> u64 {
    let mut inverse = odd;
    let mut round = 0;
    while round < 6 {
        inverse = inverse.wrapping_mul(2_u64.wrapping_sub(odd.wrapping_mul(inverse)));
        round += 1;
    }
    inverse
}

fn digits(mut number: u128, len: usize) -> String {
    let mut digits = vec![0; len];
    for digit in digits.iter_mut().rev() {
        *digit = ALPHABET[(number % 32) as usize];
        number /= 32;
    }
    digits.into_iter().map(char::from).collect()
}

fn number(digits: &str) -> Option<u128> {
    digits.bytes().try_fold(0_u128, |number, digit| {
        let value = ALPHABET.iter().position(|known| *known == digit)?;
        // A wider number is not a version of this front.
        (number >> (u128::BITS as usize - BITS) == 0).then_some(number << BITS | value as u128)
    })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("1")]
    #[case("42")]
    #[case("18446744073709551615")]
    fn a_version_comes_back_from_its_other_form(#[case] text: &str) {
        let other = version(text).unwrap();
        assert_ne!(other, text);
        assert_eq!(
            restored(&format!(r#"{{"resourceVersion":"{other}"}}"#)),
            format!(r#"{{"resourceVersion":"{text}"}}"#)
        );
    }

    #[test]
    fn versions_have_no_order_and_zero_stays() {
        let others: Vec<String> = (1..50_u64).map(|n| version(&n.to_string()).unwrap()).collect();
        assert!(!others.is_sorted());
        assert_eq!(version("0"), None);
        assert_eq!(version("latest"), None);
    }

    #[test]
    fn a_uid_comes_back_and_what_is_none_stays() {
        let text = "0b4f5d3e-0c1a-4b2c-8d3e-4f5061728394";
        let other = uid(text).unwrap();
        assert_eq!(restored(&other), text);
        assert_eq!(uid("not-a-uuid"), None);
        assert_eq!(
            restored("kpu, kp, kpv12 and kpvuuuuuuuuuuuuu"),
            "kpu, kp, kpv12 and kpvuuuuuuuuuuuuu"
        );
    }

    #[test]
    fn a_page_comes_back() {
        let other = next_page("eyJydiI6MX0");
        assert_eq!(original_page(&other).as_deref(), Some("eyJydiI6MX0"));
        assert_eq!(original_page("eyJydiI6MX0"), None);
    }
}
