//! Warnings about formats in the schemas of a definition that the server ignores.

use serde_json::Value;

/// The formats of strings, without dashes.
const STRINGS: [&str; 26] = [
    "bsonobjectid",
    "byte",
    "cidr",
    "creditcard",
    "date",
    "datetime",
    "duration",
    "email",
    "hexcolor",
    "hostname",
    "ipv4",
    "ipv6",
    "isbn",
    "isbn10",
    "isbn13",
    "k8slongname",
    "k8sshortname",
    "mac",
    "password",
    "rgbcolor",
    "ssn",
    "uri",
    "uuid",
    "uuid3",
    "uuid4",
    "uuid5",
];

/// Returns the warnings about formats that are new in the definition.
pub(crate) fn warnings(definition: &Value, old: Option<&Value>) -> Vec<String> {
    let known = old.map(unrecognized).unwrap_or_default();
    let new = unrecognized(definition);
    let new = new.into_iter().filter(|format| !known.contains(format));
    new.map(|format| format!("unrecognized format {format:?}")).collect()
}

fn unrecognized(definition: &Value) -> Vec<&str> {
    let mut found = Vec::new();
    for version in definition["spec"]["versions"].as_array().into_iter().flatten() {
        collect(&version["schema"]["openAPIV3Schema"], &mut found);
    }
    found
}

fn collect<'v>(schema: &'v Value, found: &mut Vec<&'v str>) {
    if let Some(format) = schema["format"].as_str().filter(|format| !format.is_empty())
        && !is_known(schema["type"].as_str().unwrap_or_default(), format)
        && !found.contains(&format)
    {
        found.push(format);
    }
    for field in ["items", "not", "additionalProperties", "additionalItems"] {
        collect_any(&schema[field], found);
    }
    for field in ["allOf", "anyOf", "oneOf"] {
        collect_any(&schema[field], found);
    }
    for field in ["properties", "patternProperties", "definitions", "dependencies"] {
        for schema in schema[field].as_object().into_iter().flat_map(serde_json::Map::values) {
            collect_any(schema, found);
        }
    }
}

/// Collects the formats of a schema or of a list of schemas.
fn collect_any<'v>(value: &'v Value, found: &mut Vec<&'v str>) {
    match value {
        Value::Object(_) => collect(value, found),
        Value::Array(schemas) => schemas.iter().for_each(|schema| collect_any(schema, found)),
        _ => {}
    }
}

fn is_known(kind: &str, format: &str) -> bool {
    match kind {
        "" | "string" => STRINGS.contains(&format.replace('-', "").as_str()),
        "integer" => matches!(format, "int32" | "int64"),
        "number" => matches!(format, "float" | "double"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn definition(schema: &Value) -> Value {
        json!({"spec": {"versions": [{"schema": {"openAPIV3Schema": schema}}]}})
    }

    #[test]
    fn unknown_formats_have_a_warning() {
        let known = json!([
            {"type": "string", "format": "date-time"}, {"format": "k8s-short-name"},
            {"type": "integer", "format": "int64"}, {"type": "number", "format": "double"},
        ]);
        let unknown = json!({
            "a": {"type": "string", "format": "int32"}, "b": {"type": "object", "format": "date"},
            "c": {"items": {"type": "integer", "format": "double"}}, "d": {"format": "int32"},
        });
        let definition = definition(&json!({"allOf": known, "properties": unknown}));
        let expected = ["int32", "date", "double"].map(|it| format!("unrecognized format {it:?}"));
        assert_eq!(warnings(&definition, None), expected);
    }

    #[test]
    fn an_update_warns_about_new_formats() {
        let old = definition(&json!({"format": "a"}));
        let new = definition(&json!({"format": "a", "items": {"format": "b"}}));
        assert!(warnings(&old, Some(&old)).is_empty());
        assert_eq!(warnings(&new, Some(&old)), ["unrecognized format \"b\""]);
    }
}
