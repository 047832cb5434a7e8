//! Whether an object keeps its schema: every mistake at once, each with its field path.
//!
//! A part that is unchanged since the stored object is not looked at again, so that an object which was valid under an
//! earlier schema can still be updated elsewhere.

use std::collections::{HashMap, HashSet};
use std::fmt::Display;

use serde_json::{Map, Value};

use super::{FieldError, Format, Kind, Limits, ListType, Path, Schema, embedded, whole_number};
use crate::faults::{Fault, Faults};

impl Schema {
    /// Every mistake of `value`; parts that are as in `old` are taken as they are.
    pub fn validate(&self, value: &Value, old: Option<&Value>, faults: Faults) -> Vec<FieldError> {
        self.validate_at(value, old, Path::Root, faults)
    }

    /// The same for a value that stands somewhere inside an object.
    pub fn validate_at(
        &self,
        value: &Value,
        old: Option<&Value>,
        at: Path<'_>,
        faults: Faults,
    ) -> Vec<FieldError> {
        let mut walk = Walk { errors: Vec::new(), faults };
        walk.node(self, value, old, at, false);
        walk.errors
    }
}

/// How many mistakes of an object are gathered.
pub(super) const MAX_ERRORS: usize = 1_000;

struct Walk {
    errors: Vec<FieldError>,
    faults: Faults,
}

impl Walk {
    fn node(
        &mut self,
        schema: &Schema,
        value: &Value,
        old: Option<&Value>,
        path: Path<'_>,
        within_typed: bool,
    ) {
        let typed = within_typed || schema.typed;
        if old == Some(value) && !self.faults.on(Fault::UnchangedPartsJudged) {
            return;
        }
        if value.is_null() && (schema.nullable && !self.faults.on(Fault::NullableIgnored) || typed) {
            return;
        }
        let cut = self.faults.on(Fault::FractionsCut) && schema.kind == Some(Kind::Integer) && value.is_f64();
        let unbounded = self.faults.on(Fault::HugeIntegersAccepted)
            && schema.kind == Some(Kind::Integer)
            && value.is_number();
        let unchecked = schema.int_or_string && self.faults.on(Fault::IntOrStringUnchecked);
        if !(schema.has_type(value) || cut || unbounded || unchecked) {
            if !self.faults.on(Fault::WrongTypesAccepted) {
                self.wrong_type(schema, value, path);
            }
            return;
        }
        self.alternatives(schema, value, path, typed);
        if !schema.enumeration.is_empty() && !self.faults.on(Fault::EnumIgnored) && !schema.enumerates(value)
        {
            self.push(FieldError::not_supported(path.to_string(), value, &schema.enumeration));
        }
        match value {
            Value::Object(fields) => self.object(schema, fields, old, path, typed),
            Value::Array(items) => self.list(schema, items, old, path, typed),
            Value::String(text) => self.string(schema, text, path, typed),
            Value::Number(number) => {
                let number = number.as_f64().unwrap_or(f64::INFINITY);
                self.number(&schema.limits, value, number, path, typed);
            }
            Value::Bool(_) | Value::Null => {}
        }
    }

    fn wrong_type(&mut self, schema: &Schema, value: &Value, path: Path<'_>) {
        let expected =
            if schema.int_or_string { "integer,string" } else { schema.kind.map_or("", Kind::as_str) };
        let found = Kind::of(value).map_or("null", Kind::as_str);
        let place = path.to_string();
        let detail = format!("{} must be of type {expected}: \"{found}\"", in_body(&place));
        self.push(FieldError::wrong_type(place, found, &detail));
    }

    fn object(
        &mut self,
        schema: &Schema,
        fields: &Map<String, Value>,
        old: Option<&Value>,
        path: Path<'_>,
        typed: bool,
    ) {
        if !self.faults.on(Fault::RequiredNotEnforced) {
            for name in &schema.required {
                if is_missing(schema, fields.get(name), name, typed) {
                    self.push(FieldError::required(path.field(name).to_string(), ""));
                }
            }
        }
        if schema.embedded_resource && !self.faults.on(Fault::EmbeddedUnchecked) {
            for error in embedded::mistakes(fields, path) {
                self.push(error);
            }
        }
        self.count(schema, fields.len(), "properties", path);
        for (name, field) in fields {
            let old = old.and_then(|old| old.get(name));
            if let Some(child) = schema.properties.get(name) {
                self.node(child, field, old, path.field(name), typed);
            } else if let Some(child) = &schema.additional_properties {
                let path = if typed { path.key(name) } else { path.field(name) };
                self.node(child, field, old, path, typed);
            }
        }
    }

    fn list(&mut self, schema: &Schema, items: &[Value], old: Option<&Value>, path: Path<'_>, typed: bool) {
        self.count(schema, items.len(), "items", path);
        self.duplicates(schema, items, path);
        let Some(child) = &schema.items else { return };
        let old = Counterparts::new(schema, old.and_then(Value::as_array));
        for (index, item) in items.iter().enumerate() {
            let old = old.get(schema, item);
            self.node(child, item, old, path.index(index), typed);
        }
    }

    fn duplicates(&mut self, schema: &Schema, items: &[Value], path: Path<'_>) {
        if self.faults.on(Fault::DuplicatesAccepted) {
            return;
        }
        match schema.list_type {
            ListType::Map => {
                let mut keys = HashSet::new();
                for (index, item) in items.iter().enumerate() {
                    if let Some(key) = keys.replace(schema.key_of(item)) {
                        self.push(FieldError::duplicate(path.index(index).to_string(), &key));
                    }
                }
            }
            ListType::Set => {
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

    /// Limits on the number of items or fields.
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
        let value = Value::from(text);
        let faults = self.faults;
        if text.is_empty() && faults.on(Fault::ZeroBypassesBounds) {
            return;
        }
        let characters = text.chars().count() as u64;
        if let Some(most) = schema.limits.max_length.filter(|most| characters > *most) {
            self.push(FieldError::too_long(path.to_string(), most));
        }
        let mut complain = |detail: String| {
            let place = path.to_string();
            let detail = format!("{} {detail}", in_body(&place));
            self.push(FieldError::invalid(place, &value, &detail));
        };
        if let Some(least) = schema.limits.min_length.filter(|least| characters < *least) {
            complain(format!("should be at least {least} chars long"));
        }
        if let Some(pattern) = schema.pattern.as_ref().filter(|pattern| !pattern.is_match(text))
            && !faults.on(Fault::PatternIgnored)
        {
            complain(format!("should match '{pattern}'"));
        }
        let Some(format) = schema.format.as_ref().filter(|format| !typed && !format.accepts(text)) else {
            return;
        };
        if self.faults.on(Fault::FormatIgnored) {
            return;
        }
        let place = path.to_string();
        let name = format.name().unwrap_or("quantity");
        let detail = format!("{} must be of type {name}: {value}", in_body(&place));
        self.push(FieldError::wrong_type(place, text, &detail));
    }

    fn number(&mut self, limits: &Limits, value: &Value, number: f64, path: Path<'_>, typed: bool) {
        if value.as_i64() == Some(0) && self.faults.on(Fault::ZeroBypassesBounds) {
            return;
        }
        let slack = if self.faults.on(Fault::MaximumOffByOne) { 1.0 } else { 0.0 };
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
            if number < least || number > most + slack {
                complain(format!("should be between {least} and {most}, inclusive"));
            }
            return;
        }
        match limits.minimum {
            Some(least) if limits.exclusive_minimum && number <= least => {
                complain(format!("should be greater than {least}"));
            }
            Some(least) if number < least => complain(format!("should be greater than or equal to {least}")),
            _ => {}
        }
        match limits.maximum.map(|most| (most, most + slack)) {
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

    /// `allOf`, `anyOf`, `oneOf` and `not`, which may only narrow what the rest of the schema says.
    fn alternatives(&mut self, schema: &Schema, value: &Value, path: Path<'_>, typed: bool) {
        for part in &schema.all_of {
            self.node(part, value, None, path, typed);
        }
        let faults = self.faults;
        let holds = |part: &&Schema| part.validate_at(value, None, path, faults).is_empty();
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
        let enough = if self.faults.on(Fault::FirstErrorOnly) { 1 } else { MAX_ERRORS };
        if self.errors.len() < enough {
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
            // A whole number is an integer however it is spelt.
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

    /// The values of the list map keys of an item, absent ones by their default.
    fn key_of(&self, item: &Value) -> Value {
        let key = |name: &String| {
            let declared = self.items.as_ref().and_then(|schema| schema.properties.get(name));
            let value = item.get(name).or_else(|| declared.and_then(|schema| schema.default.as_ref()));
            value.map(|value| (name.clone(), value.clone()))
        };
        Value::Object(self.list_map_keys.iter().filter_map(key).collect())
    }
}

/// The items of a stored list, to be found again in a new one.
pub(super) struct Counterparts<'a>(HashMap<Value, &'a Value>);

impl<'a> Counterparts<'a> {
    /// Of the list that was stored under this schema; only the items of a list map can be told.
    pub(super) fn new(schema: &Schema, old: Option<&'a Vec<Value>>) -> Self {
        let old = old.filter(|_| schema.list_type == ListType::Map);
        let mut items = HashMap::new();
        for item in old.into_iter().flatten() {
            items.entry(schema.key_of(item)).or_insert(item);
        }
        Self(items)
    }

    /// The stored item which is the same one as `item`.
    pub(super) fn get(&self, schema: &Schema, item: &Value) -> Option<&'a Value> {
        if self.0.is_empty() {
            return None;
        }
        self.0.get(&schema.key_of(item)).copied()
    }
}

/// The integer of 64 bits that a number is.
fn as_integer(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| value.as_f64().filter(|_| value.is_f64()).and_then(whole_number))
}

fn is_missing(schema: &Schema, field: Option<&Value>, name: &str, typed: bool) -> bool {
    let keeps_empty = schema.properties.get(name).is_some_and(|schema| schema.keep_empty);
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
mod tests {
    use std::sync::Arc;

    use rstest::rstest;
    use serde_json::json;

    use super::*;
    use crate::schema::CauseReason::{self, *};

    fn schema() -> Schema {
        let document = json!({
            "type": "object",
            "properties": {"spec": {
                "type": "object",
                "required": ["size"],
                "minProperties": 1,
                "properties": {
                    "size": {"type": "integer", "minimum": 1, "maximum": 100},
                    "even": {"type": "integer", "multipleOf": 2, "exclusiveMaximum": true, "maximum": 10},
                    "color": {"type": "string", "enum": ["red", "green"]},
                    "name": {"type": "string", "pattern": "^[a-z]+$", "minLength": 2, "maxLength": 5},
                    "when": {"type": "string", "format": "date-time"},
                    "tags": {"type": "array", "maxItems": 2, "x-kubernetes-list-type": "set", "items": {"type": "string"}},
                    "ports": {
                        "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["port"],
                        "items": {"type": "object", "required": ["port"], "properties": {
                            "port": {"type": "integer"}, "name": {"type": "string", "maxLength": 3},
                        }},
                    },
                    "labels": {"type": "object", "maxProperties": 2, "additionalProperties": {"type": "string"}},
                    "any": {"x-kubernetes-int-or-string": true},
                    "ratio": {"type": "number"},
                    "nullable": {"type": "string", "nullable": true},
                    "either": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
                               "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
                },
            }},
        });
        Schema::from_openapi(&document).unwrap()
    }

    /// The mistakes of a spec that has a good size unless it says otherwise.
    fn mistakes(mut spec: Value, faults: Faults) -> Vec<FieldError> {
        if let Some(fields) = spec.as_object_mut().filter(|fields| !fields.contains_key("size")) {
            fields.insert("size".to_owned(), json!(1));
        }
        schema().validate(&json!({ "spec": spec }), None, faults)
    }

    #[rstest]
    #[case(json!({"size": 100, "color": "green", "name": "abcde", "when": "2024-01-02T03:04:05Z"}))]
    #[case(json!({"size": 2.0, "even": 8, "any": 5, "ratio": 1, "nullable": null}))]
    #[case(json!({"any": "50%", "ratio": 1.5, "tags": ["a", "b"], "ports": [{"port": 1}, {"port": 2}]}))]
    #[case(json!({"labels": {"a": "b"}, "either": {"a": "x"}}))]
    fn what_keeps_the_schema_is_accepted(#[case] spec: Value) {
        assert_eq!(mistakes(spec, Faults::none()), []);
    }

    #[rstest]
    #[case(json!("text"), "spec", FieldValueTypeInvalid, "must be of type object: \"string\"")]
    #[case(json!({"size": "x"}), "spec.size", FieldValueTypeInvalid, "spec.size in body must be of type integer: \"string\"")]
    #[case(json!({"size": 1.5}), "spec.size", FieldValueTypeInvalid, "must be of type integer: \"number\"")]
    #[case(json!({"size": null}), "spec.size", FieldValueTypeInvalid, "must be of type integer: \"null\"")]
    #[case(json!({"size": 0}), "spec.size", FieldValueInvalid, "Invalid value: 0: spec.size in body should be greater than or equal to 1")]
    #[case(json!({"size": 101}), "spec.size", FieldValueInvalid, "should be less than or equal to 100")]
    #[case(json!({"even": 3}), "spec.even", FieldValueInvalid, "should be a multiple of 2")]
    #[case(json!({"even": 10}), "spec.even", FieldValueInvalid, "should be less than 10")]
    #[case(json!({"color": "blue"}), "spec.color", FieldValueNotSupported, "supported values: \"red\", \"green\"")]
    #[case(json!({"name": "ABC"}), "spec.name", FieldValueInvalid, "should match '^[a-z]+$'")]
    #[case(json!({"name": "abcdef"}), "spec.name", FieldValueTooLong, "may not be more than 5 bytes")]
    #[case(json!({"name": "a"}), "spec.name", FieldValueInvalid, "should be at least 2 chars long")]
    #[case(json!({"when": "nope"}), "spec.when", FieldValueTypeInvalid, "must be of type date-time: \"nope\"")]
    #[case(json!({"tags": ["a", "b", "c"]}), "spec.tags", FieldValueTooMany, "must have at most 2 items")]
    #[case(json!({"tags": ["a", 1]}), "spec.tags[1]", FieldValueTypeInvalid, "must be of type string: \"integer\"")]
    #[case(json!({"tags": ["a", "a"]}), "spec.tags[1]", FieldValueDuplicate, "Duplicate value: \"a\"")]
    #[case(json!({"ports": [{"port": 1}, {"port": 1}]}), "spec.ports[1]", FieldValueDuplicate, "Duplicate value: {\"port\":1}")]
    #[case(json!({"ports": [{}]}), "spec.ports[0].port", FieldValueRequired, "Required value")]
    #[case(json!({"labels": {"a": 1}}), "spec.labels.a", FieldValueTypeInvalid, "must be of type string")]
    #[case(json!({"labels": {"a": "", "b": "", "c": ""}}), "spec.labels", FieldValueTooMany, "at most 2")]
    #[case(json!({"any": true}), "spec.any", FieldValueTypeInvalid, "must be of type integer,string: \"boolean\"")]
    #[case(json!({"either": {"a": "x", "b": "y"}}), "spec.either", FieldValueInvalid, "one and only one")]
    #[case(json!({"either": {}}), "spec.either", FieldValueInvalid, "one and only one")]
    fn a_mistake_has_a_field_a_reason_and_a_text(
        #[case] spec: Value,
        #[case] field: &str,
        #[case] reason: CauseReason,
        #[case] message: &str,
    ) {
        let errors = mistakes(spec, Faults::none());
        let [error] = errors.as_slice() else { panic!("one mistake expected: {errors:?}") };
        assert_eq!((error.field.as_str(), error.reason), (field, reason));
        assert!(error.message.contains(message), "{}", error.message);
    }

    /// Each limit at its edge, on both sides.
    #[rstest]
    #[case(json!({"type": "array", "uniqueItems": true}), json!([1, 2]), json!([1, 1]))]
    #[case(json!({"type": "array", "uniqueItems": false}), json!([1, 1]), json!("x"))]
    #[case(json!({"type": "array", "minItems": 2}), json!([1, 1]), json!([1]))]
    #[case(json!({"type": "object", "minProperties": 1}), json!({"a": 1}), json!({}))]
    #[case(json!({"type": "string", "minLength": 2}), json!("ab"), json!("a"))]
    #[case(json!({"type": "string", "minLength": 2, "maxLength": 2}), json!("äö"), json!("äöü"))]
    #[case(json!({"type": "number", "minimum": 0.5}), json!(0.5), json!(0.25))]
    #[case(json!({"type": "number", "minimum": 0.5, "exclusiveMinimum": true}), json!(0.75), json!(0.5))]
    #[case(json!({"type": "integer", "minimum": 3, "exclusiveMinimum": true}), json!(4), json!(2))]
    #[case(json!({"type": "number", "multipleOf": 0.1}), json!(0.3), json!(0.35))]
    #[case(json!({"type": "number", "multipleOf": 1}), json!(2), json!(1e-9))]
    #[case(
        json!({"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true}),
        json!({"apiVersion": "v1", "kind": "A"}),
        json!({"apiVersion": "v1"})
    )]
    #[case(json!({"type": "integer", "format": "int32"}), json!(2_147_483_647), json!(2_147_483_648_i64))]
    #[case(json!({"type": "integer", "format": "int32"}), json!(-2_147_483_648_i64), json!(-2_147_483_649_i64))]
    #[case(json!({"type": "integer", "format": "int64"}), json!(2_147_483_648_i64), json!(1.5))]
    #[case(json!({"type": "number", "format": "float"}), json!(3.4e38), json!(3.5e38))]
    #[case(json!({"type": "number", "format": "double"}), json!(3.5e38), json!("x"))]
    #[case(json!({"type": "integer", "enum": [1, 2]}), json!(1.0), json!(3))]
    #[case(json!({"type": "number", "enum": [1.5]}), json!(1.5), json!(2.5))]
    #[case(json!({"type": "string", "anyOf": [{"minLength": 2}, {"pattern": "^x"}]}), json!("x"), json!("y"))]
    #[case(json!({"type": "string", "anyOf": [{"minLength": 2}, {"pattern": "^x"}]}), json!("yy"), json!(""))]
    #[case(json!({"type": "string", "allOf": [{"minLength": 2}, {"pattern": "^x"}]}), json!("xy"), json!("x"))]
    #[case(json!({"type": "string", "not": {"pattern": "^x"}}), json!("y"), json!("x"))]
    fn a_limit_holds_at_its_edge(#[case] limit: Value, #[case] good: Value, #[case] bad: Value) {
        let schema = Schema::from_openapi(&json!({"type": "object", "properties": {"f": limit}})).unwrap();
        let mistakes = |value: &Value| schema.validate(&json!({ "f": value }), None, Faults::none()).len();
        assert_eq!((mistakes(&good), mistakes(&bad)), (0, 1));
    }

    /// Typed objects tell both ends of a range; null and nothing are the same in them.
    #[rstest]
    #[case(json!(1), &[])]
    #[case(json!(65_535), &[])]
    #[case(json!(null), &[])]
    #[case(json!(0), &["must be between 1 and 65535, inclusive"])]
    #[case(json!(65_536), &["must be between 1 and 65535, inclusive"])]
    #[case(json!(-7), &["must be between 1 and 65535, inclusive"])]
    fn a_typed_range_is_told_whole(#[case] port: Value, #[case] expected: &[&str]) {
        let mut schema =
            Schema::from_openapi(&json!({"type": "object", "properties": {"port": {"type": "integer", "minimum": 1, "maximum": 65_535}}})).unwrap();
        schema.typed = true;
        let errors = schema.validate(&json!({ "port": port }), None, Faults::none());
        let told: Vec<_> =
            errors.iter().map(|error| error.message.rsplit(": ").next().unwrap_or_default()).collect();
        assert_eq!(told, expected);
    }

    /// In a typed object what is empty is missing, where its field does not keep what is empty.
    #[rstest]
    #[case(json!({}), &["kept", "list", "text"], &["kept", "list", "text"])]
    #[case(json!({"kept": null, "list": null, "text": null}), &[], &["kept", "list", "text"])]
    #[case(json!({"kept": "", "list": [], "text": ""}), &[], &["list", "text"])]
    #[case(json!({"kept": [], "list": [1], "text": "x"}), &[], &[])]
    #[case(json!({"kept": 0, "list": {}, "text": false}), &[], &[])]
    fn what_is_required_and_empty(#[case] value: Value, #[case] untyped: &[&str], #[case] typed: &[&str]) {
        let anything = json!({"x-kubernetes-preserve-unknown-fields": true, "nullable": true});
        let document = json!({
            "type": "object", "required": ["kept", "list", "text"],
            "properties": {"kept": anything, "list": anything, "text": anything},
        });
        let mut schema = Schema::from_openapi(&document).unwrap();
        Arc::make_mut(schema.properties.get_mut("kept").unwrap()).keep_empty = true;
        for (is_typed, expected) in [(false, untyped), (true, typed)] {
            schema.typed = is_typed;
            let errors = schema.validate(&value, None, Faults::none());
            let missing: Vec<_> = errors.iter().map(|error| error.field.as_str()).collect();
            assert_eq!(missing, expected, "typed: {is_typed}");
        }
    }

    #[rstest]
    #[case(json!("1Gi"), true)]
    #[case(json!(1), true)]
    #[case(json!(0.5), true)]
    #[case(json!(true), false)]
    fn a_quantity_may_be_a_number(#[case] value: Value, #[case] accepted: bool) {
        let schema = Schema {
            kind: Some(Kind::String),
            format: Some(Format::Quantity),
            typed: true,
            ..Schema::default()
        };
        assert_eq!(schema.validate(&value, None, Faults::none()).is_empty(), accepted);
    }

    #[test]
    fn all_mistakes_are_reported_at_once() {
        let fields: Vec<_> = mistakes(json!({"size": 0, "color": "blue", "tags": [1]}), Faults::none())
            .into_iter()
            .map(|error| error.field)
            .collect();
        assert_eq!(fields, ["spec.color", "spec.size", "spec.tags[0]"]);
        let errors = schema().validate(&json!({"spec": {"color": "red"}}), None, Faults::none());
        assert_eq!(errors, [FieldError::required("spec.size", "")]);
    }

    #[test]
    fn what_has_not_changed_is_not_looked_at_again() {
        let old = json!({"spec": {"size": 500, "name": "a", "ports": [{"port": 1, "name": "long"}]}});
        let mut new = old.clone();
        new["spec"]["color"] = json!("red");
        new["spec"]["ports"] = json!([{"port": 2}, {"port": 1, "name": "long"}]);
        assert_eq!(schema().validate(&new, Some(&old), Faults::none()), []);
        new["spec"]["ports"][0]["name"] = json!("long");
        assert_eq!(schema().validate(&new, Some(&old), Faults::none())[0].field, "spec.ports[0].name");
        new["spec"]["ports"] = old["spec"]["ports"].clone();
        new["spec"]["size"] = json!(501);
        assert_eq!(schema().validate(&new, Some(&old), Faults::none())[0].field, "spec.size");
    }

    #[rstest]
    #[case(Fault::RequiredNotEnforced, json!({"ports": [{}]}), &[])]
    #[case(Fault::MaximumOffByOne, json!({"size": 101}), &[])]
    #[case(Fault::EnumIgnored, json!({"color": "blue"}), &[])]
    #[case(Fault::FormatIgnored, json!({"when": "nope"}), &[])]
    #[case(Fault::PatternIgnored, json!({"name": "ABC"}), &[])]
    #[case(Fault::WrongTypesAccepted, json!({"size": "x"}), &[])]
    #[case(Fault::DuplicatesAccepted, json!({"tags": ["a", "a"]}), &[])]
    #[case(Fault::FirstErrorOnly, json!({"size": 0, "color": "blue"}), &["spec.color"])]
    fn faults(#[case] fault: Fault, #[case] spec: Value, #[case] expected: &[&str]) {
        let fields = |faults| -> Vec<String> {
            mistakes(spec.clone(), faults).into_iter().map(|error| error.field).collect()
        };
        assert_eq!(fields(Faults::none().with(fault)), expected);
        assert_ne!(fields(Faults::none()), expected);
    }
}
