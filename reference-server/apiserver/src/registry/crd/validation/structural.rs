//! Checks that a schema is structural. Exactly one place defines the type of each field, so that
//! the server can prune, default and merge.

use serde_json::{Value, json};

use kubeproof_apimachinery::schema::{FieldError, Path, Schema};

use super::super::text;
use super::completeness;

const INT_OR_STRING: &str = "x-kubernetes-int-or-string";
const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";
const EMBEDDED: &str = "x-kubernetes-embedded-resource";

/// The keywords that parts of `allOf`, `anyOf`, `oneOf` and `not` must not have, each with the word
/// for its absence in the error.
const STRUCTURE: [(&str, &str); 12] = [
    ("type", "empty"),
    ("additionalProperties", "undefined"),
    ("default", "undefined"),
    ("title", "empty"),
    ("description", "empty"),
    ("nullable", "false"),
    (PRESERVE, "false"),
    (EMBEDDED, "false"),
    (INT_OR_STRING, "false"),
    ("x-kubernetes-list-map-keys", "empty"),
    ("x-kubernetes-list-type", "undefined"),
    ("x-kubernetes-map-type", "undefined"),
];

/// Keywords that have no place in the internal form of a schema, and their names in the error.
const UNREADABLE: [(&str, &str); 7] = [
    ("id", "id"),
    ("$schema", "schema"),
    ("$ref", "$ref"),
    ("patternProperties", "patternProperties"),
    ("dependencies", "dependencies"),
    ("additionalItems", "additionalItems"),
    ("definitions", "definitions"),
];

/// Why a schema has no structure.
pub(super) enum Failure {
    /// The internal form cannot hold it. The error counts only if there is no other one.
    Unreadable(String),
    /// The errors in the order of their texts.
    Mistakes(Vec<FieldError>),
}

/// The level of a schema, for rules that depend on it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Field,
    Item,
}

/// Returns the parsed schema of `document` at `path` if it is structural.
pub(super) fn validate(document: &Value, path: Path<'_>) -> Result<Schema, Failure> {
    if let Some(why) = unreadable(document) {
        return Err(Failure::Unreadable(why));
    }
    let mut check = Check { errors: completeness::validate(document, path) };
    check.node(document, path, Level::Root);
    let parsed = Schema::from_openapi_at(document, path);
    match parsed {
        Ok(schema) if check.errors.is_empty() => return Ok(schema),
        Ok(_) => {}
        Err(errors) => check.errors.extend(errors),
    }
    check.errors.sort_by_cached_key(ToString::to_string);
    Err(Failure::Mistakes(check.errors))
}

fn unreadable(document: &Value) -> Option<String> {
    let keywords = document.as_object()?;
    if let Some((_, name)) = UNREADABLE.iter().find(|(keyword, _)| keywords.contains_key(*keyword))
    {
        return Some(format!("OpenAPIV3Schema '{name}' is not supported"));
    }
    if document[PRESERVE] == false {
        return Some(format!("internal error: '{PRESERVE}' must be true or undefined"));
    }
    if document["items"].is_array() {
        return Some("OpenAPIV3Schema 'items' must be a schema, but is an array".to_owned());
    }
    let lists = ["allOf", "anyOf", "oneOf"].iter().filter_map(|name| document[*name].as_array());
    let maps = document["properties"].as_object().into_iter().flat_map(|map| map.values());
    let single = ["not", "items", "additionalProperties"].iter();
    let single = single.filter_map(|name| keywords.get(*name));
    lists.flatten().chain(maps).chain(single).find_map(unreadable)
}

struct Check {
    errors: Vec<FieldError>,
}

impl Check {
    fn node(&mut self, document: &Value, path: Path<'_>, level: Level) {
        let kind = text(document, "type");
        match document.get("items") {
            Some(items) => self.node(items, path.field("items"), Level::Item),
            None if kind == "array" => {
                self.errors.push(FieldError::required(path.field("items"), "must be specified"));
            }
            None => {}
        }
        let properties = path.field("properties");
        for (name, child) in document["properties"].as_object().into_iter().flatten() {
            self.node(child, properties.key(name), Level::Field);
        }
        self.additional(document, path, level);
        self.int_or_string(document, path);
        self.restrictions(document, path);
        self.type_of(document, path, level);
        self.embedded(document, path, level);
    }

    fn additional(&mut self, document: &Value, path: Path<'_>, level: Level) {
        let Some(values) = document.get("additionalProperties") else { return };
        let at = path.field("additionalProperties");
        if level == Level::Root {
            self.errors.push(FieldError::forbidden(at, "must not be used at the root"));
        }
        if values.is_object() {
            self.node(values, at, Level::Field);
        }
        if document[EMBEDDED] == true {
            let why = "must not be used if x-kubernetes-embedded-resource is set";
            self.errors.push(FieldError::forbidden(at, why));
        }
    }

    fn int_or_string(&mut self, document: &Value, path: Path<'_>) {
        for keyword in [PRESERVE, EMBEDDED] {
            if document[INT_OR_STRING] == true && document[keyword] == true {
                let why = "must be false if x-kubernetes-int-or-string is true";
                self.errors.push(FieldError::invalid(path.field(keyword), &json!(true), why));
            }
        }
    }

    /// Parts may restrict values, but not change the structure. Numbers and texts are an exception.
    fn restrictions(&mut self, document: &Value, path: Path<'_>) {
        let is_choice = |parts: &Value| *parts == json!([{"type": "integer"}, {"type": "string"}]);
        for keyword in ["allOf", "anyOf", "oneOf"] {
            let parts = &document[keyword];
            if keyword == "anyOf" && is_choice(parts) {
                continue;
            }
            let at = path.field(keyword);
            for (index, part) in parts.as_array().into_iter().flatten().enumerate() {
                let skips_choice = keyword == "allOf" && index == 0 && is_choice(&part["anyOf"]);
                self.restriction(part, at.index(index), skips_choice);
            }
        }
        if let Some(part) = document.get("not") {
            self.restriction(part, path.field("not"), false);
        }
    }

    fn restriction(&mut self, part: &Value, path: Path<'_>, skips_choice: bool) {
        for keyword in ["allOf", "anyOf", "oneOf"] {
            let at = path.field(keyword);
            let parts = part[keyword].as_array().filter(|_| !(skips_choice && keyword == "anyOf"));
            for (index, inner) in parts.into_iter().flatten().enumerate() {
                self.restriction(inner, at.index(index), false);
            }
        }
        for keyword in ["not", "items"] {
            if let Some(inner) = part.get(keyword) {
                self.restriction(inner, path.field(keyword), false);
            }
        }
        let properties = path.field("properties");
        for (name, inner) in part["properties"].as_object().into_iter().flatten() {
            self.restriction(inner, properties.key(name), false);
        }
        for (keyword, word) in STRUCTURE {
            let is_set = part.get(keyword).is_some_and(|value| *value != false);
            if is_set {
                let why = format!("must be {word} to be structural");
                self.errors.push(FieldError::forbidden(path.field(keyword), &why));
            }
        }
        if part.get("x-kubernetes-validations").is_some() {
            let at = path.field("x-kubernetes-validations");
            self.errors.push(FieldError::forbidden(at, "must be empty to be structural"));
        }
        if part["properties"].get("metadata").is_some() {
            let why = "must not be specified in a nested context";
            self.errors.push(FieldError::forbidden(properties.key("metadata"), why));
        }
    }

    fn type_of(&mut self, document: &Value, path: Path<'_>, level: Level) {
        let kind = text(document, "type");
        let at = path.field("type");
        if document[EMBEDDED] == true && kind != "object" {
            let why = "must be object if x-kubernetes-embedded-resource is true";
            self.errors.push(match kind {
                "" => FieldError::required(at, why),
                kind => FieldError::invalid(at, &json!(kind), why),
            });
        } else if kind.is_empty() && document[INT_OR_STRING] != true && document[PRESERVE] != true {
            let why = match level {
                Level::Root => "must not be empty at the root",
                Level::Field => "must not be empty for specified object fields",
                Level::Item => "must not be empty for specified array items",
            };
            self.errors.push(FieldError::required(at, why));
        }
        if level == Level::Root && !kind.is_empty() && kind != "object" {
            self.errors.push(FieldError::invalid(at, &json!(kind), "must be object at the root"));
        }
    }

    /// Checks the fields that each object has. Those of the root are implied.
    fn embedded(&mut self, document: &Value, path: Path<'_>, level: Level) {
        let properties = path.field("properties");
        let fields = &document["properties"];
        let is_object = level == Level::Root || document[EMBEDDED] == true;
        for (name, kind) in [("kind", "string"), ("apiVersion", "string"), ("metadata", "object")] {
            let Some(field) = fields.get(name).filter(|_| is_object) else { continue };
            let found = text(field, "type");
            if found != kind {
                let at = properties.key(name);
                let why = format!("must be {kind}");
                self.errors.push(FieldError::invalid(at.field("type"), &json!(found), &why));
            }
        }
        if let Some(metadata) = fields.get("metadata").filter(|_| level == Level::Root)
            && restricts_more_than_names(metadata)
        {
            let why = "must not specify anything other than name and generateName, but metadata is \
                       implicitly specified";
            self.errors.push(FieldError::forbidden(properties.key("metadata"), why));
        }
        if document[EMBEDDED] == true && document[PRESERVE] != true && fields.is_null() {
            let why = "must not be empty if x-kubernetes-embedded-resource is true without \
                       x-kubernetes-preserve-unknown-fields";
            self.errors.push(FieldError::required(properties, why));
        }
    }
}

fn restricts_more_than_names(metadata: &Value) -> bool {
    let keywords = metadata.as_object().into_iter().flatten();
    let is_known = |(keyword, value): (&String, &Value)| match keyword.as_str() {
        "type" | "default" => true,
        "properties" => {
            let names = value.as_object().into_iter().flatten();
            names.into_iter().all(|(name, _)| matches!(name.as_str(), "name" | "generateName"))
        }
        _ => false,
    };
    !keywords.into_iter().all(is_known)
}
