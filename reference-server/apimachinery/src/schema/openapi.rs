//! Conversion of schemas from and to OpenAPI v3: parsing of CRD manifests, output for published
//! documents.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::meta::object_meta;
use super::pattern::{Pattern, PatternError};
use super::{FieldError, Format, Kind, Limits, ListType, Path, Schema, build, rules, whole_number};

impl Schema {
    /// Parses `openAPIV3Schema` of a CRD. Keywords that this server does not evaluate are kept, and
    /// published again.
    pub fn from_openapi(document: &Value) -> Result<Self, Vec<FieldError>> {
        Self::from_openapi_at(document, Path::Root)
    }

    /// Parses a schema at the path `at` of a manifest.
    pub fn from_openapi_at(document: &Value, at: Path<'_>) -> Result<Self, Vec<FieldError>> {
        let mut reader = Reader {
            errors: Vec::new(),
            pattern_budget: Some(PATTERNS_SIZE),
            patterns: HashMap::new(),
        };
        let mut schema = reader.schema(document, at);
        read_rules(&mut schema, true, at);
        if reader.errors.is_empty() { Ok(schema) } else { Err(reader.errors) }
    }

    /// Returns the schema in the form of a published document, with inlined definitions.
    pub fn to_openapi(&self) -> Value {
        Value::Object(self.write(&|schema| Value::Object(schema.write_inline())))
    }

    /// Returns the keywords of this node. `child` writes the schema of a field, inlined or as a
    /// reference.
    pub fn write(&self, child: &dyn Fn(&Schema) -> Value) -> Map<String, Value> {
        let mut out = Map::new();
        let mut put = |keyword: &str, value: Value| {
            out.insert(keyword.to_owned(), value);
        };
        if let Some(kind) = self.kind {
            put("type", json!(kind.as_str()));
        }
        if let Some(name) = self.format.as_ref().and_then(Format::name) {
            put("format", json!(name));
        }
        if !self.properties.is_empty() {
            let fields = self.properties.iter().map(|(name, schema)| (name.clone(), child(schema)));
            put("properties", Value::Object(fields.collect()));
        }
        if !self.required.is_empty() {
            put("required", json!(self.required));
        }
        if let Some(schema) = &self.additional_properties {
            put("additionalProperties", child(schema));
        }
        if let Some(schema) = &self.items {
            put("items", child(schema));
        }
        if let Some(default) = &self.default {
            put("default", default.clone());
        }
        if self.nullable {
            put("nullable", json!(true));
        }
        if !self.enumeration.is_empty() {
            put("enum", json!(self.enumeration));
        }
        if let Some(pattern) = &self.pattern {
            put("pattern", json!(pattern.as_str()));
        }
        for (keyword, parts) in
            [("allOf", &self.all_of), ("anyOf", &self.any_of), ("oneOf", &self.one_of)]
        {
            if !parts.is_empty() {
                put(keyword, parts.iter().map(child).collect());
            }
        }
        if let Some(part) = &self.not {
            put("not", child(part));
        }
        self.limits.write(&mut out);
        self.write_extensions(&mut out);
        out
    }

    fn write_inline(&self) -> Map<String, Value> {
        self.write(&|schema| Value::Object(schema.write_inline()))
    }

    fn write_extensions(&self, out: &mut Map<String, Value>) {
        let mut put = |keyword: &str, value: Value| {
            out.insert(format!("x-kubernetes-{keyword}"), value);
        };
        if self.preserve_unknown && !self.typed {
            put("preserve-unknown-fields", json!(true));
        }
        if self.int_or_string {
            put("int-or-string", json!(true));
        }
        if self.embedded_resource {
            put("embedded-resource", json!(true));
        }
        match self.list_type {
            ListType::Map => put("list-type", json!("map")),
            ListType::Set => put("list-type", json!("set")),
            ListType::Atomic => put("list-type", json!("atomic")),
            ListType::Unset if !self.list_map_keys.is_empty() => put("list-type", json!("map")),
            ListType::Unset => {}
        }
        if !self.list_map_keys.is_empty() {
            put("list-map-keys", json!(self.list_map_keys));
        }
        if self.atomic_map {
            put("map-type", json!("atomic"));
        }
        if let Some(key) = self.patch_merge_key {
            put("patch-merge-key", json!(key));
        }
        match (self.patch_strategy.merge, self.patch_strategy.retain_keys) {
            (true, true) => put("patch-strategy", json!("merge,retainKeys")),
            (true, false) => put("patch-strategy", json!("merge")),
            (false, true) => put("patch-strategy", json!("retainKeys")),
            (false, false) => {}
        }
        out.extend(self.extra.clone());
    }
}

impl Limits {
    fn write(&self, out: &mut Map<String, Value>) {
        // Integers are written without a fraction, as in the manifest.
        let number = |value: f64| whole_number(value).map_or(Value::from(value), Value::from);
        let mut put = |keyword: &str, value: Option<Value>| {
            if let Some(value) = value {
                out.insert(keyword.to_owned(), value);
            }
        };
        put("minimum", self.minimum.map(number));
        put("maximum", self.maximum.map(number));
        put("exclusiveMinimum", self.exclusive_minimum.then_some(Value::Bool(true)));
        put("exclusiveMaximum", self.exclusive_maximum.then_some(Value::Bool(true)));
        put("multipleOf", self.multiple_of.map(number));
        put("minLength", self.min_length.map(Value::from));
        put("maxLength", self.max_length.map(Value::from));
        put("minItems", self.min_items.map(Value::from));
        put("maxItems", self.max_items.map(Value::from));
        put("uniqueItems", self.unique_items.then_some(Value::Bool(true)));
        put("minProperties", self.min_properties.map(Value::from));
        put("maxProperties", self.max_properties.map(Value::from));
    }
}

/// The maximum length of a pattern in bytes.
const MAX_PATTERN: usize = 8 * 1024;
/// The limits for the size of a compiled pattern, since a short pattern can have very many states.
/// A pattern counts with the lowest limit that it fits.
const PATTERN_SIZES: [usize; 4] = [48 * 1024, 256 * 1024, 2 * 1024 * 1024, LARGEST_PATTERN];
/// The maximum size of a compiled pattern. Host names of all scripts need 16 MiB.
const LARGEST_PATTERN: usize = 20 * 1024 * 1024;
/// The maximum total size of the patterns of a schema.
const PATTERNS_SIZE: usize = 48 * 1024 * 1024;

struct Reader {
    errors: Vec<FieldError>,
    /// The budget that is left for patterns. After the error for an exhausted budget it is `None`,
    /// and the remaining patterns are not compiled.
    pattern_budget: Option<usize>,
    /// The compiled patterns. Generated schemas repeat the same pattern.
    patterns: HashMap<String, Pattern>,
}

impl Reader {
    fn schema(&mut self, document: &Value, path: Path<'_>) -> Schema {
        let Some(keywords) = document.as_object() else {
            self.errors.push(FieldError::invalid(path, document, "must be a schema object"));
            return Schema::default();
        };
        let mut schema = Schema::default();
        for (keyword, value) in keywords {
            self.keyword(&mut schema, keyword, value, path.field(keyword));
        }
        if schema.int_or_string {
            schema.kind = None;
        }
        // The rules of the root need its complete type, so they are read later.
        schema.has_rules |= schema.extra.contains_key(rules::KEYWORD);
        if schema.embedded_resource {
            for name in ["apiVersion", "kind"] {
                schema
                    .properties
                    .entry(name.to_owned())
                    .or_insert_with(|| Arc::new(build::string()));
            }
            schema.properties.insert("metadata".to_owned(), object_meta());
        }
        schema
    }

    fn keyword(&mut self, schema: &mut Schema, keyword: &str, value: &Value, path: Path<'_>) {
        match keyword {
            "type" => schema.kind = self.kind(value, path),
            "format" => schema.format = value.as_str().map(Format::from_name),
            "default" => schema.default = (!value.is_null()).then(|| value.clone()),
            "nullable" => schema.nullable = self.flag(value, path),
            "enum" => schema.enumeration = value.as_array().cloned().unwrap_or_default(),
            "pattern" => schema.pattern = self.pattern(value, path),
            "required" => schema.required = strings(value),
            "properties" => {
                for (name, document) in value.as_object().into_iter().flatten() {
                    let child = self.child(schema, document, path.key(name));
                    schema.properties.insert(name.clone(), Arc::new(child));
                }
            }
            "additionalProperties" => {
                schema.additional_properties = match value {
                    Value::Bool(false) => None,
                    Value::Bool(true) => Some(Arc::new(build::anything())),
                    document => Some(Arc::new(self.child(schema, document, path))),
                };
            }
            "items" => schema.items = Some(Arc::new(self.child(schema, value, path))),
            "allOf" => schema.all_of = self.schemas(value, path),
            "anyOf" => schema.any_of = self.schemas(value, path),
            "oneOf" => schema.one_of = self.schemas(value, path),
            "not" => schema.not = Some(Box::new(self.schema(value, path))),
            "minimum" => schema.limits.minimum = value.as_f64(),
            "maximum" => schema.limits.maximum = value.as_f64(),
            "exclusiveMinimum" => schema.limits.exclusive_minimum = self.flag(value, path),
            "exclusiveMaximum" => schema.limits.exclusive_maximum = self.flag(value, path),
            "multipleOf" => schema.limits.multiple_of = value.as_f64(),
            "minLength" => schema.limits.min_length = value.as_u64(),
            "maxLength" => schema.limits.max_length = value.as_u64(),
            "minItems" => schema.limits.min_items = value.as_u64(),
            "maxItems" => schema.limits.max_items = value.as_u64(),
            "minProperties" => schema.limits.min_properties = value.as_u64(),
            "maxProperties" => schema.limits.max_properties = value.as_u64(),
            "uniqueItems" => schema.limits.unique_items = self.flag(value, path),
            "x-kubernetes-preserve-unknown-fields" => {
                schema.preserve_unknown = self.flag(value, path);
            }
            "x-kubernetes-int-or-string" => schema.int_or_string = self.flag(value, path),
            "x-kubernetes-embedded-resource" => schema.embedded_resource = self.flag(value, path),
            "x-kubernetes-list-map-keys" => schema.list_map_keys = strings(value),
            "x-kubernetes-list-type" => schema.list_type = self.list_type(value, path),
            "x-kubernetes-map-type" if value == "atomic" => schema.atomic_map = true,
            _ => {
                schema.extra.insert(keyword.to_owned(), value.clone());
            }
        }
    }

    /// Reads the schema of a child, which can have its own rules.
    fn child(&mut self, parent: &mut Schema, document: &Value, path: Path<'_>) -> Schema {
        let mut child = self.schema(document, path);
        read_rules(&mut child, false, path);
        parent.has_rules |= child.has_rules;
        child
    }

    fn schemas(&mut self, value: &Value, path: Path<'_>) -> Vec<Schema> {
        let documents = value.as_array().map(Vec::as_slice).unwrap_or_default();
        documents
            .iter()
            .enumerate()
            .map(|(index, document)| self.schema(document, path.index(index)))
            .collect()
    }

    fn kind(&mut self, value: &Value, path: Path<'_>) -> Option<Kind> {
        let kind = match value.as_str() {
            None | Some("") => return None,
            Some("object") => Kind::Object,
            Some("array") => Kind::Array,
            Some("string") => Kind::String,
            Some("integer") => Kind::Integer,
            Some("number") => Kind::Number,
            Some("boolean") => Kind::Boolean,
            Some(_) => {
                let kinds =
                    ["array", "boolean", "integer", "number", "object", "string"].map(Value::from);
                self.errors.push(FieldError::not_supported(path, value, &kinds));
                return None;
            }
        };
        Some(kind)
    }

    fn pattern(&mut self, value: &Value, path: Path<'_>) -> Option<Pattern> {
        let text = value.as_str().filter(|text| !text.is_empty())?;
        if text.len() > MAX_PATTERN {
            self.errors.push(FieldError::too_long(path, MAX_PATTERN as u64));
            return None;
        }
        if let Some(known) = self.patterns.get(text) {
            return Some(known.clone());
        }
        for size in PATTERN_SIZES {
            // A failed compilation costs time too, so it counts against the budget.
            let room = self.pattern_budget?.checked_sub(size);
            self.pattern_budget = room;
            if room.is_none() {
                self.errors.push(FieldError::forbidden(
                    path,
                    "the patterns of a schema are too large together",
                ));
                return None;
            }
            match Pattern::compile(text, size) {
                Ok(pattern) => {
                    self.patterns.insert(text.to_owned(), pattern.clone());
                    return Some(pattern);
                }
                Err(PatternError::TooLarge(_)) if size < LARGEST_PATTERN => {}
                Err(reason) => {
                    let detail = format!("must be a valid regular expression, but isn't: {reason}");
                    self.errors.push(FieldError::invalid(path, value, &detail));
                    return None;
                }
            }
        }
        None
    }

    fn list_type(&mut self, value: &Value, path: Path<'_>) -> ListType {
        match value.as_str() {
            Some("atomic") => ListType::Atomic,
            Some("set") => ListType::Set,
            Some("map") => ListType::Map,
            _ => {
                let known = ["atomic", "set", "map"].map(Value::from);
                self.errors.push(FieldError::not_supported(path, value, &known));
                ListType::Unset
            }
        }
    }

    fn flag(&mut self, value: &Value, path: Path<'_>) -> bool {
        value.as_bool().unwrap_or_else(|| {
            self.errors.push(FieldError::invalid(path, value, "must be true or false"));
            false
        })
    }
}

fn read_rules(schema: &mut Schema, root: bool, path: Path<'_>) {
    let Some(list) = schema.extra.get(rules::KEYWORD) else { return };
    (schema.rules, schema.broken_rules) = rules::read(list, schema, root, path);
}

fn strings(value: &Value) -> Vec<String> {
    let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
    items.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests;
