//! A custom resource that a server can come with, whose schema breaks a rule of API design where a fault says so.
//!
//! The definition is a good one but for what the fault says. It is not checked as a client's would be: that a server
//! publishes what it would refuse is a part of the fault.

use serde_json::{Value, json};

use super::crds;
use crate::api::Api;
use crate::crd;
use crate::encode;
use crate::object::{Object, timestamp, uuid};
use crate::patch::merge;
use crate::registry::Lookup;
use crate::{Cut, Fault, Faults};

/// What each fault changes in the schema, as a merge patch of its top-level properties.
const BENDS: [(Fault, &str); 25] = [
    (Fault::SchemaSnakeCase, r#"{"spec":{"properties":{"max_items":{"type":"integer","format":"int32"}}}}"#),
    (Fault::SchemaUnsigned, r#"{"spec":{"properties":{"size":{"type":"integer","format":"uint32"}}}}"#),
    (Fault::SchemaWideNumber, r#"{"spec":{"properties":{"deviceUID":{"type":"integer","format":"int64"}}}}"#),
    (Fault::SchemaFloat, r#"{"spec":{"properties":{"ratio":{"type":"number"}}}}"#),
    (
        Fault::SchemaNumericEnum,
        r#"{"spec":{"properties":{"level":{"type":"integer","format":"int32","enum":[1,2]}}}}"#,
    ),
    (Fault::SchemaLowerCaseEnum, r#"{"spec":{"properties":{"mode":{"enum":["fast","very-slow"]}}}}"#),
    (
        Fault::SchemaMapOfObjects,
        r#"{"spec":{"properties":{"rules":{"type":"object","maxProperties":9,"additionalProperties":
            {"type":"object","properties":{"port":{"type":"integer","format":"int32"}}}}}}}"#,
    ),
    (
        Fault::SchemaListsOfAnyKind,
        r#"{"spec":{"properties":{"parts":{"type":"array","items":
            {"type":"object","required":["name"],"properties":{"name":{"type":"string","maxLength":9}}}}}}}"#,
    ),
    (
        Fault::SchemaUnbounded,
        r#"{"spec":{"properties":{"note":{"type":"string"},
            "marks":{"type":"object","additionalProperties":{"type":"string","maxLength":9}}}}}"#,
    ),
    (Fault::SchemaOpaqueObject, r#"{"spec":{"properties":{"settings":{"type":"object"}}}}"#),
    (
        Fault::SchemaConditionsByName,
        r#"{"status":{"properties":{"conditions":{"type":"object","items":null,"x-kubernetes-list-type":null,
            "x-kubernetes-list-map-keys":null,"maxItems":null,"additionalProperties":{"type":"boolean"}}}}}"#,
    ),
    (
        Fault::SchemaConditionsVague,
        r#"{"status":{"properties":{"conditions":{"x-kubernetes-list-type":"atomic","x-kubernetes-list-map-keys":null,
            "items":{"required":[],"properties":{"lastTransitionTime":{"type":"integer","format":"int64"}}}}}}}"#,
    ),
    (
        Fault::SchemaConditionsNested,
        r#"{"status":{"properties":{"last":{"type":"object","properties":{"conditions":{"type":"array","maxItems":9,
            "x-kubernetes-list-type":"atomic","items":{"type":"object","properties":{}}}}}}}}"#,
    ),
    (Fault::SchemaPhase, r#"{"status":{"properties":{"phase":{"type":"string","maxLength":9}}}}"#),
    (Fault::SchemaBesideSpec, r#"{"color":{"type":"string","maxLength":9}}"#),
    (Fault::SchemaWithoutSpec, r#"{"spec":null,"color":{"type":"string","maxLength":9}}"#),
    (
        Fault::SchemaObjectsInStatus,
        r#"{"status":{"properties":{"parts":{"type":"array","maxItems":9,"x-kubernetes-list-type":"atomic","items":
            {"type":"object","properties":{"metadata":{"type":"object"},"spec":{"type":"object"}}}}}}}"#,
    ),
    (Fault::SchemaNullable, r#"{"spec":{"properties":{"mode":{"nullable":true}}}}"#),
    (
        Fault::SchemaRequiredDefault,
        r#"{"spec":{"required":["mode"],"properties":{"mode":{"default":"Fast"}}}}"#,
    ),
    (
        Fault::SchemaUnionHalfChosen,
        r#"{"spec":{"properties":{"source":{"type":"object","required":["git"],
            "oneOf":[{"required":["git"]},{"required":["disk"]}],"properties":{
            "git":{"type":"string","maxLength":9,"default":"x"},"disk":{"type":"string","maxLength":9}}}}}}"#,
    ),
    (
        Fault::SchemaVagueTimes,
        r#"{"spec":{"properties":{"timeout":{"type":"string","maxLength":9},
            "retryInterval":{"type":"integer","format":"int32"},
            "scanIntervalSeconds":{"type":"integer","format":"int32"}}}}"#,
    ),
    (
        Fault::SchemaOddReferences,
        r#"{"spec":{"properties":{"configRef":{"type":"string","maxLength":9,"properties":null,"required":null},
            "target":{"type":"object","properties":{"name":{"type":"string","maxLength":9},
            "kind":{"type":"string","maxLength":9},"group":{"type":"string","maxLength":9}}},
            "partRef":{"type":"object","properties":{"name":{"type":"string","maxLength":9},
            "kind":{"type":"string","maxLength":9},"namespace":{"type":"string","maxLength":9}}},
            "sizeFieldRef":{"type":"object","properties":{"fieldPath":{"type":"string","maxLength":9}}}}}}"#,
    ),
    (
        Fault::SchemaOddNames,
        r#"{"spec":{"properties":{"isOpen":{"type":"boolean"},"backupStamp":{"type":"string","format":"date-time"},
            "podIp":{"type":"string","maxLength":9},"triggerBackup":{"type":"boolean"}}}}"#,
    ),
    (
        Fault::SchemaReferencesOfTheirOwn,
        r#"{"spec":{"properties":{"partRef":{"type":"object","properties":{"name":{"type":"string","maxLength":9},
            "color":{"type":"string","maxLength":9}}}}}}"#,
    ),
    (Fault::SchemaStatusUnserved, "{}"),
];

/// Adds the resource to a server that is to have it, or has such a fault.
pub(crate) fn ship(api: &Api, wanted: bool) {
    let named = [Fault::SchemaReservedGroup, Fault::SchemaControllerKind];
    let bent = BENDS.iter().any(|(fault, _)| api.faults.on(*fault)) || api.faults.any(&named);
    let alone = api.cuts.on(Cut::OtherResources);
    if !(wanted || bent || alone) {
        return;
    }
    let mut definition = definition(api.faults);
    api.cuts.trim_definition(&mut definition);
    if api.cuts.on(Cut::Status)
        && let Some(properties) = definition
            .pointer_mut("/spec/versions/0/schema/openAPIV3Schema/properties")
            .and_then(Value::as_object_mut)
    {
        properties.remove("status");
    }
    let Lookup::Found(ty) =
        api.registry.current().find("apiextensions.k8s.io", "v1", "customresourcedefinitions")
    else {
        // Nobody can define resources, and the server has this one all the same.
        definition["status"] = crd::status(&definition, &[], &timestamp(0));
        return crds::serve(api, &definition);
    };
    definition.set_meta("uid", uuid());
    definition.set_meta("creationTimestamp", timestamp(0));
    ty.prepare_create(&mut definition, Faults::none());
    ty.default(&mut definition, Faults::none());
    definition["status"] = crd::status(&definition, &[], &timestamp(0));
    let draft = encode::draft(&ty, &definition);
    api.store.write(|write| write.put(&ty.table, draft));
    crds::serve(api, &definition);
}

fn definition(faults: Faults) -> Value {
    let group = if faults.on(Fault::SchemaReservedGroup) { "devices.k8s.io" } else { "devices.example.com" };
    let kind = if faults.on(Fault::SchemaControllerKind) { "GadgetController" } else { "Gadget" };
    let mut properties = properties();
    for (fault, patch) in &BENDS {
        if faults.on(*fault) {
            // The table is a part of the program.
            let patch = serde_json::from_str(patch).unwrap_or_default();
            properties = merge::apply(&properties, &patch, Faults::none()).unwrap_or(properties);
        }
    }
    let subresources = if faults.on(Fault::SchemaStatusUnserved) { json!({}) } else { json!({"status": {}}) };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("gadgets.{group}")},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": "gadgets", "singular": "gadget", "kind": kind, "listKind": format!("{kind}List")},
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "subresources": subresources,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}},
            }],
        },
    })
}

/// A schema that no rule has anything against.
fn properties() -> Value {
    let text = |length: u32| json!({"type": "string", "maxLength": length});
    json!({
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"type": "object"},
        "spec": {"type": "object", "properties": {
            "mode": {"type": "string", "enum": ["Fast", "Slow"]},
            "replicas": {"type": "integer", "format": "int32"},
            "configRef": {"type": "object", "required": ["name"], "properties": {"name": text(253)}},
        }},
        "status": {"type": "object", "properties": {
            "lastSyncTime": {"type": "string", "format": "date-time"},
            "conditions": {
                "type": "array",
                "maxItems": 20,
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["type"],
                "items": {
                    "type": "object",
                    "required": ["type", "status", "lastTransitionTime", "reason", "message"],
                    "properties": {
                        "type": text(316),
                        "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
                        "observedGeneration": {"type": "integer", "format": "int64"},
                        "lastTransitionTime": {"type": "string", "format": "date-time"},
                        "reason": {"type": "string", "minLength": 1, "maxLength": 1024},
                        "message": text(32_768),
                    },
                },
            },
        }},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bend_is_json_and_changes_the_definition() {
        let good = definition(Faults::none());
        for (fault, patch) in &BENDS {
            assert!(serde_json::from_str::<Value>(patch).is_ok(), "{fault}");
            assert_ne!(definition((*fault).into()), good, "{fault}");
        }
    }
}
