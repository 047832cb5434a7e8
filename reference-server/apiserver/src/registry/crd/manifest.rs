//! Parses a CRD manifest.

use std::sync::Arc;

use serde_json::{Value, json};

use super::webhook::Webhook;
use super::{CustomType, Names, Version, text};
use crate::registry::builtin::{Cell, Column, Scale};
use kubeproof_apimachinery::schema::meta::with_type_meta;
use kubeproof_apimachinery::schema::{FieldError, Path, Schema};

pub(super) fn read(manifest: &Value) -> Result<CustomType, Vec<FieldError>> {
    let mut errors = Vec::new();
    let spec = &manifest["spec"];
    let group = text(spec, "group").to_owned();
    let names = read_names(&spec["names"]);
    let list = spec["versions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let root = Path::Root;
    let spec_path = root.field("spec");
    let versions_path = spec_path.field("versions");
    let mut versions = Vec::new();
    for (index, version) in list.iter().enumerate() {
        match read_version(version, &group, &names.kind, versions_path.index(index)) {
            Ok(version) => versions.push(version),
            Err(more) => errors.extend(more),
        }
    }
    if errors.is_empty() {
        let namespaced = spec["scope"] == "Namespaced";
        Ok(CustomType { group, names, namespaced, versions, webhook: Webhook::of(manifest) })
    } else {
        Err(errors)
    }
}

fn read_names(names: &Value) -> Names {
    let kind = text(names, "kind");
    let or = |field: &str, default: String| match text(names, field) {
        "" => default,
        given => given.to_owned(),
    };
    Names {
        plural: text(names, "plural").to_owned(),
        singular: or("singular", kind.to_lowercase()),
        kind: kind.to_owned(),
        list_kind: or("listKind", format!("{kind}List")),
        short_names: strings(&names["shortNames"]),
        categories: strings(&names["categories"]),
    }
}

fn read_version(
    version: &Value,
    group: &str,
    kind: &str,
    path: Path<'_>,
) -> Result<Version, Vec<FieldError>> {
    let name = text(version, "name").to_owned();
    let schema_path = path.field("schema");
    let schema = Schema::from_openapi_at(
        &version["schema"]["openAPIV3Schema"],
        schema_path.field("openAPIV3Schema"),
    )?;
    let subresources = &version["subresources"];
    let deprecated = version["deprecated"] == true;
    let warning = match text(version, "deprecationWarning") {
        "" => format!("{group}/{name} {kind} is deprecated"),
        given => given.to_owned(),
    };
    Ok(Version {
        served: version["served"] == true,
        stored: version["storage"] == true,
        deprecation_warning: deprecated.then_some(warning),
        schema: Arc::new(with_type_meta(schema)),
        has_status: subresources["status"].is_object(),
        scale: subresources["scale"].as_object().map(|_| read_scale(&subresources["scale"])),
        columns: read_columns(&version["additionalPrinterColumns"]),
        selectable_fields: read_selectable(&version["selectableFields"]),
        name,
    })
}

fn read_scale(scale: &Value) -> Scale {
    let selector = text(scale, "labelSelectorPath");
    Scale {
        spec_replicas: pointer(text(scale, "specReplicasPath")),
        status_replicas: pointer(text(scale, "statusReplicasPath")),
        selector: (!selector.is_empty()).then(|| pointer(selector)),
    }
}

/// A resource without columns has a column for its age.
fn read_columns(columns: &Value) -> Vec<Column> {
    let age = [json!({"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"})];
    let columns = match columns.as_array() {
        Some(columns) if !columns.is_empty() => columns.as_slice(),
        _ => &age,
    };
    let read = |column: &Value| Column {
        name: text(column, "name").to_owned().into(),
        kind: text(column, "type").to_owned().into(),
        format: text(column, "format").to_owned().into(),
        description: text(column, "description").to_owned().into(),
        priority: column["priority"]
            .as_i64()
            .and_then(|priority| i32::try_from(priority).ok())
            .unwrap_or(0),
        cell: Cell::JsonPath(text(column, "jsonPath").to_owned()),
    };
    columns.iter().map(read).collect()
}

fn read_selectable(fields: &Value) -> Vec<(String, String)> {
    let read = |field: &Value| {
        let path = text(field, "jsonPath");
        (path.trim_start_matches('.').to_owned(), pointer(path))
    };
    fields.as_array().into_iter().flatten().map(read).collect()
}

/// Returns the JSON pointer of a simple path such as `.spec.replicas`.
fn pointer(path: &str) -> String {
    path.replace('~', "~0").replace('/', "~1").replace('.', "/")
}

fn strings(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}
