//! Evaluation of the rules on an object.
//!
//! Unchanged parts are not evaluated again, unless a rule uses `oldSelf`. Only items of a list map
//! have an old value, because their keys identify them. Those of another list are unchanged if the
//! whole list is.

use cel::objects::OptionalValue;
use cel::{Context, Value as Cel};
use serde_json::Value;
use std::sync::Arc;

use super::super::validate::{Counterparts, MAX_ERRORS};
use super::super::{CauseReason, FieldError, Kind, Path, Schema};
use super::errors::evaluation_error;
use super::{Rule, library, meter, value};

impl Schema {
    /// Returns every rule that `value` violates. `old` is the value before the change.
    pub fn rule_violations(&self, value: &Value, old: Option<&Value>) -> Vec<FieldError> {
        self.rule_violations_at(value, old, Path::Root)
    }

    /// Evaluates the rules on a value at the path `at` of an object.
    pub fn rule_violations_at(
        &self,
        value: &Value,
        old: Option<&Value>,
        at: Path<'_>,
    ) -> Vec<FieldError> {
        let mut walk = Walk { errors: Vec::new(), budget: meter::PER_OBJECT, is_over: false };
        walk.node(self, value, (old, false), at);
        walk.errors
    }
}

struct Walk {
    errors: Vec<FieldError>,
    /// The remaining cost for the object.
    budget: u64,
    /// An evaluation exceeded a limit, so no more rules are evaluated.
    is_over: bool,
}

impl Walk {
    /// Evaluates the rules of a value and of its parts. `within_unchanged` says that the closest
    /// parent with an old value is the same as before.
    fn node(
        &mut self,
        schema: &Schema,
        value: &Value,
        (old, within_unchanged): (Option<&Value>, bool),
        path: Path<'_>,
    ) {
        // Rules about the presence of a field belong to its parent.
        if !schema.has_rules || value.is_null() || self.is_over {
            return;
        }
        let unchanged = old.map_or(within_unchanged, |old| old == value);
        self.rules(schema, value, (old, unchanged), path);
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
                        self.node(child, field, (old, unchanged), path);
                    }
                }
            }
            Value::Array(items) => {
                let Some(child) = &schema.items else { return };
                let old = old.and_then(Value::as_array);
                let counterparts = Counterparts::new(schema, old);
                for (index, item) in items.iter().enumerate() {
                    let before = counterparts.get(schema, item);
                    self.node(child, item, (before, unchanged), path.index(index));
                }
            }
            _ => {}
        }
    }

    fn rules(
        &mut self,
        schema: &Schema,
        value: &Value,
        (old, unchanged): (Option<&Value>, bool),
        path: Path<'_>,
    ) {
        let due = |rule: &Arc<Rule>| match old {
            _ if !rule.looks_back => !unchanged,
            Some(_) => true,
            None => rule.optional_old,
        };
        let mut due = schema.rules.iter().filter(|rule| due(rule)).peekable();
        if due.peek().is_none() {
            return;
        }
        let now = value::typed(schema, value);
        let before = old.filter(|old| !old.is_null()).map(|old| value::typed(schema, old));
        for rule in due {
            let mut context = Context::with_env(library::env());
            context.add_variable_from_value("self", now.clone());
            if rule.looks_back {
                context.add_variable_from_value("oldSelf", rule.old(before.clone()));
            }
            if let Err(violation) = self.evaluate(rule, &context)
                && self.errors.len() < MAX_ERRORS
            {
                let kind = schema.kind.map_or("", Kind::as_str);
                self.errors.push(violation.error(rule, value, kind, path));
            }
            if self.is_over {
                return;
            }
        }
    }

    fn evaluate(&mut self, rule: &Rule, context: &Context<'_, '_>) -> Result<(), Violation> {
        let (result, cost) = meter::measure(|| Cel::resolve(&rule.program, context));
        self.spend(cost).map_err(Violation::Failed)?;
        match result {
            Some(Ok(Cel::Bool(true))) => Ok(()),
            Some(Ok(_)) => Err(match self.message(rule, context) {
                Ok(message) => Violation::Broken(message),
                Err(why) => Violation::Unexplained(why),
            }),
            Some(Err(error)) => Err(Violation::Failed(format!(
                "{} evaluating rule: {}",
                evaluation_error(&error),
                rule.subject()
            ))),
            None => {
                self.is_over = true;
                Err(Violation::Failed(format!(
                    "'operation cancelled: actual cost limit exceeded': no further validation \
                     rules will be run due to call cost exceeds limit for rule: {}",
                    rule.subject()
                )))
            }
        }
    }

    /// Subtracts the cost of an evaluation.
    fn spend(&mut self, cost: u64) -> Result<(), String> {
        if let Some(rest) = self.budget.checked_sub(cost) {
            self.budget = rest;
            return Ok(());
        }
        self.is_over = true;
        Err("validation failed due to running out of cost budget, no further validation rules \
             will be run"
            .to_owned())
    }

    /// Returns the message of a broken rule. The error is that the message costs too much.
    fn message(&mut self, rule: &Rule, context: &Context<'_, '_>) -> Result<String, String> {
        let evaluated = rule
            .message_expression
            .as_ref()
            .map(|expression| meter::measure(|| Cel::resolve(expression, context)));
        if let Some((result, cost)) = evaluated {
            if self.spend(cost).is_err() {
                return Err(
                    "messageExpression evaluation failed due to running out of cost budget, no \
                        further validation rules will be run"
                        .to_owned(),
                );
            }
            let said = match result {
                Some(Ok(Cel::String(text))) => text.trim().to_owned(),
                Some(_) => String::new(),
                None => {
                    self.is_over = true;
                    return Err("no further validation rules will be run due to call cost \
                                exceeds limit for messageExpression"
                        .to_owned());
                }
            };
            if !said.is_empty() && !said.contains('\n') {
                return Ok(said);
            }
        }
        Ok(rule.message.clone().unwrap_or_else(|| format!("failed rule: {}", rule.text)))
    }
}

/// Why an object is rejected.
enum Violation {
    /// The value breaks the rule, with this message.
    Broken(String),
    /// The rule has no result.
    Failed(String),
    /// The value breaks the rule, and the expression for the message has no result.
    Unexplained(String),
}

impl Violation {
    /// Returns the error about a value. `kind` is the type that the schema declares.
    fn error(&self, rule: &Rule, value: &Value, kind: &str, path: Path<'_>) -> FieldError {
        match self {
            Self::Broken(message) => rule.error(value, message, path),
            Self::Failed(why) => FieldError::invalid(path, &Value::from(kind), why),
            Self::Unexplained(why) => {
                FieldError::invalid(rule.place(path), &Value::from(kind), why)
            }
        }
    }
}

impl Rule {
    /// Returns what stands for the rule in errors.
    fn subject(&self) -> &str {
        self.message.as_deref().unwrap_or(&self.text)
    }

    /// Returns the value of `oldSelf`.
    fn old(&self, before: Option<Cel>) -> Cel {
        match before {
            before if self.optional_old => {
                Cel::Opaque(Arc::new(before.map_or_else(OptionalValue::none, OptionalValue::of)))
            }
            Some(before) => before,
            None => Cel::Null,
        }
    }

    /// Returns the path of the violations.
    fn place(&self, path: Path<'_>) -> String {
        format!("{path}{}", self.field).trim_start_matches('.').to_owned()
    }

    fn error(&self, value: &Value, message: &str, path: Path<'_>) -> FieldError {
        let place = self.place(path);
        // Objects are too large for a message.
        let is_large = value.is_object() || value.is_array();
        match self.reason {
            CauseReason::FieldValueRequired => FieldError::required(place, message),
            CauseReason::FieldValueForbidden => FieldError::forbidden(place, message),
            CauseReason::FieldValueDuplicate if is_large => FieldError::duplicate_object(place),
            CauseReason::FieldValueDuplicate => FieldError::duplicate(place, value),
            _ if is_large => FieldError::invalid_object(place, message),
            _ => FieldError::invalid(place, value, message),
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
            "x-kubernetes-validations": [{
                "rule": "self.metadata.name != 'bad'", "message": "must be good",
            }],
            "properties": {"spec": {
                "type": "object",
                "x-kubernetes-validations": [{
                    "rule": "!has(self.low) || self.low < self.high",
                    "messageExpression": "'must be below ' + 'high'",
                    "reason": "FieldValueForbidden", "fieldPath": ".low",
                }],
                "properties": {
                    "low": {"type": "integer"},
                    "high": {"type": "integer"},
                    "fixed": {
                        "type": "string", "x-kubernetes-validations": rule("self == oldSelf"),
                    },
                    "counter": {"type": "integer", "x-kubernetes-validations": [
                        {"rule": "self >= oldSelf.orValue(5)", "optionalOldSelf": true},
                    ]},
                    "maybe": {
                        "type": "string", "nullable": true,
                        "x-kubernetes-validations": rule("self.size() > 1"),
                    },
                    "list": {
                        "type": "array", "x-kubernetes-list-type": "map",
                        "x-kubernetes-list-map-keys": ["name"],
                        "items": {
                            "type": "object",
                            "properties": {"name": {"type": "string"}, "n": {"type": "integer"}},
                            "x-kubernetes-validations": [
                                {"rule": "self.n >= oldSelf.n"}, {"rule": "self.n < 9"},
                            ],
                        },
                    },
                    "set": {
                        "type": "array", "x-kubernetes-list-type": "set",
                        "items": {
                            "type": "integer", "x-kubernetes-validations": rule("self > 0"),
                        },
                    },
                    "map": {
                        "type": "object",
                        "additionalProperties": {
                            "type": "integer", "x-kubernetes-validations": rule("self > 0"),
                        },
                    },
                },
            }},
        });
        with_type_meta(Schema::from_openapi(&document).expect("a schema"))
    }

    /// Returns the fields with violated rules.
    fn broken(new: &Value, old: Option<&Value>) -> Vec<String> {
        let object = |spec: &Value| json!({"metadata": {"name": "good"}, "spec": spec});
        let old = old.map(object);
        let errors = schema().rule_violations(&object(new), old.as_ref());
        errors.into_iter().map(|error| error.field).collect()
    }

    #[rstest]
    #[case(json!({"low": 1, "high": 2}), &[])]
    #[case(json!({"low": 3, "high": 2}), &["spec.low"])]
    #[case(json!({"low": 3}), &["spec"])]
    #[case(json!({"fixed": "a"}), &[])]
    #[case(json!({"counter": 4}), &["spec.counter"])]
    #[case(json!({"counter": 5}), &[])]
    #[case(json!({"maybe": null}), &[])]
    #[case(json!({"maybe": "a"}), &["spec.maybe"])]
    #[case(json!({"list": [{"name": "a", "n": 1}, {"name": "b", "n": 9}]}), &["spec.list[1]"])]
    #[case(json!({"map": {"a": 1, "b": 0}}), &["spec.map[b]"])]
    fn rules_apply_to_a_new_object(#[case] spec: Value, #[case] fields: &[&str]) {
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
    #[case(
        json!({"list": [{"name": "a", "n": 5}]}),
        json!({"list": [{"name": "b", "n": 1}, {"name": "a", "n": 4}]}),
        &["spec.list[1]"]
    )]
    #[case(json!({"set": [0]}), json!({"set": [0], "low": 1, "high": 2}), &[])]
    #[case(json!({"set": [0]}), json!({"set": [0, 1]}), &["spec.set[0]"])]
    fn rules_apply_to_the_changed_parts(
        #[case] old: Value,
        #[case] new: Value,
        #[case] fields: &[&str],
    ) {
        assert_eq!(broken(&new, Some(&old)), fields);
    }

    #[test]
    fn patterns_have_the_syntax_of_go() {
        let schema = |rule: &str| {
            let rules = json!([{ "rule": rule }]);
            let document = json!({
                "type": "object", "x-kubernetes-validations": rules,
                "properties": {"a": {"type": "string", "maxLength": 20}},
            });
            Schema::from_openapi(&document)
        };
        for rule in ["self.a.matches('(?x)a')", "matches(self.a, 'a**')", "self.a.find('[')=='b'"] {
            let errors = schema(rule).expect("a schema").broken_rules;
            assert!(errors[0].message.contains("argument: error parsing"), "{errors:?}");
        }
        let schema = schema("'b'.matches(self.a)").expect("a schema");
        assert_eq!(schema.rule_violations(&json!({"a": r"\p{Letter}"}), None), []);
        let errors = schema.rule_violations(&json!({"a": r"\h"}), None);
        assert!(errors[0].message.contains("invalid escape sequence"), "{errors:?}");
    }

    #[test]
    fn an_expensive_evaluation_is_rejected() {
        let document = json!({
            "type": "object",
            "x-kubernetes-validations": [
                {"rule": "self.items.all(x, self.items.all(y, x + y >= 0))"},
                {"rule": "false"},
            ],
            "properties": {
                "items": {"type": "array", "maxItems": 1000, "items": {"type": "integer"}},
            },
        });
        let schema = Schema::from_openapi(&document).expect("a schema");
        let messages = |count: usize| {
            let errors = schema.rule_violations(&json!({"items": vec![1; count]}), None);
            errors.into_iter().map(|error| error.message).collect::<Vec<_>>()
        };
        assert_eq!(messages(10), ["Invalid value: failed rule: false"]);
        let expensive = messages(1000);
        assert_eq!(expensive.len(), 1, "{expensive:?}");
        assert!(expensive[0].contains("call cost exceeds limit for rule: self.items"));
    }

    #[test]
    fn an_object_has_a_budget() {
        let document = json!({
            "type": "array",
            "items": {
                "type": "string", "maxLength": 3000,
                "x-kubernetes-validations": [{"rule": "self.contains(self)"}],
            },
        });
        let schema = Schema::from_openapi(&document).expect("a schema");
        let violations =
            |count: usize| schema.rule_violations(&json!(vec!["x".repeat(3000); count]), None);
        assert_eq!(violations(111), []);
        let errors = violations(200);
        assert_eq!(errors.len(), 1);
        assert!(errors[0].message.contains("running out of cost budget"), "{errors:?}");
        assert_eq!(errors[0].field, "[111]");
    }

    #[test]
    fn a_violation_has_a_field_a_reason_and_a_message() {
        let object =
            json!({"metadata": {"name": "bad"}, "spec": {"low": 3, "high": 2, "map": {"a": 0}}});
        let errors = schema().rule_violations(&object, None);
        let reported: Vec<_> = errors
            .iter()
            .map(|error| (error.field.as_str(), error.reason, error.message.as_str()))
            .collect();
        assert_eq!(
            reported,
            [
                ("", CauseReason::FieldValueInvalid, "Invalid value: must be good"),
                ("spec.low", CauseReason::FieldValueForbidden, "Forbidden: must be below high"),
                (
                    "spec.map[a]",
                    CauseReason::FieldValueInvalid,
                    "Invalid value: 0: failed rule: self > 0"
                ),
            ]
        );
    }
}
