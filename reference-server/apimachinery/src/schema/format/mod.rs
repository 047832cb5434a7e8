//! The formats of strings and numbers, and their validation.
//!
//! Texts of custom resources are valid if kube-apiserver accepts them, even where it differs from
//! the standards: `5 days` is a duration, and `my-host` is no host name.

use std::str::FromStr;
use std::sync::LazyLock;

use base64::engine::{GeneralPurpose, GeneralPurposeConfig};
use base64::{DecodeError, Engine as _, alphabet};
use jiff::Timestamp;
use jiff::civil::Date;
use regex::Regex;

use crate::object::validation::names;

mod codes;
pub(super) mod duration;
mod email;
mod network;
pub(super) mod uri;

pub use self::duration::go_duration;

/// A format of OpenAPI, or one that only typed objects use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Format {
    /// A 32-bit integer.
    Int32,
    /// A 64-bit integer.
    Int64,
    /// A 32-bit floating point number.
    Float,
    /// A 64-bit floating point number.
    Double,
    /// Base64.
    Byte,
    /// An RFC 3339 date.
    Date,
    /// An RFC 3339 date and time.
    DateTime,
    /// An RFC 3339 date and time with exactly six fractional digits (typed objects only).
    MicroTime,
    /// A resource quantity (typed objects only).
    Quantity,
    /// A duration: `1h30m` or `90 minutes`.
    Duration,
    /// An IPv4 address.
    Ipv4,
    /// An IPv6 address.
    Ipv6,
    /// An address range, `10.0.0.0/8`.
    Cidr,
    /// A hardware address.
    Mac,
    /// A UUID of any version.
    Uuid,
    /// An email address.
    Email,
    /// A host name.
    Hostname,
    /// A URI with a scheme, or an absolute path.
    Uri,
    /// A rare format of OpenAPI or Kubernetes, or an unknown one, which is not validated.
    Other(String),
}

impl Format {
    /// Returns the format with this name.
    pub fn from_name(name: &str) -> Self {
        match name {
            "int32" => Self::Int32,
            "int64" => Self::Int64,
            "float" => Self::Float,
            "double" => Self::Double,
            "byte" => Self::Byte,
            "date" => Self::Date,
            "date-time" => Self::DateTime,
            "duration" => Self::Duration,
            "ipv4" => Self::Ipv4,
            "ipv6" => Self::Ipv6,
            "cidr" => Self::Cidr,
            "mac" => Self::Mac,
            "uuid" => Self::Uuid,
            "email" => Self::Email,
            "hostname" => Self::Hostname,
            "uri" => Self::Uri,
            other => Self::Other(other.to_owned()),
        }
    }

    /// Returns the name in published documents.
    pub fn name(&self) -> Option<&str> {
        Some(match self {
            Self::Int32 => "int32",
            Self::Int64 => "int64",
            Self::Float => "float",
            Self::Double => "double",
            Self::Byte => "byte",
            Self::Date => "date",
            Self::DateTime | Self::MicroTime => "date-time",
            Self::Quantity => return None,
            Self::Duration => "duration",
            Self::Ipv4 => "ipv4",
            Self::Ipv6 => "ipv6",
            Self::Cidr => "cidr",
            Self::Mac => "mac",
            Self::Uuid => "uuid",
            Self::Email => "email",
            Self::Hostname => "hostname",
            Self::Uri => "uri",
            Self::Other(name) => name,
        })
    }

    /// Reports whether a string of a custom resource has this format.
    pub fn accepts(&self, text: &str) -> bool {
        match self {
            Self::Byte => !text.is_empty() && BASE64.decode(text).is_ok(),
            Self::Date => is_date(text),
            Self::DateTime => is_date_time(text),
            Self::MicroTime => self.decodes(text),
            Self::Quantity => super::quantity::canonical(text).is_some(),
            Self::Duration => duration::nanoseconds(text).is_some(),
            Self::Ipv4 => network::is_ipv4(text),
            Self::Ipv6 => network::is_ipv6(text),
            Self::Cidr => network::is_cidr(text),
            Self::Mac => network::is_mac(text),
            Self::Uuid => is_uuid(text, None),
            Self::Email => email::is_email(text),
            Self::Hostname => network::is_hostname(text),
            Self::Uri => uri::Uri::is_valid(text),
            Self::Other(name) => {
                RARE.iter().find(|(rare, _)| rare == name).is_none_or(|(_, accepts)| accepts(text))
            }
            Self::Int32 | Self::Int64 | Self::Float | Self::Double => true,
        }
    }

    /// Reports whether a typed object can have this text as its time.
    pub(super) fn decodes(&self, text: &str) -> bool {
        // The parser also accepts ISO 8601 forms outside RFC 3339, so the shape is checked first.
        let is_time = RFC3339.is_match(text) && Timestamp::from_str(text).is_ok();
        match self {
            Self::DateTime => is_time,
            Self::MicroTime => is_time && MICROS.is_match(text),
            _ => true,
        }
    }

    /// Returns an example of the format.
    pub(super) fn example(&self) -> &'static str {
        match self {
            Self::MicroTime => "2006-01-02T15:04:05.000000Z",
            _ => "2006-01-02T15:04:05Z",
        }
    }
}

/// Returns a time in UTC with whole seconds, as objects store it. Returns `None` for other texts.
pub(super) fn canonical_time(text: &str) -> Option<String> {
    Timestamp::from_str(text).ok().map(|time| time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
}

/// Reports whether a text is the time that Go and kube-apiserver write as null.
pub(super) fn is_zero_time(text: &str) -> bool {
    canonical_time(text).is_some_and(|time| time == "0001-01-01T00:00:00Z")
}

/// Returns a time in UTC with six fractional digits. Returns `None` for other texts.
pub(super) fn canonical_micro_time(text: &str) -> Option<String> {
    Timestamp::from_str(text).ok().map(|time| time.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string())
}

/// Base64 that ignores the unused bits of the last character.
pub(super) static BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
);

/// Decodes the base64 of a typed object, which may have line breaks.
pub(super) fn decode_base64(text: &str) -> Result<Vec<u8>, DecodeError> {
    if text.contains(LINE_BREAKS) {
        BASE64.decode(text.replace(LINE_BREAKS, ""))
    } else {
        BASE64.decode(text)
    }
}

/// Returns base64 as objects store it, without line breaks and unused bits. Returns `None` for
/// other texts.
pub(super) fn canonical_base64(text: &str) -> Option<String> {
    let may_differ = text.ends_with('=') || text.contains(LINE_BREAKS);
    let bytes = may_differ.then(|| decode_base64(text).ok()).flatten()?;
    Some(BASE64.encode(bytes))
}

const LINE_BREAKS: [char; 2] = ['\r', '\n'];

fn is_date(text: &str) -> bool {
    Date::from_str(text).is_ok() && text.len() == "2006-01-02".len()
}

/// Reports whether a text has a date and a time. The server does not check the offset, and ignores
/// the text after another `t`.
fn is_date_time(text: &str) -> bool {
    let lower = text.to_lowercase();
    let mut parts = lower.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else { return false };
    is_date(date) && TIME.is_match(time)
}

/// Reports whether a text is a UUID, with or without hyphens, and of a version.
fn is_uuid(text: &str, version: Option<char>) -> bool {
    let Some(found) = UUID.captures(text) else { return false };
    let has_version = |version: char| found[1].starts_with(version);
    let has_variant = || found[2].starts_with(['8', '9', 'a', 'b', 'A', 'B']);
    // The server does not check the variant of version 3.
    version.is_none_or(|version| has_version(version) && (version == '3' || has_variant()))
}

fn regex(pattern: &str) -> Regex {
    #[expect(
        clippy::expect_used,
        reason = "the patterns are literals of this module and the tests compile them all"
    )]
    Regex::new(pattern).expect("a literal pattern")
}

static RFC3339: LazyLock<Regex> = LazyLock::new(|| {
    regex(r"^\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(\.\d+)?([Zz]|[+-]\d{2}:\d{2})$")
});
static MICROS: LazyLock<Regex> = LazyLock::new(|| regex(r"\.\d{6}([Zz]|[+-]\d{2}:\d{2})$"));
static TIME: LazyLock<Regex> = LazyLock::new(|| {
    regex(r"^([01][0-9]|2[0-3])(:[0-5][0-9]){2}(.[0-9]+)?(z|[+-][0-9]{2}:[0-9]{2})$")
});
static UUID: LazyLock<Regex> = LazyLock::new(|| {
    regex(r"^(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?([0-9a-f]{4})-?([0-9a-f]{4})-?[0-9a-f]{12}$")
});

/// Reports whether a text has a format.
type Accepts = fn(&str) -> bool;

/// The rare formats, with their checks.
const RARE: [(&str, Accepts); 14] = [
    // Unlike `date-time`, this is a string in expressions.
    ("datetime", is_date_time),
    ("bsonobjectid", |text| text.len() == 24 && text.bytes().all(|byte| byte.is_ascii_hexdigit())),
    ("uuid3", |text| is_uuid(text, Some('3'))),
    ("uuid4", |text| is_uuid(text, Some('4'))),
    ("uuid5", |text| is_uuid(text, Some('5'))),
    ("isbn", |text| codes::is_isbn10(text) || codes::is_isbn13(text)),
    ("isbn10", codes::is_isbn10),
    ("isbn13", codes::is_isbn13),
    ("creditcard", codes::is_card),
    ("ssn", codes::is_ssn),
    ("hexcolor", codes::is_hex_color),
    ("rgbcolor", codes::is_rgb_color),
    ("k8s-short-name", |text| names::dns_label(text).is_empty()),
    ("k8s-long-name", |text| names::dns_subdomain(text).is_empty()),
];

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    /// The results are those of kube-apiserver 1.36.
    #[rstest]
    #[case(
        "date-time",
        &[
            "2024-01-02T03:04:05.5+02:00", "2024-12-31T23:59:59Z", "2024-01-02t03:04:05z",
            "2020-01-01T00:00:00,5Z", "2020-01-01T00:00:00+99:99", "2020-01-01T00:00:00Ztx",
        ],
        &[
            "2024-01-02", "2024-13-31T23:59:59Z", "20240102T030405Z", "2020-01-01T00:00:60Z",
            "2020-01-01T24:00:00Z",
        ],
    )]
    #[case("date", &["2024-02-29"], &["2023-02-29", "2020-1-1"])]
    #[case("ipv4", &["10.0.0.1", "01.2.3.4", "::ffff:1.2.3.4"], &["10.0.0.256", "1.2.3", "::1"])]
    #[case("ipv6", &["::1", "::ffff:1.2.3.4"], &["10.0.0.1", "fe80::1%en0"])]
    #[case(
        "cidr",
        &["10.0.0.0/8", "10.0.0.1/32", "::1/128", "01.2.3.4/08"],
        &["10.0.0.0/33", "10.0.0.1", "::1/129", "1.2.3.4/+8"],
    )]
    #[case(
        "mac",
        &[
            "00:00:5e:00:53:01", "01-23-45-67-89-AB", "0123.4567.89ab", "0123456789ab",
            "01:23:45:67:89:ab:cd:ef",
        ],
        &["00:00:5e:00:53", "01:23:45-67-89-ab"],
    )]
    #[case(
        "uuid",
        &["5a1b3c4d-0000-4000-8000-000000000001", "a8098c1af86e11dabd1a00112444be1e"],
        &["5a1b3c4d"],
    )]
    #[case(
        "uuid3",
        &["bcd02e22-68f0-3046-a512-327cca9def8f"],
        &["bcd02e22-68f0-4046-a512-327cca9def8f"],
    )]
    #[case(
        "uuid4",
        &["025b0d74-00a2-4048-bf57-227c5111bb34"],
        &["025b0d74-00a2-4048-cf57-227c5111bb34"],
    )]
    #[case(
        "uuid5",
        &["886313e1-3b8a-5372-9b90-0c9aee199e5d"],
        &["886313e1-3b8a-4372-9b90-0c9aee199e5d"],
    )]
    #[case("byte", &["QQ==", "ab==", "YWJ="], &["not base64!", "", "aGVsbG8", "abc=="])]
    #[case(
        "duration",
        &["1h30m", "1 hour", "5 days ago", "P1D", "1.5 days", "0"],
        &["1", "", "1 parsec"],
    )]
    #[case(
        "email",
        &[
            "a@example.com", "Ann <a@b.c>", "\"a b\"@c.d", "a@b (home)", "g: a@b;", "a@[1.2.3.4]",
            "a@ b",
        ],
        &["example.com", "a@b..c", ".a@b", "a,b@c", "a@b;", "\"\"@b", "a@[::1]", "a @b"],
    )]
    #[case(
        "hostname",
        &["a.example.com", "host1", "a-", "é", "my-host.example.com", "☃.com"],
        &["-a", "a.b", "my-host", "a.", "1.2.3.4", "a_b", "a.com1"],
    )]
    #[case(
        "uri",
        &[
            "https://example.com/x", "https:///b", "https:opaque", "*", "http://a/b c", "/a",
            "http://[::1]:80/",
        ],
        &[
            "not a uri", "", "https://a:b:c/", "https://a.com/%zz", "http://[::1", "http://h%41/",
            "http://a|b/", "http://u%zz@h/", "http://[1.2.3.4]/", "http://x[::1]/", ":b",
        ],
    )]
    #[case("isbn", &["0-321-75104-3", "978-0321751041"], &["0321751044", "x"])]
    #[case("isbn10", &["080442957X"], &["080442957x"])]
    #[case("isbn13", &["9780321751041"], &["9780321751042"])]
    #[case("creditcard", &["4111-1111-1111-1111", "378282246310005"], &["4111111111111112", "1"])]
    #[case("ssn", &["111-11-1111", "111 11 1111"], &["111111111"])]
    #[case("hexcolor", &["#FFFFFF", "fff"], &["#ffff", "#ggg"])]
    #[case(
        "rgbcolor",
        &["rgb(255, 0,\t7)"],
        &["rgb(256,0,0)", "RGB(1,2,3)", "rgb(01,2,3)", "rgb(1,2)"],
    )]
    #[case("bsonobjectid", &["507f1f77bcf86cd799439011"], &["507f1f77"])]
    #[case("k8s-short-name", &["a"], &["a.b", "A"])]
    #[case("k8s-long-name", &["a.b"], &["a..b"])]
    #[case("color", &["anything"], &[])]
    fn a_format_accepts_valid_and_rejects_invalid_texts(
        #[case] name: &str,
        #[case] valid: &[&str],
        #[case] invalid: &[&str],
    ) {
        let format = Format::from_name(name);
        for text in valid {
            assert!(format.accepts(text), "{name} rejects {text}");
        }
        for text in invalid {
            assert!(!format.accepts(text), "{name} accepts {text}");
        }
    }

    #[test]
    fn a_micro_time_has_six_digits_and_is_converted_to_utc() {
        assert!(Format::MicroTime.accepts("2024-01-02T03:04:05.000000+02:00"));
        assert!(!Format::MicroTime.accepts("2024-01-02T03:04:05+02:00"));
        let utc = canonical_micro_time("2024-01-02T03:04:05.000000+02:00");
        assert_eq!(utc.as_deref(), Some("2024-01-02T01:04:05.000000Z"));
    }

    #[rstest]
    #[case("YWI=", Some("YWI="))]
    #[case("YWJ=", Some("YWI="))]
    #[case("YW\r\nJj", Some("YWJj"))]
    #[case("YWJj", None)]
    #[case("!=", None)]
    fn base64_is_stored_without_unused_bits_and_line_breaks(
        #[case] text: &str,
        #[case] canonical: Option<&str>,
    ) {
        assert_eq!(canonical_base64(text).as_deref(), canonical);
    }

    #[test]
    fn an_unknown_format_keeps_its_name() {
        let format = Format::from_name("color");
        assert_eq!(format.name(), Some("color"));
    }
}
