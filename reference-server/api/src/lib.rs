//! The built-in types of Kubernetes as data: definitions and resources.
//!
//! `kubeproof-generator` writes the files below `data` from the published files of Kubernetes. The
//! program contains them. The first use of a version parses its files.

mod resources;

use std::fmt;
use std::sync::LazyLock;

use kubeproof_apimachinery::schema::Rules;
use kubeproof_apimachinery::schema::definitions::Definitions;

pub use self::resources::{Resource, Subresource};

/// A minor version of Kubernetes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Version {
    /// Kubernetes 1.36.
    #[default]
    V1_36,
}

/// The files of a version: definitions with their names, and the resources.
struct Files {
    definitions: &'static [(&'static str, &'static str)],
    resources: &'static str,
}

/// Includes the files of a version.
macro_rules! files {
    ($version:literal: $($package:literal)*) => {
        Files {
            definitions: &[$((
                concat!($package, ".types"),
                include_str!(concat!("../data/", $version, "/", $package, ".types")),
            )),*],
            resources: include_str!(concat!("../data/", $version, "/resources.txt")),
        }
    };
}

const V1_36: Files = files! { "1.36":
    "admissionregistration.v1" "apidiscovery.v2" "apiextensions.v1" "apiregistration.v1" "apps.v1"
    "authentication.v1" "authorization.v1" "autoscaling.v1" "autoscaling.v2" "batch.v1"
    "certificates.v1" "coordination.v1" "core.v1" "discovery.v1" "events.v1" "flowcontrol.v1"
    "meta.v1" "networking.v1" "node.v1" "policy.v1" "rbac.v1" "resource.v1" "scheduling.v1"
    "storage.v1"
};

/// Includes the files with hand-written rules.
macro_rules! rules {
    ($($group:literal)*) => {
        &[$((
            concat!($group, ".txt"),
            include_str!(concat!("../data/rules/", $group, ".txt")),
        )),*]
    };
}

const RULES: &[(&str, &str)] = rules! {
    "admissionregistration" "apps" "autoscaling" "batch" "core" "flowcontrol" "networking"
    "others" "scheduling" "storage"
};

/// Returns the hand-written rules of the built-in types, which all versions share.
pub fn rules() -> Rules {
    Rules::parse(RULES).expect("a test parses the rules")
}

impl Version {
    /// Returns the definitions of the built-in types and of the types of the API machinery.
    pub fn definitions(self) -> &'static Definitions {
        static V1_36_DEFINITIONS: LazyLock<Definitions> = LazyLock::new(|| parse(&V1_36));
        match self {
            Self::V1_36 => &V1_36_DEFINITIONS,
        }
    }

    /// Returns the resources that a server serves by default, in the order of discovery.
    pub fn resources(self) -> &'static [Resource] {
        static V1_36_RESOURCES: LazyLock<Vec<Resource>> =
            LazyLock::new(|| resources::parse(V1_36.resources));
        match self {
            Self::V1_36 => &V1_36_RESOURCES,
        }
    }

    /// Returns a resource.
    pub fn resource(self, group: &str, version: &str, plural: &str) -> Option<&'static Resource> {
        self.resources().iter().find(|resource| {
            resource.group == group && resource.version == version && resource.plural == plural
        })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::V1_36 => f.write_str("1.36"),
        }
    }
}

fn parse(files: &Files) -> Definitions {
    Definitions::parse(files.definitions).expect("a test parses the files of each version")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_resource_has_definitions() {
        let version = Version::V1_36;
        let definitions = version.definitions();
        assert_eq!(version.resources().len(), 68);
        for resource in version.resources() {
            let kind = |kind: &str| definitions.kind(resource.group, resource.version, kind);
            assert!(kind(resource.kind).is_some(), "{resource:?} has no definition");
            if resource.verbs.contains(&"list") {
                let list = format!("{}List", resource.kind);
                assert!(kind(&list).is_some(), "{resource:?} has no list");
            }
        }
    }

    #[test]
    fn each_rule_has_its_field() {
        let definitions = Version::V1_36.definitions();
        for (name, field) in rules().fields() {
            let definition = definitions.get(&name);
            let known = definition.is_some_and(|definition| definition.field(field).is_some());
            assert!(known, "{name} has no field {field}");
        }
    }

    #[test]
    fn a_resource_is_found() {
        let pods = Version::V1_36.resource("", "v1", "pods").unwrap();
        assert_eq!(
            (pods.kind, pods.singular, pods.short_names.as_slice()),
            ("Pod", "pod", &["po"][..])
        );
        let eviction = pods.subresources.iter().find(|it| it.name == "eviction").unwrap();
        assert_eq!((eviction.group, eviction.version, eviction.kind), ("policy", "v1", "Eviction"));
        assert_eq!(Version::V1_36.resource("", "v1", "pod"), None);
    }

    #[test]
    fn special_types_and_inlined_messages_are_marked() {
        let definitions = Version::V1_36.definitions();
        let volume = definitions.get("io.k8s.api.core.v1.Volume").unwrap();
        assert!(volume.numbered(2).unwrap().inline);
        assert!(definitions.get("io.k8s.api.core.v1.VolumeSource").is_some());
        assert!(definitions.get("io.k8s.apimachinery.pkg.apis.meta.v1.Time").is_none());
    }
}
