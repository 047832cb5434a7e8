//! Checks whether a value fits a schema, as a server does.

use regex::Regex;
use serde_json::Value;

use super::{
    Schema, is_embedded, is_int_or_string, is_nullable, is_set, map_keys, preserves, required,
    rules,
};

/// Why a value does not fit.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(in crate::explore) struct Misfit {
    /// JSON Pointer to the value.
    pub(in crate::explore) at: String,
    /// False if this program cannot decide.
    pub(in crate::explore) is_certain: bool,
}

impl Schema {
    /// Reports whether an object fits. Members of its metadata are not part of the schema.
    pub(in crate::explore) fn fits(&self, object: &Value) -> bool {
        self.misfits(object).is_empty()
    }

    /// Returns why an object does not fit.
    pub(in crate::explore) fn misfits(&self, object: &Value) -> Vec<Misfit> {
        let mut found = Vec::new();
        self.check(self.root(), object, "", &mut found);
        found.retain(|misfit| !misfit.at.starts_with("/metadata"));
        found
    }

    /// Returns why a value does not fit a part of the schema.
    pub(in crate::explore) fn misfits_at(&self, node: &Value, value: &Value) -> Vec<Misfit> {
        let mut found = Vec::new();
        self.check(node, value, "", &mut found);
        found
    }

    fn check(&self, node: &Value, value: &Value, at: &str, found: &mut Vec<Misfit>) {
        let node = self.resolve(node);
        let misfit = |at: &str| Misfit { at: at.to_owned(), is_certain: true };
        if value.is_null() {
            let has_any_type = preserves(node) && !node["type"].is_string();
            if !is_nullable(node) && !has_any_type {
                found.push(misfit(at));
            }
            return;
        }
        if !has_type(node, value) || !has_value(node, value) {
            found.push(misfit(at));
            return;
        }
        match value {
            Value::Object(_) => self.check_members(node, value, at, found),
            Value::Array(items) => self.check_items(node, items, at, found),
            _ => {}
        }
        self.check_logic(node, value, at, found);
        match rules::hold(node, value) {
            Some(true) => {}
            Some(false) => found.push(misfit(at)),
            None => found.push(Misfit { is_certain: false, ..misfit(at) }),
        }
    }

    fn check_members(&self, node: &Value, value: &Value, at: &str, found: &mut Vec<Misfit>) {
        let members = value.as_object().into_iter().flatten();
        for name in required(node).into_iter().filter(|name| value.get(name).is_none()) {
            found.push(Misfit { at: format!("{at}/{}", escaped(name)), is_certain: true });
        }
        let embedded = ["apiVersion", "kind"].into_iter().filter(|_| is_embedded(node));
        for name in embedded.filter(|name| value[name].as_str().is_none_or(str::is_empty)) {
            found.push(Misfit { at: format!("{at}/{name}"), is_certain: true });
        }
        for (name, member) in members {
            let at = format!("{at}/{}", escaped(name));
            match self.member(node, name) {
                Some(schema) => self.check(schema, member, &at, found),
                None if preserves(node) || is_embedded(node) || node["type"].is_null() => {}
                None if at.matches('/').count() == 1 => {}
                None => found.push(Misfit { at, is_certain: true }),
            }
        }
    }

    fn check_items(&self, node: &Value, items: &[Value], at: &str, found: &mut Vec<Misfit>) {
        for (index, item) in items.iter().enumerate() {
            if node["items"].is_object() {
                self.check(&node["items"], item, &format!("{at}/{index}"), found);
            }
        }
        let keys = map_keys(node);
        let is_same = |one: &Value, other: &Value| {
            if keys.is_empty() { one == other } else { keys.iter().all(|k| one[k] == other[k]) }
        };
        let is_unique = is_set(node) || !keys.is_empty();
        for (index, item) in items.iter().enumerate().filter(|_| is_unique) {
            if items[..index].iter().any(|other| is_same(item, other)) {
                found.push(Misfit { at: format!("{at}/{index}"), is_certain: true });
            }
        }
    }

    fn check_logic(&self, node: &Value, value: &Value, at: &str, found: &mut Vec<Misfit>) {
        let fitting = |name: &str| {
            let branches = node[name].as_array()?;
            let fits = |branch: &&Value| self.fits_branch(branch, value);
            Some((branches.iter().filter(fits).count(), branches.len()))
        };
        let all = fitting("allOf").is_none_or(|(fit, all)| fit == all || node["$ref"].is_string());
        let any = is_int_or_string(node) || fitting("anyOf").is_none_or(|(fit, _)| fit > 0);
        let one = fitting("oneOf").is_none_or(|(fit, _)| fit == 1);
        let not = !node["not"].is_object() || !self.fits_branch(&node["not"], value);
        if !(all && any && one && not) {
            found.push(Misfit { at: at.to_owned(), is_certain: true });
        }
    }

    /// A branch of a logical operator may leave out types and declarations.
    fn fits_branch(&self, branch: &Value, value: &Value) -> bool {
        let branch = self.resolve(branch);
        let has_members = required(branch).iter().all(|name| value.get(name).is_some());
        let members = branch["properties"].as_object().into_iter().flatten();
        let mut given = members.filter_map(|(name, schema)| Some((schema, value.get(name)?)));
        has_members
            && has_type(branch, value)
            && has_value(branch, value)
            && given.all(|(schema, member)| self.fits_branch(schema, member))
            && {
                let mut found = Vec::new();
                self.check_logic(branch, value, "", &mut found);
                found.is_empty()
            }
    }
}

fn has_type(node: &Value, value: &Value) -> bool {
    if is_int_or_string(node) {
        return value.is_string() || value.is_i64() || value.is_u64();
    }
    match node["type"].as_str() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("integer") => value.is_i64() || value.is_u64(),
        Some("number") => value.is_number(),
        _ => true,
    }
}

/// Checks the bounds of one value.
fn has_value(node: &Value, value: &Value) -> bool {
    let is_listed = node["enum"].as_array().is_none_or(|all| all.contains(value));
    let size = |least: &str, most: &str, size: usize| {
        let size = size as u64;
        node[least].as_u64().is_none_or(|least| size >= least)
            && node[most].as_u64().is_none_or(|most| size <= most)
    };
    is_listed
        && match value {
            Value::String(text) => {
                size("minLength", "maxLength", text.chars().count())
                    && matches_pattern(node, text)
                    && has_format(node, text)
            }
            Value::Number(_) => has_bounds(node, value),
            Value::Array(items) => size("minItems", "maxItems", items.len()),
            Value::Object(members) => size("minProperties", "maxProperties", members.len()),
            _ => true,
        }
}

fn matches_pattern(node: &Value, text: &str) -> bool {
    let pattern = node["pattern"].as_str().map(Regex::new);
    // The harness cannot read each expression of Go.
    pattern.is_none_or(|pattern| pattern.is_ok_and(|pattern| pattern.is_match(text)))
}

fn has_format(node: &Value, text: &str) -> bool {
    use base64::Engine as _;
    match node["format"].as_str() {
        Some("date-time") => text.parse::<jiff::Timestamp>().is_ok(),
        Some("date") => text.parse::<jiff::civil::Date>().is_ok(),
        Some("byte") => base64::engine::general_purpose::STANDARD.decode(text).is_ok(),
        Some("ipv4") => text.parse::<std::net::Ipv4Addr>().is_ok(),
        Some("ipv6") => text.parse::<std::net::Ipv6Addr>().is_ok(),
        Some("uuid") => Regex::new("^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
            .is_ok_and(|uuid| uuid.is_match(text)),
        _ => true,
    }
}

fn has_bounds(node: &Value, value: &Value) -> bool {
    let Some(number) = value.as_f64() else { return true };
    let is_exclusive = |name: &str| node[name] == true;
    let least = node["minimum"].as_f64().is_none_or(|least| {
        if is_exclusive("exclusiveMinimum") { number > least } else { number >= least }
    });
    let most = node["maximum"].as_f64().is_none_or(|most| {
        if is_exclusive("exclusiveMaximum") { number < most } else { number <= most }
    });
    let is_multiple = node["multipleOf"].as_f64().is_none_or(|of| (number % of).abs() < 1e-9);
    let is_sized = match node["format"].as_str() {
        Some("int32") => value.as_i64().is_some_and(|whole| i32::try_from(whole).is_ok()),
        Some("int64") => value.is_i64(),
        _ => node["type"] != "integer" || value.is_i64(),
    };
    least && most && is_multiple && is_sized
}

/// Escapes a segment of a JSON Pointer.
pub(in crate::explore) fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}
