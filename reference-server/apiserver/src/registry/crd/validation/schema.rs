//! Validates a schema: its structure, its defaults, its keywords and its rules.

use std::collections::BTreeSet;

use kubeproof_apimachinery::schema::{FieldError, Path, Schema};
use serde_json::{Value, json};

use super::super::text;
use super::rules::{self, Costs, Scope};
use super::{defaults, lists, structural};

/// The keywords of the root of a resource with a status. The server validates the status alone.
const AT_ROOT: [(&str, &str); 22] = [
    ("description", "Description"),
    ("type", "Type"),
    ("format", "Format"),
    ("title", "Title"),
    ("maximum", "Maximum"),
    ("exclusiveMaximum", "ExclusiveMaximum"),
    ("minimum", "Minimum"),
    ("exclusiveMinimum", "ExclusiveMinimum"),
    ("maxLength", "MaxLength"),
    ("minLength", "MinLength"),
    ("pattern", "Pattern"),
    ("maxItems", "MaxItems"),
    ("minItems", "MinItems"),
    ("uniqueItems", "UniqueItems"),
    ("multipleOf", "MultipleOf"),
    ("required", "Required"),
    ("items", "Items"),
    ("properties", "Properties"),
    ("externalDocs", "ExternalDocs"),
    ("example", "Example"),
    ("x-kubernetes-preserve-unknown-fields", "XPreserveUnknownFields"),
    ("x-kubernetes-validations", "XValidations"),
];

/// Keywords that kube-apiserver knows and rejects.
const UNSUPPORTED: [&str; 6] =
    ["id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref"];

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];

/// Returns the errors in the schema of one or all versions at `path`.
pub(super) fn validate(document: &Value, has_status: bool, path: Path<'_>) -> Vec<FieldError> {
    let mut errors = validate_root(document, has_status, path);
    let (parsed, unreadable) = match structural::validate(document, path) {
        Ok(schema) => {
            let wrong = defaults::validate(document, &schema, path);
            let parsed = wrong.is_empty().then_some(schema);
            errors.extend(wrong);
            (parsed, None)
        }
        Err(structural::Failure::Unreadable(why)) => (None, Some(why)),
        Err(structural::Failure::Mistakes(wrong)) => {
            errors.extend(wrong);
            (None, None)
        }
    };
    let mut walk = Walk { costs: Costs::default() };
    let scope = parsed.map(Scope::root);
    let found = walk.node(document, path, &Context::root(scope));
    // Reading the schema finds some of these, too.
    let known: BTreeSet<_> = errors.iter().map(ToString::to_string).collect();
    let new = found.keywords.into_iter().chain(found.rules);
    errors.extend(new.filter(|error| !known.contains(&error.to_string())));
    if let Some(why) = unreadable.filter(|_| errors.is_empty()) {
        errors.push(FieldError::invalid(path, &json!(""), &why));
    }
    errors.extend(walk.costs.total_errors(path));
    errors
}

/// Reports whether the schema has a default.
pub(super) fn has_default(document: &Value) -> bool {
    match document {
        Value::Object(keywords) => {
            keywords.contains_key("default") || keywords.values().any(has_default)
        }
        Value::Array(list) => list.iter().any(has_default),
        _ => false,
    }
}

fn validate_root(document: &Value, has_status: bool, path: Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let kind = text(document, "type");
    if has_status && !kind.is_empty() && kind != "object" {
        let why = "only \"object\" is allowed as the type at the root of the schema if the status \
                   subresource is enabled";
        errors.push(FieldError::invalid(path.field("type"), &json!(kind), why));
    } else if has_status {
        let keywords = document.as_object().into_iter().flatten().map(|(keyword, _)| keyword);
        let is_known = |keyword: &String| AT_ROOT.iter().any(|(known, _)| known == keyword);
        if !keywords.into_iter().all(is_known) {
            let names = AT_ROOT.map(|(_, name)| name).join(" ");
            let why = format!(
                "only [{names}] fields are allowed at the root of the schema if the status \
                 subresource is enabled"
            );
            errors.push(FieldError::invalid(path, document, &why));
        }
    }
    if document["nullable"] == true {
        let why = "nullable cannot be true at the root";
        errors.push(FieldError::forbidden(path.field("nullable"), why));
    }
    errors
}

/// What a schema inherits from those above it.
#[derive(Clone)]
struct Context {
    /// The place in the types of rules. It is `None` where rules are not compiled.
    scope: Option<Scope>,
    is_root: bool,
    is_metadata: bool,
    /// Why the schema may have no default.
    no_default: Option<String>,
    /// The highest list or map below which old values are ambiguous.
    uncorrelated: Option<String>,
}

impl Context {
    fn root(scope: Option<Scope>) -> Self {
        let is_root = true;
        Self { scope, is_root, is_metadata: false, no_default: None, uncorrelated: None }
    }

    fn below(&self, scope: Option<Scope>) -> Self {
        Self { scope, is_root: false, ..self.clone() }
    }

    /// Marks the schemas below as those without old values.
    fn uncorrelated(mut self, path: Path<'_>) -> Self {
        self.uncorrelated.get_or_insert_with(|| path.to_string());
        self
    }
}

/// The errors of a schema and of those in it.
#[derive(Default)]
struct Found {
    keywords: Vec<FieldError>,
    rules: Vec<FieldError>,
}

impl Found {
    fn add(&mut self, other: Self) {
        self.keywords.extend(other.keywords);
        self.rules.extend(other.rules);
    }
}

struct Walk {
    costs: Costs,
}

impl Walk {
    fn node(&mut self, document: &Value, path: Path<'_>, context: &Context) -> Found {
        let mut found = Found { keywords: unsupported(document, path, context), rules: Vec::new() };
        self.values(document, path, context, &mut found);
        self.properties(document, path, context, &mut found);
        self.parts(document, path, context, &mut found);
        self.items(document, path, context, &mut found);
        found.keywords.extend(lists::validate(document, path));
        found.keywords.extend(rules::syntax_errors(document, path));
        if let Some(scope) = context.scope.as_ref().filter(|_| found.keywords.is_empty()) {
            let uncorrelated = context.uncorrelated.as_deref();
            found.rules.extend(rules::validate(scope, uncorrelated, &mut self.costs, path));
        }
        found
    }

    fn values(&mut self, document: &Value, path: Path<'_>, context: &Context, found: &mut Found) {
        let Some(values) = document.get("additionalProperties") else { return };
        let at = path.field("additionalProperties");
        if document["properties"].is_object() && *values != Value::Bool(true) {
            let why = "additionalProperties and properties are mutual exclusive";
            found.keywords.push(FieldError::forbidden(at, why));
        }
        if values.is_object() {
            let below = |parent: &Schema| parent.additional_properties.clone();
            let mut inner = context.below(context.scope.as_ref().and_then(|it| it.child(below)));
            if context.is_metadata {
                let why = "inside additionalProperties applying to object metadata";
                inner.no_default = Some(why.to_owned());
            }
            found.add(self.node(values, at, &inner));
        }
    }

    fn properties(
        &mut self,
        document: &Value,
        path: Path<'_>,
        context: &Context,
        found: &mut Found,
    ) {
        let is_object = context.is_root || document["x-kubernetes-embedded-resource"] == true;
        let properties = path.field("properties");
        for (name, child) in document["properties"].as_object().into_iter().flatten() {
            let below = |parent: &Schema| parent.properties.get(name).cloned();
            let mut inner = context.below(context.scope.as_ref().and_then(|it| it.child(below)));
            if is_object && matches!(name.as_str(), "metadata" | "kind" | "apiVersion") {
                inner.is_metadata = true;
                if context.is_root {
                    inner.no_default = Some(format!("in top-level {name}"));
                }
            }
            found.add(self.node(child, properties.key(name), &inner));
        }
    }

    /// Validates the schemas that only restrict values.
    fn parts(&mut self, document: &Value, path: Path<'_>, context: &Context, found: &mut Found) {
        let context = context.below(None);
        if let Some(part) = document.get("not") {
            found.add(self.node(part, path.field("not"), &context));
        }
        for keyword in ["allOf", "oneOf", "anyOf"] {
            let at = path.field(keyword);
            let parts = document[keyword].as_array().into_iter().flatten();
            for (index, part) in parts.enumerate() {
                found.add(self.node(part, at.index(index), &context));
            }
        }
    }

    fn items(&mut self, document: &Value, path: Path<'_>, context: &Context, found: &mut Found) {
        let Some(items) = document.get("items") else { return };
        let below = |parent: &Schema| parent.items.clone();
        let mut inner = context.below(context.scope.as_ref().and_then(|it| it.child(below)));
        if document["x-kubernetes-list-type"] != "map" {
            inner = inner.uncorrelated(path);
        }
        let at = path.field("items");
        match items.as_array() {
            Some(list) => {
                for (index, item) in list.iter().enumerate() {
                    found.add(self.node(item, at.index(index), &inner));
                }
            }
            None => found.add(self.node(items, at, &inner)),
        }
    }
}

fn unsupported(document: &Value, path: Path<'_>, context: &Context) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let kind = text(document, "type");
    if !kind.is_empty() && !TYPES.contains(&kind) {
        let at = path.field("type");
        errors.push(FieldError::not_supported(at, &json!(kind), &TYPES.map(Value::from)));
    }
    if let Some(why) = context.no_default.as_ref().filter(|_| document.get("default").is_some()) {
        let why = format!("must not be set {why}");
        errors.push(FieldError::forbidden(path.field("default"), &why));
    }
    for keyword in UNSUPPORTED.iter().filter(|keyword| document.get(**keyword).is_some()) {
        let why = format!("{keyword} is not supported");
        errors.push(FieldError::forbidden(path.field(keyword), &why));
    }
    if kind == "null" {
        let why = "type cannot be set to null, use nullable as an alternative";
        errors.push(FieldError::forbidden(path.field("type"), why));
    }
    if document["items"].is_array() {
        let why = "items must be a schema object and not an array";
        errors.push(FieldError::forbidden(path.field("items"), why));
    }
    let embedded = "x-kubernetes-embedded-resource";
    if context.is_metadata && document[embedded] == true {
        let why = "must not be used inside of resource meta";
        errors.push(FieldError::forbidden(path.field(embedded), why));
    }
    if document["uniqueItems"] == true {
        let why =
            "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        errors.push(FieldError::forbidden(path.field("uniqueItems"), why));
    }
    errors
}

#[cfg(test)]
mod tests;
