//! Values of a schema.

use rand::RngExt;
use serde_json::{Map, Value, json};

use super::Generator;
use crate::explore::compare::is_empty;
use crate::explore::schema::{
    is_embedded, is_int_or_string, is_nullable, is_set, map_keys, preserves, required,
};

/// Nested objects beyond this depth have only their required members.
const DEPTH: usize = 5;

/// The most items of a list without a limit.
const ITEMS: u64 = 4;

/// The most characters of texts in the items of a list map.
const KEY: usize = 300;

/// Numbers that programs often round or change.
const DOUBLES: [f64; 12] = [
    0.0,
    1.0,
    -1.0,
    0.1,
    0.5,
    -2.5,
    1e-7,
    123_456_789.123_456_79,
    9_007_199_254_740_993.0,
    1e21,
    1.797_693_134_862_315_7e308,
    5e-324,
];

const FREE: [&str; 6] = [
    r#"{"Upper":{"nested":[1,"two",null,{"three":3.5}]},"empty":{},"list":[]}"#,
    r#"{"wide":9007199254740993,"narrow":-1,"truth":false,"text":" x "}"#,
    r#"{"a.b/c":"dots","":"no name","x y":"space"}"#,
    r#"{"kind":"Other","metadata":{"name":"x","labels":{"A":"b"}}}"#,
    r"{}",
    r#"{"deep":{"deep":{"deep":{"deep":{"deep":["end"]}}}}}"#,
];

impl Generator<'_> {
    /// Returns the members of an object: all required ones, and some of the others.
    pub(super) fn members(
        &mut self,
        node: &Value,
        depth: usize,
        without: &[&str],
    ) -> Map<String, Value> {
        let schema = self.schema;
        let node = schema.resolve(node);
        let mut members = Map::new();
        let required = required(node);
        for (name, member) in node["properties"].as_object().into_iter().flatten() {
            let is_required = required.contains(&name.as_str());
            let is_chosen = is_required || (depth < DEPTH && !self.once_in(3));
            if without.contains(&name.as_str()) || !is_chosen {
                continue;
            }
            if let Some(value) = self.value(member, depth + 1) {
                members.insert(name.clone(), value);
            }
        }
        members
    }

    /// Returns a value of a schema. `None` if this program cannot generate one.
    pub(in crate::explore) fn value(&mut self, node: &Value, depth: usize) -> Option<Value> {
        let schema = self.schema;
        let node = schema.resolve(node);
        if is_nullable(node) && self.schema.is_complete && self.once_in(6) {
            return Some(Value::Null);
        }
        // Logic and rules exclude some values.
        for _ in 0..12 {
            let value = self.any_value(node, depth)?;
            if schema.misfits_at(node, &value).is_empty() {
                return Some(value);
            }
        }
        None
    }

    fn any_value(&mut self, node: &Value, depth: usize) -> Option<Value> {
        if let Some(all) = node["enum"].as_array() {
            return self.one_of(all);
        }
        if is_int_or_string(node) {
            let numbers = [json!(0), json!(80), json!(-1), json!(i32::MAX)];
            let texts = [json!("http"), json!("80"), json!("25%"), json!("")];
            return if self.once_in(2) { self.one_of(&numbers) } else { self.one_of(&texts) };
        }
        if is_embedded(node) {
            let mut embedded = json!({"apiVersion": "v1", "kind": "Thing"});
            embedded["metadata"] = json!({"name": "inner"});
            embedded["spec"] = self.free()?;
            return Some(embedded);
        }
        match node["type"].as_str() {
            Some("object") => self.object_of(node, depth),
            Some("array") => self.list_of(node, depth),
            Some("string") => self.string_of(node).map(Value::String),
            Some("boolean") => Some(json!(self.once_in(2))),
            Some("integer") => self.integer_of(node),
            Some("number") => self.number_of(node),
            _ if preserves(node) => self.free(),
            _ => None,
        }
    }

    /// Returns an object without a schema.
    fn free(&mut self) -> Option<Value> {
        serde_json::from_str(self.one_of(&FREE)?).ok()
    }

    fn object_of(&mut self, node: &Value, depth: usize) -> Option<Value> {
        let mut members = self.members(node, depth, &[]);
        if preserves(node) {
            members.extend(self.free()?.as_object().cloned().unwrap_or_default());
        }
        if self.schema.is_map(node) {
            let most = node["maxProperties"].as_u64().unwrap_or(ITEMS);
            let least = node["minProperties"].as_u64().unwrap_or(0);
            let count = self.count(least, most);
            let keys = ["key", "Upper Case", "a.b/c", "ключ", "-0", "x_y-z"];
            for n in 0..count {
                let key = self.one_of(&keys).unwrap_or_default();
                let key = if members.contains_key(key) { format!("key-{n}") } else { key.into() };
                members.insert(key, self.value(&node["additionalProperties"], depth + 1)?);
            }
        }
        Some(Value::Object(members))
    }

    fn list_of(&mut self, node: &Value, depth: usize) -> Option<Value> {
        let most = node["maxItems"].as_u64().unwrap_or(ITEMS);
        let least = node["minItems"].as_u64().unwrap_or(0);
        let keys = map_keys(node);
        let mut items: Vec<Value> = Vec::new();
        // Managers own items by their keys, which makes a long path of each one.
        let longest = if keys.is_empty() { self.longest } else { KEY };
        let longest = std::mem::replace(&mut self.longest, longest);
        for _ in 0..self.count(least, most) {
            let Some(item) = self.value(&node["items"], depth + 1) else { break };
            let is_same = |other: &Value| match keys.as_slice() {
                [] => is_set(node) && *other == item,
                keys => keys.iter().all(|key| {
                    other[key] == item[key] || (is_empty(&other[key]) && is_empty(&item[key]))
                }),
            };
            if !items.iter().any(is_same) {
                items.push(item);
            }
        }
        self.longest = longest;
        (items.len() as u64 >= least).then_some(Value::Array(items))
    }

    /// Returns a number of items, often a limit.
    fn count(&mut self, least: u64, most: u64) -> u64 {
        match self.random.random_range(0..4) {
            0 => least,
            1 => most.min(64),
            _ => self.random.random_range(least..=most.min(least + ITEMS)),
        }
    }

    fn string_of(&mut self, node: &Value) -> Option<String> {
        let known: &[&str] = match node["format"].as_str() {
            Some("date-time") => &[
                "2024-05-06T07:08:09Z",
                "2024-05-06T07:08:09.123456789Z",
                "1999-12-31T23:59:59+02:00",
            ],
            Some("date") => &["2024-02-29", "1970-01-01"],
            Some("duration") => &["1h", "90s", "1h30m", "250ms"],
            Some("byte") => &["YQ==", "AP8=", "+/+/"],
            Some("ipv4") => &["10.0.0.1", "255.255.255.255"],
            Some("ipv6") => &["::1", "2001:db8::8:800:200c:417a"],
            Some("uuid") => &["123e4567-e89b-42d3-a456-426614174000"],
            Some("uri") => &["https://example.com/a?b=c"],
            Some("email") => &["me@example.com"],
            _ => &[],
        };
        if !known.is_empty() {
            return self.one_of(known).map(str::to_owned);
        }
        let limit = |name: &str| node[name].as_u64().and_then(|size| usize::try_from(size).ok());
        if let Some(pattern) = node["pattern"].as_str() {
            return self.matching(pattern);
        }
        Some(self.text_within(limit("minLength").unwrap_or(0), limit("maxLength")))
    }

    fn integer_of(&mut self, node: &Value) -> Option<Value> {
        let (least, most) = match node["format"].as_str() {
            Some("int32") => (i64::from(i32::MIN), i64::from(i32::MAX)),
            _ => (i64::MIN, i64::MAX),
        };
        let least = whole(&node["minimum"]).unwrap_or(least);
        let most = whole(&node["maximum"]).unwrap_or(most);
        let step = whole(&node["multipleOf"]).unwrap_or(1).max(1);
        let inside = [0, 1, -1, 7 * step, 2 * step, least.saturating_add(1), most - 1, step];
        let limits = [least, most];
        let value = if self.once_in(3) { self.one_of(&limits)? } else { self.one_of(&inside)? };
        (least..=most).contains(&value).then(|| json!(value)).or_else(|| Some(json!(least)))
    }

    fn number_of(&mut self, node: &Value) -> Option<Value> {
        let bounds = [&node["minimum"], &node["maximum"]].map(Value::as_f64);
        if let [Some(least), Some(most)] = bounds {
            let inside = [least, most, least.midpoint(most), least + (most - least) / 3.0];
            return self.one_of(&inside).map(|number| json!(number));
        }
        self.one_of(&DOUBLES).map(|number| json!(number))
    }
}

/// Returns a bound as an integer.
fn whole(bound: &Value) -> Option<i64> {
    #[expect(clippy::cast_possible_truncation, reason = "the cast saturates")]
    bound.as_i64().or_else(|| bound.as_f64().map(|bound| bound as i64))
}
