//! Checks with generated objects.

use std::fmt;

use schemars::JsonSchema;
use serde::Deserialize;

use super::Capability;

/// Checks a property with objects that the harness generates from the schema of the subject.
#[derive(Clone, Debug)]
pub struct Explore {
    /// The id of the check.
    pub id: String,
    /// The property.
    pub property: Property,
    /// The number of checks, each with new objects.
    pub checks: u32,
}

/// A property that holds for each resource of each server.
#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, PartialEq)]
#[serde(rename_all = "kebab-case")]
pub enum Property {
    /// Each read returns what was written.
    ReadBack,
    /// A PUT of what GET returned changes nothing.
    Replacement,
    /// Patches that lead from one object to another produce it.
    Patches,
    /// A dry run predicts the response.
    DryRun,
    /// An invalid object is rejected in the same way by each verb.
    Rejection,
    /// Clients can leave out optional fields, and only those.
    OptionalFields,
    /// Lists, pages and watches have the same objects.
    Lists,
}

impl Property {
    /// The capabilities that checks use if the target has them.
    pub const CAPABILITIES: [Capability; 6] = [
        Capability::MergePatch,
        Capability::JsonPatch,
        Capability::StrategicMergePatch,
        Capability::ServerSideApply,
        Capability::Paging,
        Capability::StreamingLists,
    ];

    /// All properties, in the order of their checks.
    pub const ALL: [Self; 7] = [
        Self::ReadBack,
        Self::Rejection,
        Self::Patches,
        Self::DryRun,
        Self::Replacement,
        Self::OptionalFields,
        Self::Lists,
    ];

    /// Returns the name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ReadBack => "read back",
            Self::Replacement => "replacement",
            Self::Patches => "patches",
            Self::DryRun => "dry run",
            Self::Rejection => "rejection",
            Self::OptionalFields => "optional fields",
            Self::Lists => "lists",
        }
    }

    /// Returns the verbs that a check needs.
    pub const fn verbs(self) -> &'static [&'static str] {
        match self {
            Self::ReadBack => &["create", "get", "list", "watch", "delete"],
            Self::Replacement | Self::Patches | Self::DryRun | Self::Rejection => {
                &["create", "get", "update", "delete"]
            }
            Self::OptionalFields => &["create", "delete"],
            Self::Lists => &["create", "list", "delete"],
        }
    }
}

impl fmt::Display for Property {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}
