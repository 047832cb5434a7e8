//! Explains why a CEL expression is not true, by the values that decided it.
//!
//! The decoder descends into the parsed expression: into the false operand of `&&`, the items of a
//! list that break a condition, the two sides of a comparison. Messages never contain CEL.

mod compare;
mod lists;
mod macros;
mod missing;
mod names;
mod quantify;
mod shown;
mod view;

use std::cell::RefCell;

use cel::common::ast::{CallExpr, Expr, IdedExpr, operators};
use cel::{Context, Value as Cel};
use kubeproof_cases::case::{Message, MessagePart};
use kubeproof_cases::expression::Expression;
use serde_json::{Map, Value};

pub(crate) use self::missing::{missing_member, missing_variable};
pub(crate) use self::shown::{plain, short};

use self::macros::{Macro, call, operands};
use self::view::{Shared, View};
use super::cel::full_context_of;
use crate::event::Symptom;
use crate::values::Values;

/// Limit on the steps of a check.
const MOST_STEPS: usize = 6;

/// Why an expression is not true.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Explanation {
    /// One line in plain words.
    pub message: String,
    /// The values that decided, by their names.
    pub actual: Value,
    pub symptom: Option<Symptom>,
    /// The steps whose exchanges decided, a few for loops.
    pub steps: Vec<String>,
    /// True if the value that decided is part of a response.
    pub has_response: bool,
    /// Expected and actual value, if both are objects or lists.
    pub differing: Option<(Value, Value)>,
}

/// A part of an explanation.
#[derive(Clone, Debug, Default)]
struct Why {
    text: String,
    symptom: Option<Symptom>,
    facts: Vec<(String, Value)>,
    differing: Option<(Value, Value)>,
}

/// Explains why an expression is not true.
pub(crate) fn explain(expression: &Expression, values: &Values) -> Explanation {
    let context = full_context_of(expression, values);
    explain_in(expression, values, &context)
}

/// Renders the message of a case. `None` if one of its expressions has no value.
pub(crate) fn render(message: &Message, values: &Values) -> Option<String> {
    let part = |part: &MessagePart| match part {
        MessagePart::Text(text) => Some(text.clone()),
        MessagePart::Value(expression) => {
            Some(plain(&super::cel::evaluate(expression, values).ok()?))
        }
    };
    let text: String = message.parts.iter().map(part).collect::<Option<_>>()?;
    Some(text.split_whitespace().collect::<Vec<_>>().join(" "))
}

fn explain_in(expression: &Expression, values: &Values, context: &Context<'_, '_>) -> Explanation {
    let lets = expression.lets.iter();
    let shared = Shared {
        root: context,
        lets: lets.map(|named| (named.name.as_str(), named.program.expression())).collect(),
        values,
        used: RefCell::default(),
    };
    let view = View { context, bound: None, shared: &shared };
    let why = view.explain(expression.program.expression());
    let mut steps: Vec<String> = Vec::new();
    for path in shared.used.borrow().iter() {
        if let Some((origin, _)) = values.requests.find(path)
            && !steps.contains(&origin.step)
        {
            steps.push(origin.step);
        }
    }
    let has_response = !steps.is_empty();
    if !has_response {
        let all = expression.variables.iter().flat_map(|name| values.requests.steps_of(name));
        steps.extend(all);
    }
    steps.truncate(MOST_STEPS);
    Explanation {
        message: why.text,
        actual: Value::Object(why.facts.into_iter().collect::<Map<_, _>>()),
        symptom: why.symptom,
        steps,
        has_response,
        differing: why.differing,
    }
}

impl View<'_> {
    /// Explains why a condition is not true.
    fn explain(self, condition: &IdedExpr) -> Why {
        if let Some(found) = Macro::of(condition) {
            return match self.value(condition) {
                Ok(_) => self.quantified(found),
                Err(_) => self.missing(condition),
            };
        }
        match &condition.expr {
            Expr::Call(call) => self.explain_call(condition, call),
            Expr::Select(select) if select.test => match self.value(condition) {
                Ok(_) => self.absent(&select.operand, &select.field),
                Err(_) => self.missing(condition),
            },
            Expr::Ident(name) => match self.named(name) {
                Some((named, view)) => view.explain(named),
                None => self.untrue(condition),
            },
            _ => self.untrue(condition),
        }
    }

    fn explain_call(self, condition: &IdedExpr, call: &CallExpr) -> Why {
        let parts = operands(call);
        match (call.func_name.as_str(), parts.as_slice()) {
            (operators::LOGICAL_AND, [one, other]) => {
                self.explain(if self.holds(one) { other } else { one })
            }
            (operators::LOGICAL_OR, _) => self.none_of(condition),
            (operators::CONDITIONAL, [which, one, other]) => match self.value(which) {
                Ok(Cel::Bool(true)) => self.explain(one),
                Ok(_) => self.explain(other),
                Err(_) => self.missing(which),
            },
            _ if self.value(condition).is_err() => self.missing(condition),
            (operators::LOGICAL_NOT, [inner]) => self.explain_not(inner),
            (_, parts) => self.compared(call, parts).unwrap_or_else(|| self.untrue(condition)),
        }
    }

    /// Explains why none of several alternatives holds. Guards such as `step == null` only decide
    /// whether the others are judged.
    fn none_of(self, condition: &IdedExpr) -> Why {
        let mut alternatives = Vec::new();
        flatten_or(condition, &mut alternatives);
        let judged: Vec<&IdedExpr> =
            alternatives.iter().copied().filter(|one| !is_guard(one)).collect();
        let judged =
            if judged.is_empty() { &alternatives[alternatives.len() - 1..] } else { &judged };
        let mut all = judged.iter().map(|one| self.explain(one));
        let mut why = all.next().unwrap_or_default();
        for other in all {
            if other.text != why.text {
                why.text = format!("{}; or {}", why.text, other.text);
            }
            why.facts.extend(other.facts);
        }
        why
    }

    /// Explains a condition that is true and must be false.
    fn explain_not(self, inner: &IdedExpr) -> Why {
        if let Some(found) = Macro::of(inner) {
            return self.quantified_not(found);
        }
        if let Expr::Select(select) = &inner.expr
            && select.test
        {
            let selected = cel::common::ast::SelectExpr { test: false, ..select.clone() };
            let selected = IdedExpr { id: inner.id, expr: Expr::Select(selected) };
            return self.unexpected(&selected, "no such field");
        }
        let Some(call) = call(inner) else { return self.unexpected(inner, "false") };
        match (call.func_name.as_str(), operands(call).as_slice()) {
            (operators::LOGICAL_NOT, [inner]) => self.explain(inner),
            (operators::LOGICAL_AND, [one, _]) => self.explain_not(one),
            (operators::LOGICAL_OR, [one, other]) => {
                self.explain_not(if self.holds(one) { one } else { other })
            }
            (_, parts) => {
                self.compared_not(call, parts).unwrap_or_else(|| self.unexpected(inner, "false"))
            }
        }
    }

    /// Explains a value that is not `true`.
    fn untrue(self, condition: &IdedExpr) -> Why {
        if self.value(condition).is_err() {
            return self.missing(condition);
        }
        self.unexpected(condition, "true")
    }

    /// Explains a value that should be something else.
    fn unexpected(self, expression: &IdedExpr, expected: &str) -> Why {
        self.uses(expression);
        let (name, value) = (self.name(expression), self.json(expression));
        Why {
            text: format!("{name} is {}, expected {expected}", short(&value)),
            symptom: self.wrong_field(expression),
            facts: vec![(name, value)],
            differing: None,
        }
    }

    /// Returns the symptom of a field of a body with a wrong value.
    fn wrong_field(self, expression: &IdedExpr) -> Option<Symptom> {
        let path = self.locate(expression)?;
        let (origin, rest) = self.shared.values.requests.find(&path)?;
        let field = match origin.member {
            Some(member) => member,
            None => names::field_of(rest)?,
        };
        Some(Symptom::WrongField { field })
    }
}

fn flatten_or<'e>(condition: &'e IdedExpr, all: &mut Vec<&'e IdedExpr>) {
    match call(condition).map(|call| (call.func_name.as_str(), operands(call))) {
        Some((operators::LOGICAL_OR, parts)) => {
            for part in parts {
                flatten_or(part, all);
            }
        }
        _ => all.push(condition),
    }
}

/// Reports whether a condition excludes a situation: `a != b`, `!has(a.b)`, `a == null`.
fn is_guard(condition: &IdedExpr) -> bool {
    let Some(call) = call(condition) else { return false };
    let is_null =
        |part: &&IdedExpr| matches!(part.expr, Expr::Literal(cel::common::ast::LiteralValue::Null));
    match call.func_name.as_str() {
        operators::NOT_EQUALS | operators::LOGICAL_NOT => true,
        operators::EQUALS => operands(call).iter().any(is_null),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
