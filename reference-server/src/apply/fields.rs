//! Sets of fields of an object, and the form in which `managedFields` writes them down.
//!
//! A set is a tree of steps. That a field is in the set and that something below it is are two facts: a manager can own
//! the replicas of a list item without owning the item.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value, json};

/// One step down from an object or a list.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Step {
    /// A field of an object, or a key of a map.
    Field(String),
    /// The item of a list map with these keys, as canonical JSON.
    Keys(String),
    /// The item of a set with this value, as JSON.
    Item(String),
}

impl Step {
    /// The step to the field of this name.
    pub(crate) fn field(name: &str) -> Self {
        Self::Field(name.to_owned())
    }

    fn parse(text: &str) -> Option<Self> {
        match text.split_at_checked(2)? {
            ("f:", name) => Some(Self::field(name)),
            ("k:", keys) => Some(Self::Keys(canonical(keys)?)),
            ("v:", value) => Some(Self::Item(canonical(value)?)),
            _ => None,
        }
    }

    fn to_key(&self) -> String {
        match self {
            Self::Field(name) => format!("f:{name}"),
            Self::Keys(keys) => format!("k:{keys}"),
            Self::Item(value) => format!("v:{value}"),
        }
    }
}

fn canonical(text: &str) -> Option<String> {
    serde_json::from_str::<Value>(text).ok().map(|value| value.to_string())
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, ".{name}"),
            Self::Item(value) => write!(f, "[={value}]"),
            Self::Keys(keys) => {
                let keys: Map<String, Value> = serde_json::from_str(keys).unwrap_or_default();
                let pairs: Vec<_> = keys.iter().map(|(key, value)| format!("{key}={value}")).collect();
                write!(f, "[{}]", pairs.join(","))
            }
        }
    }
}

/// How many members of a set are told by their path.
const MAX_PATHS: usize = 1_000;

/// A set of fields below one place of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FieldSet {
    /// The place itself is in the set.
    pub(crate) member: bool,
    /// What is in the set below it; never an empty set.
    pub(crate) children: BTreeMap<Step, FieldSet>,
}

impl FieldSet {
    /// The place itself, and nothing below.
    pub(crate) fn leaf() -> Self {
        Self { member: true, ..Self::default() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        !self.member && self.children.is_empty()
    }

    /// Puts a set below a step.
    pub(crate) fn attach(&mut self, step: Step, child: Self) {
        if !child.is_empty() {
            self.children.insert(step, child);
        }
    }

    pub(crate) fn union(&self, other: &Self) -> Self {
        let mut result = self.clone();
        result.member |= other.member;
        for (step, child) in &other.children {
            let joined = result.children.get(step).map_or_else(|| child.clone(), |own| own.union(child));
            result.children.insert(step.clone(), joined);
        }
        result
    }

    pub(crate) fn intersection(&self, other: &Self) -> Self {
        let mut result = Self { member: self.member && other.member, ..Self::default() };
        for (step, child) in &self.children {
            if let Some(theirs) = other.children.get(step) {
                result.attach(step.clone(), child.intersection(theirs));
            }
        }
        result
    }

    pub(crate) fn difference(&self, other: &Self) -> Self {
        let mut result = Self { member: self.member && !other.member, ..Self::default() };
        for (step, child) in &self.children {
            let left =
                other.children.get(step).map_or_else(|| child.clone(), |theirs| child.difference(theirs));
            result.attach(step.clone(), left);
        }
        result
    }

    /// The set without a place and all that is below it.
    #[must_use]
    pub(crate) fn without(mut self, path: &[&str]) -> Self {
        match path {
            [] => Self::default(),
            [name, rest @ ..] => {
                let step = Step::field(name);
                if let Some(child) = self.children.remove(&step) {
                    self.attach(step, child.without(rest));
                }
                self
            }
        }
    }

    /// Where its members are, as messages write paths: `.spec.ports[port=80]`.
    pub(crate) fn paths(&self) -> Vec<String> {
        let mut paths = Vec::new();
        self.collect_paths("", &mut paths);
        paths
    }

    fn collect_paths(&self, prefix: &str, paths: &mut Vec<String>) {
        if paths.len() == MAX_PATHS {
            return;
        }
        if self.member {
            paths.push(prefix.to_owned());
        }
        for (step, child) in &self.children {
            child.collect_paths(&format!("{prefix}{step}"), paths);
        }
    }

    /// `fieldsV1` of the whole object.
    pub(crate) fn to_fields_v1(&self) -> Value {
        let mut fields = Map::new();
        if self.member && !self.children.is_empty() {
            fields.insert(".".to_owned(), json!({}));
        }
        for (step, child) in &self.children {
            fields.insert(step.to_key(), child.to_fields_v1());
        }
        Value::Object(fields)
    }

    /// Reads `fieldsV1`; none if it is not of this form.
    pub(crate) fn from_fields_v1(value: &Value) -> Option<Self> {
        let mut set = Self::default();
        for (key, below) in value.as_object()? {
            if key == "." {
                set.member = true;
                continue;
            }
            let mut child = Self::from_fields_v1(below)?;
            child.member |= child.children.is_empty();
            set.children.insert(Step::parse(key)?, child);
        }
        Some(set)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::needless_pass_by_value, reason = "literals read better without a reference")]
    fn set(value: Value) -> FieldSet {
        FieldSet::from_fields_v1(&value).unwrap()
    }

    #[test]
    fn fields_v1_reads_back_as_it_was_written() {
        let fields = json!({
            "f:data": {".": {}, "f:a": {}},
            "f:spec": {"f:items": {"k:{\"name\":\"x\"}": {".": {}, "f:weight": {}}}, "f:tags": {"v:\"t\"": {}}},
        });
        assert_eq!(set(fields.clone()).to_fields_v1(), fields);
        assert_eq!(FieldSet::from_fields_v1(&json!({"data": {}})), None);
        assert_eq!(FieldSet::from_fields_v1(&json!({"k:{": {}})), None);
    }

    #[test]
    fn a_place_and_what_is_below_it_are_counted_apart() {
        let whole = set(json!({"f:data": {".": {}, "f:a": {}, "f:b": {}}}));
        let inner = set(json!({"f:data": {"f:a": {}}}));
        assert_eq!(whole.intersection(&inner), inner);
        assert_eq!(whole.difference(&inner), set(json!({"f:data": {".": {}, "f:b": {}}})));
        assert_eq!(whole.difference(&inner).union(&inner), whole);
        assert!(inner.difference(&whole).is_empty());
        assert_eq!(whole.without(&["data", "a"]), set(json!({"f:data": {".": {}, "f:b": {}}})));
    }

    #[test]
    fn paths_name_items_by_their_keys() {
        let fields = json!({"f:spec": {
            "f:ports": {"k:{\"port\":80,\"protocol\":\"TCP\"}": {"f:name": {}}}, "f:tags": {"v:\"t\"": {}},
        }});
        assert_eq!(set(fields).paths(), [".spec.ports[port=80,protocol=\"TCP\"].name", ".spec.tags[=\"t\"]"]);
    }
}
