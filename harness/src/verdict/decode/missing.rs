//! Explains expressions without a value: mostly members that a response lacks.

use cel::common::ast::{CallExpr, Expr, IdedExpr, operators};
use cel::{ExecutionError, Value as Cel};
use serde_json::{Value, json};

use super::macros::{Macro, operands};
use super::names::{field_of, of_part, of_place};
use super::shown::short;
use super::view::View;
use super::{Explanation, Why, explain};
use crate::event::Symptom;
use crate::values::{Origin, Path, Segment, Values, dotted, segments};
use crate::verdict::cel::from_cel;

impl View<'_> {
    /// Explains why an expression has no value.
    pub(super) fn missing(self, expression: &IdedExpr) -> Why {
        self.culprit(expression).unwrap_or_else(|| {
            let reason = self.value(expression).err().map(|error| error.to_string());
            let text = format!("{} has no value", self.name(expression));
            Why { text, facts: vec![("error".to_owned(), json!(reason))], ..Why::default() }
        })
    }

    /// Finds the innermost part without a value.
    fn culprit(self, expression: &IdedExpr) -> Option<Why> {
        if self.value(expression).is_ok() {
            return None;
        }
        if let Some(found) = Macro::of(expression) {
            return self.culprit_of_macro(found);
        }
        match &expression.expr {
            Expr::Ident(name) => {
                let (named, view) = self.named(name)?;
                view.culprit(named)
            }
            Expr::Select(select) => Some(
                self.culprit(&select.operand)
                    .unwrap_or_else(|| self.absent(&select.operand, &select.field)),
            ),
            Expr::Call(call) => self.culprit_of_call(expression, call),
            Expr::List(list) => list.elements.iter().find_map(|part| self.culprit(part)),
            _ => None,
        }
    }

    fn culprit_of_macro(self, found: Macro<'_>) -> Option<Why> {
        if let Some(why) = self.culprit(found.range) {
            return Some(why);
        }
        let items = self.items(found.range)?;
        let count = items.len();
        let bodies = || found.filter.into_iter().chain([found.body]);
        let mut broken = items.iter().filter_map(|item| {
            self.with(found.variable, item, |inner| bodies().find_map(|body| inner.culprit(body)))
        });
        let first = broken.next()?;
        let others = broken.count();
        if count == 1 {
            return Some(first);
        }
        let of = self.range_name(found.range, count);
        Some(Why { text: format!("{} ({} of {of})", first.text, others + 1), ..first })
    }

    fn culprit_of_call(self, expression: &IdedExpr, call: &CallExpr) -> Option<Why> {
        let parts = operands(call);
        match (call.func_name.as_str(), parts.as_slice()) {
            (operators::CONDITIONAL, [condition, one, other]) => self
                .culprit(condition)
                .or_else(|| self.culprit(if self.holds(condition) { one } else { other })),
            (operators::INDEX, [of, at]) => Some(
                self.culprit(of)
                    .or_else(|| self.culprit(at))
                    .unwrap_or_else(|| self.no_item(of, at)),
            ),
            _ => {
                if let Some(why) = parts.iter().find_map(|part| self.culprit(part)) {
                    return Some(why);
                }
                let error = self.value(expression).err()?;
                Some(self.unusable(call, &error))
            }
        }
    }

    fn no_item(self, of: &IdedExpr, at: &IdedExpr) -> Why {
        if let Ok(Cel::String(name)) = self.value(at) {
            return self.absent(of, &name);
        }
        self.uses(of);
        let (name, index) = (self.name(of), self.json(at));
        let Ok(Cel::List(items)) = self.value(of) else {
            return self.unexpected(of, "a list");
        };
        let expected = index.as_u64().unwrap_or_default() + 1;
        Why {
            text: match items.len() {
                0 => format!("{name} is empty, expected at least {expected}"),
                count => format!("{name} has only {count}, expected at least {expected}"),
            },
            symptom: None,
            facts: vec![(name, json!(items.len()))],
            differing: None,
        }
    }

    /// A function rejects its argument, such as a time that cannot be parsed.
    fn unusable(self, call: &CallExpr, error: &ExecutionError) -> Why {
        let parts = operands(call);
        let Some(first) = parts.iter().find(|part| !super::view::is_constant(part)) else {
            return Why { text: error.to_string(), ..Why::default() };
        };
        let mut why = self.unexpected(first, "a valid value");
        let reason = match error {
            ExecutionError::FunctionError { message, .. } => message.clone(),
            _ => "it has another type".to_owned(),
        };
        why.text = format!("{} is {}: {reason}", self.name(first), short(&self.json(first)));
        why
    }

    /// Explains a member that an object lacks.
    pub(super) fn absent(self, of: &IdedExpr, member: &str) -> Why {
        self.uses(of);
        let value = self.value(of).ok();
        let Some(path) = self.locate(of) else {
            let name = self.name(of);
            let text = format!("{member} is missing in {name}");
            return Why {
                text,
                symptom: Some(Symptom::MissingField { field: member.to_owned() }),
                facts: vec![(name, self.json(of))],
                differing: None,
            };
        };
        self.absent_at(&path, member, value.as_ref())
    }

    fn absent_at(self, path: &Path, member: &str, value: Option<&Cel>) -> Why {
        let requests = &self.shared.values.requests;
        let whole = path.member(member);
        let Some((origin, rest)) = requests.find(&whole) else {
            let text = if matches!(value, Some(Cel::Null)) {
                format!("the step `{path}` did not run")
            } else {
                format!("{whole} is missing")
            };
            let symptom = Some(Symptom::MissingField { field: member.to_owned() });
            let facts = vec![(path.to_string(), shown(value))];
            return Why { text, symptom, facts, differing: None };
        };
        let response = response_of(&origin);
        let field = match &origin.member {
            Some(captured) => format!("{captured}.{}", of_part(rest)),
            None => field_of(rest).unwrap_or_else(|| of_part(rest)),
        };
        let text = match value {
            _ if origin.status >= 400 => rejected(&origin, &field),
            Some(Cel::Map(_)) => format!("{} is missing in {response}", of_part(rest)),
            Some(Cel::Null) if rest.len() == 2 => {
                format!("{response} has no JSON body, expected one with {field}")
            }
            other => {
                let name = of_place(self.shared.values, path);
                let found = short(&shown(other));
                format!("{name} is {found}, expected an object with {member}")
            }
        };
        let symptom = symptom_of(&origin, field);
        let name = of_place(self.shared.values, &whole);
        Why { text, symptom: Some(symptom), facts: vec![(name, Value::Null)], differing: None }
    }
}

/// Explains why a variable of a template has no value: a response lacks a member. `None` if no
/// response is to blame.
pub(crate) fn missing_variable(name: &str, values: &Values) -> Option<Explanation> {
    if let Some(expression) = values.without_value(name) {
        return Some(explain(expression, values)).filter(|why| why.has_response);
    }
    let path = Path(name.split('.').map(|part| Segment::Member(part.to_owned())).collect());
    let (origin, rest) = values.requests.find(&path)?;
    let field = match &origin.member {
        Some(captured) => format!("{captured}.{}", of_part(rest)),
        None => field_of(rest).unwrap_or_else(|| of_part(rest)),
    };
    let message = if origin.status >= 400 {
        rejected(&origin, &field)
    } else {
        format!("{field} is missing in {}", response_of(&origin))
    };
    let symptom = Some(symptom_of(&origin, field_of(rest).unwrap_or_else(|| dotted(rest))));
    let steps = vec![origin.step];
    Some(Explanation { message, symptom, steps, has_response: true, ..Explanation::default() })
}

/// Describes a member that a response lacks. `None` is an event, which has no request of its own.
pub(crate) fn missing_member(origin: Option<&Origin>, pointer: &str) -> (String, Symptom) {
    let segments = segments(pointer);
    let field = dotted(&segments);
    let Some(origin) = origin else {
        let symptom = Symptom::MissingField { field: field.clone() };
        return (format!("{field} is missing in the event"), symptom);
    };
    if origin.status >= 400 {
        return (rejected(origin, &field), symptom_of(origin, field));
    }
    let response = response_of(origin);
    if segments.is_empty() {
        let symptom = Symptom::MissingField { field: "body".to_owned() };
        return (format!("{response} has no JSON body"), symptom);
    }
    (format!("{field} is missing in {response}"), symptom_of(origin, field))
}

fn response_of(origin: &Origin) -> String {
    format!("the response of `{}` ({})", origin.step, origin.request.line())
}

fn rejected(origin: &Origin, field: &str) -> String {
    let response = response_of(origin);
    format!("{response} is HTTP {}, expected a body with {field}", origin.status)
}

/// An error response lacks all fields, so its status code is the symptom.
fn symptom_of(origin: &Origin, field: String) -> Symptom {
    if origin.status < 400 {
        return Symptom::MissingField { field };
    }
    let request = origin.request.verb();
    let expected = vec![if request == "create" { 201 } else { 200 }];
    Symptom::StatusCode { request, expected, got: origin.status }
}

fn shown(value: Option<&Cel>) -> Value {
    value.and_then(from_cel).unwrap_or_default()
}
