//! Maps rules to functions, and findings to verdicts.

use std::collections::BTreeMap;

use kubeproof_cases::case::SchemaCheck;
use kubeproof_cases::rule::Rule;
use serde_json::json;

use super::fields::{Field, fields};
use super::model::{Published, TypeSchema};
use super::view::View;
use super::{Finding, conditions, kinds, lists, names, numbers, optional, references, units};
use crate::event::{CheckResult, FilePosition, Place, Verdict};
use crate::verdict::failed_at;

/// Judges types by a rule of a case. `locate` returns the file position of a JSON Pointer.
pub fn judge(
    check: &SchemaCheck,
    view: &View<'_>,
    letter: bool,
    step: &str,
    locate: &dyn Fn(&str) -> Option<FilePosition>,
) -> CheckResult {
    let because = |finding: &Finding| {
        check
            .history
            .iter()
            .find(|known| known.covers(&finding.at))
            .map(|known| known.because.clone())
    };
    let place = |finding: Finding| Place {
        because: because(&finding),
        position: locate(&finding.pointer),
        at: finding.at,
        message: finding.message,
    };
    let mut places: Vec<Place> = view.findings(check.rule).into_iter().map(place).collect();
    // Places without a historical reason come first.
    places.sort_by_key(|place| place.because.is_some());
    let (verdict, message) = match (view.nothing(), places.first()) {
        (Some(nothing), _) => (Verdict::Skip, nothing.to_owned()),
        (None, None) => (Verdict::Pass, String::new()),
        (None, Some(first)) => {
            let excused = first.because.is_some() && !letter;
            let verdict = if excused { Verdict::Deviation } else { failed_at(check.level) };
            (verdict, message(first, &places))
        }
    };
    CheckResult {
        id: check.id.clone(),
        verdict,
        level: check.level,
        requirements: check.requirements.clone(),
        expected: json!({"rule": check.rule}),
        actual: view.size(),
        places,
        message,
        means: check.means.clone(),
        items: BTreeMap::new(),
        diff: None,
        curl: None,
        step: step.to_owned(),
        steps: vec![step.to_owned()],
        symptom: None,
        reported_by: None,
    }
}

/// Describes the first place, and counts the others.
fn message(first: &Place, all: &[Place]) -> String {
    let because = first.because.as_ref().map(|because| format!(" (kept by Kubernetes: {because})"));
    let text = format!("{}: {}{}", first.at, first.message, because.unwrap_or_default());
    let more =
        all.iter().filter(|place| place.because.is_some() == first.because.is_some()).count() - 1;
    match more {
        0 => text,
        1 => format!("{text}; and one more place"),
        more => format!("{text}; and {more} more places"),
    }
}

/// Returns the places where a type breaks a rule.
#[expect(clippy::too_many_lines, reason = "one table with a row for each rule")]
pub(super) fn findings(rule: Rule, published: &Published, ty: &TypeSchema) -> Vec<Finding> {
    let by_field = |breaks: &dyn Fn(&Field<'_>) -> Option<String>| -> Vec<Finding> {
        let all = fields(published, ty).into_iter();
        let found = all.filter_map(|field| {
            Some(Finding {
                message: breaks(&field)?,
                at: format!("{} {}", ty.name, field.path),
                pointer: format!("{}{}", ty.root, field.pointer),
            })
        });
        found.collect()
    };
    // Some rules about a type concern another place of the definition than its schema.
    let by_type_at =
        |elsewhere: &str, breaks: &dyn Fn(&TypeSchema) -> Option<String>| -> Vec<Finding> {
            let pointer = if ty.custom && !elsewhere.is_empty() { elsewhere } else { &ty.root };
            let finding =
                |message| Finding { at: ty.name.clone(), message, pointer: pointer.to_owned() };
            breaks(ty).map(finding).into_iter().collect()
        };
    let by_type = |breaks: &dyn Fn(&TypeSchema) -> Option<String>| by_type_at("", breaks);
    match rule {
        Rule::FieldsInCamelCase => by_field(&names::camel_case),
        Rule::FieldsWithoutSeparators => by_field(&names::separators),
        Rule::AcronymsInOneCase => by_field(&names::acronyms),
        Rule::BooleansWithoutIs => by_field(&names::booleans),
        Rule::TimesEndInTime => by_field(&names::times),
        Rule::DeclarativeNames => by_field(&names::declarative),
        Rule::KindsNotControllers => by_type_at("/spec/names/kind", &names::controllers),
        Rule::GroupsQualified => by_type_at("/spec/group", &kinds::group),
        Rule::NothingBesideSpecAndStatus => by_type(&kinds::beside),
        Rule::StatusIsSubresource => by_type(&kinds::status_subresource),
        Rule::DesiredStateInSpec => by_type(&kinds::desired_state),
        Rule::StatusHasListMetadata => by_type(&kinds::status_metadata),
        Rule::StatusHoldsNoObjects => by_field(&|field| kinds::objects_in_status(published, field)),
        Rule::IntegersSized => by_field(&numbers::sized),
        Rule::NoUnsigned => by_field(&numbers::unsigned),
        Rule::NoFloatInSpec => by_field(&numbers::float_in_spec),
        Rule::EnumsAreStrings => by_field(&numbers::enums_of_strings),
        Rule::EnumsInCamelCase => by_field(&numbers::enums_in_camel_case),
        Rule::WideIntegersAsStrings => by_field(&numbers::wide),
        Rule::UnitsInNames => by_field(&units::in_names),
        Rule::DurationsAreIntegers => by_field(&units::integers),
        Rule::DurationSuffixes => by_field(&units::suffixes),
        Rule::NoMapsOfObjects => by_field(&|field| lists::maps_of_objects(published, field)),
        Rule::NamedObjectsByName => by_field(&|field| lists::named(published, field)),
        Rule::ListsHaveType => by_field(&lists::list_type),
        Rule::ListsAreBounded => by_field(&lists::bounded_lists),
        Rule::MapsAreBounded => by_field(&lists::bounded_maps),
        Rule::StringsAreBounded => by_field(&lists::bounded_strings),
        Rule::ObjectsAreDescribed => by_field(&lists::described),
        Rule::ConditionsAreLists => by_field(&|field| conditions::lists(published, field)),
        Rule::ConditionsRequireTypeAndStatus => {
            by_field(&|field| conditions::require(published, field, &["type", "status"]))
        }
        Rule::ConditionsRequireTransitionTime => {
            by_field(&|field| conditions::require(published, field, &["lastTransitionTime"]))
        }
        Rule::ConditionsRequireReason => by_field(&|field| conditions::reason(published, field)),
        Rule::ConditionsRequireMessage => by_field(&|field| conditions::text(published, field)),
        Rule::ConditionsAreStandard => by_field(&|field| conditions::standard(published, field)),
        Rule::ConditionsAtTop => by_field(&conditions::at_top),
        Rule::ConditionsMapByType => by_field(&conditions::map_by_type),
        Rule::NoPhase => by_field(&conditions::phase),
        Rule::NoNullable => by_field(&optional::nullable),
        Rule::DefaultsOnOptional => by_field(&optional::defaults),
        Rule::UnionMembersOptional => by_field(&optional::union_members_optional),
        Rule::UnionMembersWithoutDefault => by_field(&optional::union_members_without_default),
        Rule::AdmissionFieldsOptional => by_field(&|field| optional::admission(ty, field)),
        Rule::ReferencesEndInRef => by_field(&|field| references::suffix(published, field)),
        Rule::NameOrReference => by_field(&references::name_or_reference),
        Rule::ReferencesAreComplete => by_field(&|field| references::complete(published, field)),
        Rule::ReferencesAreShared => by_field(&|field| references::shared(published, field)),
        Rule::ReferencesStayInNamespace => {
            by_field(&|field| references::same_namespace(published, ty, field))
        }
        Rule::OwnersInNamespace => by_field(&|field| references::owners(ty, field)),
        Rule::FieldReferencesHaveVersion => {
            by_field(&|field| references::of_fields(published, field))
        }
    }
}
