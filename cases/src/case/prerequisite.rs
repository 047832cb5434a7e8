//! What many cases rely on.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Capability;

/// A feature that many cases rely on. One case judges it. Ordered: each feature may need the ones
/// before it.
#[derive(
    Clone, Copy, Debug, Deserialize, Eq, Hash, JsonSchema, Ord, PartialEq, PartialOrd, Serialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Prerequisite {
    /// Namespaces can be created.
    Namespaces,
    /// The list of a group version describes its resources.
    Discovery,
    /// The list of groups can be read.
    Groups,
    /// The resources of created definitions are served.
    Crds,
    /// A create stores the object.
    Create,
    /// A GET by name returns the object.
    Get,
    /// A GET of the collection returns a list.
    List,
    /// A list has a resourceVersion.
    ListVersion,
    /// A label selector restricts a list.
    LabelSelectors,
    /// A field selector restricts a list.
    FieldSelectors,
    /// A list with a limit comes in pages.
    Paging,
    /// A create without a name gets one from `generateName`.
    GenerateName,
    /// A finalizer keeps a deleted object.
    Finalizers,
    /// Server-side apply creates and changes objects.
    Apply,
    /// A watch sends events.
    Watch,
    /// A watch starts its response before its first event.
    WatchStart,
}

impl Prerequisite {
    /// From the first to the last.
    pub const ALL: [Self; 16] = [
        Self::Namespaces,
        Self::Discovery,
        Self::Groups,
        Self::Crds,
        Self::Create,
        Self::Get,
        Self::List,
        Self::ListVersion,
        Self::LabelSelectors,
        Self::FieldSelectors,
        Self::Paging,
        Self::GenerateName,
        Self::Finalizers,
        Self::Apply,
        Self::Watch,
        Self::WatchStart,
    ];

    /// Groups of prerequisites in order. Those of one group do not need each other, so their cases
    /// run concurrently.
    pub const STAGES: [&'static [Self]; 7] = [
        &[Self::Namespaces, Self::Discovery, Self::Groups, Self::Crds],
        &[Self::Create],
        &[Self::Get],
        &[Self::List],
        &[Self::ListVersion, Self::LabelSelectors, Self::FieldSelectors],
        &[Self::Paging, Self::GenerateName, Self::Finalizers, Self::Apply, Self::Watch],
        &[Self::WatchStart],
    ];

    /// Returns the prerequisite that a verb of discovery stands for.
    pub fn of_verb(verb: &str) -> Option<Self> {
        match verb {
            "create" => Some(Self::Create),
            "get" => Some(Self::Get),
            "list" => Some(Self::List),
            "watch" => Some(Self::Watch),
            _ => None,
        }
    }

    /// Returns the prerequisite that a capability stands for.
    pub fn of_capability(capability: Capability) -> Option<Self> {
        match capability {
            Capability::Namespaces => Some(Self::Namespaces),
            Capability::FieldSelectors => Some(Self::FieldSelectors),
            Capability::Paging => Some(Self::Paging),
            Capability::ServerSideApply => Some(Self::Apply),
            _ => None,
        }
    }
}

impl fmt::Display for Prerequisite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Namespaces => "namespaces",
            Self::Discovery => "discovery",
            Self::Groups => "the list of groups",
            Self::Crds => "crds",
            Self::Create => "create",
            Self::Get => "get",
            Self::List => "list",
            Self::ListVersion => "list-version",
            Self::LabelSelectors => "label-selectors",
            Self::FieldSelectors => "field-selectors",
            Self::Paging => "paging",
            Self::GenerateName => "generate-name",
            Self::Finalizers => "finalizers",
            Self::Apply => "apply",
            Self::Watch => "watch",
            Self::WatchStart => "watch-start",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_prerequisite_is_in_one_stage_in_order() {
        let staged: Vec<Prerequisite> = Prerequisite::STAGES.concat();
        assert_eq!(staged, Prerequisite::ALL);
        assert!(staged.is_sorted());
    }
}
