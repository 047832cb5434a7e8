//! Validates the specification of a definition in the internal form.

use kubeproof_apimachinery::object::validation::names::{dns_subdomain, rfc1035_label};
use kubeproof_apimachinery::schema::{FieldError, Path};
use serde_json::{Value, json};

use super::super::text;
use super::{conversion, names, schema, version};

const SCOPES: [&str; 2] = ["Cluster", "Namespaced"];

/// Returns the errors of a specification from [`super::shared::internal`].
pub(super) fn validate(spec: &Value, path: Path<'_>) -> Vec<FieldError> {
    let versions = spec["versions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let list = path.field("versions");
    let mut errors = Vec::new();
    errors.extend(validate_group(text(spec, "group"), path.field("group")));
    errors.extend(validate_scope(&spec["scope"], path.field("scope")));
    errors.extend(missing_schemas(spec, list));
    if spec["preserveUnknownFields"] == true && has_defaults(spec) {
        let why = "must be false in order to use defaults in the schema";
        errors.push(FieldError::invalid(path.field("preserveUnknownFields"), &json!(true), why));
    }
    for (index, version) in versions.iter().enumerate() {
        errors.extend(validate_version(spec, version, list.index(index)));
    }
    errors.extend(validate_versions(versions, list));
    if let Some(first) = spec["version"].as_str().filter(|name| !name.is_empty()) {
        let wrong = rfc1035_label(first);
        let error = || FieldError::invalid(path.field("version"), &json!(first), &wrong.join(","));
        errors.extend((!wrong.is_empty()).then(error));
    }
    errors.extend(names::validate(&spec["names"], path.field("names")));
    let has_status = is_served(&spec["subresources"])
        || versions.iter().any(|version| is_served(&version["subresources"]));
    errors.extend(validate_parts(spec, "validation", has_status, path));
    let at = path.field("conversion");
    let strategy = &spec["conversion"]["strategy"];
    if strategy != "None" && spec["preserveUnknownFields"] == true {
        let why = "must be None if spec.preserveUnknownFields is true";
        errors.push(FieldError::invalid(at.field("strategy"), strategy, why));
    }
    errors.extend(conversion::validate(&spec["conversion"], at));
    errors
}

fn validate_group(group: &str, path: Path<'_>) -> Option<FieldError> {
    if group.is_empty() {
        return Some(FieldError::required(path, ""));
    }
    let wrong = dns_subdomain(group);
    let why = match wrong.as_slice() {
        [] if group.contains('.') => return None,
        [] => "should be a domain with at least one dot".to_owned(),
        wrong => wrong.join(","),
    };
    Some(FieldError::invalid(path, &json!(group), &why))
}

fn validate_scope(scope: &Value, path: Path<'_>) -> Option<FieldError> {
    match scope.as_str() {
        None | Some("") => Some(FieldError::required(path, "")),
        Some(word) if SCOPES.contains(&word) => None,
        Some(_) => Some(FieldError::not_supported(path, scope, &SCOPES.map(Value::from))),
    }
}

fn missing_schemas(spec: &Value, path: Path<'_>) -> Vec<FieldError> {
    if spec["validation"]["openAPIV3Schema"].is_object() {
        return Vec::new();
    }
    let versions = spec["versions"].as_array().into_iter().flatten().enumerate();
    let missing = versions.filter(|(_, version)| !version["schema"]["openAPIV3Schema"].is_object());
    let error = |(index, _)| {
        let version = path.index(index);
        let schema = version.field("schema");
        FieldError::required(schema.field("openAPIV3Schema"), "")
    };
    missing.map(error).collect()
}

fn has_defaults(spec: &Value) -> bool {
    let versions = spec["versions"].as_array().into_iter().flatten();
    let schemas = versions.map(|version| &version["schema"]).chain([&spec["validation"]]);
    schemas.map(|schema| &schema["openAPIV3Schema"]).any(schema::has_default)
}

fn validate_version(spec: &Value, version: &Value, path: Path<'_>) -> Vec<FieldError> {
    let wrong = rfc1035_label(text(version, "name"));
    let name = json!(text(version, "name"));
    let error = || FieldError::invalid(path.field("name"), &name, &wrong.join(","));
    let mut errors: Vec<_> = (!wrong.is_empty()).then(error).into_iter().collect();
    errors.extend(version::validate_warning(version, path));
    let has_status = is_served(&spec["subresources"]) || is_served(&version["subresources"]);
    errors.extend(validate_parts(version, "schema", has_status, path));
    errors
}

/// Validates the parts that the versions can share. `keyword` is the name of the schema.
fn validate_parts(
    holder: &Value,
    keyword: &str,
    has_status: bool,
    path: Path<'_>,
) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let document = &holder[keyword]["openAPIV3Schema"];
    if document.is_object() {
        let at = path.field(keyword);
        errors.extend(schema::validate(document, has_status, at.field("openAPIV3Schema")));
    }
    let at = path.field("subresources");
    errors.extend(version::validate_subresources(&holder["subresources"], at));
    let columns = "additionalPrinterColumns";
    errors.extend(version::validate_columns(&holder[columns], path.field(columns)));
    let fields = &holder["selectableFields"];
    let at = path.field("selectableFields");
    if document.is_object() {
        errors.extend(version::validate_selectable(fields, document, at));
    } else if !fields.is_null() {
        let why = match keyword {
            "schema" => "may only be set when `version.schema.openAPIV3Schema` is not included",
            _ => "may only be set when validations.schema is included",
        };
        errors.push(FieldError::invalid(at, &json!(""), why));
    }
    errors
}

fn validate_versions(versions: &[Value], path: Path<'_>) -> Vec<FieldError> {
    let shown = json!(versions);
    let mut errors = Vec::new();
    let is_double = |(index, version): (usize, &Value)| {
        versions[..index].iter().any(|other| other["name"] == version["name"])
    };
    if versions.iter().enumerate().any(is_double) {
        errors.push(FieldError::invalid(path, &shown, "must contain unique version names"));
    }
    if versions.iter().filter(|version| version["storage"] == true).count() != 1 {
        let why = "must have exactly one version marked as storage version";
        errors.push(FieldError::invalid(path, &shown, why));
    }
    errors
}

fn is_served(subresources: &Value) -> bool {
    subresources["status"].is_object()
}
