//! The rules of fields.

use kubeproof_cases::rule::Rule;
use rstest::rstest;
use serde_json::{Value, json};

use super::breaking;

/// In each case, only these fields of the spec break the rule.
#[rstest]
#[case(
    Rule::FieldsInCamelCase,
    json!({"maxSize": {}, "size2": {}, "MaxSize": {}, "größe": {}}),
    &["MaxSize", "größe"]
)]
#[case(
    Rule::FieldsWithoutSeparators,
    json!({"aB": {}, "a.b": {}, "a-b": {}, "a_b": {}}),
    &["a-b", "a_b"]
)]
#[case(
    Rule::AcronymsInOneCase,
    json!({
        "podIP": {}, "podIPs": {}, "urlPath": {}, "apis": {}, "thisIs": {}, "baseUrl": {},
        "podIps": {}, "useTls": {}, "userIdOf": {},
    }),
    &["baseUrl", "podIps", "useTls", "userIdOf"]
)]
#[case(
    Rule::BooleansWithoutIs,
    json!({
        "issued": {"type": "boolean"}, "is": {"type": "boolean"}, "isA": {"type": "string"},
        "isB": {"type": "boolean"},
    }),
    &["isB"]
)]
#[case(
    Rule::TimesEndInTime,
    json!({
        "aTime": {"type": "string", "format": "date-time"}, "b": {"type": "string"},
        "c": {"type": "string", "format": "date-time"},
        "list": {"type": "array", "items": {"type": "string", "format": "date-time"}},
    }),
    &["c"]
)]
#[case(
    Rule::DeclarativeNames,
    json!({"create": {}, "creation": {}, "volumeDelete": {}, "createVolume": {}}),
    &["createVolume"]
)]
#[case(
    Rule::IntegersSized,
    json!({
        "a": {"type": "integer", "format": "int64"},
        "b": {"type": "integer", "minimum": 0, "maximum": 9},
        "c": {"type": "integer", "x-kubernetes-int-or-string": true}, "d": {"type": "number"},
        "e": {
            "type": "integer", "format": "int32", "minimum": -2_147_483_648_i64,
            "maximum": 2_147_483_647,
        },
        "f": {"type": "integer", "format": "int32", "minimum": -2_147_483_649_i64},
        "g": {"type": "integer", "format": "int32", "maximum": 2_147_483_648_i64},
        "h": {"type": "integer", "minimum": 0}, "i": {"type": "integer", "maximum": 0},
        "j": {"type": "integer", "format": "int16"},
    }),
    &["f", "g", "h", "i", "j"]
)]
#[case(Rule::NoFloatInSpec, json!({"a": {"type": "integer"}, "b": {"type": "number"}}), &["b"])]
#[case(
    Rule::EnumsAreStrings,
    json!({"a": {"enum": ["x"]}, "b": {"enum": ["x", null]}, "c": {"enum": ["x", 1]}, "d": {}}),
    &["c"]
)]
#[case(
    Rule::EnumsInCamelCase,
    json!({
        "a": {"enum": ["Fast", "Http2"]}, "b": {"enum": ["*", ""]}, "c": {"enum": ["fast"]},
        "d": {"enum": ["Too-Fast"]}, "e": {},
    }),
    &["c", "d"]
)]
#[case(
    Rule::WideIntegersAsStrings,
    json!({
        "a": {"type": "integer", "format": "uint64"}, "b": {"type": "number", "format": "int128"},
        "c": {"type": "integer"}, "d": {"type": "string", "format": "uint64"},
        "podUID": {"type": "integer"}, "resourceVersion": {"type": "number"},
        "uid": {"type": "string"},
    }),
    &["a", "b", "podUID", "resourceVersion"]
)]
#[case(
    Rule::UnitsInNames,
    json!({
        "pollInterval": {"type": "number"}, "timeout": {"type": "string"},
        "timeoutSeconds": {"type": "integer"}, "ttl": {"type": "integer"},
        "size": {"type": "integer"},
    }),
    &["pollInterval", "ttl"]
)]
#[case(
    Rule::DurationsAreIntegers,
    json!({
        "age": {"type": "string", "format": "duration"}, "a": {"type": "string"},
        "delay": {"type": "string"}, "graceSeconds": {"type": "integer"},
        "listOfSeconds": {"type": "array"}, "mapOfSeconds": {"type": "object"},
        "ratioOfSeconds": {"type": "number"}, "timeout": {"type": "integer"},
    }),
    &["age", "delay", "ratioOfSeconds"]
)]
#[case(
    Rule::DurationSuffixes,
    json!({
        "intervalSeconds": {}, "periodSeconds": {}, "pollFrequencySeconds": {},
        "pollIntervalSeconds": {},
    }),
    &["intervalSeconds", "pollFrequencySeconds", "pollIntervalSeconds"]
)]
#[case(
    Rule::NoMapsOfObjects,
    json!({"a": {"additionalProperties": {"type": "string"}}, "b": {"additionalProperties": true},
        "c": {"additionalProperties": {"type": "object"}}}),
    &["c"]
)]
#[case(
    Rule::ListsHaveType,
    json!({
        "a": {"type": "array", "x-kubernetes-list-type": "set"}, "b": {"type": "string"},
        "c": {"type": "array"},
    }),
    &["c"]
)]
#[case(
    Rule::ListsAreBounded,
    json!({"a": {"type": "array", "maxItems": 1}, "b": {"type": "string"}, "c": {"type": "array"}}),
    &["c"]
)]
#[case(
    Rule::MapsAreBounded,
    json!({
        "a": {"additionalProperties": {}, "maxProperties": 1}, "b": {"type": "object"},
        "c": {"additionalProperties": {}},
    }),
    &["c"]
)]
#[case(
    Rule::StringsAreBounded,
    json!({
        "a": {"type": "string", "maxLength": 1}, "b": {"type": "string", "enum": []},
        "c": {"type": "string", "format": "ip"}, "d": {"type": "string", "pattern": "x"},
        "e": {"type": "integer"}, "f": {"type": "string", "minLength": 1},
    }),
    &["f"]
)]
#[case(
    Rule::ObjectsAreDescribed,
    json!({
        "a": {"type": "object", "properties": {}},
        "b": {"type": "object", "additionalProperties": true}, "c": {"type": "string"},
        "d": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        "e": {"type": "object"}, "metadata": {"type": "object"},
    }),
    &["e"]
)]
#[case(
    Rule::NoNullable,
    json!({"a": {"nullable": false}, "b": {"nullable": true}, "c": {}}),
    &["b"]
)]
#[case(
    Rule::NameOrReference,
    json!({
        "aName": {"type": "string"}, "bName": {"type": "object"},
        "cRef": {"type": "object", "properties": {"poolName": {}}},
        "dRef": {"type": "object", "properties": {"key": {}}}, "eRef": {"type": "object"},
        "fRef": {"type": "array"}, "gRef": {"type": "boolean"},
    }),
    &["bName", "gRef"]
)]
#[case(
    Rule::ReferencesEndInRef,
    json!({
        "a": {"type": "object", "properties": {"kind": {}, "name": {}}},
        "aRef": {"type": "object", "properties": {"kind": {}, "name": {}}},
        "b": {"type": "object", "properties": {"kind": {}, "name": {}, "size": {}}},
        "c": {"type": "object", "properties": {"name": {}}},
        "d": {"type": "object", "properties": {"kind": {}}},
        "ref": {"type": "object", "properties": {"kind": {}, "name": {}}},
        "e": {"type": "array", "items": {"properties": {"name": {}, "resource": {}}}},
        "eRefs": {"type": "array", "items": {"properties": {"name": {}, "resource": {}}}},
        "f": {"type": "string"},
    }),
    &["a", "e"]
)]
#[case(
    Rule::ReferencesAreComplete,
    json!({
        "aRef": {"properties": {"apiGroup": {}, "kind": {}, "name": {}}},
        "bRef": {"properties": {"kind": {}, "name": {}}}, "cRef": {"properties": {"kind": {}}},
        "dRef": {"properties": {"name": {}}}, "eRef": {"properties": {"key": {}}},
        "fRef": {"properties": {"fieldPath": {}}}, "gFieldRef": {"properties": {"kind": {}}},
        "h": {"properties": {"kind": {}}}, "iRefs": {"items": {"properties": {"kind": {}}}},
        "ref": {"properties": {"resource": {}, "name": {}}},
    }),
    &["bRef", "cRef", "iRefs", "ref"]
)]
#[case(
    Rule::ReferencesStayInNamespace,
    json!({"aRef": {"properties": {"name": {}}}, "bRef": {"properties": {"namespace": {}}}}),
    &["bRef"]
)]
#[case(
    Rule::FieldReferencesHaveVersion,
    json!({
        "aRef": {"properties": {"fieldPath": {}, "apiVersion": {}}},
        "bFieldRef": {"properties": {"version": {}}}, "cRef": {"properties": {"fieldPath": {}}},
        "dFieldRef": {"properties": {"resource": {}, "divisor": {}}},
        "eRef": {"properties": {"name": {}}}, "fieldRef": {"properties": {"resource": {}}},
    }),
    &["bFieldRef", "cRef", "fieldRef"]
)]
fn fields_that_break_a_rule_are_found(
    #[case] rule: Rule,
    #[case] spec: Value,
    #[case] bad: &[&str],
) {
    let nothing = json!({});
    assert_eq!(breaking(rule, &spec, &nothing), bad);
    // These rules concern the desired state only.
    let in_status: &[&str] =
        if matches!(rule, Rule::NoFloatInSpec | Rule::DeclarativeNames) { &[] } else { bad };
    assert_eq!(breaking(rule, &nothing, &spec), in_status);
}

#[rstest]
#[case::required(json!(["name"]), json!({}), true)]
#[case::not_required(json!(["size"]), json!({}), false)]
#[case::replaced_as_a_whole(json!(["name"]), json!({"x-kubernetes-list-type": "atomic"}), false)]
#[case::merged(json!(["name"]), json!({"x-kubernetes-patch-merge-key": "name"}), false)]
fn a_list_of_named_objects_is_a_map_by_name(
    #[case] required: Value,
    #[case] more: Value,
    #[case] bad: bool,
) {
    let mut list = json!({
        "type": "array",
        "items": {"required": required, "properties": {"name": {"type": "string"}}},
    });
    list.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    let found = breaking(
        Rule::NamedObjectsByName,
        &json!({"rules": list.clone(), "ruleRefs": list}),
        &json!({}),
    );
    assert_eq!(found, Vec::from_iter(bad.then_some("rules")));
}

#[rstest]
#[case(Rule::DefaultsOnOptional, &["source.a"])]
#[case(Rule::UnionMembersOptional, &["source.a"])]
#[case(Rule::UnionMembersWithoutDefault, &["source.a", "source.b"])]
fn members_of_a_union_are_optional(#[case] rule: Rule, #[case] bad: &[&str]) {
    let source = json!({
        "type": "object", "required": ["a", "d"],
        "oneOf": [{"required": ["a"]}, {"required": ["b"]}, {"required": ["c", "d"]}],
        "properties": {"a": {"default": 1}, "b": {"default": 1}, "c": {"default": 1}, "d": {}},
    });
    assert_eq!(breaking(rule, &json!({"source": source}), &json!({})), bad);
}
