//! Which rules an object breaks.
//!
//! A part that the change leaves as it was is not judged again, unless a rule looks back; an item of a list has a
//! value before the change only where the list is a map, whose keys tell which item it was.

use cel::objects::OptionalValue;
use cel::{Context, Value as Cel};
use serde_json::Value;
use std::sync::Arc;

use super::super::validate::{Counterparts, MAX_ERRORS};
use super::super::{CauseReason, FieldError, Kind, ListType, Path, Schema};
use super::{Rule, library, value};
use crate::faults::{Fault, Faults};

impl Schema {
    /// Every rule that `value` breaks; `old` is what it was before the change.
    pub fn judge(&self, value: &Value, old: Option<&Value>, faults: Faults) -> Vec<FieldError> {
        self.judge_at(value, old, Path::Root, faults)
    }

    /// The same for a value that stands somewhere inside an object.
    pub fn judge_at(
        &self,
        value: &Value,
        old: Option<&Value>,
        at: Path<'_>,
        faults: Faults,
    ) -> Vec<FieldError> {
        let mut walk = Walk { errors: Vec::new(), faults };
        if !faults.on(Fault::RulesIgnored) {
            walk.node(self, value, old, at);
        }
        walk.errors
    }
}

struct Walk {
    errors: Vec<FieldError>,
    faults: Faults,
}

impl Walk {
    fn node(&mut self, schema: &Schema, value: &Value, old: Option<&Value>, path: Path<'_>) {
        // A rule about whether a field may be null belongs to the object around it.
        if !schema.has_rules || value.is_null() {
            return;
        }
        self.rules(schema, value, old, path);
        match value {
            Value::Object(fields) => {
                for (name, field) in fields {
                    let old = old.and_then(|old| old.get(name));
                    if let Some(child) = schema.child(name) {
                        let path = if schema.properties.contains_key(name) {
                            path.field(name)
                        } else {
                            path.key(name)
                        };
                        self.node(child, field, old, path);
                    }
                }
            }
            Value::Array(items) => {
                let Some(child) = &schema.items else { return };
                let old = old.and_then(Value::as_array);
                let counterparts = Counterparts::new(schema, old);
                let judged = if self.faults.on(Fault::RulesOfFirstItem) { 1 } else { items.len() };
                for (index, item) in items.iter().enumerate().take(judged) {
                    let before = match schema.list_type {
                        ListType::Map if self.faults.on(Fault::OldItemsByIndex) => {
                            old.and_then(|old| old.get(index))
                        }
                        _ => counterparts.get(schema, item),
                    };
                    self.node(child, item, before, path.index(index));
                }
            }
            _ => {}
        }
    }

    fn rules(&mut self, schema: &Schema, value: &Value, old: Option<&Value>, path: Path<'_>) {
        let faults = self.faults;
        let unchanged = old == Some(value) && !faults.on(Fault::UnchangedPartsJudged);
        let due = |rule: &Arc<Rule>| match old {
            _ if !rule.looks_back => !unchanged,
            Some(_) => !faults.on(Fault::TransitionRulesIgnored),
            None => {
                rule.optional_old && !faults.on(Fault::OptionalOldIgnored)
                    || faults.on(Fault::TransitionRulesOnCreate)
            }
        };
        let mut due = schema.rules.iter().filter(|rule| due(rule)).peekable();
        if due.peek().is_none() {
            return;
        }
        let now = value::typed(schema, value, faults);
        let before = old.filter(|old| !old.is_null()).map(|old| value::typed(schema, old, faults));
        for rule in due {
            let mut context = Context::with_env(library::env());
            context.add_variable_from_value("self", now.clone());
            if rule.looks_back {
                context.add_variable_from_value("oldSelf", rule.old(before.clone()));
            }
            let enough = if faults.on(Fault::RulesToldOneAtATime) { 1 } else { MAX_ERRORS };
            if let Err(message) = rule.holds(&context, faults)
                && self.errors.len() < enough
            {
                self.errors.push(rule.error(value, &message, path, faults));
            }
        }
    }
}

impl Rule {
    /// What `oldSelf` is.
    fn old(&self, before: Option<Cel>) -> Cel {
        match before {
            before if self.optional_old => {
                Cel::Opaque(Arc::new(before.map_or_else(OptionalValue::none, OptionalValue::of)))
            }
            Some(before) => before,
            None => Cel::Null,
        }
    }

    /// An error is the message of the violation.
    fn holds(&self, context: &Context<'_, '_>, faults: Faults) -> Result<(), String> {
        match self.program.execute(context) {
            Ok(Cel::Bool(true)) => Ok(()),
            Ok(_) => Err(self.message(context, faults)),
            Err(error) => Err(format!("rule evaluation error: {}: {error}", self.text)),
        }
    }

    fn message(&self, context: &Context<'_, '_>, faults: Faults) -> String {
        let expression =
            self.message_expression.as_ref().filter(|_| !faults.on(Fault::MessageExpressionIgnored));
        let said = expression.and_then(|program| match program.execute(context) {
            Ok(Cel::String(text)) => Some(text.trim().to_owned()),
            _ => None,
        });
        said.filter(|text| !text.is_empty() && !text.contains('\n'))
            .or_else(|| self.message.clone())
            .unwrap_or_else(|| format!("failed rule: {}", self.text))
    }

    fn error(&self, value: &Value, message: &str, path: Path<'_>, faults: Faults) -> FieldError {
        let place = match path.to_string() {
            place if faults.on(Fault::RulePathIgnored) => place,
            place => format!("{place}{}", self.field).trim_start_matches('.').to_owned(),
        };
        let reason =
            if faults.on(Fault::RuleReasonIgnored) { CauseReason::FieldValueInvalid } else { self.reason };
        // An object is too large to be repeated in a message.
        let shown = match Kind::of(value) {
            Some(kind @ (Kind::Object | Kind::Array)) => Value::from(kind.as_str()),
            _ => value.clone(),
        };
        match reason {
            CauseReason::FieldValueRequired => FieldError::required(place, message),
            CauseReason::FieldValueForbidden => FieldError::forbidden(place, message),
            CauseReason::FieldValueDuplicate => FieldError::duplicate(place, &shown),
            _ => FieldError::invalid(place, &shown, message),
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;
    use crate::schema::meta::with_type_meta;

    fn schema() -> Schema {
        let rule = |text: &str| json!([{"rule": text}]);
        let document = json!({
            "type": "object",
            "x-kubernetes-validations": [{"rule": "self.metadata.name != 'bad'", "message": "must be good"}],
            "properties": {"spec": {
                "type": "object",
                "x-kubernetes-validations": [{
                    "rule": "!has(self.low) || self.low < self.high", "messageExpression": "'must be below ' + 'high'",
                    "reason": "FieldValueForbidden", "fieldPath": ".low",
                }],
                "properties": {
                    "low": {"type": "integer"},
                    "high": {"type": "integer"},
                    "fixed": {"type": "string", "x-kubernetes-validations": rule("self == oldSelf")},
                    "counter": {"type": "integer", "x-kubernetes-validations": [
                        {"rule": "self >= oldSelf.orValue(5)", "optionalOldSelf": true},
                    ]},
                    "maybe": {"type": "string", "nullable": true, "x-kubernetes-validations": rule("self.size() > 1")},
                    "list": {
                        "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                        "items": {
                            "type": "object", "properties": {"name": {"type": "string"}, "n": {"type": "integer"}},
                            "x-kubernetes-validations": [{"rule": "self.n >= oldSelf.n"}, {"rule": "self.n < 9"}],
                        },
                    },
                    "map": {"type": "object", "additionalProperties": {"type": "integer", "x-kubernetes-validations": rule("self > 0")}},
                },
            }},
        });
        with_type_meta(Schema::from_openapi(&document).expect("a schema"))
    }

    /// The fields with broken rules.
    fn broken(new: &Value, old: Option<&Value>) -> Vec<String> {
        let object = |spec: &Value| json!({"metadata": {"name": "good"}, "spec": spec});
        let old = old.map(object);
        let errors = schema().judge(&object(new), old.as_ref(), Faults::none());
        errors.into_iter().map(|error| error.field).collect()
    }

    #[rstest]
    #[case(json!({"low": 1, "high": 2}), &[])]
    #[case(json!({"low": 3, "high": 2}), &["spec.low"])]
    #[case(json!({"low": 3}), &["spec.low"])]
    #[case(json!({"fixed": "a"}), &[])]
    #[case(json!({"counter": 4}), &["spec.counter"])]
    #[case(json!({"counter": 5}), &[])]
    #[case(json!({"maybe": null}), &[])]
    #[case(json!({"maybe": "a"}), &["spec.maybe"])]
    #[case(json!({"list": [{"name": "a", "n": 1}, {"name": "b", "n": 9}]}), &["spec.list[1]"])]
    #[case(json!({"map": {"a": 1, "b": 0}}), &["spec.map[b]"])]
    fn a_new_object(#[case] spec: Value, #[case] fields: &[&str]) {
        assert_eq!(broken(&spec, None), fields);
    }

    #[rstest]
    #[case(json!({"fixed": "a"}), json!({"fixed": "b"}), &["spec.fixed"])]
    #[case(json!({"fixed": "a"}), json!({}), &[])]
    #[case(json!({"counter": 7}), json!({"counter": 6}), &["spec.counter"])]
    #[case(json!({"low": 3, "high": 2}), json!({"low": 3, "high": 2}), &[])]
    #[case(json!({"low": 3, "high": 2}), json!({"low": 4, "high": 2}), &["spec.low"])]
    #[case(json!({"list": [{"name": "a", "n": 5}, {"name": "b", "n": 2}]}),
           json!({"list": [{"name": "b", "n": 2}, {"name": "a", "n": 5}]}), &[])]
    #[case(json!({"list": [{"name": "a", "n": 5}]}), json!({"list": [{"name": "b", "n": 1}, {"name": "a", "n": 4}]}), &["spec.list[1]"])]
    fn a_change(#[case] old: Value, #[case] new: Value, #[case] fields: &[&str]) {
        assert_eq!(broken(&new, Some(&old)), fields);
    }

    #[test]
    fn a_broken_rule_says_why() {
        let object = json!({"metadata": {"name": "bad"}, "spec": {"low": 3, "high": 2, "map": {"a": 0}}});
        let errors = schema().judge(&object, None, Faults::none());
        let told: Vec<_> =
            errors.iter().map(|error| (error.field.as_str(), error.reason, error.message.as_str())).collect();
        assert_eq!(
            told,
            [
                ("", CauseReason::FieldValueInvalid, "Invalid value: \"object\": must be good"),
                ("spec.low", CauseReason::FieldValueForbidden, "Forbidden: must be below high"),
                ("spec.map[a]", CauseReason::FieldValueInvalid, "Invalid value: 0: failed rule: self > 0"),
            ]
        );
    }
}
