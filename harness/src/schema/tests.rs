//! One bad field for each rule, in a resource that is good otherwise.

use kubeproof_cases::rule::{Rule, SchemaSet};
use rstest::rstest;
use serde_json::{Value, json};

use super::{Finding, Published};

fn published(spec: &Value, status: &Value) -> Published {
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "subresources": {"status": {}}, "schema": {"openAPIV3Schema": {
                "type": "object",
                "properties": {
                    "spec": {"type": "object", "properties": spec},
                    "status": {"type": "object", "properties": status},
                },
            }}}],
        },
    });
    let mut published = Published::default();
    published.add_crd(&crd).expect("a definition");
    published
}

#[rstest]
#[case(Rule::FieldsInCamelCase, "max_size", json!({"type": "string"}))]
#[case(Rule::FieldsWithoutSeparators, "max-size", json!({"type": "string"}))]
#[case(Rule::AcronymsInOneCase, "podIp", json!({"type": "string"}))]
#[case(Rule::BooleansWithoutIs, "isOpen", json!({"type": "boolean"}))]
#[case(Rule::TimesEndInTime, "startStamp", json!({"type": "string", "format": "date-time"}))]
#[case(Rule::IntegersSized, "size", json!({"type": "integer"}))]
#[case(Rule::IntegersSized, "size", json!({"type": "integer", "format": "int32", "maximum": 4_294_967_296_i64}))]
#[case(Rule::NamedObjectsByName, "rules", json!({"type": "array", "items": {"type": "object", "required": ["name"],
    "properties": {"name": {"type": "string"}}}}))]
#[case(Rule::ReferencesAreShared, "configRef", json!({"type": "object", "properties": {"name": {"type": "string"},
    "color": {"type": "string"}}}))]
#[case(Rule::NameOrReference, "configRef", json!({"type": "object", "properties": {"color": {"type": "string"}}}))]
#[case(Rule::NoUnsigned, "size", json!({"type": "integer", "format": "uint32"}))]
#[case(Rule::NoFloatInSpec, "ratio", json!({"type": "number"}))]
#[case(Rule::EnumsAreStrings, "level", json!({"type": "integer", "enum": [1, 2]}))]
#[case(Rule::UnitsInNames, "timeout", json!({"type": "integer"}))]
#[case(Rule::DurationsAreIntegers, "timeoutSeconds", json!({"type": "string"}))]
#[case(Rule::NoMapsOfObjects, "rules", json!({"type": "object", "additionalProperties": {"type": "object"}}))]
#[case(Rule::ListsHaveType, "tags", json!({"type": "array", "items": {"type": "string"}}))]
#[case(Rule::StringsAreBounded, "note", json!({"type": "string"}))]
#[case(Rule::NoNullable, "note", json!({"type": "string", "nullable": true}))]
#[case(Rule::NameOrReference, "configRef", json!({"type": "string"}))]
fn a_bad_field_is_found_by_its_path(#[case] rule: Rule, #[case] name: &str, #[case] schema: Value) {
    let good = json!({"mode": {"type": "string", "enum": ["Fast"]}, "isolated": {"type": "boolean"},
        "podIPs": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string", "format": "ip"}},
        "graceSeconds": {"type": "integer", "format": "int32"}, "startTime": {"type": "string", "format": "date-time"}});
    assert_eq!(published(&good, &json!({})).view(SchemaSet::Crds).findings(rule), []);
    let mut bad = good;
    bad["parts"] = json!({"type": "array", "x-kubernetes-list-type": "atomic", "items":
        {"type": "object", "properties": {name: schema}}});
    let found = published(&bad, &json!({})).view(SchemaSet::Crds).findings(rule);
    let places: Vec<&str> = found.iter().map(|finding: &Finding| finding.at.as_str()).collect();
    assert_eq!(places, [format!("widgets.v1.example.com spec.parts[].{name}")]);
}

#[rstest]
#[case(json!(["type", "status", "lastTransitionTime", "reason", "message"]), 0)]
#[case(json!(["type"]), 4)]
#[case(json!([]), 4)]
fn conditions_require_their_members(#[case] required: Value, #[case] broken: usize) {
    let conditions = json!({"type": "array", "items": {"type": "object", "required": required,
        "properties": {"reason": {"type": "string", "minLength": 1}}}});
    let published = published(&json!({}), &json!({"conditions": conditions}));
    let rules = [
        Rule::ConditionsRequireTypeAndStatus,
        Rule::ConditionsRequireTransitionTime,
        Rule::ConditionsRequireReason,
        Rule::ConditionsRequireMessage,
    ];
    let found = rules.iter().flat_map(|rule| published.view(SchemaSet::Crds).findings(*rule)).count();
    assert_eq!(found, broken);
}

#[test]
fn a_type_in_the_spec_of_another_is_part_of_a_spec() {
    let document = json!({"openapi": "3.0.0", "components": {"schemas": {
        "a.Thing": {"x-kubernetes-group-version-kind": [{"group": "a", "version": "v1", "kind": "Thing"}],
            "properties": {"spec": {"allOf": [{"$ref": "#/components/schemas/a.ThingSpec"}], "default": {}}}},
        "a.ThingSpec": {"type": "object", "properties": {"ratio": {"type": "number"}}},
        "a.Other": {"type": "object", "properties": {"ratio": {"type": "number"}}},
    }}});
    let mut published = Published::default();
    published.add_document(&document, &|_| false);
    published.finish();
    let found = published.view(SchemaSet::Published).findings(Rule::NoFloatInSpec);
    assert_eq!(found.iter().map(|finding| finding.at.as_str()).collect::<Vec<_>>(), ["a.ThingSpec ratio"]);
}
