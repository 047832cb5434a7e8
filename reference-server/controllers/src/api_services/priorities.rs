//! The priorities of local groups and versions, which order discovery documents.

/// The priorities of a group and version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Priority {
    /// Groups with a higher number come first.
    pub(super) group: u32,
    /// Versions with a higher number come first.
    pub(super) version: u32,
}

/// The built-in groups of Kubernetes 1.36 with their priorities.
const GROUPS: [(&str, u32); 21] = [
    ("", 18_000),
    ("apps", 17_800),
    ("events.k8s.io", 17_750),
    ("authentication.k8s.io", 17_700),
    ("authorization.k8s.io", 17_600),
    ("autoscaling", 17_500),
    ("batch", 17_400),
    ("certificates.k8s.io", 17_300),
    ("networking.k8s.io", 17_200),
    ("policy", 17_100),
    ("rbac.authorization.k8s.io", 17_000),
    ("storage.k8s.io", 16_800),
    ("apiextensions.k8s.io", 16_700),
    ("admissionregistration.k8s.io", 16_700),
    ("scheduling.k8s.io", 16_600),
    ("coordination.k8s.io", 16_500),
    ("node.k8s.io", 16_300),
    ("discovery.k8s.io", 16_200),
    ("resource.k8s.io", 16_200),
    ("flowcontrol.apiserver.k8s.io", 16_100),
    ("storagemigration.k8s.io", 15_800),
];

/// The versions whose priority is not that of their stability.
const VERSIONS: [(&str, &str, u32); 7] = [
    ("", "v1", 1),
    ("autoscaling", "v2", 30),
    ("autoscaling", "v2beta2", 1),
    ("flowcontrol.apiserver.k8s.io", "v1", 21),
    ("flowcontrol.apiserver.k8s.io", "v1beta3", 18),
    ("resource.k8s.io", "v1", 21),
    ("resource.k8s.io", "v1beta2", 15),
];

/// Returns the priorities of a built-in group and version. As in kube-apiserver, the group of the
/// `APIService` objects has none.
pub(super) fn of_built_in(group: &str, version: &str) -> Option<Priority> {
    let (_, priority) = GROUPS.iter().find(|(name, _)| *name == group)?;
    let own = VERSIONS.iter().find(|(name, known, _)| (*name, *known) == (group, version));
    let by_stability = if version.contains("alpha") {
        1
    } else if version.contains("beta") {
        9
    } else {
        15
    };
    let version = own.map_or(by_stability, |(_, _, priority)| *priority);
    Some(Priority { group: *priority, version })
}

/// Returns the priorities of the groups and versions of definitions.
pub(super) fn of_definition() -> Priority {
    Priority { group: 1_000, version: 100 }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::stable("apps", "v1", Some((17_800, 15)))]
    #[case::newer("autoscaling", "v2", Some((17_500, 30)))]
    #[case::beta("storage.k8s.io", "v1beta1", Some((16_800, 9)))]
    #[case::alpha("storage.k8s.io", "v1alpha1", Some((16_800, 1)))]
    #[case::itself("apiregistration.k8s.io", "v1", None)]
    fn the_priority_follows_from_group_and_stability(
        #[case] group: &str,
        #[case] version: &str,
        #[case] expected: Option<(u32, u32)>,
    ) {
        let expected = expected.map(|(group, version)| Priority { group, version });
        assert_eq!(of_built_in(group, version), expected);
    }
}
