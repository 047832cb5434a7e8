//! The syntax of IP addresses and of their ranges, and warnings about unusual spellings.

use std::net::IpAddr;

use ipnet::IpNet;

const IP: &str = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
const CIDR: &str = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";

/// Returns the mistake in an address. The spelling of an address of IP version 6 is free.
pub fn ip(text: &str) -> Option<String> {
    let why = match (text.parse::<IpAddr>(), without_zeros(text).parse::<IpAddr>()) {
        (_, Err(_)) => IP,
        (Err(_), Ok(_)) => "must not have leading 0s",
        (Ok(address), _) if address.to_canonical() != address => {
            "must not be an IPv4-mapped IPv6 address"
        }
        (Ok(_), Ok(_)) => return None,
    };
    Some(why.to_owned())
}

/// Returns the mistake in an address that must have its canonical form.
pub fn canonical_ip(text: &str) -> Option<String> {
    ip(text).or_else(|| {
        let canonical = text.parse::<IpAddr>().ok()?.to_string();
        (canonical != text).then(|| format!("must be in canonical form ({canonical:?})"))
    })
}

/// Returns the mistakes in the address of an endpoint, which other hosts can use.
pub fn endpoint_ip(text: &str) -> Vec<String> {
    let Ok(address) = without_zeros(text).parse::<IpAddr>() else {
        return vec!["must be a valid IP address".to_owned()];
    };
    let (is_local, is_local_multicast) = match address {
        IpAddr::V4(address) => {
            (address.is_link_local(), matches!(address.octets(), [224, 0, 0, _]))
        }
        IpAddr::V6(address) => {
            (address.is_unicast_link_local(), address.segments()[0] & 0xff0f == 0xff02)
        }
    };
    let unspecified = format!("may not be unspecified ({text})");
    let wrong = [
        (address.is_unspecified(), unspecified.as_str()),
        (address.is_loopback(), "may not be in the loopback range (127.0.0.0/8, ::1/128)"),
        (is_local, "may not be in the link-local range (169.254.0.0/16, fe80::/10)"),
        (
            is_local_multicast,
            "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)",
        ),
    ];
    wrong.into_iter().filter(|(applies, _)| *applies).map(|(_, why)| why.to_owned()).collect()
}

/// Returns the mistake in a range. The spelling of an address of IP version 6 is free.
pub fn cidr(text: &str) -> Option<String> {
    let why = match (parse_cidr(text), parse_cidr(&without_zeros(text))) {
        (_, None) => CIDR,
        (None, Some(_)) => "must not have leading 0s in IP or prefix length",
        (Some(range), _) if range.addr().to_canonical() != range.addr() => {
            "must not have an IPv4-mapped IPv6 address"
        }
        (Some(range), _) if range.network() != range.addr() => {
            "must not have bits set beyond the prefix length"
        }
        (Some(_), Some(_)) => return None,
    };
    Some(why.to_owned())
}

/// Returns the mistake in a range that must have its canonical form.
pub fn canonical_cidr(text: &str) -> Option<String> {
    cidr(text).or_else(|| {
        let canonical = parse_cidr(text)?.to_string();
        (canonical != text).then(|| format!("must be in canonical form ({canonical:?})"))
    })
}

/// Returns the warning about a valid address at `place`.
pub fn ip_warning(text: &str, place: &str) -> Option<String> {
    warning(text, place, &text.parse::<IpAddr>().ok()?.to_string(), "address")
}

/// Returns the warning about a valid range at `place`.
pub fn cidr_warning(text: &str, place: &str) -> Option<String> {
    warning(text, place, &parse_cidr(text)?.to_string(), "CIDR value")
}

fn warning(text: &str, place: &str, canonical: &str, what: &str) -> Option<String> {
    let advice = format!("should be in RFC 5952 canonical format ({canonical:?})");
    (canonical != text).then(|| format!("{place}: IPv6 {what} {text:?} {advice}"))
}

fn parse_cidr(text: &str) -> Option<IpNet> {
    let (address, length) = text.split_once('/')?;
    // The parser of ranges accepts leading zeros.
    address.parse::<IpAddr>().ok()?;
    let is_number = length.chars().all(|c| c.is_ascii_digit());
    let has_zeros = length.len() > 1 && length.starts_with('0');
    (is_number && !has_zeros).then(|| text.parse().ok()).flatten()
}

/// Removes the leading zeros of all numbers.
fn without_zeros(text: &str) -> String {
    let number = |part: &str| match part.trim_start_matches('0') {
        "" if !part.is_empty() => "0".to_owned(),
        digits => digits.to_owned(),
    };
    let is_mark = |c: char| matches!(c, '.' | ':' | '/');
    let mut result = String::new();
    for part in text.split_inclusive(is_mark) {
        let digits = part.trim_end_matches(is_mark);
        result.push_str(&number(digits));
        result.push_str(&part[digits.len()..]);
    }
    result
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("1.2.3.4", None)]
    #[case("2001:DB8::1", None)]
    #[case("1.2.3", Some(IP))]
    #[case("", Some(IP))]
    #[case("1.2.3.4 ", Some(IP))]
    #[case("01.2.3.4", Some("must not have leading 0s"))]
    #[case("::ffff:1.2.3.4", Some("must not be an IPv4-mapped IPv6 address"))]
    fn addresses_are_strict(#[case] text: &str, #[case] expected: Option<&str>) {
        assert_eq!(ip(text).as_deref(), expected);
    }

    #[rstest]
    #[case("10.0.0.0/8", None)]
    #[case("2001:DB8::/64", None)]
    #[case("10.0.0.0", Some(CIDR))]
    #[case("10.0.0.0/33", Some(CIDR))]
    #[case("10.0.0.0/+8", Some(CIDR))]
    #[case(" 10.0.0.0/8", Some(CIDR))]
    #[case("10.0.0.0/08", Some("must not have leading 0s in IP or prefix length"))]
    #[case("010.0.0.0/8", Some("must not have leading 0s in IP or prefix length"))]
    #[case("10.0.0.1/8", Some("must not have bits set beyond the prefix length"))]
    #[case("::ffff:10.0.0.0/104", Some("must not have an IPv4-mapped IPv6 address"))]
    fn ranges_are_strict(#[case] text: &str, #[case] expected: Option<&str>) {
        assert_eq!(cidr(text).as_deref(), expected);
    }

    #[rstest]
    #[case("10.1.2.3", &[])]
    #[case("::", &["may not be unspecified (::)"])]
    #[case("127.0.0.1", &["may not be in the loopback range (127.0.0.0/8, ::1/128)"])]
    #[case("fe80::1", &["may not be in the link-local range (169.254.0.0/16, fe80::/10)"])]
    #[case(
        "224.0.0.1",
        &["may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"]
    )]
    #[case("010.1.2.3", &[])]
    #[case("ten", &["must be a valid IP address"])]
    fn endpoints_are_reachable(#[case] text: &str, #[case] expected: &[&str]) {
        assert_eq!(endpoint_ip(text), expected);
    }

    #[test]
    fn a_canonical_form_is_required_or_recommended() {
        let expected = "must be in canonical form (\"2001:db8::1\")";
        assert_eq!(canonical_ip("2001:DB8::1").as_deref(), Some(expected));
        assert_eq!(canonical_ip("2001:db8::1"), None);
        let expected = "must be in canonical form (\"2001:db8::/64\")";
        assert_eq!(canonical_cidr("2001:db8:0::/64").as_deref(), Some(expected));
        let expected = "a: IPv6 address \"::A\" should be in RFC 5952 canonical format (\"::a\")";
        assert_eq!(ip_warning("::A", "a").as_deref(), Some(expected));
        assert_eq!(ip_warning("1.2.3.4", "a"), None);
        let expected =
            "a: IPv6 CIDR value \"A::/8\" should be in RFC 5952 canonical format (\"a::/8\")";
        assert_eq!(cidr_warning("A::/8", "a").as_deref(), Some(expected));
    }
}
