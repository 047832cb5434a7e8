//! A custom resource that breaks a rule of API design.
//!
//! Before the first request the administrator creates the definition of the resource, or changes
//! it if the server has it already. The server then publishes the schema everywhere.

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::behaviours::Fault;
use crate::exchange::{Request, Response};
use crate::middleware::{Middleware, Next, objects, only};
use crate::patch;
use crate::upstream::Upstream;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

const APPROVAL: &str = "api-approved.kubernetes.io";

/// The changes of each fault to the properties of the schema, as a merge patch.
const PROPERTIES: [(Fault, &str); 24] = [
    (
        Fault::SchemaSnakeCase,
        r#"{"spec":{"properties":{"max_items":{"type":"integer","format":"int32"}}}}"#,
    ),
    (
        Fault::SchemaUnsigned,
        r#"{"spec":{"properties":{"size":{"type":"integer","format":"uint32"}}}}"#,
    ),
    (
        Fault::SchemaWideNumber,
        r#"{"spec":{"properties":{"deviceUID":{"type":"integer","format":"int64"}}}}"#,
    ),
    (Fault::SchemaFloat, r#"{"spec":{"properties":{"ratio":{"type":"number"}}}}"#),
    (
        Fault::SchemaNumericEnum,
        r#"{"spec":{"properties":{"level":{"type":"integer","format":"int32","enum":[1,2]}}}}"#,
    ),
    (
        Fault::SchemaLowerCaseEnum,
        r#"{"spec":{"properties":{"mode":{"enum":["fast","very-slow"]}}}}"#,
    ),
    (
        Fault::SchemaMapOfObjects,
        r#"{"spec":{"properties":{"rules":{"type":"object","maxProperties":9,"additionalProperties":
            {"type":"object","properties":{"port":{"type":"integer","format":"int32"}}}}}}}"#,
    ),
    (
        Fault::SchemaListsOfAnyKind,
        r#"{"spec":{"properties":{"parts":{"type":"array","items":{"type":"object",
            "required":["name"],"properties":{"name":{"type":"string","maxLength":9}}}}}}}"#,
    ),
    (
        Fault::SchemaUnbounded,
        r#"{"spec":{"properties":{"note":{"type":"string"},
            "marks":{"type":"object","additionalProperties":{"type":"string","maxLength":9}}}}}"#,
    ),
    (Fault::SchemaOpaqueObject, r#"{"spec":{"properties":{"settings":{"type":"object"}}}}"#),
    (
        Fault::SchemaConditionsByName,
        r#"{"status":{"properties":{"conditions":{"type":"object","items":null,
            "x-kubernetes-list-type":null,"x-kubernetes-list-map-keys":null,"maxItems":null,
            "additionalProperties":{"type":"boolean"}}}}}"#,
    ),
    (
        Fault::SchemaConditionsVague,
        r#"{"status":{"properties":{"conditions":{"x-kubernetes-list-type":"atomic",
            "x-kubernetes-list-map-keys":null,"items":{"required":[],
            "properties":{"lastTransitionTime":{"type":"integer","format":"int64"}}}}}}}"#,
    ),
    (
        Fault::SchemaConditionsNested,
        r#"{"status":{"properties":{"last":{"type":"object","properties":{"conditions":{
            "type":"array","maxItems":9,"x-kubernetes-list-type":"atomic",
            "items":{"type":"object","properties":{}}}}}}}}"#,
    ),
    (Fault::SchemaPhase, r#"{"status":{"properties":{"phase":{"type":"string","maxLength":9}}}}"#),
    (Fault::SchemaBesideSpec, r#"{"color":{"type":"string","maxLength":9}}"#),
    (Fault::SchemaWithoutSpec, r#"{"spec":null,"color":{"type":"string","maxLength":9}}"#),
    (
        Fault::SchemaObjectsInStatus,
        r#"{"status":{"properties":{"parts":{"type":"array","maxItems":9,
            "x-kubernetes-list-type":"atomic","items":{"type":"object","properties":{
            "metadata":{"type":"object"},"spec":{"type":"object"}}}}}}}"#,
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
            "git":{"type":"string","maxLength":9,"default":"x"},
            "disk":{"type":"string","maxLength":9}}}}}}"#,
    ),
    (
        Fault::SchemaVagueTimes,
        r#"{"spec":{"properties":{"timeout":{"type":"string","maxLength":9},
            "retryInterval":{"type":"integer","format":"int32"},
            "scanIntervalSeconds":{"type":"integer","format":"int32"}}}}"#,
    ),
    (
        Fault::SchemaOddReferences,
        r#"{"spec":{"properties":{
            "configRef":{"type":"string","maxLength":9,"properties":null,"required":null},
            "target":{"type":"object","properties":{"name":{"type":"string","maxLength":9},
            "kind":{"type":"string","maxLength":9},"group":{"type":"string","maxLength":9}}},
            "partRef":{"type":"object","properties":{"name":{"type":"string","maxLength":9},
            "kind":{"type":"string","maxLength":9},"namespace":{"type":"string","maxLength":9}}},
            "sizeFieldRef":{"type":"object","properties":{
            "fieldPath":{"type":"string","maxLength":9}}}}}}"#,
    ),
    (
        Fault::SchemaOddNames,
        r#"{"spec":{"properties":{"isOpen":{"type":"boolean"},
            "backupStamp":{"type":"string","format":"date-time"},
            "podIp":{"type":"string","maxLength":9},"triggerBackup":{"type":"boolean"}}}}"#,
    ),
    (
        Fault::SchemaReferencesOfTheirOwn,
        r#"{"spec":{"properties":{"partRef":{"type":"object","properties":{
            "name":{"type":"string","maxLength":9},"color":{"type":"string","maxLength":9}}}}}}"#,
    ),
];

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    let other =
        [Fault::SchemaStatusUnserved, Fault::SchemaReservedGroup, Fault::SchemaControllerKind];
    let known = PROPERTIES.iter().any(|(known, _)| *known == fault) || other.contains(&fault);
    // The correct server behind needs the approval. The faulty one published the group without it.
    let unapproved = only(
        |request| request.target().resource == "customresourcedefinitions",
        objects(|_, definition| {
            if let Some(annotations) = definition["metadata"]["annotations"].as_object_mut() {
                annotations.remove(APPROVAL);
            }
        }),
    );
    known.then(|| {
        Box::new(Shipped { fault, done: OnceCell::new(), unapproved }) as Box<dyn Middleware>
    })
}

/// Creates the resource before the first request.
struct Shipped {
    fault: Fault,
    done: OnceCell<()>,
    unapproved: Box<dyn Middleware>,
}

impl Middleware for Shipped {
    fn handle<'a>(&'a self, request: Request, next: Next<'a>) -> BoxFuture<'a, Response> {
        async move {
            self.done.get_or_init(|| ship(self.fault, next.server)).await;
            match self.fault {
                Fault::SchemaReservedGroup => self.unapproved.handle(request, next).await,
                _ => next.send(request).await,
            }
        }
        .boxed()
    }
}

async fn ship(fault: Fault, server: &Upstream) {
    let good = sample();
    let path = format!("{DEFINITIONS}/{}", good["metadata"]["name"].as_str().unwrap_or_default());
    let current = server.read(&path).await;
    let mut wanted = current.clone().unwrap_or(good);
    spoil(&mut wanted, fault);
    let named = matches!(fault, Fault::SchemaReservedGroup | Fault::SchemaControllerKind);
    if current.is_some() && !named {
        server.as_admin(Method::PUT, &path, Some(("application/json", &wanted))).await;
        return;
    }
    if current.is_some() {
        delete(server, &path).await;
    }
    if let Some(fields) = wanted.as_object_mut() {
        fields.remove("status");
    }
    wanted["metadata"] = json!({
        "name": wanted["metadata"]["name"], "annotations": wanted["metadata"]["annotations"],
    });
    server.as_admin(Method::POST, DEFINITIONS, Some(("application/json", &wanted))).await;
}

/// The number of attempts to see that the old definition is deleted.
const ATTEMPTS: u32 = 50;

/// Deletes the old definition, because names are immutable.
async fn delete(server: &Upstream, path: &str) {
    server.as_admin(Method::DELETE, path, None).await;
    for _ in 0..ATTEMPTS {
        if server.as_admin(Method::GET, path, None).await.status == StatusCode::NOT_FOUND {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

/// Makes a good definition one that breaks the rule.
fn spoil(definition: &mut Value, fault: Fault) {
    let schema = "/spec/versions/0/schema/openAPIV3Schema/properties";
    let patch = PROPERTIES.iter().find(|(known, _)| *known == fault).map(|(_, patch)| *patch);
    if let (Some(properties), Some(patch)) = (definition.pointer_mut(schema), patch)
        && let Ok(patch) = serde_json::from_str(patch)
    {
        patch::merge(properties, &patch);
    }
    match fault {
        Fault::SchemaStatusUnserved => {
            patch::set(definition, "/spec/versions/0/subresources", None);
        }
        Fault::SchemaReservedGroup => {
            definition["spec"]["group"] = "devices.k8s.io".into();
            definition["metadata"]["name"] = "gadgets.devices.k8s.io".into();
            // Servers reject such a group without a statement on its approval.
            definition["metadata"]["annotations"] =
                json!({ APPROVAL: "unapproved, an experiment" });
        }
        Fault::SchemaControllerKind => {
            definition["spec"]["names"]["kind"] = "GadgetController".into();
            definition["spec"]["names"]["listKind"] = "GadgetControllerList".into();
        }
        _ => {}
    }
}

/// The definition of a resource that breaks no rule.
fn sample() -> Value {
    let text = |length: u32| json!({ "type": "string", "maxLength": length });
    let condition = json!({
        "type": "object",
        "required": ["type", "status", "lastTransitionTime", "reason", "message"],
        "properties": {
            "type": text(316),
            "status": { "type": "string", "enum": ["True", "False", "Unknown"] },
            "observedGeneration": { "type": "integer", "format": "int64" },
            "lastTransitionTime": { "type": "string", "format": "date-time" },
            "reason": { "type": "string", "minLength": 1, "maxLength": 1024 },
            "message": text(32_768),
        },
    });
    let spec = json!({
        "mode": { "type": "string", "enum": ["Fast", "Slow"] },
        "replicas": { "type": "integer", "format": "int32" },
        "configRef": {
            "type": "object", "required": ["name"], "properties": { "name": text(253) },
        },
    });
    let status = json!({
        "lastSyncTime": { "type": "string", "format": "date-time" },
        "conditions": {
            "type": "array", "maxItems": 20, "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["type"], "items": condition,
        },
    });
    let properties = json!({
        "apiVersion": { "type": "string" },
        "kind": { "type": "string" },
        "metadata": { "type": "object" },
        "spec": { "type": "object", "properties": spec },
        "status": { "type": "object", "properties": status },
    });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": "gadgets.devices.example.com", "annotations": {} },
        "spec": {
            "group": "devices.example.com",
            "scope": "Namespaced",
            "names": {
                "plural": "gadgets", "singular": "gadget", "kind": "Gadget",
                "listKind": "GadgetList",
            },
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": { "status": {} },
                "schema": { "openAPIV3Schema": { "type": "object", "properties": properties } },
            }],
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_changes_the_definition() {
        for fault in Fault::all().filter(|fault| of(*fault).is_some()) {
            let mut definition = sample();
            spoil(&mut definition, fault);
            assert_ne!(definition, sample(), "{fault}");
        }
    }
}
