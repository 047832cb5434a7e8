//! Finds secret values in JSON, and removes them from all texts that repeat them.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use super::REDACTED;

/// Shorter values are removed from structured data only. In texts they would replace parts of
/// ordinary words.
const SHORTEST_IN_TEXT: usize = 4;

/// Shorter secrets are removed only as whole words. If the token is `user`, the header `user-agent`
/// must stay readable.
const SHORTEST_INSIDE_WORDS: usize = 8;

/// The keys of secret data in raw JSON and YAML, plain and quoted.
const RAW_DATA: [&str; 6] =
    ["data\":", "stringData\":", "data\\\":", "stringData\\\":", "\ndata:", "\nstringData:"];

const QUOTED_DATA: [&str; 2] = ["data\\\":", "stringData\\\":"];

const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The secret values of one result.
pub(super) struct SecretValues {
    tokens: Arc<[String]>,
    /// The case is about Secrets, and all `data` is secret.
    pub(super) about_secrets: bool,
    /// The values of the case itself. They are public.
    own: BTreeSet<String>,
    found: BTreeSet<String>,
}

impl SecretValues {
    pub(super) fn new(tokens: Arc<[String]>, about_secrets: bool, own: BTreeSet<String>) -> Self {
        Self { tokens, about_secrets, own, found: BTreeSet::new() }
    }

    /// Removes secrets from a value and remembers them. Returns whether there was one.
    pub(super) fn strip(&mut self, value: &mut Value) -> bool {
        let before = self.found.len();
        let mut stripped = false;
        self.strip_within(value, self.about_secrets, &mut stripped);
        stripped || self.found.len() > before
    }

    fn strip_within(&mut self, value: &mut Value, secret: bool, stripped: &mut bool) {
        match value {
            Value::Array(items) => {
                for item in items {
                    self.strip_within(item, secret, stripped);
                }
            }
            Value::Object(members) => {
                let kind = members.get("kind").and_then(Value::as_str).unwrap_or_default();
                let secret = secret || matches!(kind, "Secret" | "SecretList");
                let is_review = matches!(kind, "TokenReview" | "TokenRequest");
                let patches_data = is_patch_of_data(members);
                for (key, member) in members.iter_mut() {
                    let hidden = match key.as_str() {
                        "data" | "stringData" | LAST_APPLIED => secret,
                        "value" => secret && patches_data,
                        _ => false,
                    };
                    if hidden {
                        self.replace(member, stripped);
                        continue;
                    }
                    if is_review
                        && matches!(key.as_str(), "status" | "spec")
                        && let Some(token) = member.get_mut("token")
                    {
                        self.replace(token, stripped);
                    }
                    self.strip_within(member, secret, stripped);
                }
            }
            _ => {}
        }
    }

    fn replace(&mut self, value: &mut Value, stripped: &mut bool) {
        match value {
            Value::String(text) if self.own.contains(text) => {}
            Value::String(text) => {
                *stripped = true;
                let text = std::mem::replace(text, REDACTED.to_owned());
                if text.len() >= SHORTEST_IN_TEXT && text != REDACTED {
                    self.found.insert(text);
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.replace(item, stripped)),
            Value::Object(members) => {
                members.values_mut().for_each(|member| self.replace(member, stripped));
            }
            _ => {}
        }
    }

    /// Truncates a text of a case about Secrets at the first key of raw data. Such a text can be
    /// part of an invalid body, in which values cannot be found.
    pub(super) fn truncate(&self, text: &mut String) {
        if !self.about_secrets {
            return;
        }
        if let Some(data) = RAW_DATA.iter().filter_map(|key| text.find(key)).min() {
            text.truncate(data);
            text.push_str(REDACTED);
        }
    }

    /// Truncates each line of a diff that contains quoted raw data. Unquoted data is structured,
    /// and [`SecretValues::strip`] has removed its values.
    pub(super) fn truncate_lines(&self, text: &mut String) {
        let is_quoted = |text: &str| QUOTED_DATA.iter().any(|key| text.contains(key));
        if self.about_secrets && is_quoted(text) {
            let truncated = |line: &str| {
                let mut line = line.to_owned();
                if is_quoted(&line) {
                    self.truncate(&mut line);
                }
                line
            };
            *text = text.lines().map(truncated).collect::<Vec<_>>().join("\n");
        }
    }

    /// Truncates all strings of a value.
    pub(super) fn truncate_values(&self, value: &mut Value) {
        match value {
            Value::String(text) => self.truncate(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.truncate_values(item)),
            Value::Object(members) => {
                members.values_mut().for_each(|member| self.truncate_values(member));
            }
            _ => {}
        }
    }

    /// Removes all known secrets from texts.
    pub(super) fn redact_texts<'a>(&self, texts: impl IntoIterator<Item = &'a mut String>) {
        for text in texts {
            for secret in self.all() {
                if text.contains(secret.as_str()) {
                    *text = hide(text, secret);
                }
            }
        }
    }

    /// Removes all known secrets from the strings and keys of values.
    pub(super) fn redact_values<'a>(&self, values: impl IntoIterator<Item = &'a mut Value>) {
        for value in values {
            match value {
                Value::String(text) => self.redact_texts([text]),
                Value::Array(items) => self.redact_values(items),
                Value::Object(members) => {
                    if members.keys().any(|name| self.is_in(name)) {
                        let named = std::mem::take(members).into_iter().map(|(mut name, value)| {
                            self.redact_texts([&mut name]);
                            (name, value)
                        });
                        *members = named.collect();
                    }
                    self.redact_values(members.values_mut());
                }
                _ => {}
            }
        }
    }

    fn is_in(&self, text: &str) -> bool {
        self.all().any(|secret| text.contains(secret.as_str()))
    }

    fn all(&self) -> impl Iterator<Item = &String> {
        self.tokens.iter().chain(&self.found)
    }
}

/// Returns whether an object is an operation of a JSON patch on the data of a Secret.
fn is_patch_of_data(members: &serde_json::Map<String, Value>) -> bool {
    let path = members.get("path").and_then(Value::as_str);
    path.is_some_and(|path| path.starts_with("/data") || path.starts_with("/stringData"))
}

/// Returns the text without a secret.
pub(super) fn hide(text: &str, secret: &str) -> String {
    if secret.len() >= SHORTEST_INSIDE_WORDS {
        return text.replace(secret, REDACTED);
    }
    let mut hidden = String::with_capacity(text.len());
    let mut rest = 0;
    for (start, found) in text.match_indices(secret) {
        let end = start + found.len();
        let is_word = !text[..start].ends_with(is_in_word) && !text[end..].starts_with(is_in_word);
        if is_word {
            hidden.push_str(&text[rest..start]);
            hidden.push_str(REDACTED);
            rest = end;
        }
    }
    hidden.push_str(&text[rest..]);
    hidden
}

fn is_in_word(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '-' | '_')
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(
        r#"got "{\"kind\":\"Secret\",\"data\":{\"a\":\"aHVu""#,
        r#"got "{\"kind\":\"Secret\",\"[redacted]"#
    )]
    #[case(r#"{"items":[{"stringData":{"a":"hunt"#, r#"{"items":[{"[redacted]"#)]
    #[case("kind: Secret\ndata:\n  a: aHVu", "kind: Secret[redacted]")]
    #[case("expected a list of metadata, got data", "expected a list of metadata, got data")]
    fn raw_text_is_truncated_at_the_data_of_a_secret(#[case] text: &str, #[case] expected: &str) {
        for (about_secrets, expected) in [(true, expected), (false, text)] {
            let secrets = SecretValues::new([].into(), about_secrets, BTreeSet::new());
            let mut value = Value::Array(vec![text.into()]);
            secrets.truncate_values(&mut value);
            assert_eq!(value[0], expected);
        }
    }

    #[rstest]
    #[case("-H 'user-agent: a' -H 'Bearer user'", "-H 'user-agent: a' -H 'Bearer [redacted]'")]
    #[case("users of user", "users of [redacted]")]
    #[case("second_user, user: user.", "second_user, [redacted]: [redacted].")]
    fn a_short_token_is_hidden_as_a_word(#[case] text: &str, #[case] expected: &str) {
        assert_eq!(hide(text, "user"), expected);
    }
}
