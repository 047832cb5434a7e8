//! The formats of strings and numbers, and their validation.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::str::FromStr;
use std::sync::LazyLock;

use jiff::Timestamp;
use jiff::civil::Date;
use regex::Regex;

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
    /// A duration in the syntax of Go: `1h30m`.
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
    /// A URI with a scheme.
    Uri,
    /// A format that is published but not validated.
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
            "date-time" | "datetime" => Self::DateTime,
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

    /// Reports whether a string has this format.
    pub fn accepts(&self, text: &str) -> bool {
        match self {
            Self::Byte => is_base64(text),
            Self::Date => Date::from_str(text).is_ok() && text.len() == "2006-01-02".len(),
            Self::DateTime => is_date_time(text),
            Self::MicroTime => is_date_time(text) && MICROS.is_match(text),
            Self::Quantity => super::quantity::canonical(text).is_some(),
            Self::Duration => DURATION.is_match(text),
            Self::Ipv4 => Ipv4Addr::from_str(text).is_ok(),
            Self::Ipv6 => Ipv6Addr::from_str(text).is_ok(),
            Self::Cidr => is_cidr(text),
            Self::Mac => MAC.is_match(text),
            Self::Uuid => UUID.is_match(text),
            Self::Email => EMAIL.is_match(text),
            Self::Hostname => text.len() <= 255 && HOSTNAME.is_match(text),
            Self::Uri => URI.is_match(text),
            Self::Int32 | Self::Int64 | Self::Float | Self::Double | Self::Other(_) => true,
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

/// Returns a time in UTC with six fractional digits. Returns `None` for other texts.
pub(super) fn canonical_micro_time(text: &str) -> Option<String> {
    Timestamp::from_str(text).ok().map(|time| time.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string())
}

fn is_date_time(text: &str) -> bool {
    // The parser also accepts ISO 8601 forms outside RFC 3339, so the shape is checked first.
    RFC3339.is_match(text) && Timestamp::from_str(text).is_ok()
}

fn is_base64(text: &str) -> bool {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.decode(text).is_ok()
}

fn is_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    let Ok(bits) = bits.parse::<u8>() else { return false };
    (Ipv4Addr::from_str(address).is_ok() && bits <= 32)
        || (Ipv6Addr::from_str(address).is_ok() && bits <= 128)
}

fn regex(pattern: &str) -> Regex {
    #[expect(
        clippy::expect_used,
        reason = "the patterns are literals of this file and a test compiles them all"
    )]
    Regex::new(pattern).expect("a literal pattern")
}

static RFC3339: LazyLock<Regex> = LazyLock::new(|| {
    regex(r"^\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(\.\d+)?([Zz]|[+-]\d{2}:\d{2})$")
});
static MICROS: LazyLock<Regex> = LazyLock::new(|| regex(r"\.\d{6}([Zz]|[+-]\d{2}:\d{2})$"));
static DURATION: LazyLock<Regex> = LazyLock::new(|| {
    regex(concat!(
        r"^[+-]?(0|(\d+(\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h)",
        r"((\d+(\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h))*)$",
    ))
});
static MAC: LazyLock<Regex> = LazyLock::new(|| regex(r"^[0-9A-Fa-f]{2}([:-][0-9A-Fa-f]{2}){5}$"));
static UUID: LazyLock<Regex> = LazyLock::new(|| {
    regex(r"^(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$")
});
static EMAIL: LazyLock<Regex> = LazyLock::new(|| regex(r"^[^@\s<>]+@[^@\s<>]+$"));
static HOSTNAME: LazyLock<Regex> = LazyLock::new(|| {
    regex(r"^(?i)[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*\.?$")
});
static URI: LazyLock<Regex> = LazyLock::new(|| regex(r"^([A-Za-z][A-Za-z0-9+.-]*:\S+|/\S*)$"));

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("date-time", "2024-01-02T03:04:05Z", "2024-01-02")]
    #[case("date-time", "2024-01-02T03:04:05.5+02:00", "nope")]
    #[case("date-time", "2024-12-31T23:59:59Z", "2024-13-31T23:59:59Z")]
    #[case("date-time", "2024-01-02T03:04:05Z", "20240102T030405Z")]
    #[case("date", "2024-02-29", "2023-02-29")]
    #[case("ipv4", "10.0.0.1", "10.0.0.256")]
    #[case("ipv6", "::1", "10.0.0.1")]
    #[case("cidr", "10.0.0.0/8", "10.0.0.0/33")]
    #[case("cidr", "10.0.0.1/32", "10.0.0.1")]
    #[case("cidr", "::1/128", "::1/129")]
    #[case("mac", "00:00:5e:00:53:01", "00:00:5e:00:53")]
    #[case("uuid", "5a1b3c4d-0000-4000-8000-000000000001", "5a1b3c4d")]
    #[case("byte", "QQ==", "not base64!")]
    #[case("duration", "1h30m", "1 hour")]
    #[case("email", "a@example.com", "example.com")]
    #[case("hostname", "a.example.com", "-a")]
    #[case("uri", "https://example.com/x", "not a uri")]
    fn a_format_accepts_valid_and_rejects_invalid_texts(
        #[case] name: &str,
        #[case] good: &str,
        #[case] bad: &str,
    ) {
        let format = Format::from_name(name);
        assert!(format.accepts(good), "{name} rejects {good}");
        assert!(!format.accepts(bad), "{name} accepts {bad}");
    }

    #[test]
    fn a_micro_time_has_six_digits_and_is_converted_to_utc() {
        assert!(Format::MicroTime.accepts("2024-01-02T03:04:05.000000+02:00"));
        assert!(!Format::MicroTime.accepts("2024-01-02T03:04:05+02:00"));
        let utc = canonical_micro_time("2024-01-02T03:04:05.000000+02:00");
        assert_eq!(utc.as_deref(), Some("2024-01-02T01:04:05.000000Z"));
    }

    #[test]
    fn an_unknown_format_accepts_any_text_and_keeps_its_name() {
        let format = Format::from_name("color");
        assert!(format.accepts("anything"));
        assert_eq!(format.name(), Some("color"));
    }
}
