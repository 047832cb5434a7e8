//! The order of the versions of a group.

use std::cmp::{Ordering, Reverse};

/// Compares versions; the preferred version is first. Stable precedes beta and alpha, and high
/// numbers precede low numbers. Texts that are not Kubernetes versions come last in alphabetical
/// order.
pub(crate) fn by_priority(a: &str, b: &str) -> Ordering {
    match (parse(a), parse(b)) {
        (Some(a), Some(b)) => Reverse(a).cmp(&Reverse(b)),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => a.cmp(b),
    }
}

/// Returns the stability of a version, its number, and the number of the beta or alpha.
fn parse(version: &str) -> Option<(u8, u32, u32)> {
    let rest = version.strip_prefix('v')?;
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (major, stage) = rest.split_at(digits);
    let major = major.parse().ok()?;
    match (stage.strip_prefix("beta"), stage.strip_prefix("alpha")) {
        _ if stage.is_empty() => Some((2, major, 0)),
        (Some(number), _) => Some((1, major, number.parse().ok()?)),
        (_, Some(number)) => Some((0, major, number.parse().ok()?)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_come_in_the_order_of_preference() {
        let mut versions = [
            "foo10",
            "v1",
            "v11alpha2",
            "v3beta1",
            "v10",
            "foo1",
            "v12alpha1",
            "v10beta3",
            "v2",
            "v11beta2",
        ];
        versions.sort_by(|a, b| by_priority(a, b));
        let expected = [
            "v10",
            "v2",
            "v1",
            "v11beta2",
            "v10beta3",
            "v3beta1",
            "v12alpha1",
            "v11alpha2",
            "foo1",
            "foo10",
        ];
        assert_eq!(versions, expected);
    }
}
