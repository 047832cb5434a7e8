//! Each test has one field that breaks a rule, in a resource that is valid otherwise.

mod conditions;
mod definitions;
mod fields;
mod verdicts;

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

/// Returns the fields below spec or status that break a rule.
fn breaking(rule: Rule, spec: &Value, status: &Value) -> Vec<String> {
    let findings = published(spec, status).view(SchemaSet::Crds).findings(rule);
    let name = |finding: &Finding| {
        let (_, path) = finding.at.split_once(' ').expect("a type and a path");
        path.trim_start_matches("spec.").trim_start_matches("status.").to_owned()
    };
    findings.iter().map(name).collect()
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
fn types_of_documents_that_break_a_rule_are_found(
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
