//! The collections that objects are posted to.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// The bytes that a path segment encodes.
const SEGMENT: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b':');

/// A collection that objects are posted to.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Collection {
    pub(super) path: String,
    pub(crate) group: String,
    pub(crate) namespace: Option<String>,
}

impl Collection {
    /// Returns the collection that a target addresses, or `None` for other targets.
    pub(crate) fn of(target: &str) -> Option<Self> {
        let path = target.split('?').next()?;
        let segments: Vec<&str> = path.strip_prefix('/')?.split('/').collect();
        let (group, rest) = match segments.as_slice() {
            ["api", _, rest @ ..] => ("", rest),
            ["apis", group, _, rest @ ..] => (*group, rest),
            _ => return None,
        };
        let namespace = match rest {
            [_] => None,
            ["namespaces", namespace, _] => Some((*namespace).to_owned()),
            _ => return None,
        };
        Some(Self { path: path.to_owned(), group: group.to_owned(), namespace })
    }

    /// Returns the path of an object. `None` for names that no path can contain: clients resolve
    /// them, and would delete something else.
    pub(crate) fn object(&self, name: &str) -> Option<String> {
        let is_dots = matches!(name, "" | "." | "..");
        (!is_dots).then(|| format!("{}/{}", self.path, utf8_percent_encode(name, SEGMENT)))
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("a", Some("/apis/g/v1/gauges/a"))]
    #[case("system:a.b_c", Some("/apis/g/v1/gauges/system:a.b_c"))]
    #[case("a b", Some("/apis/g/v1/gauges/a%20b"))]
    #[case("../b", Some("/apis/g/v1/gauges/..%2Fb"))]
    #[case("a%2fb", Some("/apis/g/v1/gauges/a%252fb"))]
    #[case::dots("..", None)]
    #[case::dot(".", None)]
    fn names_are_one_segment(#[case] name: &str, #[case] expected: Option<&str>) {
        let collection = Collection::of("/apis/g/v1/gauges").unwrap();
        assert_eq!(collection.object(name).as_deref(), expected);
    }

    #[rstest]
    #[case("/api/v1/namespaces/a/configmaps", Some(("", Some("a"))))]
    #[case("/api/v1/namespaces/a/configmaps?dryRun=All", Some(("", Some("a"))))]
    #[case("/api/v1/namespaces", Some(("", None)))]
    #[case("/apis/g/v1/gauges", Some(("g", None)))]
    #[case("/apis/g/v1/namespaces/a/widgets", Some(("g", Some("a"))))]
    #[case("/api/v1/namespaces/a/pods/b/eviction", None)]
    #[case("/apis/g/v1/gauges/a", None)]
    #[case("/version", None)]
    fn only_collections_are_posted_to(
        #[case] target: &str,
        #[case] expected: Option<(&str, Option<&str>)>,
    ) {
        let collection = Collection::of(target);
        let found = collection.as_ref().map(|c| (c.group.as_str(), c.namespace.as_deref()));
        assert_eq!(found, expected);
    }
}
