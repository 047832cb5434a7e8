//! Sets of fields of an object, and their form in `managedFields`.
//!
//! A set is a tree of steps. Membership of a field is independent of its children: a manager can
//! own the replicas of a list item without owning the item.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value, json};

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Step {
    /// A field of an object, or a key of a map.
    Field(String),
    /// An item of a list map, by its keys as canonical JSON.
    Keys(String),
    /// An item of a set, by its value as JSON.
    Item(String),
}

impl Step {
    pub(super) fn field(name: &str) -> Self {
        Self::Field(name.to_owned())
    }

    pub(super) fn is_field(&self, name: &str) -> bool {
        matches!(self, Self::Field(own) if own == name)
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
                let pairs: Vec<_> =
                    keys.iter().map(|(key, value)| format!("{key}={value}")).collect();
                write!(f, "[{}]", pairs.join(","))
            }
        }
    }
}

/// The maximum number of members in a list of paths.
const MAX_PATHS: usize = 1_000;

/// A set of fields below one value of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FieldSet {
    /// The value itself is a member.
    pub member: bool,
    /// The members below the value. No child is empty.
    pub children: BTreeMap<Step, FieldSet>,
}

impl FieldSet {
    /// Returns a set that contains only the value itself.
    pub(super) fn leaf() -> Self {
        Self { member: true, ..Self::default() }
    }

    pub(super) fn is_empty(&self) -> bool {
        !self.member && self.children.is_empty()
    }

    /// Adds a set below a step. Ignores an empty set.
    pub(super) fn attach(&mut self, step: Step, child: Self) {
        if !child.is_empty() {
            self.children.insert(step, child);
        }
    }

    pub(super) fn union(mut self, other: Self) -> Self {
        self.add(other);
        self
    }

    fn add(&mut self, other: Self) {
        self.member |= other.member;
        if self.children.is_empty() {
            self.children = other.children;
            return;
        }
        for (step, child) in other.children {
            self.children.entry(step).or_default().add(child);
        }
    }

    pub(super) fn intersection(&self, other: &Self) -> Self {
        let mut result = Self { member: self.member && other.member, ..Self::default() };
        for (step, child) in &self.children {
            if let Some(theirs) = other.children.get(step) {
                result.attach(step.clone(), child.intersection(theirs));
            }
        }
        result
    }

    /// Returns the members at and below these paths. The step `*` stands for every step.
    pub(super) fn only(&self, paths: &[&[&str]]) -> Self {
        paths.iter().fold(Self::default(), |kept, path| kept.union(self.at(path)))
    }

    fn at(&self, path: &[&str]) -> Self {
        let [first, rest @ ..] = path else { return self.clone() };
        let mut result = Self::default();
        for (step, child) in &self.children {
            if *first == "*" || step.is_field(first) {
                result.attach(step.clone(), child.at(rest));
            }
        }
        result
    }

    pub(super) fn difference(&self, other: &Self) -> Self {
        let mut result = Self { member: self.member && !other.member, ..Self::default() };
        for (step, child) in &self.children {
            let left = other
                .children
                .get(step)
                .map_or_else(|| child.clone(), |theirs| child.difference(theirs));
            result.attach(step.clone(), left);
        }
        result
    }

    /// Removes the field at `path` and its children.
    pub(super) fn remove(&mut self, path: &[&str]) {
        let [name, rest @ ..] = path else {
            *self = Self::default();
            return;
        };
        self.children.retain(|step, child| {
            if step.is_field(name) {
                child.remove(rest);
            }
            !child.is_empty()
        });
    }

    /// Returns the paths of the members as messages write them: `.spec.ports[port=80]`.
    pub(super) fn paths(&self) -> Vec<String> {
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

    /// Returns `fieldsV1` of the whole object.
    pub(super) fn to_fields_v1(&self) -> Value {
        let mut fields = Map::new();
        if self.member && !self.children.is_empty() {
            fields.insert(".".to_owned(), json!({}));
        }
        for (step, child) in &self.children {
            fields.insert(step.to_key(), child.to_fields_v1());
        }
        Value::Object(fields)
    }

    /// Parses `fieldsV1`. Returns `None` for any other form.
    pub(super) fn from_fields_v1(value: &Value) -> Option<Self> {
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
    fn fields_v1_survives_a_round_trip() {
        let fields = json!({
            "f:data": {".": {}, "f:a": {}},
            "f:spec": {
                "f:items": {"k:{\"name\":\"x\"}": {".": {}, "f:weight": {}}},
                "f:tags": {"v:\"t\"": {}},
            },
        });
        assert_eq!(set(fields.clone()).to_fields_v1(), fields);
        assert_eq!(FieldSet::from_fields_v1(&json!({"data": {}})), None);
        assert_eq!(FieldSet::from_fields_v1(&json!({"k:{": {}})), None);
    }

    #[test]
    fn a_field_and_its_children_are_separate_members() {
        let whole = set(json!({"f:data": {".": {}, "f:a": {}, "f:b": {}}}));
        let inner = set(json!({"f:data": {"f:a": {}}}));
        assert_eq!(whole.intersection(&inner), inner);
        assert_eq!(whole.difference(&inner), set(json!({"f:data": {".": {}, "f:b": {}}})));
        assert_eq!(whole.difference(&inner).union(inner.clone()), whole);
        assert!(inner.difference(&whole).is_empty());
        let mut rest = whole;
        rest.remove(&["data", "a"]);
        assert_eq!(rest, set(json!({"f:data": {".": {}, "f:b": {}}})));
        rest.remove(&["data"]);
        assert!(rest.is_empty());
    }

    #[test]
    fn paths_show_items_by_their_keys() {
        let fields = json!({"f:spec": {
            "f:ports": {"k:{\"port\":80,\"protocol\":\"TCP\"}": {"f:name": {}}},
            "f:tags": {"v:\"t\"": {}},
        }});
        assert_eq!(
            set(fields).paths(),
            [".spec.ports[port=80,protocol=\"TCP\"].name", ".spec.tags[=\"t\"]"]
        );
    }
}
