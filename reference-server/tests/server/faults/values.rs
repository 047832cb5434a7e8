//! The part of the conversation about what may stand in an object.

use serde_json::{Value, json};

use super::{CRDS, Record, TOO_LONG};

const RULED: &str = "/apis/rules.example.com/v1/ruled";

/// A definition whose fields are held together by rules.
pub(super) async fn rules(talk: &mut Record) {
    let integer = |rules: Value| json!({ "type": "integer", "x-kubernetes-validations": rules });
    let spec = json!({
        "type": "object",
        "x-kubernetes-validations": [{
            "rule": "!has(self.low) || self.low <= 5", "message": "must be low", "reason": "FieldValueForbidden", "fieldPath": ".low",
        }],
        "properties": {
            "low": { "type": "integer" },
            "lax": { "type": "integer" },
            "fixed": integer(json!([{ "rule": "self == oldSelf" }])),
            "counter": integer(json!([{ "rule": "oldSelf.hasValue() || self == 0", "optionalOldSelf": true }])),
            "even": integer(json!([{ "rule": "self / 2 * 2 == self", "messageExpression": "'made of ' + (self > 0 ? 'much' : 'little')" }])),
            "when": { "type": "string", "format": "date-time", "x-kubernetes-validations": [{ "rule": "self.getFullYear() > 2000" }] },
            "steps": {
                "type": "array", "maxItems": 5, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                "items": {
                    "type": "object", "required": ["name"],
                    "properties": { "name": { "type": "string" }, "n": integer(json!([{ "rule": "self >= oldSelf" }, { "rule": "self < 9" }])) },
                },
            },
        },
    });
    let status =
        json!({ "type": "object", "properties": { "seen": integer(json!([{ "rule": "self < 9" }])) } });
    let definition = |spec: &Value| {
        json!({
            "metadata": { "name": "ruled.rules.example.com" },
            "spec": {
                "group": "rules.example.com", "scope": "Cluster", "names": { "plural": "ruled", "kind": "Ruled" },
                "versions": [{
                    "name": "v1", "served": true, "storage": true, "subresources": { "status": {} },
                    "schema": { "openAPIV3Schema": { "type": "object", "properties": { "spec": spec, "status": status } } },
                }],
            },
        })
    };
    let list = |rules: Value, items: Value| {
        json!({ "type": "object", "properties": { "list": {
            "type": "array", "x-kubernetes-validations": rules, "items": { "type": "string", "x-kubernetes-validations": items },
        } } })
    };
    for broken in [
        list(json!([{ "rule": "self >" }]), json!([])),
        list(json!([{ "rule": "self.all(x, self.all(y, x == y))" }]), json!([])),
        list(json!([]), json!([{ "rule": "self == oldSelf" }])),
    ] {
        talk.post(&format!("{CRDS}?dryRun=All"), &definition(&broken)).await;
    }
    talk.post(CRDS, &definition(&spec)).await;
    let object = |name: &str, spec: Value| json!({ "apiVersion": "rules.example.com/v1", "kind": "Ruled", "metadata": { "name": name }, "spec": spec });
    for (name, spec) in [
        (
            "a",
            json!({ "fixed": 1, "lax": 20, "when": "2026-01-01T00:00:00Z", "steps": [{ "name": "x", "n": 1 }, { "name": "y", "n": 3 }] }),
        ),
        ("b", json!({ "low": 6, "even": 1 })),
        ("c", json!({ "counter": 1 })),
        ("d", json!({ "steps": [{ "name": "x", "n": 1 }, { "name": "y", "n": 9 }] })),
    ] {
        talk.post(RULED, &object(name, spec)).await;
    }
    let one = format!("{RULED}/a");
    for change in
        [json!({ "fixed": 2 }), json!({ "steps": [{ "name": "y", "n": 3 }, { "name": "x", "n": 1 }] })]
    {
        talk.patch("merge", &one, &json!({ "spec": change })).await;
    }
    talk.patch("merge", &format!("{one}/status"), &json!({ "status": { "seen": 9 } })).await;
    let mut stricter = spec.clone();
    stricter["properties"]["lax"]["maximum"] = json!(9);
    let change = json!({ "spec": definition(&stricter)["spec"] });
    talk.server.merge(&format!("{CRDS}/ruled.rules.example.com"), &change).await;
    talk.patch("merge", &one, &json!({ "metadata": { "labels": { "a": "b" } } })).await;
    talk.server.send("DELETE", &format!("{CRDS}/ruled.rules.example.com"), &[], "").await;
    let definition = format!("{CRDS}/ruled.rules.example.com");
    let gone =
        tokio::time::timeout(TOO_LONG, talk.server.until(&definition, |reply| reply.status == 404)).await;
    talk.note(&format!("the definition is gone: {}", gone.is_ok()));
}
