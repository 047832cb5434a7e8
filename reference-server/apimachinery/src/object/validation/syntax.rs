//! The syntaxes of strings in the fields of built-in types, by name.

use std::str::FromStr;

use serde_json::Value;

use super::{addresses, names};
use crate::field::{FieldError, Path};

/// The syntax of a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syntax {
    /// `my-name`
    DnsLabel,
    /// `example.com`
    DnsSubdomain,
    /// `my-name`, which starts with a letter.
    Rfc1035Label,
    /// `app` or `example.com/app`
    LabelKey,
    /// `MyValue`
    LabelValue,
    /// The key of a `ConfigMap` or Secret.
    ConfigKey,
    /// The name of an environment variable.
    EnvName,
    /// The name of a port of a container.
    PortName,
    /// An address of IP version 4 or 6.
    Ip,
    /// The address of an endpoint, which other hosts can use.
    EndpointIp,
    /// A range of addresses.
    Cidr,
    /// An absolute path.
    AbsolutePath,
    /// A path that never leads to a parent directory.
    PathWithoutParents,
    /// A relative path that never leads to a parent directory, and does not start with `..`.
    LocalPath,
    /// A domain to search for names, which may have underscores and a dot at the end.
    SearchDomain,
    /// The name of a host, or of all hosts below one: `*.example.com`.
    IngressHost,
    /// A domain and a path: `example.com/name`.
    DomainPath,
    /// A segment of a path.
    PathSegment,
    /// The name of an HTTP header.
    HeaderName,
    /// An identifier of the C language.
    CIdentifier,
    /// The name of a driver: a DNS subdomain in any case.
    DriverName,
    /// The name of a pool of devices: DNS subdomains with slashes between them.
    PoolName,
}

/// The names in files with rules.
const NAMES: [(&str, Syntax); 22] = [
    ("dns-label", Syntax::DnsLabel),
    ("dns-subdomain", Syntax::DnsSubdomain),
    ("rfc1035-label", Syntax::Rfc1035Label),
    ("label-key", Syntax::LabelKey),
    ("label-value", Syntax::LabelValue),
    ("config-key", Syntax::ConfigKey),
    ("env-name", Syntax::EnvName),
    ("port-name", Syntax::PortName),
    ("ip", Syntax::Ip),
    ("endpoint-ip", Syntax::EndpointIp),
    ("cidr", Syntax::Cidr),
    ("absolute-path", Syntax::AbsolutePath),
    ("path-without-parents", Syntax::PathWithoutParents),
    ("local-path", Syntax::LocalPath),
    ("search-domain", Syntax::SearchDomain),
    ("ingress-host", Syntax::IngressHost),
    ("domain-path", Syntax::DomainPath),
    ("path-segment", Syntax::PathSegment),
    ("header-name", Syntax::HeaderName),
    ("c-identifier", Syntax::CIdentifier),
    ("driver-name", Syntax::DriverName),
    ("pool-name", Syntax::PoolName),
];

/// The name of a syntax that does not exist.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no syntax")]
pub struct UnknownSyntax(String);

impl FromStr for Syntax {
    type Err = UnknownSyntax;

    fn from_str(name: &str) -> Result<Self, UnknownSyntax> {
        let known = NAMES.iter().find(|(known, _)| *known == name);
        known.map(|(_, syntax)| *syntax).ok_or_else(|| UnknownSyntax(name.to_owned()))
    }
}

impl Syntax {
    /// Returns the mistakes in a string.
    pub fn check(self, text: &str) -> Vec<String> {
        match self {
            Self::DnsLabel => names::dns_label(text),
            Self::DnsSubdomain => names::dns_subdomain(text),
            Self::Rfc1035Label => names::rfc1035_label(text),
            Self::LabelKey => names::qualified_name(text),
            Self::LabelValue => names::label_value(text),
            Self::ConfigKey => names::config_key(text),
            Self::EnvName => env_name(text),
            Self::PortName => port_name(text),
            Self::Ip => addresses::ip(text).into_iter().collect(),
            Self::EndpointIp => {
                let mut wrong: Vec<String> = addresses::ip(text).into_iter().collect();
                wrong.extend(addresses::endpoint_ip(text));
                wrong
            }
            Self::Cidr => addresses::cidr(text).into_iter().collect(),
            Self::AbsolutePath => unless(text.starts_with('/'), "must be an absolute path"),
            Self::PathWithoutParents => without_parents(text),
            Self::LocalPath => local_path(text),
            Self::SearchDomain => {
                let domain = text.strip_suffix('.').unwrap_or(text).replace('_', "a");
                if text == "." { Vec::new() } else { names::dns_subdomain(&domain) }
            }
            Self::IngressHost => names::dns_subdomain(text.strip_prefix("*.").unwrap_or(text)),
            Self::DomainPath => domain_path(text),
            Self::PathSegment => names::path_segment(text),
            Self::HeaderName => unless(is_header_name(text), HEADER),
            Self::CIdentifier => unless(is_c_identifier(text), C_IDENTIFIER),
            Self::DriverName => names::dns_subdomain(&text.to_lowercase()),
            Self::PoolName => text.split('/').flat_map(names::dns_subdomain).collect(),
        }
    }

    /// Returns the mistakes in a string as errors at `path`.
    pub fn errors(self, text: &str, path: Path<'_>) -> Vec<FieldError> {
        let wrong = self.check(text);
        wrong.iter().map(|why| FieldError::invalid(path, &Value::from(text), why)).collect()
    }
}

const ENV: &str = "a valid environment variable name must consist only of printable ASCII \
                   characters other than '='";
const HEADER: &str = "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. \
                      'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')";
const C_IDENTIFIER: &str = "a valid C identifier must start with alphabetic character or '_', \
                            followed by a string of alphanumeric characters or '_' (e.g. \
                            'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is \
                            '[A-Za-z_][A-Za-z0-9_]*')";

fn unless(is_right: bool, why: &str) -> Vec<String> {
    if is_right { Vec::new() } else { vec![why.to_owned()] }
}

fn env_name(text: &str) -> Vec<String> {
    let mut wrong = unless(!text.is_empty(), "environment variable name must not be empty");
    let allowed = |c: char| c == ' ' || c.is_ascii_graphic() && c != '=';
    wrong.extend(unless(text.chars().all(allowed), ENV));
    wrong
}

fn port_name(text: &str) -> Vec<String> {
    let mut wrong = unless(text.len() <= 15, "must be no more than 15 bytes");
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    wrong.extend(unless(
        text.chars().all(allowed),
        "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
    ));
    wrong.extend(unless(
        text.chars().any(|c| c.is_ascii_lowercase()),
        "must contain at least one letter (a-z)",
    ));
    wrong.extend(unless(!text.contains("--"), "must not contain consecutive hyphens"));
    wrong.extend(unless(
        !text.starts_with('-') && !text.ends_with('-'),
        "must not begin or end with a hyphen",
    ));
    wrong
}

fn without_parents(text: &str) -> Vec<String> {
    unless(text.split('/').all(|part| part != ".."), "must not contain '..'")
}

fn local_path(text: &str) -> Vec<String> {
    let mut wrong = unless(!text.starts_with('/'), "must be a relative path");
    wrong.extend(without_parents(text));
    let is_reserved = text.starts_with("..") && !text.starts_with("../");
    wrong.extend(unless(!is_reserved, "must not start with '..'"));
    wrong
}

/// The characters of a path besides letters and digits.
const PATH_MARKS: &str = "/-._~%!$&'()*+,;=:";
const PATH: &str = "Invalid path (regex used for validation is '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')";

fn domain_path(text: &str) -> Vec<String> {
    match text.split_once('/') {
        Some((domain, path)) if !path.is_empty() => {
            let mut wrong = names::dns_subdomain(domain);
            let is_valid = |c: char| c.is_ascii_alphanumeric() || PATH_MARKS.contains(c);
            wrong.extend((!path.chars().all(is_valid)).then(|| PATH.to_owned()));
            wrong
        }
        _ => vec!["must be a domain-prefixed path (such as \"acme.io/foo\")".to_owned()],
    }
}

fn is_header_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
}

fn is_c_identifier(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("dns-label", "my-name", "my.name")]
    #[case("dns-subdomain", "my.name", "My")]
    #[case("rfc1035-label", "a1", "1a")]
    #[case("label-key", "a.b/c", "a b")]
    #[case("label-value", "A_b", "a b")]
    #[case("config-key", "a.B", "a/b")]
    #[case("env-name", "A b", "A=b")]
    #[case("port-name", "http-1", "80")]
    #[case("port-name", "a", "a--b")]
    #[case("port-name", "a", "a-")]
    #[case("port-name", "a", "a-very-long-name")]
    #[case("ip", "2001:db8::1", "1.2.3")]
    #[case("endpoint-ip", "10.0.0.1", "127.0.0.1")]
    #[case("cidr", "10.0.0.0/8", "10.0.0.0")]
    #[case("absolute-path", "/a", "a")]
    #[case("path-without-parents", "/a..", "/a/../b")]
    #[case("local-path", "a/b", "/a")]
    #[case("local-path", "a", "..a")]
    #[case("search-domain", "a_b.c.", "A")]
    #[case("ingress-host", "*.a", "*")]
    #[case("domain-path", "a.b/c", "a.b")]
    #[case("domain-path", "a.b/c/d", "A/c")]
    #[case("domain-path", "a.b/C:d", "a.b/c ")]
    #[case("path-segment", "a:b", "a/b")]
    #[case("header-name", "X-A", "X A")]
    #[case("c-identifier", "_a1", "1a")]
    #[case("driver-name", "GPU.example.com", "a_b")]
    #[case("pool-name", "a.b/c", "a//b")]
    fn strings_have_a_syntax(#[case] name: &str, #[case] right: &str, #[case] wrong: &str) {
        let syntax: Syntax = name.parse().unwrap();
        assert!(syntax.check(right).is_empty());
        let errors = syntax.errors(wrong, Path::Root.field("f"));
        assert_eq!((errors.len(), &*errors[0].field), (1, "f"));
    }

    #[test]
    fn an_unknown_syntax_is_named() {
        assert_eq!("odd".parse::<Syntax>().unwrap_err().to_string(), "`odd` is no syntax");
    }
}
