//! Values of options, and their parsers.

use std::ffi::OsStr;
use std::net::SocketAddr;
use std::str::FromStr;
use std::time::Duration;

use clap::ValueEnum;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::error::ErrorKind;
use kubeproof_cases::Profile;
use kubeproof_cases::case::Capability as Needed;
use kubeproof_reference_server::{Capability, KubernetesVersion};
use rustls_pki_types::ServerName;

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
    Named {
        from_name: Capability::from_name,
        values: move || Capability::all().map(value).collect(),
    }
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
    Named {
        from_name: Needed::from_name,
        values: move || Needed::all().into_iter().map(value).collect(),
    }
}

/// Parses the name of a profile.
pub(super) fn profile() -> impl TypedValueParser<Value = Profile> {
    let value = |profile: Profile| PossibleValue::new(profile.name()).help(profile.summary());
    Named { from_name: Profile::from_name, values: move || Profile::ALL.map(value).to_vec() }
}

/// Parses one of many names. A program builds the parsers of all its commands when it starts, so
/// this one lists the names only for the help and for mistakes.
#[derive(Clone)]
struct Named<T, L> {
    from_name: fn(&str) -> Option<T>,
    values: L,
}

impl<T, L> TypedValueParser for Named<T, L>
where
    T: Clone + Send + Sync + 'static,
    L: Fn() -> Vec<PossibleValue> + Clone + Send + Sync + 'static,
{
    type Value = T;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<T, clap::Error> {
        if let Some(known) = value.to_str().and_then(self.from_name) {
            return Ok(known);
        }
        let unknown = || clap::Error::new(ErrorKind::InvalidValue).with_cmd(command);
        let listed = PossibleValuesParser::new((self.values)());
        Err(listed.parse_ref(command, argument, value).err().unwrap_or_else(unknown))
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new((self.values)().into_iter()))
    }
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

/// Parses a name of a certificate: a host name, which may start with `*.`, or an address.
pub(super) fn alternative_name(text: &str) -> Result<String, String> {
    let host = text.strip_prefix("*.").unwrap_or(text);
    match ServerName::try_from(host) {
        Ok(ServerName::IpAddress(_)) if host != text => {}
        Ok(_) => return Ok(text.to_owned()),
        Err(_) => {}
    }
    Err("expected a host name or an address, such as api.example or 10.1.2.3".to_owned())
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
    fn names_of_certificates_are_hosts_and_addresses() {
        for name in ["api", "api.example", "*.example", "10.1.2.3", "fd00::1"] {
            assert_eq!(alternative_name(name).as_deref(), Ok(name));
        }
        for wrong in ["", "https://api", "api:6443", "[::1]", "*.10.1.2.3", "a b"] {
            assert!(alternative_name(wrong).is_err(), "{wrong}");
        }
    }

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
