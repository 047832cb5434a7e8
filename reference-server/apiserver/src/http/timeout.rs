//! The query parameter `timeout`, which limits the duration of a request.
//!
//! All requests of this server are short, so it only checks the value.

use kubeproof_apimachinery::request::Query;
use kubeproof_apimachinery::status::ApiError;

use super::request_info::RequestInfo;

/// The subresources with long requests, which have no limit.
const LONG: [&str; 5] = ["attach", "exec", "log", "portforward", "proxy"];
/// The units of durations in Go. Longer units come before their suffixes.
const UNITS: [&str; 8] = ["ns", "us", "µs", "μs", "ms", "s", "m", "h"];

/// Rejects an invalid duration. Watches and streams have no limit.
pub(crate) fn check(info: &RequestInfo, query: &Query) -> Result<(), ApiError> {
    let is_long = match info {
        RequestInfo::Path(_) => false,
        RequestInfo::Resource(info) => {
            info.legacy_watch || query.flag("watch") || LONG.contains(&info.subresource.as_str())
        }
    };
    match query.text("timeout") {
        Some(text) if !is_long && !is_duration(text) => Err(ApiError::bad_request(format!(
            "invalid timeout specified in the request URL - time: invalid duration {text:?}"
        ))),
        _ => Ok(()),
    }
}

/// Reports whether a text is a duration of Go, such as `1m30s`.
fn is_duration(text: &str) -> bool {
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    if rest == "0" {
        return true;
    }
    while !rest.is_empty() {
        let number = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (digits, tail) = rest.split_at(number);
        let is_number = digits.contains(|c: char| c.is_ascii_digit());
        let unit = UNITS.iter().find(|unit| tail.starts_with(**unit));
        let (true, Some(unit)) = (is_number && digits.matches('.').count() < 2, unit) else {
            return false;
        };
        rest = &tail[unit.len()..];
    }
    !text.trim_start_matches(['-', '+']).is_empty()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("/api/v1/pods", "timeout=invalid", false)]
    #[case("/api/v1/pods", "timeout=5", false)]
    #[case("/api/v1/pods", "timeout=s", false)]
    #[case("/api/v1/pods", "timeout=1.2.3s", false)]
    #[case("/api/v1/pods", "timeout=-", false)]
    #[case("/version", "timeout=x", false)]
    #[case("/api/v1/pods", "timeout=", true)]
    #[case("/api/v1/pods", "timeout=0", true)]
    #[case("/api/v1/pods", "timeout=-5s", true)]
    #[case("/api/v1/pods", "timeout=1h2m3.5s4ms5us6ns", true)]
    #[case("/api/v1/pods", "timeout=x&watch=true", true)]
    #[case("/api/v1/namespaces/a/pods/p/log", "timeout=x", true)]
    fn an_invalid_timeout_is_rejected(
        #[case] path: &str,
        #[case] query: &str,
        #[case] accepted: bool,
    ) {
        let result = check(&RequestInfo::parse(path), &Query::parse(query));
        assert_eq!(result.is_ok(), accepted);
    }
}
