//! The sample custom resource of a server: `gadgets.v1.devices.example.com`.

use serde_json::{Value, json};

use crate::config::disabled::Capability;
use crate::endpoints::bootstrap;
use crate::registry::Lookup;
use crate::registry::crd;
use crate::registry::crd::strategy::serve;
use crate::registry::encode;
use crate::server::ApiServer;
use kubeproof_apimachinery::object::{Object, timestamp, uuid};
use kubeproof_storage::WriteError;

/// Adds the sample resource if the configuration requests it, or makes it the only resource.
pub(crate) async fn add_sample(api: &ApiServer, wanted: bool) -> Result<(), WriteError> {
    if !wanted && !api.disabled_capabilities.on(Capability::OtherResources) {
        return Ok(());
    }
    let mut definition = definition();
    api.disabled_capabilities.trim_definition(&mut definition);
    if api.disabled_capabilities.on(Capability::Status)
        && let Some(properties) = definition
            .pointer_mut("/spec/versions/0/schema/openAPIV3Schema/properties")
            .and_then(Value::as_object_mut)
    {
        properties.remove("status");
    }
    let Lookup::Found(ty) =
        api.registry.current().find("apiextensions.k8s.io", "v1", "customresourcedefinitions")
    else {
        // CRDs may be disabled, so this function establishes the sample itself.
        definition["status"] = crd::status(&definition, &[], &timestamp(0));
        serve(&api.registry, &definition);
        return Ok(());
    };
    definition.set_meta("uid", uuid());
    definition.set_meta("creationTimestamp", timestamp(0));
    ty.prepare_create(&mut definition);
    ty.default(&mut definition);
    definition["status"] = crd::status(&definition, &[], &timestamp(0));
    bootstrap::create_draft(api, &ty, &encode::draft(&ty, &definition)).await?;
    ty.strategy.after_create(api.context(), &definition);
    Ok(())
}

fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "gadgets.devices.example.com"},
        "spec": {
            "group": "devices.example.com",
            "scope": "Namespaced",
            "names": {
                "plural": "gadgets", "singular": "gadget", "kind": "Gadget",
                "listKind": "GadgetList",
            },
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": properties()}},
            }],
        },
    })
}

/// Returns a schema without violations of the conventions.
fn properties() -> Value {
    let text = |length: u32| json!({"type": "string", "maxLength": length});
    json!({
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"type": "object"},
        "spec": {"type": "object", "properties": {
            "mode": {"type": "string", "enum": ["Fast", "Slow"]},
            "replicas": {"type": "integer", "format": "int32"},
            "configRef": {
                "type": "object", "required": ["name"], "properties": {"name": text(253)},
            },
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
