//! The design rules that a step `schema` asks for. The harness holds a published API against them.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A design rule for published schemas.
#[derive(
    Clone,
    Copy,
    Debug,
    Deserialize,
    Eq,
    Hash,
    Ord,
    PartialEq,
    PartialOrd,
    Serialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// Names of fields begin with a small letter.
    FieldsInCamelCase,
    /// Names of fields hold neither `_` nor `-`.
    FieldsWithoutSeparators,
    /// Letters of an acronym in the name of a field share one case.
    AcronymsInOneCase,
    /// No boolean is called `isFoo`.
    BooleansWithoutIs,
    /// Fields of an instant are called `fooTime`.
    TimesEndInTime,
    /// No kind is called `FooController`.
    KindsNotControllers,
    /// Names of fields describe a state, not an action.
    DeclarativeNames,
    /// The group of a CRD has a dot and is not one of the project's own.
    GroupsQualified,
    /// Every integer has the format int32 or int64.
    IntegersSized,
    /// No format is an unsigned one.
    NoUnsigned,
    /// No number in a spec is a float.
    NoFloatInSpec,
    /// No enumeration is of numbers.
    EnumsAreStrings,
    /// Enumerated values are `CamelCase`.
    EnumsInCamelCase,
    /// Quantities that need more than 53 bits are strings.
    WideIntegersAsStrings,
    /// Names of durations contain the unit.
    UnitsInNames,
    /// Lengths of time are integers.
    DurationsAreIntegers,
    /// Lengths of time end in `PeriodSeconds`, `TimeoutSeconds` or `DeadlineSeconds`.
    DurationSuffixes,
    /// No map holds objects.
    NoMapsOfObjects,
    /// Lists of objects with names are maps by name.
    NamedObjectsByName,
    /// Every list declares how it merges.
    ListsHaveType,
    /// Every list has a greatest size.
    ListsAreBounded,
    /// Every map has a greatest size.
    MapsAreBounded,
    /// Every string has a format or a greatest length.
    StringsAreBounded,
    /// Every object declares its fields.
    ObjectsAreDescribed,
    /// `conditions` is a list of objects.
    ConditionsAreLists,
    /// Conditions require type and status.
    ConditionsRequireTypeAndStatus,
    /// Conditions require lastTransitionTime.
    ConditionsRequireTransitionTime,
    /// Conditions require a reason that is not empty.
    ConditionsRequireReason,
    /// Conditions require a message, which may be empty.
    ConditionsRequireMessage,
    /// Conditions have the shared members with their types.
    ConditionsAreStandard,
    /// `conditions` is a direct member of `status`.
    ConditionsAtTop,
    /// `conditions` is a map by type.
    ConditionsMapByType,
    /// No status has a phase.
    NoPhase,
    /// Kinds with spec and status have nothing beside these.
    NothingBesideSpecAndStatus,
    /// Kinds with a status have a spec and the status subresource.
    StatusIsSubresource,
    /// A kind has its desired state in `spec`.
    DesiredStateInSpec,
    /// No status holds whole objects.
    StatusHoldsNoObjects,
    /// No field is nullable.
    NoNullable,
    /// Fields with a default are optional.
    DefaultsOnOptional,
    /// Members of a union are optional.
    UnionMembersOptional,
    /// Members of a union have no default.
    UnionMembersWithoutDefault,
    /// Fields that admission fills in are optional.
    AdmissionFieldsOptional,
    /// References are called `fooRef` or `fooRefs`.
    ReferencesEndInRef,
    /// Fields called `fooRef` are references, and those called `fooName` strings.
    NameOrReference,
    /// References have the members that identify their target.
    ReferencesAreComplete,
    /// References have no member that the shared type of references lacks.
    ReferencesAreShared,
    /// References of namespaced kinds name no namespace.
    ReferencesStayInNamespace,
    /// Owner references name no namespace.
    OwnersInNamespace,
    /// References to fields have a version and a field path.
    FieldReferencesHaveVersion,
    /// `metadata` of a Status is that of a list.
    StatusHasListMetadata,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// The schemas that a rule judges.
#[derive(
    Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum SchemaSet {
    /// All that the server publishes.
    #[default]
    Published,
    /// What custom resource definitions define.
    Crds,
}

/// A place in the history of Kubernetes where a rule is broken.
#[derive(Clone, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "kubeproof schema history")]
pub struct Exemption {
    /// The rule that is broken.
    pub rule: Rule,
    /// Where: `definition field`, with `*` for any text.
    pub at: Vec<String>,
    /// Why it stays.
    pub because: String,
}

impl Exemption {
    /// Returns whether the exemption covers a place.
    pub fn covers(&self, place: &str) -> bool {
        self.at.iter().any(|pattern| matches(pattern, place))
    }
}

/// `*` is any text.
fn matches(pattern: &str, text: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(text) = text.strip_prefix(head) else { return false };
    text.char_indices()
        .map(|(start, _)| start)
        .chain([text.len()])
        .any(|start| matches(rest, &text[start..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, text, expected) in [
            ("a.B c", "a.B c", true),
            ("a.B c", "a.B cd", false),
            ("a.* c", "a.b.C c", true),
            ("a.* *[].x", "a.B d[].e[].x", true),
            ("a.*", "b.a.", false),
            ("*", "", true),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn a_rule_is_called_as_files_spell_it() {
        assert_eq!(Rule::FieldsInCamelCase.to_string(), "fields-in-camel-case");
    }
}
