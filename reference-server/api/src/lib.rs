#![doc = include_str!("../README.md")]

mod resources;

use std::fmt;
use std::str::FromStr;
use std::sync::LazyLock;

use kubeproof_apimachinery::schema::Rules;
use kubeproof_apimachinery::schema::definitions::Definitions;

pub use self::resources::{Resource, Subresource};

/// A minor version of Kubernetes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Version {
    /// Kubernetes 1.35.
    V1_35,
    /// Kubernetes 1.36.
    #[default]
    V1_36,
}

/// A version that has no data.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected one of the versions {}, got `{name}`", names())]
pub struct UnknownVersion {
    /// The name.
    pub name: String,
}

fn names() -> String {
    Version::ALL.map(Version::as_str).join(", ")
}

/// The files of a version: definitions with their names, and the resources.
struct Files {
    definitions: &'static [(&'static str, &'static str)],
    resources: &'static str,
}

/// The parsed files of a version.
struct Data {
    definitions: LazyLock<Definitions>,
    resources: LazyLock<Vec<Resource>>,
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

/// The differences from 1.36.
const V1_35: Files = files! { "1.35":
    "admissionregistration.v1" "authentication.v1" "autoscaling.v1" "autoscaling.v2" "batch.v1"
    "core.v1" "discovery.v1" "meta.v1" "networking.v1" "policy.v1" "rbac.v1" "resource.v1"
    "scheduling.v1" "storage.v1"
};

static V1_36_DATA: Data = Data {
    definitions: LazyLock::new(|| parse(&V1_36, &[])),
    resources: LazyLock::new(|| resources::parse(V1_36.resources)),
};

static V1_35_DATA: Data = Data {
    definitions: LazyLock::new(|| parse(&V1_36, V1_35.definitions)),
    resources: LazyLock::new(|| resources::parse(V1_35.resources)),
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
    "access" "admissionregistration" "apiextensions" "apps" "autoscaling" "batch" "core"
    "flowcontrol" "meta" "networking" "others" "resource" "scheduling" "storage"
};

/// Returns the hand-written rules of the built-in types, which all versions share.
pub fn rules() -> Rules {
    Rules::parse(RULES).expect("a test parses the rules")
}

impl Version {
    /// All versions, the oldest first.
    pub const ALL: [Self; 2] = [Self::V1_35, Self::V1_36];

    /// Returns the number, such as `1.36`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V1_35 => "1.35",
            Self::V1_36 => "1.36",
        }
    }

    /// Returns the major and the minor number.
    pub fn numbers(self) -> (&'static str, &'static str) {
        self.as_str().split_once('.').unwrap_or_default()
    }

    fn data(self) -> &'static Data {
        match self {
            Self::V1_35 => &V1_35_DATA,
            Self::V1_36 => &V1_36_DATA,
        }
    }

    /// Returns the definitions of the built-in types and of the types of the API machinery.
    pub fn definitions(self) -> &'static Definitions {
        &self.data().definitions
    }

    /// Returns the resources that a server serves by default, in the order of discovery.
    pub fn resources(self) -> &'static [Resource] {
        &self.data().resources
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
        f.write_str(self.as_str())
    }
}

impl FromStr for Version {
    type Err = UnknownVersion;

    fn from_str(text: &str) -> Result<Self, UnknownVersion> {
        let version = Self::ALL.into_iter().find(|version| version.as_str() == text);
        version.ok_or_else(|| UnknownVersion { name: text.to_owned() })
    }
}

fn parse(base: &Files, changes: &[(&'static str, &'static str)]) -> Definitions {
    Definitions::parse_changes(base.definitions, changes)
        .expect("a test parses the files of each version")
}

#[cfg(test)]
mod tests {
    use kubeproof_apimachinery::schema::definitions::Definition;

    use super::*;

    #[test]
    fn each_resource_has_definitions() {
        for (version, count) in Version::ALL.into_iter().zip([66, 68]) {
            let definitions = version.definitions();
            assert_eq!(version.resources().len(), count);
            for resource in version.resources() {
                let kind = |kind: &str| definitions.kind(resource.group, resource.version, kind);
                assert!(kind(resource.kind).is_some(), "{resource:?} has no definition");
                if resource.verbs.contains(&"list") {
                    let list = format!("{}List", resource.kind);
                    assert!(kind(&list).is_some(), "{resource:?} has no list");
                }
            }
        }
    }

    /// The rules of what an older version lacks are not used there.
    #[test]
    fn each_rule_has_its_field() {
        for version in Version::ALL {
            for (name, field) in rules().fields() {
                let has = |version: Version| {
                    let definitions = version.definitions();
                    let inlined = |known: &Definition| {
                        let inlined = known.fields.iter().filter(|one| one.inline);
                        let messages = inlined.filter_map(|one| one.ty.message());
                        messages
                            .filter_map(|message| definitions.get(message))
                            .any(|message| message.field(field).is_some())
                    };
                    let definition = definitions.get(&name);
                    definition.is_some_and(|known| known.field(field).is_some() || inlined(known))
                };
                let is_known = has(version) || has(Version::default());
                assert!(is_known, "{version}: {name} has no field {field}");
            }
            for name in rules().optional() {
                assert!(version.definitions().get(&name).is_some(), "{version} lacks {name}");
            }
        }
    }

    #[test]
    fn versions_have_their_own_fields() {
        let has = |version: Version, name: &str, field: &str| {
            let definition = version.definitions().get(name);
            definition.is_some_and(|definition| definition.field(field).is_some())
        };
        let (old, new) = (Version::V1_35, Version::V1_36);
        let pod = "io.k8s.api.core.v1.PodSpec";
        assert!(has(old, pod, "workloadRef") && !has(new, pod, "workloadRef"));
        assert!(!has(old, pod, "schedulingGroup") && has(new, pod, "schedulingGroup"));
        assert!(has(old, pod, "containers") && has(new, pod, "containers"));
        assert!(old.definitions().get("io.k8s.api.core.v1.WorkloadReference").is_some());
        assert!(new.definitions().get("io.k8s.api.core.v1.WorkloadReference").is_none());
        let policies = ("admissionregistration.k8s.io", "v1", "mutatingadmissionpolicies");
        assert_eq!(old.resource(policies.0, policies.1, policies.2), None);
        assert!(new.resource(policies.0, policies.1, policies.2).is_some());
    }

    #[test]
    fn versions_have_names() {
        for version in Version::ALL {
            assert_eq!(version.to_string().parse(), Ok(version));
        }
        assert_eq!(Version::V1_35.numbers(), ("1", "35"));
        let error = "1.20".parse::<Version>().unwrap_err();
        assert_eq!(error.to_string(), "expected one of the versions 1.35, 1.36, got `1.20`");
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
