//! Checks that a schema is structural. Exactly one place defines the type of each field, so that
//! the server can prune, default and merge.

use serde_json::{Map, Value, json};

use super::rules;

use kubeproof_apimachinery::schema::{FieldError, Path, Schema};

/// Keywords of JSON Schema that structural schemas must not have.
const FORBIDDEN: [&str; 5] = ["$ref", "definitions", "dependencies", "id", "patternProperties"];

/// Keywords that value validations must not have.
const SKELETON_ONLY: [&str; 9] = [
    "additionalProperties",
    "default",
    "description",
    "nullable",
    "title",
    "type",
    "x-kubernetes-int-or-string",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-validations",
];

/// The place of a node, for rules that depend on it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Root,
    Property,
    Items,
    AdditionalProperties,
}

/// Returns the errors in the schema of one version at `path`.
pub(super) fn validate(document: &Value, path: Path<'_>) -> Vec<FieldError> {
    let mut check = Check { errors: Vec::new() };
    check.node(document, path, Place::Root);
    if check.errors.is_empty() {
        match Schema::from_openapi_at(document, path) {
            Ok(schema) => {
                check.defaults(document, &schema, path);
                check.errors.extend(rules::validate(&schema, path));
            }
            Err(errors) => check.errors.extend(errors),
        }
    }
    check.errors
}

struct Check {
    errors: Vec<FieldError>,
}

impl Check {
    fn node(&mut self, document: &Value, path: Path<'_>, place: Place) {
        let Some(keywords) = document.as_object() else {
            self.errors.push(FieldError::invalid(path, document, "must be a schema object"));
            return;
        };
        for keyword in FORBIDDEN.iter().filter(|keyword| keywords.contains_key(**keyword)) {
            self.errors.push(FieldError::forbidden(path.field(keyword), "must not be set"));
        }
        if keywords.get("uniqueItems") == Some(&json!(true)) {
            let why =
                "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
            self.errors.push(FieldError::forbidden(path.field("uniqueItems"), why));
        }
        self.type_of(keywords, path, place);
        self.lists(keywords, path);
        self.extensions(keywords, path);
        self.children(keywords, path, place);
        for keyword in ["allOf", "anyOf", "oneOf"] {
            let path = path.field(keyword);
            for (index, part) in
                keywords.get(keyword).and_then(Value::as_array).into_iter().flatten().enumerate()
            {
                self.value_validation(
                    part,
                    path.index(index),
                    is_true(keywords, "x-kubernetes-int-or-string"),
                );
            }
        }
        if let Some(part) = keywords.get("not") {
            self.value_validation(part, path.field("not"), false);
        }
    }

    fn type_of(&mut self, keywords: &Map<String, Value>, path: Path<'_>, place: Place) {
        let kind = keywords.get("type").and_then(Value::as_str).unwrap_or_default();
        let is_int_or_string = is_true(keywords, "x-kubernetes-int-or-string");
        let at = path.field("type");
        let needs_type =
            !is_int_or_string && !is_true(keywords, "x-kubernetes-preserve-unknown-fields");
        if kind.is_empty() && (needs_type || place == Place::Root) {
            let why = match place {
                Place::Root => "must not be empty at the root",
                Place::Property => "must not be empty for specified object fields",
                Place::Items => "must not be empty for specified array items",
                Place::AdditionalProperties => {
                    "must not be empty for specified additionalProperties"
                }
            };
            self.errors.push(FieldError::required(at, why));
        } else if place == Place::Root && kind != "object" {
            self.errors.push(FieldError::invalid(at, &json!(kind), "must be object at the root"));
        }
    }

    fn lists(&mut self, keywords: &Map<String, Value>, path: Path<'_>) {
        let kind = keywords.get("type").and_then(Value::as_str).unwrap_or_default();
        let items = keywords.get("items");
        if kind == "array" && items.is_none() {
            self.errors.push(FieldError::required(path.field("items"), "must be specified"));
        }
        if items.is_some_and(Value::is_array) {
            let why = "items must be a schema object and not an array";
            self.errors.push(FieldError::forbidden(path.field("items"), why));
        }
        let Some(list_type) = keywords.get("x-kubernetes-list-type") else { return };
        let at = path.field("x-kubernetes-list-type");
        if kind != "array" {
            self.errors.push(FieldError::invalid(
                path.field("type"),
                &json!(kind),
                "must be array if x-kubernetes-list-type is set",
            ));
        }
        let items = items.unwrap_or(&Value::Null);
        let keys =
            keywords.get("x-kubernetes-list-map-keys").and_then(Value::as_array).map(Vec::as_slice);
        let keys_at = path.field("x-kubernetes-list-map-keys");
        match list_type.as_str() {
            Some("map") => {
                if items["type"] != "object" {
                    let why = "must be object if parent array's x-kubernetes-list-type is map";
                    let place = path.field("items");
                    self.errors.push(FieldError::invalid(place.field("type"), &items["type"], why));
                }
                let keys = keys.unwrap_or_default();
                if keys.is_empty() {
                    let why = "must not be empty if x-kubernetes-list-type is map";
                    self.errors.push(FieldError::required(keys_at, why));
                }
                self.list_map_keys(keys, items, keys_at);
            }
            Some("set")
                if matches!(items["type"].as_str(), Some("object" | "array"))
                    && !is_atomic(items) =>
            {
                let why = "items of a list of type set must be scalars, or atomic";
                self.errors.push(FieldError::invalid(at, list_type, why));
            }
            _ => {}
        }
        if list_type != "map" && keys.is_some_and(|keys| !keys.is_empty()) {
            let why = "must be map if x-kubernetes-list-map-keys is non-empty";
            self.errors.push(FieldError::invalid(at, list_type, why));
        }
    }

    fn list_map_keys(&mut self, keys: &[Value], items: &Value, path: Path<'_>) {
        for (index, key) in keys.iter().enumerate() {
            let name = key.as_str().unwrap_or_default();
            let at = path.index(index);
            if keys[..index].contains(key) {
                self.errors.push(FieldError::duplicate(at, key));
            }
            let Some(property) = items["properties"].get(name) else {
                self.errors.push(FieldError::invalid(at, key, "must be a property of the items"));
                continue;
            };
            let required = items["required"].as_array().is_some_and(|names| names.contains(key));
            if !required && property.get("default").is_none() {
                let why =
                    "must be required, or have a default, as it is a key of a list of type map";
                self.errors.push(FieldError::required(at, why));
            }
        }
    }

    fn extensions(&mut self, keywords: &Map<String, Value>, path: Path<'_>) {
        if keywords.get("x-kubernetes-preserve-unknown-fields") == Some(&json!(false)) {
            let at = path.field("x-kubernetes-preserve-unknown-fields");
            self.errors.push(FieldError::invalid(at, &json!(false), "must be true or undefined"));
        }
        let embedded = is_true(keywords, "x-kubernetes-embedded-resource");
        let opaque = !is_true(keywords, "x-kubernetes-preserve-unknown-fields")
            && !keywords.contains_key("properties");
        if embedded && keywords.get("type") != Some(&json!("object")) {
            let kind = keywords.get("type").unwrap_or(&Value::Null);
            let why = "must be object if x-kubernetes-embedded-resource is true";
            self.errors.push(FieldError::invalid(path.field("type"), kind, why));
        }
        if embedded && opaque {
            let why = "must not be empty if x-kubernetes-embedded-resource is true without \
                       x-kubernetes-preserve-unknown-fields";
            self.errors.push(FieldError::required(path.field("properties"), why));
        }
    }

    fn children(&mut self, keywords: &Map<String, Value>, path: Path<'_>, place: Place) {
        let properties = path.field("properties");
        let fields = keywords.get("properties").and_then(Value::as_object);
        for (name, document) in fields.into_iter().flatten() {
            let at = properties.key(name);
            if place == Place::Root && name == "metadata" {
                self.metadata(document, at);
            }
            self.node(document, at, Place::Property);
        }
        if let Some(items) = keywords.get("items").filter(|items| !items.is_array()) {
            self.node(items, path.field("items"), Place::Items);
        }
        let Some(additional) = keywords.get("additionalProperties") else { return };
        let at = path.field("additionalProperties");
        match additional {
            _ if fields.is_some_and(|fields| !fields.is_empty()) => {
                let why = "additionalProperties and properties are mutual exclusive";
                self.errors.push(FieldError::forbidden(at, why));
            }
            _ if place == Place::Root => {
                self.errors.push(FieldError::forbidden(at, "must not be used at the root"));
            }
            Value::Bool(false) => {
                self.errors
                    .push(FieldError::forbidden(at, "additionalProperties cannot be set to false"));
            }
            Value::Bool(true) => {}
            document => self.node(document, at, Place::AdditionalProperties),
        }
    }

    /// A schema may restrict only the names in the metadata.
    fn metadata(&mut self, document: &Value, path: Path<'_>) {
        let properties =
            document["properties"].as_object().into_iter().flatten().map(|(name, _)| name.as_str());
        let others =
            document.as_object().into_iter().flatten().map(|(keyword, _)| keyword.as_str());
        let names = properties.filter(|name| !matches!(*name, "name" | "generateName"));
        let keywords =
            others.filter(|keyword| !matches!(*keyword, "type" | "properties" | "description"));
        if names.chain(keywords).next().is_some() {
            let why = "must not specify anything other than name and generateName, but metadata \
                       is implicitly specified";
            self.errors.push(FieldError::forbidden(path, why));
        }
    }

    /// `allOf`, `anyOf`, `oneOf` and `not` may restrict values, but not change the structure.
    fn value_validation(&mut self, part: &Value, path: Path<'_>, within_int_or_string: bool) {
        let Some(keywords) = part.as_object() else { return };
        for keyword in SKELETON_ONLY.iter().filter(|keyword| keywords.contains_key(**keyword)) {
            if !(within_int_or_string && *keyword == "type") {
                self.errors.push(FieldError::forbidden(
                    path.field(keyword),
                    "must be empty to be structural",
                ));
            }
        }
        let properties = path.field("properties");
        for (name, child) in
            keywords.get("properties").and_then(Value::as_object).into_iter().flatten()
        {
            self.value_validation(child, properties.key(name), false);
        }
        if let Some(items) = keywords.get("items") {
            self.value_validation(items, path.field("items"), false);
        }
        for keyword in ["allOf", "anyOf", "oneOf"] {
            let path = path.field(keyword);
            for (index, part) in
                keywords.get(keyword).and_then(Value::as_array).into_iter().flatten().enumerate()
            {
                self.value_validation(part, path.index(index), within_int_or_string);
            }
        }
        if let Some(part) = keywords.get("not") {
            self.value_validation(part, path.field("not"), false);
        }
    }

    /// Every default must be valid and contain no fields to prune.
    fn defaults(&mut self, document: &Value, schema: &Schema, path: Path<'_>) {
        if let Some(default) = &schema.default {
            let at = path.field("default");
            let mut filled = default.clone();
            schema.apply_defaults(&mut filled);
            self.errors.extend(schema.validate_at(&filled, None, at));
            self.errors.extend(schema.rule_violations_at(&filled, at));
            let unknown = schema.unknown_fields(default);
            if !unknown.is_empty() {
                let why = format!("must not have unknown fields: {}", unknown.join(", "));
                self.errors.push(FieldError::invalid(at, default, &why));
            }
        }
        let properties = path.field("properties");
        for (name, child) in document["properties"].as_object().into_iter().flatten() {
            if let Some(schema) = schema.properties.get(name).filter(|schema| !schema.typed) {
                self.defaults(child, schema, properties.key(name));
            }
        }
        if let Some(schema) = &schema.items {
            self.defaults(&document["items"], schema, path.field("items"));
        }
        if let Some(schema) = &schema.additional_properties {
            self.defaults(
                &document["additionalProperties"],
                schema,
                path.field("additionalProperties"),
            );
        }
    }
}

fn is_true(keywords: &Map<String, Value>, keyword: &str) -> bool {
    keywords.get(keyword) == Some(&json!(true))
}

fn is_atomic(items: &Value) -> bool {
    items["x-kubernetes-map-type"] == "atomic" || items["x-kubernetes-list-type"] == "atomic"
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use kubeproof_apimachinery::schema::CauseReason::{self, *};

    /// Returns the errors of a schema with only the property `a`.
    fn mistakes(property: &Value) -> Vec<(String, CauseReason)> {
        let document = json!({"type": "object", "properties": {"a": property}});
        let errors = validate(&document, Path::Root);
        errors.into_iter().map(|error| (error.field, error.reason)).collect()
    }

    #[rstest]
    #[case(json!({"type": "string"}), &[])]
    #[case(json!({}), &[("type", FieldValueRequired)])]
    #[case(json!({"x-kubernetes-preserve-unknown-fields": true}), &[])]
    #[case(json!({"x-kubernetes-preserve-unknown-fields": false, "type": "object"}),
           &[("x-kubernetes-preserve-unknown-fields", FieldValueInvalid)])]
    #[case(json!({"x-kubernetes-int-or-string": true}), &[])]
    #[case(
        json!({"x-kubernetes-int-or-string": true, "type": "string"}),
        &[]
    )]
    #[case(
        json!({
            "x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}],
        }),
        &[]
    )]
    #[case(json!({"type": "text"}), &[("type", FieldValueNotSupported)])]
    #[case(
        json!({
            "type": "object", "properties": {"b": {"type": "string"}},
            "additionalProperties": {"type": "string"},
        }),
        &[("additionalProperties", FieldValueForbidden)]
    )]
    #[case(
        json!({"type": "object", "additionalProperties": {}}),
        &[("additionalProperties.type", FieldValueRequired)]
    )]
    #[case(json!({"type": "array"}), &[("items", FieldValueRequired)])]
    #[case(json!({"type": "array", "items": {}}), &[("items.type", FieldValueRequired)])]
    #[case(
        json!({"type": "array", "items": {"type": "string"}, "uniqueItems": true}),
        &[("uniqueItems", FieldValueForbidden)]
    )]
    #[case(json!({"type": "array", "x-kubernetes-list-type": "map", "items": {"type": "object"}}),
           &[("x-kubernetes-list-map-keys", FieldValueRequired)])]
    #[case(
        json!({
            "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
            "items": {"type": "object", "properties": {"k": {"type": "string"}}},
        }),
        &[("x-kubernetes-list-map-keys[0]", FieldValueRequired)]
    )]
    #[case(json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "object"}}),
           &[("x-kubernetes-list-type", FieldValueInvalid)])]
    #[case(json!({"type": "integer", "default": "one"}), &[("default", FieldValueTypeInvalid)])]
    #[case(
        json!({"type": "integer", "maximum": 3, "default": 4}),
        &[("default", FieldValueInvalid)]
    )]
    #[case(json!({"type": "object", "default": {"x": 1}}), &[("default", FieldValueInvalid)])]
    #[case(json!({"type": "string", "pattern": "("}), &[("pattern", FieldValueInvalid)])]
    #[case(
        json!({"type": "string", "anyOf": [{"type": "string"}]}),
        &[("anyOf[0].type", FieldValueForbidden)]
    )]
    #[case(json!({"type": "string", "$ref": "#/definitions/x"}), &[("$ref", FieldValueForbidden)])]
    fn mistakes_name_their_keyword(
        #[case] property: Value,
        #[case] expected: &[(&str, CauseReason)],
    ) {
        let expected: Vec<_> = expected
            .iter()
            .map(|(keyword, reason)| (format!("properties[a].{keyword}"), *reason))
            .collect();
        assert_eq!(mistakes(&property), expected);
    }

    #[rstest]
    #[case(json!({"type": "string"}), "type")]
    #[case(json!({}), "type")]
    #[case(
        json!({"type": "object", "additionalProperties": {"type": "string"}}),
        "additionalProperties"
    )]
    #[case(
        json!({
            "type": "object",
            "properties": {
                "metadata": {"type": "object", "properties": {"labels": {"type": "object"}}},
            },
        }),
        "properties[metadata]"
    )]
    fn the_root_is_an_object_with_metadata_of_its_own(
        #[case] document: Value,
        #[case] field: &str,
    ) {
        let errors = validate(&document, Path::Root);
        assert_eq!(errors.into_iter().map(|error| error.field).collect::<Vec<_>>(), [field]);
    }
}
