//! The rules, parameters and mutations of webhooks and admission policies.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::{Checks, has, items, text};
use kubeproof_apimachinery::object::validation::syntax::Syntax;
use kubeproof_apimachinery::schema::{FieldError, Path};

pub(super) const CHECKS: Checks = &[
    ("io.k8s.api.admissionregistration.v1.Mutation", mutation),
    ("io.k8s.api.admissionregistration.v1.ParamKind", parameter_kind),
    ("io.k8s.api.admissionregistration.v1.ParamRef", parameter),
    ("io.k8s.api.admissionregistration.v1.Rule", rule),
    ("io.k8s.api.admissionregistration.v1.RuleWithOperations", operations),
];

const ANY: &str = "*";

fn operations(rule: &Value, path: Path<'_>) -> Vec<FieldError> {
    filled_or_any(rule, "operations", "operations", path).into_iter().collect()
}

fn rule(rule: &Value, path: Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    errors.extend(filled_or_any(rule, "apiGroups", "API groups", path));
    errors.extend(filled_or_any(rule, "apiVersions", "API versions", path));
    errors.extend(empty_items(rule, "apiVersions", path));
    errors.extend(resources(rule, path));
    errors
}

/// A list must have an item. A wildcard is the only item of its list.
fn filled_or_any(rule: &Value, field: &str, what: &str, path: Path<'_>) -> Option<FieldError> {
    let (all, place) = (items(rule, field), path.field(field));
    if all.is_empty() {
        return Some(FieldError::required(place, ""));
    }
    let why = format!("if '*' is present, must not specify other {what}");
    let is_mixed = all.len() > 1 && all.iter().any(|item| item == ANY);
    is_mixed.then(|| FieldError::invalid(place, &json!(all), &why))
}

fn empty_items(rule: &Value, field: &str, path: Path<'_>) -> Vec<FieldError> {
    let place = path.field(field);
    let empty = items(rule, field).iter().enumerate().filter(|(_, item)| **item == "");
    empty.map(|(index, _)| FieldError::required(place.index(index), "")).collect()
}

/// No resource may be part of another one: `a/*` contains `a/b`, and `*/b` contains it, too.
fn resources(rule: &Value, path: Path<'_>) -> Vec<FieldError> {
    let place = path.field("resources");
    let all = items(rule, "resources");
    if all.is_empty() {
        return vec![FieldError::required(place, "")];
    }
    let mut errors = empty_items(rule, "resources", path);
    let (mut whole, mut everywhere) = (HashSet::new(), HashSet::new());
    let parts = all.iter().map(|item| item.as_str().and_then(|text| text.split_once('/')));
    for (index, (resource, part)) in
        parts.enumerate().filter_map(|(index, parts)| Some((index, parts?)))
    {
        let mut contained = |pattern: String| {
            let name = format!("{resource}/{part}");
            let why = format!("if '{pattern}' is present, must not specify {name}");
            errors.push(FieldError::invalid(place.index(index), &json!(name), &why));
        };
        if whole.contains(resource) {
            contained(format!("{resource}/*"));
        }
        if everywhere.contains(part) {
            contained(format!("*/{part}"));
        }
        if part == ANY {
            whole.insert(resource);
        }
        if resource == ANY {
            everywhere.insert(part);
        }
    }
    if all.len() > 1 && all.iter().any(|item| item == "*/*") {
        let why = "if '*/*' is present, must not specify other resources";
        errors.push(FieldError::invalid(place, &json!(all), why));
    }
    let is_plain = |item: &&Value| item.as_str().is_some_and(|text| !text.contains('/'));
    let last_is_named = all.iter().rfind(is_plain).is_some_and(|item| item != ANY);
    if all.iter().any(|item| item == ANY) && last_is_named {
        let why = "if '*' is present, must not specify other resources without subresources";
        errors.push(FieldError::invalid(place, &json!(all), why));
    }
    errors
}

fn parameter(reference: &Value, path: Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    match (!text(reference, "name").is_empty(), has(reference, "selector")) {
        (false, false) => {
            let why = "one of name or selector must be specified";
            errors.push(FieldError::required(path, why));
        }
        (true, true) => {
            let why = "name and selector are mutually exclusive";
            errors.push(FieldError::forbidden(path.field("name"), why));
            errors.push(FieldError::forbidden(path.field("selector"), why));
        }
        _ => {}
    }
    let place = path.field("parameterNotFoundAction");
    match text(reference, "parameterNotFoundAction") {
        "Allow" | "Deny" => {}
        "" => errors.push(FieldError::required(place, "")),
        other => {
            let supported = [json!("Deny"), json!("Allow")];
            errors.push(FieldError::not_supported(place, &json!(other), &supported));
        }
    }
    errors
}

fn parameter_kind(kind: &Value, path: Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let (given, place) = (text(kind, "apiVersion"), path.field("apiVersion"));
    let (group, version) = given.split_once('/').unwrap_or(("", given));
    let mut wrong = Vec::new();
    if version.contains('/') {
        wrong.push(format!("unexpected GroupVersion string: {given}"));
    } else if !given.is_empty() {
        if !group.is_empty() {
            wrong.extend(joined(&Syntax::DnsSubdomain.check(group)));
        }
        wrong.extend(joined(&Syntax::Rfc1035Label.check(version)));
    }
    errors.extend(wrong.iter().map(|why| FieldError::invalid(place, &json!(given), why)));
    let name = text(kind, "kind");
    let wrong = joined(&Syntax::Rfc1035Label.check(&name.to_lowercase()));
    if let Some(why) = wrong.filter(|_| !name.is_empty()) {
        let why = format!("may have mixed case, but should otherwise match: {why}");
        errors.push(FieldError::invalid(path.field("kind"), &json!(name), &why));
    }
    errors
}

/// Returns the mistakes in one text, as kube-apiserver reports them here.
fn joined(mistakes: &[String]) -> Option<String> {
    (!mistakes.is_empty()).then(|| mistakes.join(","))
}

/// A mutation has the expression of its type and no other.
fn mutation(mutation: &Value, path: Path<'_>) -> Vec<FieldError> {
    let kind = text(mutation, "patchType");
    let (needed, other) = match kind {
        "ApplyConfiguration" => ("applyConfiguration", "jsonPatch"),
        "JSONPatch" => ("jsonPatch", "applyConfiguration"),
        _ => return Vec::new(),
    };
    let mut errors = Vec::new();
    if !has(mutation, needed) {
        let why = format!("must be specified when patchType is {kind}");
        errors.push(FieldError::required(path.field(needed), &why));
    }
    if has(mutation, other) {
        let why = format!("must not be specified when patchType is {kind}");
        errors.push(FieldError::invalid(path.field(other), &json!(format!("{{{other}}}")), &why));
    }
    errors
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::super::tests::mistakes;
    use super::*;

    #[rstest]
    #[case(&["pods", "pods/*", "*/scale"], &[])]
    #[case(&["*", "pods/log"], &[])]
    #[case(&["*", "pods"], &["x.resources"])]
    #[case(&["pods/*", "pods/log"], &["x.resources[1]"])]
    #[case(&["*/log", "pods/log"], &["x.resources[1]"])]
    #[case(&["*/*", "pods"], &["x.resources"])]
    #[case(&[""], &["x.resources[0]"])]
    #[case(&[], &["x.resources"])]
    fn resources_do_not_overlap(#[case] resources: &[&str], #[case] expected: &[&str]) {
        let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "resources": resources});
        assert_eq!(mistakes("Rule", &rule), expected);
    }

    #[rstest]
    #[case("RuleWithOperations", json!({"operations": ["*", "CREATE"]}), &["x.operations"])]
    #[case("RuleWithOperations", json!({"operations": []}), &["x.operations"])]
    #[case("Rule", json!({"apiGroups": ["*", "a"], "apiVersions": [""], "resources": ["a"]}),
           &["x.apiGroups", "x.apiVersions[0]"])]
    #[case("ParamRef", json!({}), &["x", "x.parameterNotFoundAction"])]
    #[case("ParamRef", json!({"name": "a", "selector": {}, "parameterNotFoundAction": "Odd"}),
           &["x.name", "x.selector", "x.parameterNotFoundAction"])]
    #[case("ParamKind", json!({"apiVersion": "a.b/v1", "kind": "Kind"}), &[])]
    #[case("ParamKind", json!({"apiVersion": "A/v1", "kind": "a b"}), &["x.apiVersion", "x.kind"])]
    #[case("ParamKind", json!({"apiVersion": "a/b/c", "kind": "K"}), &["x.apiVersion"])]
    #[case("Mutation", json!({"patchType": "JSONPatch", "jsonPatch": {}}), &[])]
    #[case("Mutation", json!({"patchType": "JSONPatch", "applyConfiguration": {}}),
           &["x.jsonPatch", "x.applyConfiguration"])]
    #[case("Mutation", json!({"patchType": "ApplyConfiguration"}), &["x.applyConfiguration"])]
    fn parts_of_webhooks_and_policies_are_checked(
        #[case] name: &str,
        #[case] value: Value,
        #[case] expected: &[&str],
    ) {
        assert_eq!(mistakes(name, &value), expected);
    }
}
