//! The parameters of a request.

use std::fmt;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::decode;
use crate::status::ApiError;

/// The decoded parameters of a request in their order. A parameter may repeat.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query(Vec<(String, String)>);

impl Query {
    /// Parses the query of a URL, without the question mark.
    pub fn parse(text: &str) -> Self {
        let decode = |part: &str| decode(&part.replace('+', " "));
        let pairs = text.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decode(key), decode(value))
        });
        Self(pairs.collect())
    }

    /// Returns the first value of a parameter.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.all(key).next()
    }

    /// Returns the first value of a parameter. An empty value counts as absent.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.get(key).filter(|value| !value.is_empty())
    }

    /// Returns every value of a parameter.
    pub fn all(&self, key: &str) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    /// Returns whether a flag is set: present with any value except `0` and `false`.
    pub fn flag(&self, key: &str) -> bool {
        self.get(key).is_some_and(|value| value != "0" && !value.eq_ignore_ascii_case("false"))
    }

    /// Parses an integer parameter.
    pub fn number(&self, key: &str) -> Result<Option<i64>, ApiError> {
        let Some(text) = self.text(key) else { return Ok(None) };
        text.parse().map(Some).map_err(|error| {
            ApiError::bad_request(format!(
                "parameter {key} is {text:?}, which is not a whole number: {error}"
            ))
        })
    }

    /// Removes a parameter, wherever it occurs. Returns its first value.
    pub fn remove(&mut self, key: &str) -> Option<String> {
        let first = self.get(key).map(str::to_owned);
        self.0.retain(|(name, _)| name != key);
        first
    }

    /// Sets a parameter to one value.
    pub fn set(&mut self, key: &str, value: impl Into<String>) {
        self.remove(key);
        self.0.push((key.to_owned(), value.into()));
    }

    /// Adds a value to a parameter.
    pub fn add(&mut self, key: &str, value: impl Into<String>) {
        self.0.push((key.to_owned(), value.into()));
    }
}

impl fmt::Display for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (key, value)) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { "&" };
            let key = utf8_percent_encode(key, NON_ALPHANUMERIC);
            let value = utf8_percent_encode(value, NON_ALPHANUMERIC);
            write!(f, "{separator}{key}={value}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("", false)]
    #[case("pretty=0", false)]
    #[case("pretty=false", false)]
    #[case("pretty=False", false)]
    #[case("other=true", false)]
    #[case("pretty", true)]
    #[case("pretty=", true)]
    #[case("pretty=1", true)]
    #[case("pretty=yes", true)]
    fn a_switch_is_on_unless_it_says_otherwise(#[case] query: &str, #[case] expected: bool) {
        assert_eq!(Query::parse(query).flag("pretty"), expected);
    }

    #[test]
    fn a_query_survives_encoding_and_decoding() {
        let mut query = Query::parse("labelSelector=a%3Db%2Cc&watch=1&command=a&command=b+c");
        assert_eq!(query.get("labelSelector"), Some("a=b,c"));
        assert!(query.flag("watch"));
        assert_eq!(query.all("command").collect::<Vec<_>>(), ["a", "b c"]);
        assert_eq!(Query::parse(&query.to_string()), query);
        assert_eq!(query.remove("watch").as_deref(), Some("1"));
        query.set("command", "d");
        assert_eq!(query.all("command").collect::<Vec<_>>(), ["d"]);
    }
}
