//! The variables of a running case, and the templates they fill.
//!
//! Values are shared, so that an iteration of a loop starts from a copy of what its case knows at the cost of
//! a few reference counts.

use std::collections::BTreeMap;
use std::sync::Arc;

use kubeproof_cases::template::{JsonTemplate, Part, Template};
use serde_json::{Map, Value};

/// What a case knows: names, captures, and the exchanges of its steps.
#[derive(Clone, Debug, Default)]
pub struct Values {
    variables: BTreeMap<String, Arc<Value>>,
}

/// A template reads a variable that has no value here.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("`${{{0}}}` has no value at this point of the case")]
pub struct Undefined(pub String);

impl Values {
    /// Nothing is known.
    pub fn new() -> Self {
        Self::default()
    }

    /// Binds a variable, or binds it anew.
    pub fn set(&mut self, name: impl Into<String>, value: impl Into<Arc<Value>>) {
        self.variables.insert(name.into(), value.into());
    }

    /// The value of a variable by its dotted name: `subject.kind` is the member `kind` of `subject`, unless a
    /// variable has the whole name.
    pub fn get(&self, name: &str) -> Option<&Value> {
        if let Some(value) = self.variables.get(name) {
            return Some(value);
        }
        let (head, rest) = name.split_once('.')?;
        rest.split('.').try_fold(self.variables.get(head)?.as_ref(), |value, member| value.get(member))
    }

    /// Fills in a text. Strings stand as they are, everything else as compact JSON.
    pub fn render(&self, template: &Template) -> Result<String, Undefined> {
        self.render_with(template, |out, value| match value {
            Value::String(text) => out.push_str(text),
            other => out.push_str(&other.to_string()),
        })
    }

    /// Fills in a regular expression: values stand for themselves, whatever characters they hold.
    pub fn render_regex(&self, template: &Template) -> Result<String, Undefined> {
        self.render_with(template, |out, value| match value {
            Value::String(text) => out.push_str(&regex::escape(text)),
            other => out.push_str(&regex::escape(&other.to_string())),
        })
    }

    /// Fills in a JSON document.
    pub fn render_json(&self, template: &JsonTemplate) -> Result<Value, Undefined> {
        Ok(match template {
            JsonTemplate::Null => Value::Null,
            JsonTemplate::Bool(value) => Value::Bool(*value),
            JsonTemplate::Number(value) => Value::Number(value.clone()),
            JsonTemplate::String(text) => match text.parts.as_slice() {
                [Part::Variable(name)] => self.get(name).ok_or_else(|| Undefined(name.clone()))?.clone(),
                _ => Value::String(self.render(text)?),
            },
            JsonTemplate::Array(items) => {
                Value::Array(items.iter().map(|item| self.render_json(item)).collect::<Result<_, _>>()?)
            }
            JsonTemplate::Object(members) => Value::Object(
                members
                    .iter()
                    .map(|(name, value)| Ok((self.render(name)?, self.render_json(value)?)))
                    .collect::<Result<Map<_, _>, Undefined>>()?,
            ),
        })
    }

    fn render_with(
        &self,
        template: &Template,
        push: impl Fn(&mut String, &Value),
    ) -> Result<String, Undefined> {
        let mut out = String::new();
        for part in &template.parts {
            match part {
                Part::Text(text) => out.push_str(text),
                Part::Fill(length) => out.extend(std::iter::repeat_n('x', *length)),
                Part::Name(length) => {
                    let name = self.get("name").ok_or_else(|| Undefined("name".to_owned()))?;
                    let before = out.len();
                    push(&mut out, name);
                    let missing = length.saturating_sub(out.len() - before);
                    out.extend(std::iter::repeat_n('x', missing));
                }
                Part::Variable(name) => {
                    push(&mut out, self.get(name).ok_or_else(|| Undefined(name.clone()))?);
                }
            }
        }
        Ok(out)
    }
}

/// Applies an RFC 7386 merge patch: `null` removes, objects merge, everything else replaces.
pub fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(target) = target else { return };
    for (name, change) in patch {
        if change.is_null() {
            target.remove(name);
        } else {
            merge(target.entry(name.clone()).or_insert(Value::Null), change);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn template(parts: &[Part]) -> Template {
        Template { parts: parts.to_vec(), ..Template::default() }
    }

    fn variable(name: &str) -> Part {
        Part::Variable(name.to_owned())
    }

    #[test]
    fn a_lone_variable_keeps_its_type_and_a_mixed_one_becomes_text() {
        let mut values = Values::new();
        values.set("rv", json!(17));
        let lone = JsonTemplate::String(template(&[variable("rv")]));
        let mixed = JsonTemplate::String(template(&[Part::Text("v".into()), variable("rv")]));
        assert_eq!(values.render_json(&lone), Ok(json!(17)));
        assert_eq!(values.render_json(&mixed), Ok(json!("v17")));
    }

    #[test]
    fn dotted_names_read_members_unless_the_whole_name_is_bound() {
        let mut values = Values::new();
        values.set("subject", json!({"kind": "Pod"}));
        values.set("collection", json!("/api/v1/namespaces/a/pods"));
        values.set("collection.all", json!("/api/v1/pods"));
        assert_eq!(values.get("subject.kind"), Some(&json!("Pod")));
        assert_eq!(values.get("collection.all"), Some(&json!("/api/v1/pods")));
        assert_eq!(values.render(&template(&[variable("nothing")])), Err(Undefined("nothing".into())));
    }

    #[test]
    fn values_in_a_regex_stand_for_themselves() {
        let mut values = Values::new();
        values.set("name", json!("a.b"));
        assert_eq!(
            values.render_regex(&template(&[Part::Text("^".into()), variable("name")])),
            Ok(r"^a\.b".into())
        );
    }

    #[test]
    fn merging_removes_nulls_and_replaces_arrays() {
        let mut value = json!({"a": {"b": 1, "c": 2}, "l": [1, 2]});
        merge(&mut value, &json!({"a": {"b": null, "d": {"e": 1, "f": null}}, "l": [3]}));
        assert_eq!(value, json!({"a": {"c": 2, "d": {"e": 1}}, "l": [3]}));
    }
}
