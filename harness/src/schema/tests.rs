//! Each test has one field that breaks a rule, in a resource that is valid otherwise.

use kubeproof_cases::case::{Edition, Level, SchemaCheck};
use kubeproof_cases::rule::{Exemption, Rule, SchemaSet};
use rstest::rstest;
use serde_json::{Map, Value, json};

use super::rules::judge;
use super::{Finding, Published};
use crate::event::{CheckResult, Verdict};

fn published(spec: &Value, status: &Value) -> Published {
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{
                "name": "v1", "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {"type": "object", "properties": spec},
                            "status": {"type": "object", "properties": status},
                        },
                    },
                },
            }],
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
#[case(
    Rule::IntegersSized,
    "size",
    json!({"type": "integer", "format": "int32", "maximum": 4_294_967_296_i64})
)]
#[case(
    Rule::NamedObjectsByName,
    "rules",
    json!({
        "type": "array",
        "items": {
            "type": "object", "required": ["name"], "properties": {"name": {"type": "string"}},
        },
    })
)]
#[case(
    Rule::ReferencesAreShared,
    "configRef",
    json!({
        "type": "object", "properties": {"name": {"type": "string"}, "color": {"type": "string"}},
    })
)]
#[case(
    Rule::NameOrReference,
    "configRef",
    json!({"type": "object", "properties": {"color": {"type": "string"}}})
)]
#[case(Rule::NoUnsigned, "size", json!({"type": "integer", "format": "uint32"}))]
#[case(Rule::NoFloatInSpec, "ratio", json!({"type": "number"}))]
#[case(Rule::EnumsAreStrings, "level", json!({"type": "integer", "enum": [1, 2]}))]
#[case(Rule::UnitsInNames, "timeout", json!({"type": "integer"}))]
#[case(Rule::DurationsAreIntegers, "timeoutSeconds", json!({"type": "string"}))]
#[case(
    Rule::NoMapsOfObjects,
    "rules",
    json!({"type": "object", "additionalProperties": {"type": "object"}})
)]
#[case(Rule::ListsHaveType, "tags", json!({"type": "array", "items": {"type": "string"}}))]
#[case(Rule::StringsAreBounded, "note", json!({"type": "string"}))]
#[case(Rule::NoNullable, "note", json!({"type": "string", "nullable": true}))]
#[case(Rule::NameOrReference, "configRef", json!({"type": "string"}))]
fn a_bad_field_is_found_by_its_path(#[case] rule: Rule, #[case] name: &str, #[case] schema: Value) {
    let good = json!({
        "mode": {"type": "string", "enum": ["Fast"]}, "isolated": {"type": "boolean"},
        "podIPs": {
            "type": "array", "x-kubernetes-list-type": "set",
            "items": {"type": "string", "format": "ip"},
        },
        "graceSeconds": {"type": "integer", "format": "int32"},
        "startTime": {"type": "string", "format": "date-time"},
    });
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
    let found =
        rules.iter().flat_map(|rule| published.view(SchemaSet::Crds).findings(*rule)).count();
    assert_eq!(found, broken);
}

#[test]
fn a_type_in_the_spec_of_another_is_part_of_a_spec() {
    let document = json!({"openapi": "3.0.0", "components": {"schemas": {
        "a.Thing": {
            "x-kubernetes-group-version-kind": [{"group": "a", "version": "v1", "kind": "Thing"}],
            "properties": {
                "spec": {"allOf": [{"$ref": "#/components/schemas/a.ThingSpec"}], "default": {}},
            },
        },
        "a.ThingSpec": {"type": "object", "properties": {"ratio": {"type": "number"}}},
        "a.Other": {"type": "object", "properties": {"ratio": {"type": "number"}}},
    }}});
    let mut published = Published::default();
    published.add_document(&document, &|_| false);
    published.finish();
    let found = published.view(SchemaSet::Published).findings(Rule::NoFloatInSpec);
    assert_eq!(
        found.iter().map(|finding| finding.at.as_str()).collect::<Vec<_>>(),
        ["a.ThingSpec ratio"]
    );
}

/// Returns the fields below spec or status that break a rule.
fn breaking(rule: Rule, spec: &Value, status: &Value) -> Vec<String> {
    let findings = published(spec, status).view(SchemaSet::Crds).findings(rule);
    let name = |finding: &Finding| {
        let (_, path) = finding.at.split_once(' ').expect("a type and a path");
        path.trim_start_matches("spec.").trim_start_matches("status.").to_owned()
    };
    findings.iter().map(name).collect()
}

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
fn good_fields_are_told_from_bad_ones(
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
fn a_list_of_what_has_names_is_a_map_by_them(
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
fn members_of_a_union_are_left_to_choose_from(#[case] rule: Rule, #[case] bad: &[&str]) {
    let source = json!({
        "type": "object", "required": ["a", "d"],
        "oneOf": [{"required": ["a"]}, {"required": ["b"]}, {"required": ["c", "d"]}],
        "properties": {"a": {"default": 1}, "b": {"default": 1}, "c": {"default": 1}, "d": {}},
    });
    assert_eq!(breaking(rule, &json!({"source": source}), &json!({})), bad);
}

#[rstest]
#[case(
    Rule::ConditionsAreLists,
    json!({"conditions": {"type": "array", "items": {"type": "string"}}}),
    &["conditions"]
)]
#[case(
    Rule::ConditionsAreLists,
    json!({"conditions": {"type": "array", "items": {"type": "object"}}}),
    &[]
)]
#[case(
    Rule::ConditionsAreLists,
    json!({"conditions": {"type": "object", "items": {"type": "object"}}}),
    &["conditions"]
)]
#[case(Rule::ConditionsAreLists, json!({"others": {"type": "string"}}), &[])]
#[case(
    Rule::ConditionsAtTop,
    json!({"conditions": {}, "inner": {"properties": {"conditions": {}, "other": {}}}}),
    &["inner.conditions"]
)]
#[case(
    Rule::ConditionsAtTop,
    json!({"parts": {"type": "array", "items": {"properties": {"conditions": {}}}}}),
    &[]
)]
#[case(
    Rule::ConditionsMapByType,
    json!({
        "conditions": {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
    }),
    &[]
)]
#[case(
    Rule::ConditionsMapByType,
    json!({"conditions": {"x-kubernetes-patch-merge-key": "type"}}),
    &[]
)]
#[case(
    Rule::ConditionsMapByType,
    json!({
        "conditions": {"x-kubernetes-list-type": "set", "x-kubernetes-list-map-keys": ["type"]},
    }),
    &["conditions"]
)]
#[case(
    Rule::ConditionsMapByType,
    json!({
        "conditions": {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
    }),
    &["conditions"]
)]
#[case(
    Rule::ConditionsMapByType,
    json!({
        "conditions": {
            "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type", "name"],
        },
    }),
    &["conditions"]
)]
#[case(Rule::ConditionsMapByType, json!({"others": {}}), &[])]
#[case(
    Rule::NoPhase,
    json!({"phase": {}, "other": {}, "inner": {"properties": {"phase": {}}}}),
    &["phase"]
)]
#[case(
    Rule::StatusHoldsNoObjects,
    json!({"a": {"properties": {"metadata": {"type": "object"}, "spec": {}}}}),
    &["a"]
)]
#[case(
    Rule::StatusHoldsNoObjects,
    json!({"a": {"properties": {"metadata": {"type": "string"}, "spec": {}}}}),
    &[]
)]
#[case(
    Rule::StatusHoldsNoObjects,
    json!({"a": {"properties": {"metadata": {"type": "object"}}}}),
    &[]
)]
fn a_status_is_reported_from_a_spec(
    #[case] rule: Rule,
    #[case] status: Value,
    #[case] bad: &[&str],
) {
    assert_eq!(breaking(rule, &json!({}), &status), bad);
    assert_eq!(breaking(rule, &status, &json!({})), [""; 0], "the spec is the user's");
}

#[rstest]
#[case::good(json!({"minLength": 1}), json!({}), 0)]
#[case::a_message_of_any_length(json!({"minLength": 1}), json!({"minLength": 0}), 0)]
#[case::one_of_some(json!({"enum": ["Ready"]}), json!({}), 0)]
#[case::of_a_form(json!({"pattern": "^[A-Z]"}), json!({}), 0)]
#[case::an_empty_reason(json!({"minLength": 0}), json!({}), 1)]
#[case::no_empty_message(json!({"minLength": 1}), json!({"minLength": 1}), 1)]
#[case::both(json!({}), json!({"minLength": 1}), 2)]
fn a_reason_is_never_empty_and_a_message_may_be(
    #[case] reason: Value,
    #[case] message: Value,
    #[case] broken: usize,
) {
    let condition = json!({
        "type": "object", "required": ["reason", "message"],
        "properties": {"reason": reason, "message": message},
    });
    let status = json!({"conditions": {"type": "array", "items": condition}});
    let rules = [Rule::ConditionsRequireReason, Rule::ConditionsRequireMessage];
    assert_eq!(rules.iter().flat_map(|rule| breaking(*rule, &json!({}), &status)).count(), broken);
}

#[rstest]
#[case("type", json!({"type": "string"}), false)]
#[case("type", json!({"type": "integer"}), true)]
#[case("message", json!({"type": "object"}), true)]
fn the_members_of_conditions_are_texts(
    #[case] member: &str,
    #[case] schema: Value,
    #[case] bad: bool,
) {
    let text = json!({"type": "string"});
    let mut members = json!({
        "type": text, "status": text, "lastTransitionTime": text, "reason": text, "message": text,
    });
    members[member] = schema;
    let status = json!({
        "conditions": {"type": "array", "items": {"type": "object", "properties": members}},
    });
    assert_eq!(breaking(Rule::ConditionsAreStandard, &json!({}), &status).len(), usize::from(bad));
    members.as_object_mut().expect("an object").remove(member);
    let status = json!({
        "conditions": {"type": "array", "items": {"type": "object", "properties": members}},
    });
    assert_eq!(
        breaking(Rule::ConditionsAreStandard, &json!({}), &status).len(),
        1,
        "without {member}"
    );
}

/// A valid definition with these changes.
fn changed(patch: &Value) -> Published {
    let mut crd = json!({"apiVersion": "apiextensions.k8s.io/v1", "spec": {
        "group": "example.com", "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [{"name": "v1", "subresources": {"status": {}}, "schema": {"openAPIV3Schema": {
            "properties": {"metadata": {}, "spec": {}, "status": {}}}}}],
    }});
    crate::values::merge(&mut crd, patch);
    let mut published = Published::default();
    published.add_crd(&crd).expect("a definition");
    published
}

fn version(subresources: &Value, properties: &Value) -> Value {
    let schema = json!({"openAPIV3Schema": {"properties": properties}});
    json!({"spec": {"versions": [{"name": "v1", "subresources": subresources, "schema": schema}]}})
}

#[rstest]
#[case(Rule::GroupsQualified, json!({"spec": {"group": "example"}}), true)]
#[case(Rule::GroupsQualified, json!({"spec": {"group": "a.k8s.io"}}), true)]
#[case(Rule::GroupsQualified, json!({"spec": {"group": "kubernetes.io"}}), true)]
#[case(Rule::GroupsQualified, json!({"spec": {"group": "notk8s.io"}}), false)]
#[case(
    Rule::GroupsQualified,
    json!({
        "spec": {"group": "a.k8s.io"},
        "metadata": {"annotations": {"api-approved.kubernetes.io": "https://example.com"}},
    }),
    false
)]
#[case(Rule::KindsNotControllers, json!({"spec": {"names": {"kind": "WidgetController"}}}), true)]
#[case(Rule::KindsNotControllers, json!({"spec": {"names": {"kind": "ControllerWidget"}}}), false)]
#[case(
    Rule::NothingBesideSpecAndStatus,
    version(&json!({}), &json!({"spec": {}, "status": {}, "other": {}})),
    true
)]
#[case(
    Rule::NothingBesideSpecAndStatus,
    version(&json!({}), &json!({"spec": {}, "other": {}})),
    false
)]
#[case(
    Rule::NothingBesideSpecAndStatus,
    version(&json!({}), &json!({"status": {}, "other": {}})),
    false
)]
#[case(Rule::StatusIsSubresource, version(&json!({}), &json!({"status": {}})), true)]
#[case(Rule::StatusIsSubresource, version(&json!({"status": {}}), &json!({"spec": {}})), true)]
#[case(Rule::StatusIsSubresource, version(&json!({}), &json!({"spec": {}})), false)]
#[case(
    Rule::DesiredStateInSpec,
    version(&json!({}), &json!({"kind": {}, "status": {}, "other": {}})),
    true
)]
#[case(
    Rule::DesiredStateInSpec,
    version(&json!({}), &json!({"status": {}, "spec": {}, "other": {}})),
    false
)]
#[case(
    Rule::DesiredStateInSpec,
    version(&json!({}), &json!({"status": {}, "metadata": {}})),
    false
)]
#[case(Rule::DesiredStateInSpec, version(&json!({}), &json!({"other": {}})), false)]
fn definitions_are_reported_good_from_bad(
    #[case] rule: Rule,
    #[case] change: Value,
    #[case] bad: bool,
) {
    assert_eq!(changed(&json!({})).view(SchemaSet::Crds).findings(rule), []);
    assert_eq!(changed(&change).view(SchemaSet::Crds).findings(rule).len(), usize::from(bad));
}

/// The result for a spec with these fields. Those named `old` have a historical exception.
fn judged(fields: &[&str], letter: bool) -> CheckResult {
    let check = SchemaCheck {
        id: "no-nullable".to_owned(),
        rule: Rule::NoNullable,
        level: Level::Must,
        requirements: Vec::new(),
        editions: Edition::ALL.to_vec(),
        history: vec![Exemption {
            rule: Rule::NoNullable,
            at: vec!["* spec.old*".to_owned()],
            because: "clients read it".to_owned(),
        }],
        means: None,
    };
    let spec: Map<String, Value> =
        fields.iter().map(|name| ((*name).to_owned(), json!({"nullable": true}))).collect();
    let published = published(&Value::Object(spec), &json!({}));
    judge(&check, &published.view(SchemaSet::Crds), letter, "step", &|_| None)
}

#[rstest]
#[case::nothing(&[], false, Verdict::Pass, "")]
#[case::one(&["a"], false, Verdict::Fail, "a: it")]
#[case::two(&["a", "b"], false, Verdict::Fail, "a: it; and one more place")]
#[case::three(&["a", "b", "c"], false, Verdict::Fail, "a: it; and 2 more places")]
#[case::by_history(
    &["old", "older"],
    false,
    Verdict::Deviation,
    "old: it (kept by Kubernetes: clients read it); and one more place"
)]
#[case::by_the_letter(
    &["old"],
    true,
    Verdict::Fail,
    "old: it (kept by Kubernetes: clients read it)"
)]
#[case::what_nobody_explains_comes_first(
    &["old", "older", "x", "y"],
    false,
    Verdict::Fail,
    "x: it; and one more place"
)]
fn a_verdict_reports_the_first_place_and_how_many_are_like_it(
    #[case] fields: &[&str],
    #[case] letter: bool,
    #[case] verdict: Verdict,
    #[case] message: &str,
) {
    let result = judged(fields, letter);
    let said = result.message.replace("widgets.v1.example.com spec.", "");
    let said =
        said.replace("the field may be null, which clients cannot distinguish from unset", "it");
    assert_eq!((result.verdict, said.as_str()), (verdict, message));
    assert_eq!(result.places.len(), fields.len());
}

#[rstest]
#[case(
    Rule::KindsNotControllers,
    json!({"spec": {"names": {"kind": "WidgetController"}}}),
    "/spec/names/kind"
)]
#[case(Rule::GroupsQualified, json!({"spec": {"group": "example"}}), "/spec/group")]
#[case(
    Rule::StatusIsSubresource,
    version(&json!({}), &json!({"status": {}})),
    "/spec/versions/0/schema/openAPIV3Schema"
)]
fn a_finding_points_at_the_place_to_mend(
    #[case] rule: Rule,
    #[case] change: Value,
    #[case] pointer: &str,
) {
    assert_eq!(changed(&change).view(SchemaSet::Crds).findings(rule)[0].pointer, pointer);
}

/// In each case, only these types of a document break the rule.
#[rstest]
#[case(
    Rule::StatusHasListMetadata,
    json!({
        "a.apis.meta.v1.Status": {"properties": {"metadata": {"$ref": "#/a.ListMeta"}}},
        "a.v1.Status": {"properties": {}},
        "b.apis.meta.v1.Status": {"properties": {"metadata": {"$ref": "#/a.ObjectMeta"}}},
    }),
    &["b.apis.meta.v1.Status"]
)]
#[case(
    Rule::OwnersInNamespace,
    json!({
        "a.meta.v1.OwnerReference": {"properties": {"name": {}, "namespace": {}}},
        "a.core.v1.ObjectReference": {"properties": {"namespace": {}}},
    }),
    &["a.meta.v1.OwnerReference namespace"]
)]
#[case(
    Rule::AdmissionFieldsOptional,
    json!({
        "a.core.v1.PodSpec": {
            "required": ["priority", "containers"],
            "properties": {"containers": {}, "priority": {}, "tolerations": {}},
        },
        "a.core.v1.OtherSpec": {"required": ["priority"], "properties": {"priority": {}}},
    }),
    &["a.core.v1.PodSpec priority"]
)]
#[case(
    Rule::StatusHoldsNoObjects,
    json!({
        "a.ThingStatus": {
            "properties": {
                "last": {"properties": {"metadata": {"$ref": "#/a.ObjectMeta"}}},
                "list": {"properties": {"metadata": {"$ref": "#/a.ListMeta"}}},
            },
        },
        "a.ThingSpec": {
            "properties": {"template": {"properties": {"metadata": {"$ref": "#/a.ObjectMeta"}}}},
        },
    }),
    &["a.ThingStatus last"]
)]
fn types_of_documents_are_reported_good_from_bad(
    #[case] rule: Rule,
    #[case] types: Value,
    #[case] bad: &[&str],
) {
    let mut published = Published::default();
    published
        .add_document(&json!({"openapi": "3.0.0", "components": {"schemas": types}}), &|_| false);
    published.finish();
    let found = published.view(SchemaSet::Published).findings(rule);
    assert_eq!(found.iter().map(|finding| finding.at.as_str()).collect::<Vec<_>>(), bad);
}
