//! Addresses of networks and hosts.

use std::net::Ipv6Addr;
use std::str::FromStr;
use std::sync::LazyLock;

use regex::Regex;

/// Labels of letters, digits and symbols. The label of a name without dots has at most one hyphen,
/// and this is its second character, as in kube-apiserver.
static HOSTNAME: LazyLock<Regex> = LazyLock::new(|| {
    const C: &str = r"[a-zA-Z0-9\p{S}\p{L}]";
    const MIDDLE: &str = r"[a-zA-Z0-9\p{S}\p{L}-]{0,61}";
    super::regex(&format!(
        r"^(?:{C}-?{C}{{0,62}}|(?:{C}(?:{MIDDLE}{C})?\.)+[a-zA-Z\p{{L}}]{{2,63}})$"
    ))
});

/// Bytes with one separator, groups of four digits with dots, or digits alone: 6, 8 or 20 bytes.
static MAC: LazyLock<Regex> = LazyLock::new(|| {
    const HEX: &str = "[0-9A-Fa-f]";
    let separated = |by: &str| {
        format!(
            "{HEX}{{2}}(?:(?:{by}{HEX}{{2}}){{5}}|(?:{by}{HEX}{{2}}){{7}}|(?:{by}{HEX}{{2}}){{19}})"
        )
    };
    let dotted =
        format!(r"{HEX}{{4}}(?:(?:\.{HEX}{{4}}){{2}}|(?:\.{HEX}{{4}}){{3}}|(?:\.{HEX}{{4}}){{9}})");
    let plain = format!("{HEX}{{12}}|{HEX}{{16}}|{HEX}{{40}}");
    super::regex(&format!("^(?:{}|{}|{dotted}|{plain})$", separated(":"), separated("-")))
});

pub(super) fn is_hostname(text: &str) -> bool {
    text.len() <= 255 && text.split('.').all(|label| label.len() <= 63) && HOSTNAME.is_match(text)
}

/// Reports whether a text is an IPv4 address, also with leading zeros or inside of an IPv6 address.
pub(super) fn is_ipv4(text: &str) -> bool {
    is_dotted(text) || text.contains('.') && Ipv6Addr::from_str(text).is_ok()
}

pub(super) fn is_ipv6(text: &str) -> bool {
    Ipv6Addr::from_str(text).is_ok()
}

pub(super) fn is_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    if !bits.bytes().all(|digit| digit.is_ascii_digit()) {
        return false;
    }
    let Ok(bits) = bits.parse::<u8>() else { return false };
    (is_dotted(address) && bits <= 32) || (is_ipv6(address) && bits <= 128)
}

pub(super) fn is_mac(text: &str) -> bool {
    MAC.is_match(text)
}

/// Reports whether a text has four decimal numbers of one byte.
fn is_dotted(text: &str) -> bool {
    let is_byte =
        |part: &str| part.bytes().all(|digit| digit.is_ascii_digit()) && part.parse::<u8>().is_ok();
    text.split('.').count() == 4 && text.split('.').all(is_byte)
}
