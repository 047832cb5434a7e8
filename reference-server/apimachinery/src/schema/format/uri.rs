//! URIs as Go's `net/url` parses them. kube-apiserver uses it for the format `uri`, and for the
//! URLs of CEL rules.
//!
//! Browsers follow another standard. Here, `https:///path`, `mailto:a@b`, `/path` and `*` are
//! valid, and a path may have spaces.

mod mistakes;

use std::borrow::Cow;
use std::net::Ipv6Addr;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

pub(crate) use self::mistakes::mistake;

/// The characters that the server escapes if it writes a path again.
const ESCAPED_IN_PATH: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~')
    .remove(b'$')
    .remove(b'&')
    .remove(b'+')
    .remove(b',')
    .remove(b'/')
    .remove(b':')
    .remove(b';')
    .remove(b'=')
    .remove(b'@');

/// A parsed URI. Equal URIs have the same parts, also those without a method.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Uri {
    /// The scheme in lower case. Empty for a path.
    pub(crate) scheme: String,
    /// The host with the port.
    pub(crate) host: String,
    user: String,
    path: String,
    query: String,
    fragment: String,
    /// The text after the scheme if it is not a path.
    opaque: String,
}

impl Uri {
    /// Reports whether a text is an absolute URI or an absolute path.
    pub(crate) fn is_valid(text: &str) -> bool {
        Self::read(text, true).is_some()
    }

    /// Parses an absolute URI or an absolute path.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        Self::read(text, true)?;
        let (rest, fragment) = text.split_once('#').unwrap_or((text, ""));
        let uri = Self::read(rest, false).filter(|_| is_escaped(fragment))?;
        Some(Self { fragment: fragment.to_owned(), ..uri })
    }

    /// Returns the host without brackets and port.
    pub(crate) fn hostname(&self) -> &str {
        let (host, _) = self.host_and_port();
        host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
    }

    /// Returns the port. It is empty if there is none.
    pub(crate) fn port(&self) -> &str {
        self.host_and_port().1
    }

    /// Returns the path with escapes. It is empty if there is none.
    pub(crate) fn escaped_path(&self) -> Cow<'_, str> {
        if self.path == "*" || self.path.bytes().all(may_be_in_path) {
            return Cow::Borrowed(&self.path);
        }
        let plain = percent_decode_str(&self.path).decode_utf8_lossy();
        Cow::Owned(utf8_percent_encode(&plain, ESCAPED_IN_PATH).to_string())
    }

    /// Returns the valid parameters in their order.
    pub(crate) fn parameters(&self) -> impl Iterator<Item = (String, String)> {
        self.query
            .split('&')
            .filter(|pair| !pair.is_empty() && !pair.contains(';'))
            .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
            .filter(|(key, value)| is_escaped(key) && is_escaped(value))
            .map(|(key, value)| (form_decoded(key), form_decoded(value)))
    }

    fn host_and_port(&self) -> (&str, &str) {
        match self.host.rfind(':') {
            Some(colon) if is_port(&self.host[colon..]) => {
                (&self.host[..colon], &self.host[colon + 1..])
            }
            _ => (&self.host, ""),
        }
    }

    /// Parses a text. `is_target` is the stricter form without relative references.
    fn read(text: &str, is_target: bool) -> Option<Self> {
        if text.bytes().any(|byte| byte.is_ascii_control()) || (text.is_empty() && is_target) {
            return None;
        }
        if text == "*" {
            return Some(Self { path: "*".to_owned(), ..Self::default() });
        }
        let (scheme, rest) = split_scheme(text)?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let mut uri = Self {
            scheme: scheme.to_ascii_lowercase(),
            query: query.to_owned(),
            ..Self::default()
        };
        if !rest.starts_with('/') {
            if !scheme.is_empty() {
                return Some(Self { opaque: rest.to_owned(), ..uri });
            }
            let first = rest.split('/').next().unwrap_or_default();
            if is_target || first.contains(':') {
                return None;
            }
        }
        let may_have_authority = !scheme.is_empty() || !is_target && !rest.starts_with("///");
        let mut path = rest;
        if let Some(behind) = rest.strip_prefix("//").filter(|_| may_have_authority) {
            let end = behind.find('/').unwrap_or(behind.len());
            (uri.user, uri.host) = authority(&uri.scheme, &behind[..end])?;
            path = &behind[end..];
        }
        is_escaped(path).then(|| Self { path: path.to_owned(), ..uri })
    }
}

/// Splits the scheme from the rest. It is empty if there is none.
fn split_scheme(text: &str) -> Option<(&str, &str)> {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '+' | '-' | '.'));
    match end {
        Some(0) if text.starts_with(':') => None,
        Some(end)
            if text[end..].starts_with(':')
                && text.starts_with(|c: char| c.is_ascii_alphabetic()) =>
        {
            Some((&text[..end], &text[end + 1..]))
        }
        _ => Some(("", text)),
    }
}

/// Returns the user of an authority, and its host with the port.
fn authority(scheme: &str, text: &str) -> Option<(String, String)> {
    let (user, host) = match text.rsplit_once('@') {
        Some((user, host)) => (user, host),
        None => ("", text),
    };
    let is_user = |c: char| c.is_ascii_alphanumeric() || "-._:~!$&'()*+,;=%@".contains(c);
    if !user.chars().all(is_user) || !is_escaped(user) {
        return None;
    }
    Some((user.to_owned(), host_and_port(scheme, host)?))
}

fn host_and_port(scheme: &str, host: &str) -> Option<String> {
    match host.rfind('[') {
        Some(0) => {
            let (address, port) = host[1..].rsplit_once(']')?;
            is_port(port).then_some(())?;
            Some(format!("[{}]{port}", ipv6(address)?))
        }
        Some(_) => None,
        None => {
            let is_web = matches!(scheme, "http" | "https");
            let colon = if is_web { host.find(':') } else { host.rfind(':') };
            let port = colon.map_or("", |colon| &host[colon..]);
            if is_port(port) { unescaped_host(host) } else { None }
        }
    }
}

/// Returns an IPv6 address, whose zone begins with `%25`.
fn ipv6(text: &str) -> Option<String> {
    let (address, zone) = match text.split_once("%25") {
        Some((address, zone)) => (address, Some(zone)),
        None => (text, None),
    };
    address.parse::<Ipv6Addr>().ok()?;
    match zone {
        None => Some(address.to_owned()),
        Some(zone) if zone.is_empty() || !is_escaped(zone) => None,
        Some(zone) => {
            let zone = percent_decode_str(zone).decode_utf8_lossy();
            zone.chars().all(|c| c == ' ' || may_be_in_host(c)).then(|| format!("{address}%{zone}"))
        }
    }
}

/// Removes the escapes of a host, which are possible outside of ASCII only.
fn unescaped_host(host: &str) -> Option<String> {
    let mut parts = host.split('%');
    let plain = parts.next().unwrap_or_default();
    let escapes_are_valid = parts.clone().all(|part| {
        part.as_bytes()
            .first()
            .is_some_and(|first| matches!(first, b'8'..=b'9' | b'a'..=b'f' | b'A'..=b'F'))
            || part.starts_with("25")
    });
    let texts_are_valid = plain.chars().all(may_be_in_host)
        && parts.all(|part| part.chars().skip(2).all(may_be_in_host));
    let is_valid = is_escaped(host) && escapes_are_valid && texts_are_valid;
    is_valid.then(|| percent_decode_str(host).decode_utf8_lossy().into_owned())
}

/// Reports whether a text is empty or a colon with digits.
fn is_port(text: &str) -> bool {
    text.is_empty()
        || text.strip_prefix(':').is_some_and(|port| port.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Reports whether two hexadecimal digits follow each percent sign.
fn is_escaped(text: &str) -> bool {
    text.split('%').skip(1).all(|part| {
        part.as_bytes().get(..2).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    })
}

fn may_be_in_host(c: char) -> bool {
    !c.is_ascii() || c.is_ascii_alphanumeric() || "-_.~!$&'()*+,;=:[]<>\"".contains(c)
}

fn may_be_in_path(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_.~/!$&'()*+,;=:@[]%".contains(&byte)
}

fn form_decoded(text: &str) -> String {
    percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("https://example.com:8080/a%2Fb?x=1&y#z", ("https", "example.com:8080", "/a%2Fb"))]
    #[case("https:///b", ("https", "", "/b"))]
    #[case("HTTP://u:p@[::1]:80", ("http", "[::1]:80", ""))]
    #[case("mailto:a@b", ("mailto", "", ""))]
    #[case("/a b/ü", ("", "", "/a%20b/%C3%BC"))]
    #[case("//a/b", ("", "a", "/b"))]
    #[case("http://[fe80::1%25en0]/", ("http", "[fe80::1%en0]", "/"))]
    #[case("http://h%c3%a9/", ("http", "hé", "/"))]
    fn a_valid_uri_has_parts(#[case] text: &str, #[case] (scheme, host, path): (&str, &str, &str)) {
        let uri = Uri::parse(text).expect("a URI");
        assert_eq!((&*uri.scheme, &*uri.host, &*uri.escaped_path()), (scheme, host, path));
    }

    #[test]
    fn hosts_ports_and_parameters_are_split() {
        let uri = Uri::parse("http://[::1]:80/?a=1&b=%20x&a=2+3&c=%zz&d;e=1&f#g").expect("a URI");
        assert_eq!((uri.hostname(), uri.port()), ("::1", "80"));
        let parameters: Vec<_> = uri.parameters().collect();
        let expected = [("a", "1"), ("b", " x"), ("a", "2 3"), ("f", "")];
        assert_eq!(parameters, expected.map(|(key, value)| (key.to_owned(), value.to_owned())));
    }

    #[rstest]
    #[case("HTTP://a/", "http://a/", true)]
    #[case("http://u@a/", "http://a/", false)]
    #[case("http://a/#x", "http://a/", false)]
    #[case("urn:a", "urn:b", false)]
    fn equal_uris_have_the_same_parts(#[case] one: &str, #[case] other: &str, #[case] same: bool) {
        assert_eq!(Uri::parse(one) == Uri::parse(other), same);
    }

    #[test]
    fn a_fragment_counts_as_path_only_without_parsing() {
        assert!(Uri::is_valid("/a?x#%zz") && Uri::parse("/a?x#%zz").is_none());
        assert!(!Uri::is_valid("http://a/b#%zz"));
    }
}
