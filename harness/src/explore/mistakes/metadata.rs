//! Mistakes in metadata, which all resources share.

use serde_json::{Value, json};

use super::{Mistake, with};

/// Returns the object with each mistake.
pub(super) fn mistakes(object: &Value) -> Vec<(Value, Mistake)> {
    let mut all = Vec::new();
    let mut add = |at: &str, value: Value, mistake: Mistake| {
        if let Some(invalid) = with(object, at, value) {
            all.push((invalid, mistake));
        }
    };
    let of = |rule, at| Mistake::new(rule, at).loose();
    let labels = [
        (json!({"has space": "x"}), "a label key with a space"),
        (json!({"a/b/c": "x"}), "a label key with two slashes"),
        (json!({"UPPER.prefix/a": "x"}), "a label prefix in upper case"),
        (json!({"x".repeat(64): "x"}), "a label key of 64 characters"),
        (json!({"key": "has space"}), "a label value with a space"),
        (json!({"key": "-x"}), "a label value that begins with a dash"),
        (json!({"key": "x".repeat(64)}), "a label value of 64 characters"),
    ];
    for (value, rule) in labels {
        add("/metadata/labels", value, of(rule, "/metadata/labels"));
    }
    let at = "/metadata/annotations";
    add(at, json!({"has space": "x"}), of("an annotation key with a space", at));
    add(at, json!({"": "x"}), of("an empty annotation key", at));
    let large = json!({"large": "x".repeat(256 * 1024 + 1)});
    add(at, large, of("annotations above 256 KiB", at));
    for at in ["/metadata/labels", at] {
        add(at, json!({"key": 1}), of("a number as label or annotation", at));
    }
    let at = "/metadata/finalizers";
    add(at, json!(["has space/x"]), of("a finalizer with a space", at));
    let at = "/metadata/ownerReferences";
    let owner = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "x"}]);
    add(at, owner, of("an owner without a uid", at));
    let owner = json!([{"apiVersion": "v1", "kind": "", "name": "x", "uid": "1"}]);
    add(at, owner, of("an owner without a kind", at));
    let at = "/metadata/name";
    add(at, json!("a/b"), of("a name with a slash", at).of_create());
    // The names of roles are any segments of a path.
    if !object["apiVersion"].as_str().is_some_and(|group| group.starts_with("rbac.")) {
        for (name, rule) in [
            ("Upper-Case".to_owned(), "a name in upper case"),
            ("has space".to_owned(), "a name with a space"),
            ("-x".to_owned(), "a name that begins with a dash"),
            ("x".repeat(254), "a name of 254 characters"),
        ] {
            add(at, json!(name), of(rule, at).of_create());
        }
    }
    add("/kind", json!("Other"), of("another kind", "/kind"));
    add("/apiVersion", json!("other.dev/v1"), of("another apiVersion", "/apiVersion"));
    if object["metadata"]["namespace"].is_string() {
        let at = "/metadata/namespace";
        add(at, json!("kubeproof-other"), of("another namespace", at));
    }
    all
}
