//! The type of the variable `request` of admission.

use std::sync::LazyLock;

use serde_json::json;

use super::super::super::Schema;

/// Returns the schema of a request.
pub(in super::super) fn schema() -> Option<&'static Schema> {
    static SCHEMA: LazyLock<Option<Schema>> = LazyLock::new(|| {
        let text = json!({"type": "string"});
        let texts = json!({"type": "array", "items": text});
        let kind = |name: &str| {
            let fields = json!({"group": text, "version": text, name: text});
            json!({"type": "object", "properties": fields})
        };
        let user = json!({
            "username": text, "uid": text, "groups": texts,
            "extra": {"type": "object", "additionalProperties": texts},
        });
        let fields = json!({
            "kind": kind("kind"), "resource": kind("resource"), "subResource": text,
            "requestKind": kind("kind"), "requestResource": kind("resource"),
            "requestSubResource": text, "name": text, "namespace": text, "operation": text,
            "userInfo": {"type": "object", "properties": user}, "dryRun": {"type": "boolean"},
            // The options have any type.
            "options": {"x-kubernetes-int-or-string": true},
        });
        Schema::from_openapi(&json!({"type": "object", "properties": fields})).ok()
    });
    SCHEMA.as_ref()
}
