//! IP addresses and CIDR ranges in expressions.
//!
//! kube-apiserver rejects zones and IPv4 addresses in the form of IPv6, and names the mistakes of
//! other texts like the package `net/netip` of Go.

use std::net::{IpAddr, Ipv6Addr};

use cel::common::types::STRING_TYPE;
use cel::{Env, ExecutionError};
use ipnet::IpNet;

use super::format::quoted;
use super::kinds::{Declared, kinds};
use super::library::{Result, give, string};

type Parsed<T> = std::result::Result<T, String>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Address(IpAddr);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Range(IpNet);

kinds! {
    Address "net.IP"
    Range "net.CIDR"
}

/// Declares the types and their functions.
pub(super) fn declare(env: &mut Env) -> Declared {
    env.add_type(Address::ty())?;
    env.add_type(Range::ty())?;
    addresses(env)?;
    kinds_of_addresses(env)?;
    ranges(env)?;
    contents_of_ranges(env)
}

fn addresses(env: &mut Env) -> Declared {
    env.add_overload("ip", "string_to_ip", vec![STRING_TYPE], |arguments| {
        give(Address(made("ip", address(&string(&arguments, 0)?))?))
    })?;
    env.add_overload("isIP", "is_ip", vec![STRING_TYPE], |arguments| {
        give(address(&string(&arguments, 0)?).is_ok())
    })?;
    env.add_overload("ip.isCanonical", "ip_is_canonical", vec![STRING_TYPE], |arguments| {
        let text = string(&arguments, 0)?;
        give(made("ip.isCanonical", address(&text))?.to_string() == *text)
    })?;
    env.add_overload("string", "ip_to_string", vec![Address::ty()], |arguments| {
        give(Address::of(&arguments, 0)?.0.to_string())
    })?;
    env.add_member_overload("family", "ip_family", Address::ty(), vec![], |arguments| {
        give(if Address::of(&arguments, 0)?.0.is_ipv4() { 4_i64 } else { 6 })
    })
}

fn kinds_of_addresses(env: &mut Env) -> Declared {
    let ty = Address::ty;
    env.add_member_overload("isUnspecified", "ip_is_unspecified", ty(), vec![], |arguments| {
        give(Address::of(&arguments, 0)?.0.is_unspecified())
    })?;
    env.add_member_overload("isLoopback", "ip_is_loopback", ty(), vec![], |arguments| {
        give(Address::of(&arguments, 0)?.0.is_loopback())
    })?;
    env.add_member_overload("isLinkLocalUnicast", "ip_is_link_local", ty(), vec![], |arguments| {
        give(is_link_local(Address::of(&arguments, 0)?.0))
    })?;
    let multicast = "isLinkLocalMulticast";
    env.add_member_overload(multicast, "ip_is_local_multicast", ty(), vec![], |arguments| {
        give(match Address::of(&arguments, 0)?.0 {
            IpAddr::V4(address) => address.octets().starts_with(&[224, 0, 0]),
            IpAddr::V6(address) => address.segments()[0] & 0xff0f == 0xff02,
        })
    })?;
    env.add_member_overload("isGlobalUnicast", "ip_is_global_unicast", ty(), vec![], |arguments| {
        let Address(address) = Address::of(&arguments, 0)?;
        let broadcast = matches!(address, IpAddr::V4(address) if address.is_broadcast());
        let special = address.is_unspecified() || address.is_loopback() || address.is_multicast();
        give(!broadcast && !special && !is_link_local(address))
    })
}

fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    }
}

fn ranges(env: &mut Env) -> Declared {
    let ty = Range::ty;
    env.add_overload("cidr", "string_to_cidr", vec![STRING_TYPE], |arguments| {
        give(Range(made("cidr", range(&string(&arguments, 0)?))?))
    })?;
    env.add_overload("isCIDR", "is_cidr", vec![STRING_TYPE], |arguments| {
        give(range(&string(&arguments, 0)?).is_ok())
    })?;
    env.add_overload("string", "cidr_to_string", vec![ty()], |arguments| {
        give(Range::of(&arguments, 0)?.0.to_string())
    })?;
    env.add_member_overload("ip", "cidr_ip", ty(), vec![], |arguments| {
        give(Address(Range::of(&arguments, 0)?.0.addr()))
    })?;
    env.add_member_overload("masked", "cidr_masked", ty(), vec![], |arguments| {
        give(Range(Range::of(&arguments, 0)?.0.trunc()))
    })?;
    env.add_member_overload("prefixLength", "cidr_prefix_length", ty(), vec![], |arguments| {
        give(i64::from(Range::of(&arguments, 0)?.0.prefix_len()))
    })
}

fn contents_of_ranges(env: &mut Env) -> Declared {
    let (ip, cidr, ty) = ("containsIP", "containsCIDR", Range::ty);
    let text = || vec![STRING_TYPE];
    env.add_member_overload(ip, "cidr_contains_ip", ty(), vec![Address::ty()], |arguments| {
        give(Range::of(&arguments, 0)?.0.contains(&Address::of(&arguments, 1)?.0))
    })?;
    env.add_member_overload(ip, "cidr_contains_ip_string", ty(), text(), |arguments| {
        // kube-apiserver does not report why a text is no address.
        let Ok(address) = address(&string(&arguments, 1)?) else {
            return Err(ExecutionError::function_error("containsIP", "no such overload"));
        };
        give(Range::of(&arguments, 0)?.0.contains(&address))
    })?;
    env.add_member_overload(cidr, "cidr_contains_cidr", ty(), vec![ty()], |arguments| {
        give(Range::of(&arguments, 0)?.0.contains(&Range::of(&arguments, 1)?.0))
    })?;
    env.add_member_overload(cidr, "cidr_contains_cidr_string", ty(), text(), |arguments| {
        let range = made("containsCIDR", range(&string(&arguments, 1)?))?;
        give(Range::of(&arguments, 0)?.0.contains(&range))
    })
}

fn made<T>(function: &str, parsed: Parsed<T>) -> Result<T> {
    parsed.map_err(|why| ExecutionError::function_error(function, why))
}

fn address(text: &str) -> Parsed<IpAddr> {
    let (plain, zone) = parts(text);
    let failed = "parse error during conversion from string";
    let address =
        parsed(text).map_err(|why| format!("IP Address {} {failed}: {why}", quoted(text)))?;
    if zone.is_some() && plain.contains(':') {
        return Err(format!("IP address {} with zone value is not allowed", quoted(text)));
    }
    not_mapped(address, text)
}

fn range(text: &str) -> Parsed<IpNet> {
    const FAILED: &str = "network address parse error during conversion from string";
    let failed =
        |why: &str| format!("{FAILED}: {FAILED}: netip.ParsePrefix({}): {why}", quoted(text));
    let (start, bits) = text.rsplit_once('/').ok_or_else(|| failed("no '/'"))?;
    let address = parsed(start).map_err(|why| failed(&why))?;
    if start.contains('%') {
        return Err(failed("IPv6 zones cannot be present in a prefix"));
    }
    let is_plain = bits == "0" || !bits.starts_with('0');
    let bad = || failed(&format!("bad bits after slash: {}", quoted(bits)));
    if bits.is_empty() || !is_plain || !bits.bytes().all(|bit| bit.is_ascii_digit()) {
        return Err(bad());
    }
    let bits = bits.parse::<u64>().map_err(|_| bad())?;
    let net = u8::try_from(bits).ok().and_then(|bits| IpNet::new(address, bits).ok());
    let net = net.ok_or_else(|| failed("prefix length out of range"))?;
    not_mapped(address, text).map(|_| net).map_err(|why| format!("{FAILED}: {why}"))
}

fn not_mapped(address: IpAddr, text: &str) -> Parsed<IpAddr> {
    match address {
        IpAddr::V6(inner) if inner.to_ipv4_mapped().is_some() => {
            Err(format!("IPv4-mapped IPv6 address {} is not allowed", quoted(text)))
        }
        _ => Ok(address),
    }
}

/// Splits a text into an address and a zone.
fn parts(text: &str) -> (&str, Option<&str>) {
    text.split_once('%').map_or((text, None), |(address, zone)| (address, Some(zone)))
}

/// Parses an address, also with a zone. The error is the message of Go.
fn parsed(text: &str) -> Parsed<IpAddr> {
    let failed = |why: &str, at: &str| {
        let at = if at.is_empty() { String::new() } else { format!(" (at {})", quoted(at)) };
        Err(format!("ParseAddr({}): {why}{at}", quoted(text)))
    };
    match text.find(['.', ':', '%']).map(|at| &text[at..=at]) {
        None => failed("unable to parse IP", ""),
        Some("%") => failed("missing IPv6 address", ""),
        Some(".") => text.parse().map(IpAddr::V4).or_else(|_| {
            let (why, at) = mistake_of_ipv4(text);
            failed(why, at)
        }),
        Some(_) => match (parts(text), parts(text).0.parse::<Ipv6Addr>()) {
            ((_, Some("")), _) => failed("zone must be a non-empty string", ""),
            (_, Ok(address)) => Ok(IpAddr::V6(address)),
            ((plain, _), Err(_)) => {
                let (why, at) = mistake_of_ipv6(plain);
                failed(why, at)
            }
        },
    }
}

/// Returns the first mistake of a text with dots, and the rest of the text from there.
fn mistake_of_ipv4(text: &str) -> (&'static str, &str) {
    let mut rest = text;
    for index in 0.. {
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let (octet, after) = rest.split_at(end);
        if octet.len() > 1 && octet.starts_with('0') {
            return ("IPv4 field has octet with leading zero", "");
        }
        if !octet.is_empty() && octet.parse::<u8>().is_err() {
            return ("IPv4 field has value >255", "");
        }
        let Some(next) = after.strip_prefix('.') else {
            return match after {
                "" if index < 3 => ("IPv4 address too short", ""),
                _ => ("unexpected character", after),
            };
        };
        if octet.is_empty() || next.is_empty() || next.starts_with('.') && octet.is_empty() {
            return ("IPv4 field must have at least one digit", after);
        }
        if index == 3 {
            return ("IPv4 address too long", "");
        }
        rest = next;
    }
    ("unexpected character", rest)
}

/// Returns the first mistake of a text with colons, and the rest of the text from there.
fn mistake_of_ipv6(text: &str) -> (&'static str, &str) {
    let (mut rest, mut has_gap) = match text.strip_prefix("::") {
        Some(rest) => (rest, true),
        None => (text, false),
    };
    for _ in 0..8 {
        let end = rest.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(rest.len());
        if end > 4 {
            return ("each group must have 4 or less digits", rest);
        }
        if end == 0 {
            return ("each colon-separated field must have at least one digit", rest);
        }
        let after = &rest[end..];
        if after.starts_with('.') {
            return mistake_of_ipv4(rest);
        }
        if after.is_empty() {
            break;
        }
        let Some(next) = after.strip_prefix(':') else {
            return ("unexpected character, want colon", after);
        };
        if next.is_empty() {
            return ("colon must be followed by more characters", after);
        }
        rest = next;
        if let Some(next) = rest.strip_prefix(':') {
            if has_gap {
                return ("multiple :: in address", rest);
            }
            (rest, has_gap) = (next, true);
        }
    }
    match rest {
        _ if has_gap => ("the :: must expand to at least one field of zeros", ""),
        rest if rest.contains(':') || text.split(':').count() > 8 => {
            ("trailing garbage after address", rest)
        }
        _ => ("address string too short", ""),
    }
}

#[cfg(test)]
mod tests {
    use cel::{Context, Value as Cel};
    use rstest::rstest;

    use super::super::library::env;
    use super::*;

    #[rstest]
    #[case("ip('10.0.0.1').family() == 4 && string(ip('0::1')) == '::1'")]
    #[case("ip('::1').isLoopback() && ip('::').isUnspecified() && ip('8.8.8.8').isGlobalUnicast()")]
    #[case("ip('fe80::1').isLinkLocalUnicast() && ip('224.0.0.1').isLinkLocalMulticast()")]
    #[case("!ip('127.0.0.1').isGlobalUnicast() && !ip.isCanonical('0::1')")]
    #[case("!cidr('10.0.0.0/8').containsIP(ip('11.1.1.1'))")]
    #[case("cidr('10.0.0.0/8').containsIP('10.1.1.1') && ip.isCanonical('::1')")]
    #[case("cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16')")]
    #[case("!cidr('10.1.0.0/16').containsCIDR(cidr('10.0.0.0/8'))")]
    #[case("cidr('10.1.1.1/8').masked() == cidr('10.0.0.0/8')")]
    #[case("cidr('10.1.1.1/8').ip() == ip('10.1.1.1') && isIP('::1') && !isIP('1.2.3')")]
    #[case("cidr('10.0.0.0/8').prefixLength() == 8 && string(cidr('10.0.0.0/8')) == '10.0.0.0/8'")]
    #[case(
        "!isIP('::ffff:1.2.3.4') && !isIP('fe80::1%eth0') && !isIP('01.2.3.4') && isIP('::1.2.3.4')"
    )]
    #[case("isCIDR('10.0.0.0/8') && !isCIDR('10.0.0.0/08') && !isCIDR('::ffff:10.0.0.0/104')")]
    fn addresses_are_those_of_kubernetes(#[case] text: &str) {
        let program = env().compile(text).expect("an expression");
        assert_eq!(program.execute(&Context::with_env(env())), Ok(Cel::Bool(true)));
    }

    /// kube-apiserver 1.36.2 reported these mistakes.
    #[rstest]
    #[case("", "unable to parse IP")]
    #[case("01.2.3.4", "IPv4 field has octet with leading zero")]
    #[case("1.2.3", "IPv4 address too short")]
    #[case("1.2.3.256", "IPv4 field has value >255")]
    #[case("1.2.3.4/8", "unexpected character (at \"/8\")")]
    #[case("0x1.2.3.4", "unexpected character (at \"x1.2.3.4\")")]
    #[case("1::2::3", "multiple :: in address (at \":3\")")]
    #[case("12345::", "each group must have 4 or less digits (at \"12345::\")")]
    #[case("[::1]", "each colon-separated field must have at least one digit (at \"[::1]\")")]
    fn mistakes_of_addresses_are_named(#[case] text: &str, #[case] expected: &str) {
        let text = quoted(text);
        let start = format!("IP Address {text} parse error during conversion from string");
        let expected = format!("{start}: ParseAddr({text}): {expected}");
        assert_eq!(address(text.trim_matches('"')), Err(expected));
    }

    #[rstest]
    #[case("10.0.0.0", "no '/'")]
    #[case("10.0.0.0/08", "bad bits after slash: \"08\"")]
    #[case("10.0.0.0/", "bad bits after slash: \"\"")]
    #[case("10.0.0.0/33", "prefix length out of range")]
    #[case("fe80::1%eth0/64", "IPv6 zones cannot be present in a prefix")]
    #[case("10.0.0/8", "ParseAddr(\"10.0.0\"): IPv4 address too short")]
    fn mistakes_of_ranges_are_named(#[case] text: &str, #[case] expected: &str) {
        let start = "network address parse error during conversion from string";
        let expected = format!("{start}: {start}: netip.ParsePrefix({}): {expected}", quoted(text));
        assert_eq!(range(text), Err(expected));
    }
}
