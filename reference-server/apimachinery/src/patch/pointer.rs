//! JSON Pointer (RFC 6901): the paths in a JSON Patch.

use serde_json::Value;

/// A parsed pointer: the unescaped names from the root down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pointer(Vec<String>);

impl Pointer {
    /// Parses the text form. The error is a sentence.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Ok(Self(Vec::new()));
        }
        let Some(rest) = text.strip_prefix('/') else {
            return Err(format!("path {text:?} does not start with '/'"));
        };
        rest.split('/')
            .map(unescape)
            .collect::<Option<_>>()
            .map(Self)
            .ok_or_else(|| format!("path {text:?} has a '~' that is followed by neither 0 nor 1"))
    }

    /// Returns the number of steps from the root.
    pub(super) fn depth(&self) -> usize {
        self.0.len()
    }

    /// Splits off the last step. Returns `None` for the root.
    pub(super) fn split(&self) -> Option<(&[String], &str)> {
        self.0.split_last().map(|(last, parents)| (parents, last.as_str()))
    }

    /// Reports whether this path is below the other one.
    pub(super) fn is_inside(&self, other: &Self) -> bool {
        self.0.len() > other.0.len() && self.0.starts_with(&other.0)
    }

    /// Returns the value at this path.
    pub(super) fn get<'v>(&self, root: &'v Value) -> Option<&'v Value> {
        self.0.iter().try_fold(root, |value, step| match value {
            Value::Object(object) => object.get(step),
            Value::Array(items) => items.get(index(step)?),
            _ => None,
        })
    }

    /// Reports whether the path leads to a member that its object does not have.
    pub(super) fn is_absent_member(&self, root: &Value) -> bool {
        let Some((parents, last)) = self.split() else { return false };
        let parent = Self(parents.to_vec());
        parent.get(root).and_then(Value::as_object).is_some_and(|parent| !parent.contains_key(last))
    }

    /// Returns the value at this path for modification.
    pub(super) fn get_mut<'v>(&self, root: &'v mut Value) -> Option<&'v mut Value> {
        descend(root, &self.0)
    }
}

pub(super) fn descend<'v>(root: &'v mut Value, steps: &[String]) -> Option<&'v mut Value> {
    steps.iter().try_fold(root, |value, step| match value {
        Value::Object(object) => object.get_mut(step),
        Value::Array(items) => items.get_mut(index(step)?),
        _ => None,
    })
}

/// Parses an array index: digits without a sign or leading zeros.
pub(super) fn index(step: &str) -> Option<usize> {
    let canonical =
        step == "0" || (!step.starts_with('0') && step.bytes().all(|b| b.is_ascii_digit()));
    if canonical { step.parse().ok() } else { None }
}

fn unescape(step: &str) -> Option<String> {
    let mut parts = step.split('~');
    let mut text = parts.next()?.to_owned();
    for part in parts {
        match part.split_at_checked(1)? {
            ("0", rest) => text.extend(["~", rest]),
            ("1", rest) => text.extend(["/", rest]),
            _ => return None,
        }
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[rstest::rstest]
    #[case("", &[])]
    #[case("/", &[""])]
    #[case("/a~1b/m~0n", &["a/b", "m~n"])]
    #[case("/~01", &["~1"])]
    fn escapes_are_decoded_once(#[case] text: &str, #[case] steps: &[&str]) {
        assert_eq!(Pointer::parse(text).unwrap().0, steps);
    }

    #[rstest::rstest]
    #[case("data/a")]
    #[case("/a~")]
    #[case("/a~2b")]
    #[case("/~é")]
    fn an_invalid_pointer_is_rejected(#[case] text: &str) {
        assert!(Pointer::parse(text).is_err());
    }

    #[rstest::rstest]
    #[case("/a/b", "/a", true)]
    #[case("/a", "", true)]
    #[case("/a", "/a", false)]
    #[case("", "/a", false)]
    #[case("/ab/c", "/a", false)]
    #[case("/b/a", "/a", false)]
    fn a_path_is_inside_its_proper_prefixes(
        #[case] inner: &str,
        #[case] outer: &str,
        #[case] inside: bool,
    ) {
        let [inner, outer] = [inner, outer].map(|text| Pointer::parse(text).unwrap());
        assert_eq!(inner.is_inside(&outer), inside);
    }

    #[rstest::rstest]
    #[case("/l/1/a", Some(2))]
    #[case("/l/-", None)]
    #[case("/l/2", None)]
    #[case("/n/0", None)]
    fn get_and_get_mut_return_the_same_value(#[case] place: &str, #[case] expected: Option<i64>) {
        let (mut root, place) =
            (serde_json::json!({"l": [1, {"a": 2}], "n": 3}), Pointer::parse(place).unwrap());
        assert_eq!(place.get(&root).and_then(Value::as_i64), expected);
        assert_eq!(place.get_mut(&mut root).and_then(|value| value.as_i64()), expected);
    }

    #[rstest::rstest]
    #[case("0", Some(0))]
    #[case("10", Some(10))]
    #[case("01", None)]
    #[case("+1", None)]
    #[case("-1", None)]
    #[case("", None)]
    #[case("-", None)]
    #[case("99999999999999999999", None)]
    fn an_index_has_one_text_form(#[case] step: &str, #[case] expected: Option<usize>) {
        assert_eq!(index(step), expected);
    }
}
