//! Validation of objects against their schema. It returns all mistakes with their paths.
//!
//! Unchanged parts of a stored object are not validated again. An object that was valid under an
//! earlier schema can therefore be updated in other fields.

use std::collections::{HashMap, HashSet};
use std::fmt::Display;

use serde_json::{Map, Value};

use super::{FieldError, Format, Kind, Limits, ListType, Path, Schema, embedded, whole_number};

impl Schema {
    /// Returns every mistake of `value`. Skips the parts that are the same in `old`.
    pub fn validate(&self, value: &Value, old: Option<&Value>) -> Vec<FieldError> {
        self.validate_at(value, old, Path::Root)
    }

    /// Validates a value at the path `at` of an object.
    pub fn validate_at(&self, value: &Value, old: Option<&Value>, at: Path<'_>) -> Vec<FieldError> {
        let mut walk = Walk { errors: Vec::new() };
        walk.node(self, value, old, (at, false));
        walk.errors
    }
}

/// The maximum number of mistakes that are collected for an object.
pub(super) const MAX_ERRORS: usize = 1_000;

struct Walk {
    errors: Vec<FieldError>,
}

impl Walk {
    fn node(
        &mut self,
        schema: &Schema,
        value: &Value,
        old: Option<&Value>,
        (path, within_typed): (Path<'_>, bool),
    ) {
        let typed = within_typed || schema.typed;
        if old == Some(value) {
            return;
        }
        if value.is_null() && (schema.nullable || typed) {
            return;
        }
        if !schema.has_type(value) {
            if typed && schema.is_raw() {
                let why = "must be a valid JSON object";
                self.push(FieldError::invalid(path, &Value::from("<value omitted>"), why));
            } else {
                self.wrong_type(schema, value, path);
                self.enumeration(schema, value, path);
            }
            return;
        }
        self.alternatives(schema, value, path, typed);
        for error in schema.constraints.errors(value, path) {
            self.push(error);
        }
        self.enumeration(schema, value, path);
        match value {
            Value::Object(fields) => self.object(schema, fields, old, (path, typed)),
            Value::Array(items) if schema.constraints.stops_at(items) => {}
            Value::Array(items) => self.list(schema, items, old, (path, typed)),
            Value::String(text) => self.string(schema, text, path, typed),
            Value::Number(number) => {
                let number = number.as_f64().unwrap_or(f64::INFINITY);
                self.number(&schema.limits, value, number, (path, typed));
            }
            Value::Bool(_) | Value::Null => {}
        }
    }

    fn wrong_type(&mut self, schema: &Schema, value: &Value, path: Path<'_>) {
        let expected = if schema.int_or_string {
            "integer,string"
        } else {
            schema.kind.map_or("", Kind::as_str)
        };
        let found = Kind::of(value).map_or("null", Kind::as_str);
        let place = path.to_string();
        let detail = format!("{} must be of type {expected}: \"{found}\"", in_body(&place));
        self.push(FieldError::wrong_type(place, found, &detail));
    }

    fn enumeration(&mut self, schema: &Schema, value: &Value, path: Path<'_>) {
        if !schema.enumeration.is_empty() && !schema.enumerates(value) {
            self.push(FieldError::not_supported(path.to_string(), value, &schema.enumeration));
        }
    }

    fn object(
        &mut self,
        schema: &Schema,
        fields: &Map<String, Value>,
        old: Option<&Value>,
        (path, typed): (Path<'_>, bool),
    ) {
        for name in &schema.required {
            if is_missing(schema, fields.get(name), name, typed) {
                self.push(FieldError::required(path.field(name).to_string(), ""));
            }
        }
        if let (Some(limits), Some(metadata)) = (&schema.metadata_limits, fields.get("metadata")) {
            let old = old.and_then(|old| old.get("metadata"));
            self.node(limits, metadata, old, (path.field("metadata"), typed));
        }
        if schema.embedded_resource {
            for error in embedded::mistakes(fields, path) {
                self.push(error);
            }
        }
        self.count(schema, fields.len(), "properties", path);
        let union = schema.union.as_ref();
        for error in union.into_iter().flat_map(|union| union.errors(fields, path)) {
            self.push(error);
        }
        for (name, field) in fields {
            if union.is_some_and(|union| union.skips(fields, name)) {
                continue;
            }
            let old = old.and_then(|old| old.get(name));
            if let Some(child) = schema.properties.get(name) {
                self.node(child, field, old, (path.field(name), typed));
            } else if let Some(child) = &schema.additional_properties {
                let path = if typed { path.key(name) } else { path.field(name) };
                self.node(child, field, old, (path, typed));
            }
        }
    }

    fn list(
        &mut self,
        schema: &Schema,
        items: &[Value],
        old: Option<&Value>,
        (path, typed): (Path<'_>, bool),
    ) {
        self.count(schema, items.len(), "items", path);
        self.duplicates(schema, items, path, typed);
        let Some(child) = &schema.items else { return };
        let old = Counterparts::new(schema, old.and_then(Value::as_array));
        for (index, item) in items.iter().enumerate() {
            let old = old.get(schema, item);
            self.node(child, item, old, (path.index(index), typed));
        }
    }

    fn duplicates(&mut self, schema: &Schema, items: &[Value], path: Path<'_>, typed: bool) {
        match schema.list_type {
            ListType::Map => {
                let mut keys = HashSet::new();
                for (index, item) in items.iter().enumerate() {
                    if let Some(key) = keys.replace(schema.key_of(item)) {
                        self.push(FieldError::duplicate(path.index(index).to_string(), &key));
                    }
                }
            }
            // A built-in type has a rule if its validation rejects duplicates.
            ListType::Set if !typed => {
                let mut seen = HashSet::new();
                for (index, item) in items.iter().enumerate() {
                    if !seen.insert(item) {
                        self.push(FieldError::duplicate(path.index(index).to_string(), item));
                    }
                }
            }
            _ if schema.limits.unique_items && has_duplicates(items) => {
                let place = path.to_string();
                let detail = format!("{} shouldn't contain duplicates", in_body(&place));
                self.push(FieldError::invalid(place, &Value::from(items), &detail));
            }
            _ => {}
        }
    }

    /// Checks the limits on the number of items or fields.
    fn count(&mut self, schema: &Schema, count: usize, what: &str, path: Path<'_>) {
        let limits = &schema.limits;
        let (least, most) = match what {
            "items" => (limits.min_items, limits.max_items),
            _ => (limits.min_properties, limits.max_properties),
        };
        if let Some(least) = least.filter(|least| (count as u64) < *least) {
            let place = path.to_string();
            let detail = format!("{} should have at least {least} {what}", in_body(&place));
            self.push(FieldError::invalid(place, &Value::from(count), &detail));
        }
        if let Some(most) = most.filter(|most| count as u64 > *most) {
            self.push(FieldError::too_many(path.to_string(), count, most));
        }
    }

    fn string(&mut self, schema: &Schema, text: &str, path: Path<'_>, typed: bool) {
        let characters = || text.chars().count() as u64;
        if let Some(most) = schema.limits.max_length.filter(|most| characters() > *most) {
            self.push(FieldError::too_long(path.to_string(), most));
        }
        let mut complain = |detail: String| {
            let place = path.to_string();
            let detail = format!("{} {detail}", in_body(&place));
            self.push(FieldError::invalid(place, &Value::from(text), &detail));
        };
        if let Some(least) = schema.limits.min_length.filter(|least| characters() < *least) {
            complain(format!("should be at least {least} chars long"));
        }
        if let Some(pattern) = schema.pattern.as_ref().filter(|pattern| !pattern.is_match(text)) {
            complain(format!("should match '{}'", pattern.as_str()));
        }
        let Some(format) = schema.format.as_ref().filter(|format| !typed && !format.accepts(text))
        else {
            return;
        };
        let place = path.to_string();
        let name = format.name().unwrap_or("quantity");
        let value = Value::from(text);
        let detail = format!("{} must be of type {name}: {value}", in_body(&place));
        self.push(FieldError::wrong_type(place, text, &detail));
    }

    fn number(
        &mut self,
        limits: &Limits,
        value: &Value,
        number: f64,
        (path, typed): (Path<'_>, bool),
    ) {
        let mut complain = |detail: String| {
            let place = path.to_string();
            let detail = if typed {
                detail.replacen("should", "must", 1)
            } else {
                format!("{} {detail}", in_body(&place))
            };
            self.push(FieldError::invalid(place, value, &detail));
        };
        if let (true, Some(least), Some(most)) = (typed, limits.minimum, limits.maximum) {
            if number < least || number > most {
                complain(format!("should be between {least} and {most}, inclusive"));
            }
            return;
        }
        match limits.minimum {
            Some(least) if limits.exclusive_minimum && number <= least => {
                complain(format!("should be greater than {least}"));
            }
            Some(least) if number < least => {
                complain(format!("should be greater than or equal to {least}"));
            }
            _ => {}
        }
        match limits.maximum.map(|most| (most, most)) {
            Some((most, limit)) if limits.exclusive_maximum && number >= limit => {
                complain(format!("should be less than {most}"));
            }
            Some((most, limit)) if number > limit => {
                complain(format!("should be less than or equal to {most}"));
            }
            _ => {}
        }
        if let Some(step) = limits.multiple_of.filter(|step| !is_multiple(number, *step)) {
            complain(format!("should be a multiple of {step}"));
        }
    }

    /// Checks `allOf`, `anyOf`, `oneOf` and `not`. They only narrow the rest of the schema.
    fn alternatives(&mut self, schema: &Schema, value: &Value, path: Path<'_>, typed: bool) {
        for part in &schema.all_of {
            self.node(part, value, None, (path, typed));
        }

        let holds = |part: &&Schema| part.validate_at(value, None, path).is_empty();
        let mut complain = |detail: &str| {
            let place = path.to_string();
            let detail = format!("{} {detail}", in_body(&place));
            self.push(FieldError::invalid(place, value, &detail));
        };
        if !schema.any_of.is_empty() && !schema.any_of.iter().any(|part| holds(&part)) {
            complain("must validate at least one schema (anyOf)");
        }
        if !schema.one_of.is_empty() && schema.one_of.iter().filter(holds).count() != 1 {
            complain("must validate one and only one schema (oneOf)");
        }
        if schema.not.as_deref().is_some_and(|part| holds(&part)) {
            complain("must not validate the schema (not)");
        }
    }

    fn push(&mut self, error: FieldError) {
        if self.errors.len() < MAX_ERRORS {
            self.errors.push(error);
        }
    }
}

impl Schema {
    fn has_type(&self, value: &Value) -> bool {
        if self.int_or_string {
            return value.is_string() || as_integer(value).is_some();
        }
        match self.kind {
            None => !value.is_null() || self.preserve_unknown,
            // An integer may be written with a fraction of zero.
            Some(Kind::Integer) => as_integer(value).is_some_and(|number| match self.format {
                Some(Format::Int32) => i32::try_from(number).is_ok(),
                _ => true,
            }),
            Some(Kind::Number) => value.as_f64().is_some_and(|number| match self.format {
                Some(Format::Float) => number.abs() <= f64::from(f32::MAX),
                _ => true,
            }),
            // A typed quantity may be a number.
            Some(Kind::String) if self.format == Some(Format::Quantity) => {
                value.is_string() || value.is_number()
            }
            kind => Kind::of(value) == kind,
        }
    }

    fn enumerates(&self, value: &Value) -> bool {
        self.enumeration.iter().any(|allowed| allowed == value || is_same_number(allowed, value))
    }

    /// Returns the values of the list map keys of an item. Absent keys have their default.
    fn key_of(&self, item: &Value) -> Value {
        let key = |name: &String| {
            let declared = self.items.as_ref().and_then(|schema| schema.properties.get(name));
            let value =
                item.get(name).or_else(|| declared.and_then(|schema| schema.default.as_ref()));
            value.map(|value| (name.clone(), value.clone()))
        };
        Value::Object(self.list_map_keys.iter().filter_map(key).collect())
    }
}

/// The items of a stored list, indexed by their keys.
pub(super) struct Counterparts<'a>(HashMap<Value, &'a Value>);

impl<'a> Counterparts<'a> {
    /// Indexes the list that was stored under this schema. Only the items of a list map have an
    /// identity.
    pub(super) fn new(schema: &Schema, old: Option<&'a Vec<Value>>) -> Self {
        let old = old.filter(|_| schema.list_type == ListType::Map);
        let mut items = HashMap::new();
        for item in old.into_iter().flatten() {
            items.entry(schema.key_of(item)).or_insert(item);
        }
        Self(items)
    }

    /// Returns the stored item with the same keys as `item`.
    pub(super) fn get(&self, schema: &Schema, item: &Value) -> Option<&'a Value> {
        if self.0.is_empty() {
            return None;
        }
        self.0.get(&schema.key_of(item)).copied()
    }
}

fn as_integer(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| value.as_f64().filter(|_| value.is_f64()).and_then(whole_number))
}

fn is_missing(schema: &Schema, field: Option<&Value>, name: &str, typed: bool) -> bool {
    let keeps_empty =
        schema.properties.get(name).is_some_and(|schema| schema.keep_empty || schema.is_raw());
    match field {
        None => true,
        Some(Value::Null) => typed,
        Some(Value::String(text)) => typed && !keeps_empty && text.is_empty(),
        Some(Value::Array(items)) => typed && !keeps_empty && items.is_empty(),
        Some(_) => false,
    }
}

fn has_duplicates(items: &[Value]) -> bool {
    let mut seen = HashSet::new();
    !items.iter().all(|item| seen.insert(item))
}

fn in_body(place: &impl Display) -> String {
    format!("{place} in body").trim_start().to_owned()
}

fn is_multiple(number: f64, step: f64) -> bool {
    let ratio = number / step;
    (ratio - ratio.round()).abs() < 1e-9
}

fn is_same_number(left: &Value, right: &Value) -> bool {
    match (left.as_f64(), right.as_f64()) {
        (Some(left), Some(right)) => left.to_bits() == right.to_bits(),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
