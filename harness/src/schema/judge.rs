//! From a rule to its function, and from what that finds to a verdict.

use kubeproof_cases::case::SchemaCheck;
use kubeproof_cases::rule::{Rule, SchemaSet};
use serde_json::{Value, json};

use super::model::{Published, TypeSchema};
use super::walk::{Field, fields};
use super::{Finding, conditions, kinds, lists, names, numbers, optional, references, units};
use crate::event::{CheckResult, Verdict};
use crate::verdict::failed_at;

/// How many places a message names; the report holds all of them.
const NAMED: usize = 5;

/// Holds the API against a rule that a case asks for.
pub fn judge(
    check: &SchemaCheck,
    of: SchemaSet,
    published: &Published,
    letter: bool,
    step: &str,
) -> CheckResult {
    let found = super::findings(check.rule, of, published);
    let because = |finding: &Finding| {
        check.history.iter().find(|known| known.covers(&finding.at)).map(|known| known.because.as_str())
    };
    let (old, new): (Vec<&Finding>, Vec<&Finding>) =
        found.iter().partition(|finding| because(finding).is_some());
    let (verdict, named) = match (new.as_slice(), old.as_slice()) {
        ([], []) => (Verdict::Pass, Vec::new()),
        ([], old) => (if letter { failed_at(check.level) } else { Verdict::Deviation }, old.to_vec()),
        (new, _) => (failed_at(check.level), new.to_vec()),
    };
    let row = |finding: &&Finding| match because(finding) {
        Some(because) => json!({"at": finding.at, "message": finding.message, "because": because}),
        None => json!({"at": finding.at, "message": finding.message}),
    };
    CheckResult {
        id: check.id.clone(),
        verdict,
        level: check.level,
        requirements: check.requirements.clone(),
        expected: json!({"rule": check.rule}),
        actual: Value::Array(new.iter().chain(&old).map(row).collect()),
        message: message(&named, new.is_empty().then(|| named.first().and_then(|f| because(f))).flatten()),
        means: check.means.clone(),
        diff: None,
        curl: None,
        step: step.to_owned(),
    }
}

fn message(named: &[&Finding], because: Option<&str>) -> String {
    let mut lines: Vec<String> =
        named.iter().take(NAMED).map(|finding| format!("{}: {}", finding.at, finding.message)).collect();
    if named.len() > NAMED {
        lines.push(format!("and {} more places", named.len() - NAMED));
    }
    let text = lines.join("; ");
    match because {
        Some(because) => format!("{text} (kept by Kubernetes: {because})"),
        None => text,
    }
}

/// Where a type breaks a rule.
pub(super) fn findings(rule: Rule, published: &Published, ty: &TypeSchema) -> Vec<Finding> {
    let by_field = |breaks: &dyn Fn(&Field<'_>) -> Option<String>| -> Vec<Finding> {
        let all = fields(published, ty).into_iter();
        let found = all.filter_map(|field| {
            Some(Finding { message: breaks(&field)?, at: format!("{} {}", ty.name, field.path) })
        });
        found.collect()
    };
    let by_type = |breaks: &dyn Fn(&TypeSchema) -> Option<String>| -> Vec<Finding> {
        breaks(ty).map(|message| Finding { at: ty.name.clone(), message }).into_iter().collect()
    };
    match rule {
        Rule::FieldsInCamelCase => by_field(&names::camel_case),
        Rule::FieldsWithoutSeparators => by_field(&names::separators),
        Rule::AcronymsInOneCase => by_field(&names::acronyms),
        Rule::BooleansWithoutIs => by_field(&names::booleans),
        Rule::TimesEndInTime => by_field(&names::times),
        Rule::DeclarativeNames => by_field(&names::declarative),
        Rule::KindsNotControllers => by_type(&names::controllers),
        Rule::GroupsQualified => by_type(&kinds::group),
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
        Rule::ReferencesStayInNamespace => {
            by_field(&|field| references::same_namespace(published, ty, field))
        }
        Rule::OwnersInNamespace => by_field(&|field| references::owners(ty, field)),
        Rule::FieldReferencesHaveVersion => by_field(&|field| references::of_fields(published, field)),
    }
}
