//! The part of the conversation about what may stand in an object.

use serde_json::{Value, json};

use super::{APPLY, CRDS, DEPLOYMENTS, JSON, Record, TOO_LONG};
use crate::support::CONFIG_MAPS;

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

/// Numbers, nulls, free and embedded parts, and fields that stand there twice.
pub(super) async fn odd(talk: &mut Record) {
    let known = json!({ "type": "object", "properties": { "known": { "type": "string" } } });
    let spec = json!({
        "type": "object",
        "properties": {
            "count": { "type": "integer" },
            "either": { "x-kubernetes-int-or-string": true },
            "free": { "type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": { "strict": known } },
            "map": { "type": "object", "additionalProperties": known },
            "holes": { "type": "array", "items": { "type": "string", "nullable": true } },
            "template": { "type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true },
        },
    });
    let definition = json!({
        "metadata": { "name": "odds.odd.example.com" },
        "spec": {
            "group": "odd.example.com", "scope": "Cluster", "names": { "plural": "odds", "kind": "Odd" },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object", "properties": { "spec": spec } } },
            }],
        },
    });
    talk.post(CRDS, &definition).await;
    let odds = "/apis/odd.example.com/v1/odds";
    for spec in [
        r#"{"count": 1e3, "free": {"strict": {"unknown": 1}}, "map": {"a": {"unknown": 1}}, "holes": ["a", null]}"#,
        r#"{"count": 1.5}"#,
        r#"{"count": 9223372036854775808}"#,
        r#"{"either": true}"#,
        r#"{"template": {"kind": "Pod"}}"#,
    ] {
        let body = format!(
            r#"{{"apiVersion": "odd.example.com/v1", "kind": "Odd", "metadata": {{"name": "odd"}}, "spec": {spec}}}"#
        );
        talk.send("POST", &format!("{odds}?dryRun=All"), &[JSON], &body).await;
    }
    let body =
        r#"{"apiVersion": "odd.example.com/v1", "kind": "Odd", "metadata": {"name": "odd"}, "spec": {}}"#;
    talk.send("POST", odds, &[JSON], body).await;
    let wide = r#"{"spec": {"count": 9007199254740993}}"#;
    let merge = ("content-type", "application/merge-patch+json");
    talk.send("PATCH", &format!("{odds}/odd"), &[merge], wide).await;

    let twice = r#"{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "twice"}, "data": {"a": "1", "a": "2"}, "unknown": 1}"#;
    for mode in ["Ignore", "Warn", "Strict", "strict", ""] {
        let path = format!("{CONFIG_MAPS}?dryRun=All&fieldValidation={mode}");
        talk.send("POST", &path, &[JSON], twice).await;
    }
    let yaml = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: twice\ndata:\n  a: x\n  a: y\n";
    talk.send("POST", &format!("{CONFIG_MAPS}?dryRun=All"), &[("content-type", "application/yaml")], yaml)
        .await;
    talk.send("PATCH", &format!("{CONFIG_MAPS}/twice?fieldManager=m"), &[APPLY], yaml).await;
    let strict = format!("{CONFIG_MAPS}/twice?fieldValidation=Strict");
    talk.send("PATCH", &strict, &[merge], r#"{"unknown": 1}"#).await;

    let template = json!({ "metadata": { "labels": { "a": "b" } }, "spec": { "containers": [{ "name": "a", "image": "b" }] } });
    let mut deployment = json!({
        "metadata": { "name": "scaled" },
        "spec": { "replicas": 1, "selector": { "matchLabels": { "a": "b" } }, "template": template },
    });
    talk.post(DEPLOYMENTS, &deployment).await;
    let scale =
        json!({ "apiVersion": "autoscaling/v1", "kind": "Scale", "spec": { "replicas": 2 } }).to_string();
    talk.send("PATCH", &format!("{DEPLOYMENTS}/scaled/scale?fieldManager=m"), &[APPLY], &scale).await;
    deployment["spec"]["replicas"] = json!(4_294_967_297_i64);
    deployment["metadata"]["name"] = json!("wrapped");
    talk.post(&format!("{DEPLOYMENTS}?dryRun=All"), &deployment).await;
}

/// One object in two versions, its owners and its columns; and data that is sealed.
pub(super) async fn versions(talk: &mut Record) {
    let schema = json!({ "type": "object", "properties": { "spec": { "type": "object", "properties": {
        "list": { "type": "array", "items": { "type": "string" } }, "word": { "type": "string" },
    } } } });
    let version = |name: &str, storage: bool| {
        json!({
            "name": name, "served": true, "storage": storage, "schema": { "openAPIV3Schema": schema },
            "additionalPrinterColumns": [{ "name": "Word", "type": "string", "jsonPath": ".spec.word", "priority": 1 }],
        })
    };
    let definition = json!({
        "metadata": { "name": "pairs.pair.example.com" },
        "spec": {
            "group": "pair.example.com", "scope": "Cluster", "names": { "plural": "pairs", "kind": "Pair" },
            "versions": [version("v1", true), version("v2", false)],
        },
    });
    talk.post(CRDS, &definition).await;
    for (version, manager, spec) in [
        ("v1", "a", json!({ "list": ["a"], "word": "w" })),
        ("v1", "b", json!({ "list": ["b"] })),
        ("v2", "c", json!({ "word": "x" })),
    ] {
        let pair =
            json!({ "apiVersion": format!("pair.example.com/{version}"), "kind": "Pair", "spec": spec })
                .to_string();
        let path = format!("/apis/pair.example.com/{version}/pairs/p?fieldManager={manager}");
        talk.send("PATCH", &path, &[APPLY], &pair).await;
    }
    talk.get("/apis/pair.example.com/v2/pairs/p").await;
    let table = ("accept", "application/json;as=Table;g=meta.k8s.io;v=v1");
    talk.send("GET", "/apis/pair.example.com/v1/pairs?includeObject=Object", &[table], "").await;

    let sealed = json!({ "metadata": { "name": "sealed" }, "data": { "a": "1" }, "immutable": true });
    talk.post(CONFIG_MAPS, &sealed).await;
    for change in [json!({ "data": { "a": "2" } }), json!({ "immutable": false })] {
        talk.patch("merge", &format!("{CONFIG_MAPS}/sealed"), &change).await;
    }
}
