//! The notations of resources on input.
//!
//! The canonical form is `RESOURCE.VERSION[.GROUP]`, such as `deployments.v1.apps`. Reports print
//! it. Options and lists also accept the form of request paths, `[GROUP/]VERSION/RESOURCE`.

use kubeproof_cases::case::ResourceName;

/// Parses a resource in either notation.
pub(super) fn resource(text: &str) -> Option<ResourceName> {
    let (group, version, resource) = if text.contains('/') {
        by_path(text)?
    } else {
        let (resource, rest) = text.split_once('.')?;
        let (version, group) = rest.split_once('.').unwrap_or((rest, ""));
        (group, version, resource)
    };
    // A group in place of the version is a common mistake: `deployments.apps`.
    let is_version = version.strip_prefix('v').is_some_and(|v| v.starts_with(char::is_numeric));
    let is_path = text.contains('/');
    if resource.is_empty() || version.is_empty() || (!is_version && !is_path) {
        return None;
    }
    Some(ResourceName {
        resource: resource.to_owned(),
        version: version.to_owned(),
        group: group.to_owned(),
    })
}

/// Returns the canonical form of a resource, or of a glob over resources, in the form of paths.
/// Returns `None` for other texts.
pub(super) fn canonical(text: &str) -> Option<String> {
    let (group, version, resource) = by_path(text)?;
    let group = if group.is_empty() { String::new() } else { format!(".{group}") };
    Some(format!("{resource}.{version}{group}"))
}

/// Reports whether a text of the user names this subject.
pub(super) fn names(text: &str, subject: &str) -> bool {
    text == subject || canonical(text).is_some_and(|canonical| canonical == subject)
}

/// Splits `[GROUP/]VERSION/RESOURCE` into group, version and resource.
fn by_path(text: &str) -> Option<(&str, &str, &str)> {
    match text.split('/').collect::<Vec<_>>()[..] {
        [version, resource] if !version.is_empty() && !resource.is_empty() => {
            Some(("", version, resource))
        }
        [group, version, resource]
            if !group.is_empty() && !version.is_empty() && !resource.is_empty() =>
        {
            Some((group, version, resource))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("apps/v1/deployments", "deployments.v1.apps")]
    #[case("deployments.v1.apps", "deployments.v1.apps")]
    #[case("v1/configmaps", "configmaps.v1")]
    #[case("configmaps.v1", "configmaps.v1")]
    #[case("things.v1beta1.example.org", "things.v1beta1.example.org")]
    fn both_notations_name_a_resource(#[case] text: &str, #[case] name: &str) {
        assert_eq!(resource(text).unwrap().to_string(), name);
        assert!(names(text, name));
    }

    #[rstest]
    #[case("deployments")]
    #[case("deployments.apps")]
    #[case("a/b/c/d")]
    #[case("apps//deployments")]
    #[case(".v1")]
    fn other_texts_name_none(#[case] text: &str) {
        assert_eq!(resource(text), None);
    }

    #[test]
    fn globs_have_a_canonical_form_too() {
        assert_eq!(canonical("apps/v1/*").as_deref(), Some("*.v1.apps"));
        assert_eq!(canonical("v1/*").as_deref(), Some("*.v1"));
        assert_eq!(canonical("*.v1.apps"), None);
        assert!(!names("apps/v1/deployments", "deployments.v1"));
    }
}
