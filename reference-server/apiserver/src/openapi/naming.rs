//! The names of groups in operation ids and tags.

/// Returns the words of a group: `Core`, `RbacAuthorization`.
pub(super) fn of_group(group: &str) -> String {
    let group = group.strip_suffix(".k8s.io").unwrap_or(group);
    let group = if group.is_empty() { "core" } else { group };
    group.split(['.', '-']).map(capital).collect()
}

/// Returns the tag of a group: `core`, `rbacAuthorization`.
pub(super) fn of_tag(group: &str) -> String {
    let words = of_group(group);
    let mut chars = words.chars();
    chars.next().map(|first| first.to_lowercase().chain(chars).collect()).unwrap_or_default()
}

/// Returns the tag of a version of a group: `core_v1`.
pub(super) fn tag(group: &str, version: &str) -> String {
    format!("{}_{version}", of_tag(group))
}

/// Returns a word with a capital letter.
pub(super) fn capital(word: &str) -> String {
    let mut chars = word.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("", "Core", "core_v1")]
    #[case("apps", "Apps", "apps_v1")]
    #[case("rbac.authorization.k8s.io", "RbacAuthorization", "rbacAuthorization_v1")]
    #[case("stable.example-corp.com", "StableExampleCorpCom", "stableExampleCorpCom_v1")]
    fn groups_have_words(#[case] group: &str, #[case] words: &str, #[case] expected: &str) {
        assert_eq!((of_group(group).as_str(), tag(group, "v1").as_str()), (words, expected));
    }
}
