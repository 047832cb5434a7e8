//! The variables of a running case, and template rendering.
//!
//! Values are shared, so a copy for an iteration costs only reference counts.

mod outcome;
mod requests;
mod variable;

use std::collections::BTreeMap;
use std::sync::Arc;

use kubeproof_cases::expression::Expression;
use kubeproof_cases::template::{JsonTemplate, Part, Template};
use serde_json::{Map, Value};

pub(crate) use self::requests::{Origin, Path, Requests, Segment, dotted, segments};
use self::variable::Step;
pub(crate) use self::variable::Variable;

/// The variables of a case: initial values, captures and exchanges.
#[derive(Clone, Debug, Default)]
pub(crate) struct Values {
    variables: BTreeMap<String, Variable>,
    /// Named expressions that have no value so far.
    without_value: BTreeMap<String, Arc<Expression>>,
    /// The requests behind the variables.
    pub(crate) requests: Requests,
}

/// A template reads an undefined variable.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("`${{{0}}}` has no value at this point of the case")]
pub(crate) struct Undefined(pub String);

impl Values {
    /// Nothing is known.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Binds a variable, and replaces an earlier value.
    pub(crate) fn set(&mut self, name: impl Into<String>, value: impl Into<Variable>) {
        let name = name.into();
        self.without_value.remove(&name);
        self.variables.insert(name, value.into());
    }

    /// Removes a variable whose expression has no value.
    pub(crate) fn unset(&mut self, name: &str, expression: &Expression) {
        self.variables.remove(name);
        self.without_value.insert(name.to_owned(), Arc::new(expression.clone()));
    }

    /// Returns the expression of a variable that has no value.
    pub(crate) fn without_value(&self, name: &str) -> Option<&Expression> {
        self.without_value.get(name).map(AsRef::as_ref)
    }

    /// Returns a variable by its dotted name. `subject.kind` is the member `kind` of `subject`,
    /// unless a variable has the whole name.
    pub(crate) fn get(&self, name: &str) -> Option<&Value> {
        if let Some(variable) = self.variables.get(name) {
            return Some(variable.value());
        }
        let (head, rest) = name.split_once('.')?;
        self.variables.get(head)?.at(rest.split('.').map(Step::Member))
    }

    /// Returns a variable by its name, in parts.
    pub(crate) fn variable(&self, name: &str) -> Option<&Variable> {
        self.variables.get(name)
    }

    /// Returns the value at a place.
    pub(crate) fn at(&self, path: &Path) -> Option<&Value> {
        let Some((Segment::Member(variable), rest)) = path.0.split_first() else { return None };
        let rest = rest.iter().map(|segment| match segment {
            Segment::Member(name) => Step::Member(name),
            Segment::Index(index) => Step::Index(*index),
        });
        match self.variables.get(variable) {
            Some(variable) => variable.at(rest),
            None => rest.into_iter().try_fold(self.get(variable)?, |value, step| step.of(value)),
        }
    }

    /// Renders a text. Strings are inserted as they are, other values as compact JSON.
    pub(crate) fn render(&self, template: &Template) -> Result<String, Undefined> {
        self.render_with(template, |out, value| match value {
            Value::String(text) => out.push_str(text),
            other => out.push_str(&other.to_string()),
        })
    }

    /// Renders a regular expression with escaped values.
    pub(crate) fn render_regex(&self, template: &Template) -> Result<String, Undefined> {
        self.render_with(template, |out, value| match value {
            Value::String(text) => out.push_str(&regex::escape(text)),
            other => out.push_str(&regex::escape(&other.to_string())),
        })
    }

    /// Renders a JSON document.
    pub(crate) fn render_json(&self, template: &JsonTemplate) -> Result<Value, Undefined> {
        Ok(match template {
            JsonTemplate::Null => Value::Null,
            JsonTemplate::Bool(value) => Value::Bool(*value),
            JsonTemplate::Number(value) => Value::Number(value.clone()),
            JsonTemplate::String(text) => match text.parts.as_slice() {
                [Part::Variable(name)] => {
                    self.get(name).ok_or_else(|| Undefined(name.clone()))?.clone()
                }
                _ => Value::String(self.render(text)?),
            },
            JsonTemplate::Array(items) => Value::Array(
                items.iter().map(|item| self.render_json(item)).collect::<Result<_, _>>()?,
            ),
            JsonTemplate::Object(members) => Value::Object(
                members
                    .iter()
                    .map(|(name, value)| Ok((self.render(name)?, self.render_json(value)?)))
                    .collect::<Result<Map<_, _>, Undefined>>()?,
            ),
        })
    }

    /// Fills in a JSON document as text. Members keep their order.
    pub(crate) fn render_exact(&self, template: &JsonTemplate) -> Result<String, Undefined> {
        let text = |text: &str| Value::from(text).to_string();
        Ok(match template {
            JsonTemplate::Array(items) => {
                let items = items.iter().map(|item| self.render_exact(item));
                format!("[{}]", items.collect::<Result<Vec<_>, _>>()?.join(","))
            }
            JsonTemplate::Object(members) => {
                let members = members.iter().map(|(name, value)| {
                    Ok(format!("{}:{}", text(&self.render(name)?), self.render_exact(value)?))
                });
                format!("{{{}}}", members.collect::<Result<Vec<_>, Undefined>>()?.join(","))
            }
            scalar => self.render_json(scalar)?.to_string(),
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

/// Applies an RFC 7386 merge patch.
pub(crate) fn merge(target: &mut Value, patch: &Value) {
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
    fn exact_json_keeps_the_order_of_members() {
        let text = |text: &str| template(&[Part::Text(text.into())]);
        let members = vec![
            (text("z"), JsonTemplate::Array(vec![JsonTemplate::Bool(true), JsonTemplate::Null])),
            (text("a"), JsonTemplate::String(text("\""))),
        ];
        let exact = Values::new().render_exact(&JsonTemplate::Object(members));
        assert_eq!(exact, Ok(r#"{"z":[true,null],"a":"\""}"#.into()));
    }

    #[test]
    fn dotted_names_read_members_unless_the_whole_name_is_bound() {
        let mut values = Values::new();
        values.set("subject", json!({"kind": "Pod"}));
        values.set("collection", json!("/api/v1/namespaces/a/pods"));
        values.set("collection.all", json!("/api/v1/pods"));
        assert_eq!(values.get("subject.kind"), Some(&json!("Pod")));
        assert_eq!(values.get("collection.all"), Some(&json!("/api/v1/pods")));
        assert_eq!(
            values.render(&template(&[variable("nothing")])),
            Err(Undefined("nothing".into()))
        );
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
