//! The order of mistakes, and the members of a union.
//!
//! kube-apiserver checks the fields of a type in the order of its Go code. The rules of a
//! definition have the order of the fields that do not follow their declaration.

use serde_json::{Map, Value};

use super::{FieldError, Path, Schema};

/// The place of the mistakes of an object itself among those of its fields.
const ITSELF: &str = ".";

/// An object has one of these fields. If it has several, kube-apiserver checks only the first one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Union {
    /// The fields, in the order of their checks.
    pub members: Vec<&'static str>,
    /// The word for a member in the mistake of another one. It is empty if a check reports them.
    pub word: &'static str,
}

impl Union {
    /// Returns the members of an object, in the order of their checks.
    fn given<'s>(
        &'s self,
        fields: &'s Map<String, Value>,
    ) -> impl Iterator<Item = &'static str> + use<'s> {
        let is_given = |name: &&str| fields.get(*name).is_some_and(|value| !value.is_null());
        self.members.iter().copied().filter(is_given)
    }

    /// Reports whether a field is a member that another one precedes.
    pub(super) fn skips(&self, fields: &Map<String, Value>, name: &str) -> bool {
        self.members.contains(&name) && self.given(fields).next().is_some_and(|it| it != name)
    }

    /// Returns the mistakes of all members but the first one.
    pub(super) fn errors(&self, fields: &Map<String, Value>, path: Path<'_>) -> Vec<FieldError> {
        if self.word.is_empty() {
            return Vec::new();
        }
        let why = format!("may not specify more than 1 {} type", self.word);
        let others = self.given(fields).skip(1);
        others.map(|member| FieldError::forbidden(path.field(member), &why)).collect()
    }
}

impl Schema {
    /// Sorts mistakes into the order in which kube-apiserver finds them. Mistakes at the same place
    /// keep their order.
    pub fn sort(&self, errors: &mut [FieldError]) {
        if self.order.is_empty() {
            return;
        }
        errors.sort_by_cached_key(|error| self.rank(&error.field));
    }

    /// Returns the position of each part of a path among its siblings.
    fn rank(&self, path: &str) -> Vec<usize> {
        let mut ranks = Vec::new();
        let mut schema = Some(self);
        for part in path.split('.') {
            let Some(parent) = schema else { break };
            let (name, indexes) = part.split_once('[').unwrap_or((part, ""));
            ranks.push(parent.position(name));
            schema = parent.child(name);
            for index in indexes.split('[').filter(|index| !index.is_empty()) {
                let index = index.trim_end_matches(']');
                // Mistakes at an index of an object follow those of its fields.
                let first = schema.map_or(0, |schema| schema.order.len());
                ranks.push(
                    index
                        .parse()
                        .map_or(0, |index: usize| first.saturating_add(index).saturating_add(1)),
                );
                schema = schema.and_then(|it| it.items.as_deref().or_else(|| it.child(index)));
            }
        }
        if let Some(at) = schema.and_then(|schema| schema.listed(ITSELF)) {
            ranks.push(at);
        }
        ranks
    }

    /// Returns the position of a field, from 1. Unknown fields are the last.
    fn position(&self, name: &str) -> usize {
        self.listed(name).unwrap_or(self.order.len() + 1)
    }

    fn listed(&self, name: &str) -> Option<usize> {
        self.order.iter().position(|known| *known == name).map(|at| at + 1)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rstest::rstest;
    use serde_json::json;

    use super::super::build::{list, object, string};
    use super::*;

    fn schema() -> Schema {
        let item = Schema { order: vec!["b", ".", "a"], ..object("item") };
        let item = item.field("a", string()).field("b", string());
        let spec = Schema { order: vec!["items", "name"], ..object("spec") };
        let spec = spec.field("name", string()).field("items", list(item));
        Schema { order: vec!["metadata", "spec"], ..object("top") }.field("spec", spec)
    }

    #[test]
    fn mistakes_follow_the_order_of_the_checks() {
        let expected = [
            "metadata.name",
            "spec",
            "spec.items",
            "spec.items[2].b",
            "spec.items[2]",
            "spec.items[2].a",
            "spec.items[10].b",
            "spec.items[10].a",
            "spec.items[10][0]",
            "spec.name",
            "spec.other",
            "status",
        ];
        let mut errors: Vec<_> =
            expected.iter().rev().map(|field| FieldError::required(field, "")).collect();
        schema().sort(&mut errors);
        assert_eq!(errors.iter().map(|error| &*error.field).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn mistakes_of_the_same_place_keep_their_order() {
        let error = |why| FieldError::required("spec.items[0].a", why);
        let mut errors = [error("second"), error("first")];
        schema().sort(&mut errors);
        assert_eq!(errors, [error("second"), error("first")]);
    }

    #[rstest]
    #[case(json!({"items": []}), &[])]
    #[case(json!({"items": [], "name": null}), &[])]
    #[case(json!({"items": [{"a": 1}], "name": 7}), &["spec.items"])]
    fn only_the_first_member_of_a_union_is_checked(#[case] spec: Value, #[case] expected: &[&str]) {
        let mut schema = schema();
        let union = Union { members: vec!["name", "items"], word: "barn" };
        let mut part = Schema::clone(&schema.properties["spec"]);
        part.properties.insert("name".to_owned(), Arc::new(super::super::build::anything()));
        part.union = Some(union);
        schema.properties.insert("spec".to_owned(), Arc::new(part));
        let errors = schema.validate(&json!({ "spec": spec }), None);
        assert_eq!(errors.iter().map(|error| &*error.field).collect::<Vec<_>>(), expected);
    }
}
