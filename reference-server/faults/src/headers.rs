//! Headers with lists of entries, such as `Accept` and `Accept-Encoding`.

use http::HeaderMap;
use http::header::{ACCEPT_ENCODING, HeaderName};

/// The entries of all lines of a header.
pub(crate) fn entries(headers: &HeaderMap, name: &HeaderName) -> Vec<String> {
    let lines = headers.get_all(name).iter().filter_map(|line| line.to_str().ok());
    let entries = lines.flat_map(|line| line.split(',')).map(|entry| entry.trim().to_owned());
    entries.filter(|entry| !entry.is_empty()).collect()
}

/// The part of an entry before its parameters.
pub(crate) fn range(entry: &str) -> &str {
    entry.split(';').next().unwrap_or_default().trim()
}

/// Returns whether a parameter of an entry is its quality.
pub(crate) fn is_quality(parameter: &str) -> bool {
    parameter.trim().starts_with("q=")
}

/// Returns whether an entry has the quality 0.
pub(crate) fn is_excluded(entry: &str) -> bool {
    let quality = entry.split(';').find(|parameter| is_quality(parameter));
    quality.is_some_and(|quality| quality.trim()[2..].parse() == Ok(0.0))
}

/// Returns whether the client accepts a compressed body.
pub(crate) fn accepts_gzip(headers: &HeaderMap) -> bool {
    let is_gzip = |entry: &String| range(entry).eq_ignore_ascii_case("gzip");
    entries(headers, &ACCEPT_ENCODING).iter().any(|entry| is_gzip(entry) && !is_excluded(entry))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("gzip", true)]
    #[case("br, GZIP;q=0.5", true)]
    #[case("gzip;q=0", false)]
    #[case("gzip; q=0.0, br", false)]
    #[case("identity", false)]
    fn a_quality_of_zero_rejects_gzip(#[case] accepted: &str, #[case] expected: bool) {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT_ENCODING, accepted.parse().expect("a header"));
        assert_eq!(accepts_gzip(&headers), expected);
    }
}
