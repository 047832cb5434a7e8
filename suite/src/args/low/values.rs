//! Values of options, and their parsers.

use std::net::SocketAddr;
use std::str::FromStr;
use std::time::Duration;

use clap::ValueEnum;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use kubeproof_cases::Profile;
use kubeproof_cases::case::Capability as Needed;
use kubeproof_reference_server::{Capability, KubernetesVersion};

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, ValueEnum)]
pub(in crate::args) enum Color {
    /// On a terminal, unless `NO_COLOR` is set
    #[default]
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(in crate::args) enum Level {
    /// A MUST: a violation is a failure
    Must,
    /// A SHOULD: a violation is a warning
    Should,
    /// A MAY: a violation is a warning
    May,
}

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, ValueEnum)]
pub(in crate::args) enum Edition {
    /// Kubernetes 1.0
    #[value(name = "v1.0")]
    V1_0,
    /// Kubernetes 1.3
    #[value(name = "v1.3")]
    V1_3,
    /// March 2022
    #[value(name = "2022")]
    Y2022,
    /// 2024
    #[value(name = "2024")]
    Y2024,
    /// The current text
    #[default]
    #[value(name = "head")]
    Head,
}

/// Parses durations such as `90s`, `5m`, `1m 30s` or `500ms`.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    match signed(text)?.try_into() {
        Ok(duration) if duration > Duration::ZERO => Ok(duration),
        _ => Err("expected a duration above zero".to_owned()),
    }
}

/// Parses a duration that may be zero: `0` or `0s`.
pub(in crate::args) fn age(text: &str) -> Result<Duration, String> {
    if text.trim() == "0" {
        return Ok(Duration::ZERO);
    }
    signed(text)?.try_into().map_err(|_| "expected a duration of zero or above".to_owned())
}

fn signed(text: &str) -> Result<jiff::SignedDuration, String> {
    let expected = "expected a number with a unit, for example 500ms, 90s or 5m";
    text.parse().map_err(|_| expected.to_owned())
}

/// Parses the name of a capability that the bundled server can disable.
pub(super) fn capability() -> impl TypedValueParser<Value = Capability> {
    let value = |capability: Capability| {
        PossibleValue::new(capability.name()).help(capability.summary().trim_end_matches('.'))
    };
    PossibleValuesParser::new(Capability::all().map(value)).try_map(|name| {
        Capability::from_name(&name).ok_or_else(|| format!("no capability has the name {name}"))
    })
}

/// Parses a version of Kubernetes that the bundled server can have.
pub(super) fn kubernetes_version() -> impl TypedValueParser<Value = KubernetesVersion> {
    let versions = KubernetesVersion::ALL.map(KubernetesVersion::as_str);
    PossibleValuesParser::new(versions).try_map(|name| name.parse::<KubernetesVersion>())
}

/// Parses the name of a capability that cases need.
pub(super) fn needed_capability() -> impl TypedValueParser<Value = Needed> {
    let value = |(_, name, summary): (Needed, String, String)| {
        PossibleValue::new(name).help(summary.trim_end_matches('.').to_owned())
    };
    PossibleValuesParser::new(Needed::all().into_iter().map(value)).try_map(|name| {
        Needed::from_name(&name).ok_or_else(|| format!("no capability has the name {name}"))
    })
}

/// Parses the name of a profile.
pub(super) fn profile() -> impl TypedValueParser<Value = Profile> {
    let value = |profile: Profile| PossibleValue::new(profile.name()).help(profile.summary());
    PossibleValuesParser::new(Profile::ALL.map(value)).try_map(|name| {
        Profile::from_name(&name).ok_or_else(|| format!("no profile has the name {name}"))
    })
}

/// Parses a number above zero.
pub(super) fn positive<N: FromStr + PartialOrd + Default>(text: &str) -> Result<N, String> {
    let number = text.parse().ok().filter(|number| *number > N::default());
    number.ok_or_else(|| "expected a number above zero".to_owned())
}

/// Parses a number that may be zero.
pub(super) fn number<N: FromStr>(text: &str) -> Result<N, String> {
    text.parse().map_err(|_| "expected a number".to_owned())
}

/// Parses a factor of the load.
pub(super) fn load(text: &str) -> Result<u32, String> {
    let number = text.parse().ok().filter(|number| (1..=100).contains(number));
    number.ok_or_else(|| "expected a number from 1 to 100".to_owned())
}

/// Parses an address to listen on. `localhost` stands for IPv4, so that the URL is stable.
pub(super) fn listen_address(text: &str) -> Result<SocketAddr, String> {
    let with_ip = match text.strip_prefix("localhost:") {
        Some(port) => format!("127.0.0.1:{port}"),
        None => text.to_owned(),
    };
    with_ip.parse().map_err(|_| {
        "expected IP:PORT, such as 127.0.0.1:8001; port 0 selects a free port".to_owned()
    })
}

/// Parses a bearer token of the bundled server.
pub(super) fn token(text: &str) -> Result<String, String> {
    if text.trim().is_empty() {
        return Err("expected a token, got an empty text".to_owned());
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units() {
        assert_eq!(duration("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("1m 30s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        for wrong in ["90", "", "0s", "-5s", "soon"] {
            assert!(duration(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn addresses_have_an_ip_and_a_port() {
        let address = |text| listen_address(text).map(|address| address.to_string());
        assert_eq!(address("127.0.0.1:0"), Ok("127.0.0.1:0".to_owned()));
        assert_eq!(address("localhost:80"), Ok("127.0.0.1:80".to_owned()));
        assert_eq!(address("[::1]:80"), Ok("[::1]:80".to_owned()));
        let expected = "expected IP:PORT, such as 127.0.0.1:8001; port 0 selects a free port";
        for wrong in [":8080", "8080", "localhost", "127.0.0.1", "a:1", ""] {
            assert_eq!(address(wrong), Err(expected.to_owned()), "{wrong:?}");
        }
    }

    #[test]
    fn numbers_have_errors_in_plain_words() {
        assert_eq!(positive::<u32>("2"), Ok(2));
        for wrong in ["0", "-1", "x", ""] {
            assert_eq!(positive::<u32>(wrong), Err("expected a number above zero".to_owned()));
        }
        assert_eq!(number::<u64>("0"), Ok(0));
        assert_eq!(number::<u64>("x"), Err("expected a number".to_owned()));
        assert_eq!(load("100"), Ok(100));
        assert_eq!(load("101"), Err("expected a number from 1 to 100".to_owned()));
    }

    #[test]
    fn an_age_may_be_zero() {
        assert_eq!(age("0"), Ok(Duration::ZERO));
        assert_eq!(age("0s"), Ok(Duration::ZERO));
        assert!(age("-5s").is_err());
        assert_eq!(age("2m"), Ok(Duration::from_mins(2)));
    }
}
