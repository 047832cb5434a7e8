//! Writes the data files.

use std::fmt::Write as _;

use serde_json::Value;

use super::assemble::{Definition, Field, META, Package};
use super::discovery::{Kind, Version};
use super::openapi::{KINDS, UNIONS};

/// The verbs of a usual resource, which are written as `*`.
pub(crate) const ALL_VERBS: [&str; 8] =
    ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

/// Returns `apps.v1.types` of `io.k8s.api.apps.v1`.
pub(crate) fn file_name(package: &Package) -> String {
    let mut labels = package.name.rsplit('.');
    let version = labels.next().unwrap_or_default();
    format!("{}.{version}.types", labels.next().unwrap_or_default())
}

/// Returns the text of the definitions of a package.
pub(crate) fn package(package: &Package) -> String {
    let mut text = format!("package {}\n", package.name);
    for definition in &package.definitions {
        text.push('\n');
        text.push_str(&header(definition));
        for field in &definition.fields {
            text.push_str(&line(field));
        }
    }
    text
}

fn header(definition: &Definition) -> String {
    let mut header = definition.name.clone();
    if definition.schema["x-kubernetes-map-type"] == "atomic" {
        header.push_str(" map=atomic");
    }
    header.extend(union(&definition.schema[UNIONS][0]));
    for kind in definition.schema[KINDS].as_array().into_iter().flatten() {
        let text = |field: &str| kind[field].as_str().unwrap_or_default();
        // Each group has the kinds of metadata, such as DeleteOptions. One of them is enough.
        if definition.name.starts_with(META) && !text("group").is_empty() {
            continue;
        }
        let _ = write!(header, " kind={}/{}/{}", text("group"), text("version"), text("kind"));
    }
    header.push('\n');
    header
}

/// Returns the attribute of a union.
fn union(union: &Value) -> Option<String> {
    let fields = union["fields-to-discriminateBy"].as_object()?;
    let fields: Vec<_> = fields.keys().map(String::as_str).collect();
    let discriminator = union["discriminator"].as_str().unwrap_or_default();
    Some(format!(" union={discriminator}:{}", fields.join(",")))
}

fn line(field: &Field) -> String {
    let mut words = vec![field.number.to_string(), field.name.clone(), field.ty.clone()];
    let flags = [
        ("required", field.required),
        ("keep", field.keep),
        ("null", field.null),
        ("inline", field.inline),
    ];
    words.extend(flags.iter().filter(|(_, is_set)| *is_set).map(|(word, _)| (*word).to_owned()));
    let schema = &field.schema;
    let keywords = [
        ("list", "x-kubernetes-list-type"),
        ("map", "x-kubernetes-map-type"),
        ("keys", "x-kubernetes-list-map-keys"),
        ("merge", "x-kubernetes-patch-merge-key"),
        ("strategy", "x-kubernetes-patch-strategy"),
    ];
    for (word, keyword) in keywords {
        if let Some(value) = text(&schema[keyword]) {
            words.push(format!("{word}={value}"));
        }
    }
    if !field.enumeration.is_empty() {
        let values: Vec<_> = field.enumeration.iter().map(String::as_str).collect();
        words.push(format!("enum={}", values.join(",")));
    }
    if !field.inline && !schema["default"].is_null() {
        words.push(format!("default={}", schema["default"]));
    }
    format!("  {}\n", words.join(" "))
}

/// Returns a string, or the strings of a list with commas between them.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Array(items) => {
            let items: Vec<_> = items.iter().filter_map(Value::as_str).collect();
            Some(items.join(","))
        }
        _ => None,
    }
}

/// Returns the text of the resources.
pub(crate) fn resources(versions: &[Version]) -> String {
    let mut text = String::new();
    for Version { group, name, resources } in versions {
        let _ = writeln!(text, "{group}/{name}");
        for resource in resources {
            let mut words = vec![
                resource.plural.clone(),
                resource.response_kind.name.clone(),
                resource.scope.to_lowercase(),
                format!("singular={}", resource.singular),
                verbs(&resource.verbs),
            ];
            words.extend(list("short", &resource.short_names));
            words.extend(list("categories", &resource.categories));
            let _ = writeln!(text, "  {}", words.join(" "));
            for subresource in &resource.subresources {
                let kind = kind(&subresource.response_kind);
                let verbs = verbs(&subresource.verbs);
                let _ = writeln!(text, "    {} {kind} {verbs}", subresource.name);
            }
        }
    }
    text
}

fn kind(Kind { group, version, name }: &Kind) -> String {
    if version.is_empty() { name.clone() } else { format!("{group}/{version}/{name}") }
}

fn verbs(verbs: &[String]) -> String {
    let verbs = if verbs == ALL_VERBS { "*".to_owned() } else { verbs.join(",") };
    format!("verbs={verbs}")
}

fn list(name: &str, words: &[String]) -> Option<String> {
    (!words.is_empty()).then(|| format!("{name}={}", words.join(",")))
}
