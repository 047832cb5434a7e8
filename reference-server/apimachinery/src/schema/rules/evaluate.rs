//! Evaluation of the rules on an object.
//!
//! A violation in an unchanged part is a warning, unless the rule uses `oldSelf`. Only items of a
//! list map have an old value, because their keys identify them. Those of another list are
//! unchanged if the whole list is.

use cel::common::types::{CelNull, CelOptional};
use cel::common::value::Val;
use cel::{Context, Value as Cel};
use serde_json::Value;
use std::sync::Arc;

use super::super::validate::{Counterparts, MAX_ERRORS};
use super::super::{CauseReason, FieldError, Kind, Path, Schema};
use super::errors::evaluation_error;
use super::first_error::first_error;
use super::{Rule, library, meter, value};

/// The maximum length of an evaluated message in bytes.
const MAX_MESSAGE: usize = 5 * 1024;

/// What the rules say about an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Judgement {
    /// The reasons to reject the object.
    pub errors: Vec<FieldError>,
    /// Violations in the parts that an update does not change. The server accepts them.
    pub warnings: Vec<FieldError>,
}

impl Schema {
    /// Evaluates the rules on `value`. `old` is the value before the change.
    pub fn judge(&self, value: &Value, old: Option<&Value>) -> Judgement {
        self.judge_at(value, old, Path::Root)
    }

    /// Returns every rule that a new value at the path `at` of an object violates.
    pub fn rule_violations_at(&self, value: &Value, at: Path<'_>) -> Vec<FieldError> {
        self.judge_at(value, None, at).errors
    }

    fn judge_at(&self, value: &Value, old: Option<&Value>, at: Path<'_>) -> Judgement {
        let judgement = Judgement::default();
        let mut walk = Walk { judgement, budget: meter::PER_OBJECT, is_over: false };
        walk.node(self, value, (old, false), at);
        walk.judgement
    }
}

struct Walk {
    judgement: Judgement,
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
        let due = |rule: &Arc<Rule>| !rule.looks_back || old.is_some() || rule.optional_old;
        let mut due = schema.rules.iter().filter(|rule| due(rule)).peekable();
        if due.peek().is_none() {
            return;
        }
        let now = value::typed(schema, value);
        let before = old.filter(|old| !old.is_null()).map(|old| value::typed(schema, old));
        let values = Values { now, before };
        for rule in due {
            if let Err(violation) = self.evaluate(rule, &values) {
                let is_tolerated = unchanged && !rule.looks_back && !violation.is_failure();
                let found = if is_tolerated {
                    &mut self.judgement.warnings
                } else {
                    &mut self.judgement.errors
                };
                if found.len() < MAX_ERRORS {
                    found.push(violation.error(rule, schema, value, path));
                }
            }
            if self.is_over {
                return;
            }
        }
    }

    fn evaluate(&mut self, rule: &Rule, values: &Values) -> Result<(), Violation> {
        let old = rule.looks_back.then(|| rule.old(values.before.clone()));
        let context = values.context(old);
        let (result, cost) = meter::measure(|| Cel::resolve(&rule.program, &context));
        self.spend(cost).map_err(Violation::Failed)?;
        match result {
            Some(Ok(Cel::Bool(true))) => Ok(()),
            Some(Ok(_)) => Err(match self.message(rule, values) {
                Ok(message) => Violation::Broken(message),
                Err(why) => Violation::Unexplained(why),
            }),
            Some(Err(last)) => {
                let error = meter::measure(|| first_error(&rule.program, &context, last.clone()));
                let error = error.0.unwrap_or(last);
                let (why, subject) = (evaluation_error(&error), rule.subject());
                Err(Violation::Failed(if why.starts_with("no such overload") {
                    format!(
                        "'{why}': call arguments did not match a supported operator, function or \
                         macro signature for rule: {subject}"
                    )
                } else {
                    format!("{why} evaluating rule: {subject}")
                }))
            }
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
    fn message(&mut self, rule: &Rule, values: &Values) -> Result<String, String> {
        // Here kube-apiserver has no optional values of `oldSelf`, so expressions about them fail.
        let context = values.context(values.before.clone());
        let evaluated = rule
            .message_expression
            .as_ref()
            .map(|expression| meter::measure(|| Cel::resolve(expression, &context)));
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
            if !said.is_empty() && said.len() <= MAX_MESSAGE && !said.contains('\n') {
                return Ok(said);
            }
        }
        Ok(rule.message.clone().unwrap_or_else(|| format!("failed rule: {}", rule.text)))
    }
}

/// The values of the variables.
struct Values {
    now: Box<dyn Val>,
    before: Option<Box<dyn Val>>,
}

impl Values {
    fn context(&self, old: Option<Box<dyn Val>>) -> Context<'static, 'static> {
        let mut context = Context::with_env(library::env());
        context.add_variable_as_val("self", self.now.clone());
        if let Some(old) = old {
            context.add_variable_as_val("oldSelf", old);
        }
        context
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
    fn is_failure(&self) -> bool {
        matches!(self, Self::Failed(_))
    }

    fn error(&self, rule: &Rule, schema: &Schema, value: &Value, path: Path<'_>) -> FieldError {
        let kind = || Value::from(schema.kind.map_or("", Kind::as_str));
        match self {
            Self::Broken(message) => rule.error(value, message, rule.place(schema, path)),
            Self::Failed(why) => FieldError::invalid(path, &kind(), why),
            Self::Unexplained(why) => FieldError::invalid(rule.place(schema, path), &kind(), why),
        }
    }
}

impl Rule {
    /// Returns what stands for the rule in errors.
    fn subject(&self) -> &str {
        self.message.as_deref().unwrap_or(&self.text)
    }

    /// Returns the value of `oldSelf`.
    fn old(&self, before: Option<Box<dyn Val>>) -> Box<dyn Val> {
        match before {
            before if self.optional_old => Box::new(CelOptional::from(before)),
            Some(before) => before,
            None => Box::new(CelNull),
        }
    }

    /// Returns the path of the violations. Names of fields follow a dot, and keys of maps are in
    /// brackets.
    fn place(&self, schema: &Schema, path: Path<'_>) -> String {
        let mut place = path.to_string();
        let (mut schema, mut rest) = (Some(schema), self.field.as_str());
        while !rest.is_empty() {
            let (name, tail) = first_step(rest);
            let is_map = schema.is_some_and(|it| it.additional_properties.is_some());
            place = if is_map { format!("{place}[{name}]") } else { format!("{place}.{name}") };
            schema = schema.and_then(|schema| schema.child(&name));
            rest = tail;
        }
        place.trim_start_matches('.').to_owned()
    }

    fn error(&self, value: &Value, message: &str, place: String) -> FieldError {
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

/// Returns the first name of a path such as `.a['b.c']`, and the rest of the path.
fn first_step(path: &str) -> (String, &str) {
    let Some(quoted) = path.strip_prefix("['") else {
        let plain = path.strip_prefix('.').unwrap_or(path);
        let (name, rest) = plain.split_at(plain.find(['.', '[']).unwrap_or(plain.len()));
        return if name.is_empty() { (plain.to_owned(), "") } else { (name.to_owned(), rest) };
    };
    let mut name = String::new();
    let mut characters = quoted.chars();
    while let Some(character) = characters.next() {
        match character {
            '\'' => break,
            '\\' => name.extend(characters.next()),
            other => name.push(other),
        }
    }
    let rest = characters.as_str();
    (name, rest.strip_prefix(']').unwrap_or(rest))
}

#[cfg(test)]
mod tests;
