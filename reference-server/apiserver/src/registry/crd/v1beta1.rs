//! Reads definitions in the version v1beta1, in which kube-apiserver stores them.

use serde_json::{Map, Value, json};

/// The fields that v1beta1 can have once for all versions, and their names in a version.
const SHARED: [(&str, &str); 3] = [
    ("validation", "schema"),
    ("subresources", "subresources"),
    ("additionalPrinterColumns", "additionalPrinterColumns"),
];

/// Converts a definition to v1. A definition in v1 stays as it is.
pub(crate) fn convert(definition: &mut Value) {
    if definition["apiVersion"] != "apiextensions.k8s.io/v1beta1" {
        return;
    }
    definition["apiVersion"] = "apiextensions.k8s.io/v1".into();
    let Some(spec) = definition["spec"].as_object_mut() else { return };
    let version = spec.remove("version");
    if spec.get("versions").and_then(Value::as_array).is_none_or(Vec::is_empty) {
        spec.insert(
            "versions".to_owned(),
            json!([{"name": version.unwrap_or_default(), "served": true, "storage": true}]),
        );
    }
    let shared = SHARED.map(|(from, to)| (to, spec.remove(from)));
    let versions = spec.get_mut("versions").and_then(Value::as_array_mut);
    for version in versions.into_iter().flatten().filter_map(Value::as_object_mut) {
        for (name, value) in &shared {
            if let (Some(value), None) = (value, version.get(*name)) {
                version.insert((*name).to_owned(), value.clone());
            }
        }
        rename_paths(version);
    }
    if let Some(conversion) = spec.get_mut("conversion").and_then(Value::as_object_mut) {
        convert_webhook(conversion);
    }
    // In v1beta1, the default is to keep unknown fields.
    spec.entry("preserveUnknownFields").or_insert(Value::Bool(true));
}

fn rename_paths(version: &mut Map<String, Value>) {
    let columns = version.get_mut("additionalPrinterColumns").and_then(Value::as_array_mut);
    for column in columns.into_iter().flatten().filter_map(Value::as_object_mut) {
        if let Some(path) = column.remove("JSONPath") {
            column.insert("jsonPath".to_owned(), path);
        }
    }
}

fn convert_webhook(conversion: &mut Map<String, Value>) {
    let client = conversion.remove("webhookClientConfig");
    let versions = conversion.remove("conversionReviewVersions");
    if let Some(client) = client {
        let mut webhook = json!({"clientConfig": client});
        if let Some(versions) = versions {
            webhook["conversionReviewVersions"] = versions;
        }
        conversion.insert("webhook".to_owned(), webhook);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_all_versions_move_into_each_version() {
        let names = json!({"plural": "gadgets", "kind": "Gadget"});
        let schema = json!({"openAPIV3Schema": {"type": "object"}});
        let column = |path: &str| json!([{"name": "A", "type": "string", path: ".spec.a"}]);
        let client = json!({"url": "https://example.com"});
        let mut definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1beta1", "kind": "CustomResourceDefinition",
            "spec": {
                "group": "example.com", "names": names, "version": "v1", "validation": schema,
                "additionalPrinterColumns": column("JSONPath"), "preserveUnknownFields": false,
                "versions": [{"name": "v1", "served": true, "storage": true}],
                "conversion": {
                    "strategy": "Webhook", "webhookClientConfig": client,
                    "conversionReviewVersions": ["v1"],
                },
            },
        });
        convert(&mut definition);
        let version = json!({
            "name": "v1", "served": true, "storage": true, "schema": schema,
            "additionalPrinterColumns": column("jsonPath"),
        });
        let webhook = json!({"clientConfig": client, "conversionReviewVersions": ["v1"]});
        let expected = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "spec": {
                "group": "example.com", "names": names, "preserveUnknownFields": false,
                "versions": [version], "conversion": {"strategy": "Webhook", "webhook": webhook},
            },
        });
        assert_eq!(definition, expected);
        let before = definition.clone();
        convert(&mut definition);
        assert_eq!(definition, before, "v1 stays as it is");
    }
}
