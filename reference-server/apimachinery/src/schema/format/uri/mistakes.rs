//! The messages of Go about invalid URIs.

use super::{is_port, may_be_in_host, split_scheme};
use crate::schema::rules::quoted;

/// Returns the message about an invalid absolute URI or path.
pub(crate) fn mistake(text: &str) -> String {
    format!("parse {}: {}", quoted(text), reason(text))
}

fn reason(text: &str) -> String {
    if text.bytes().any(|byte| byte.is_ascii_control()) {
        return "net/url: invalid control character in URL".to_owned();
    }
    if text.is_empty() {
        return "empty url".to_owned();
    }
    let Some((scheme, rest)) = split_scheme(text) else {
        return "missing protocol scheme".to_owned();
    };
    let (rest, _) = rest.split_once('?').unwrap_or((rest, ""));
    if scheme.is_empty() && !rest.starts_with('/') {
        return "invalid URI for request".to_owned();
    }
    let mut path = rest;
    if let Some(behind) = rest.strip_prefix("//").filter(|_| !scheme.is_empty()) {
        let end = behind.find('/').unwrap_or(behind.len());
        if let Some(why) = authority(&scheme.to_ascii_lowercase(), &behind[..end]) {
            return why;
        }
        path = &behind[end..];
    }
    let fragment = text.split_once('#').map_or("", |(_, fragment)| fragment);
    escape(path).or_else(|| escape(fragment)).unwrap_or("invalid URI for request".to_owned())
}

fn authority(scheme: &str, text: &str) -> Option<String> {
    let (user, address) = text.rsplit_once('@').map_or((None, text), |(a, b)| (Some(a), b));
    if let Some(why) = host(scheme, address) {
        return Some(why);
    }
    let user = user?;
    let is_user = |c: char| c.is_ascii_alphanumeric() || "-._:~!$&'()*+,;=%@".contains(c);
    if user.chars().all(is_user) {
        escape(user)
    } else {
        Some("net/url: invalid userinfo".to_owned())
    }
}

fn host(scheme: &str, host: &str) -> Option<String> {
    let port =
        |port: &str| (!is_port(port)).then(|| format!("invalid port {} after host", quoted(port)));
    match host.rfind('[') {
        Some(0) => {
            let Some((address, rest)) = host[1..].rsplit_once(']') else {
                return Some("missing ']' in host".to_owned());
            };
            let (address, _) = address.split_once("%25").unwrap_or((address, ""));
            port(rest).or_else(|| name(address)).or(Some("invalid IP-literal".to_owned()))
        }
        Some(_) => Some("invalid IP-literal".to_owned()),
        None => {
            let is_web = matches!(scheme, "http" | "https");
            let colon = if is_web { host.find(':') } else { host.rfind(':') };
            colon.and_then(|colon| port(&host[colon..])).or_else(|| name(host))
        }
    }
}

/// Returns the message about the first wrong character or escape of a host.
fn name(host: &str) -> Option<String> {
    let mut rest = host;
    while let Some(next) = rest.chars().next() {
        let mut length = next.len_utf8();
        if next == '%' {
            length = 3;
            let is_high = rest[1..].starts_with(|c: char| c.to_digit(16).is_some_and(|c| c >= 8));
            if let Some(why) = escape(rest.get(..3).unwrap_or(rest)) {
                return Some(why);
            }
            if !is_high && !rest.starts_with("%25") {
                return Some(wrong_escape(&rest[..3]));
            }
        } else if !may_be_in_host(next) {
            return Some(format!("invalid character {} in host name", quoted(&next.to_string())));
        }
        rest = &rest[length..];
    }
    None
}

/// Returns the message about the first percent sign without two hexadecimal digits.
fn escape(text: &str) -> Option<String> {
    let places = text.match_indices('%').map(|(place, _)| &text[place..]);
    let is_escape = |text: &str| {
        text.as_bytes().get(1..3).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    let wrong = places.into_iter().find(|text| !is_escape(text))?;
    let end = wrong.char_indices().nth(3).map_or(wrong.len(), |(end, _)| end);
    Some(wrong_escape(&wrong[..end]))
}

fn wrong_escape(text: &str) -> String {
    format!("invalid URL escape {}", quoted(text))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::super::Uri;
    use super::*;

    /// kube-apiserver 1.36.2 reported these mistakes.
    #[rstest]
    #[case("", "empty url")]
    #[case("a/b", "invalid URI for request")]
    #[case("1http://a", "invalid URI for request")]
    #[case("ht tp://a", "invalid URI for request")]
    #[case("?x", "invalid URI for request")]
    #[case(":a", "missing protocol scheme")]
    #[case("http://a/%zz", "invalid URL escape \"%zz\"")]
    #[case("/a%", "invalid URL escape \"%\"")]
    #[case("http://a:b", "invalid port \":b\" after host")]
    #[case("http://::1", "invalid port \"::1\" after host")]
    #[case("http://a:80:90/", "invalid port \":80:90\" after host")]
    #[case("http://a b", "invalid character \" \" in host name")]
    #[case("http://a%20b", "invalid URL escape \"%20\"")]
    #[case("http://[::1", "missing ']' in host")]
    #[case("\t/a", "net/url: invalid control character in URL")]
    fn mistakes_have_the_words_of_go(#[case] text: &str, #[case] expected: &str) {
        assert_eq!(Uri::parse(text), None);
        assert_eq!(mistake(text), format!("parse {}: {expected}", quoted(text)));
    }
}
