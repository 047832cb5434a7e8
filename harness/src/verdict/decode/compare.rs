//! Explains comparisons and functions that return true or false.

use cel::Value as Cel;
use cel::common::ast::{CallExpr, IdedExpr, operators};
use serde_json::Value;

use super::Why;
use super::lists::{NAMED, Order, sized};
use super::macros::{call, operands};
use super::names::UNNAMED;
use super::shown::{difference, short, word_of};
use super::view::{View, is_constant};
use crate::event::Symptom;
use crate::values::Segment;

/// Functions that only convert their argument. Messages show the argument.
const CONVERSIONS: [&str; 3] = ["int", "parseTime", "string"];

impl View<'_> {
    /// Explains a comparison or a function that returned false.
    pub(super) fn compared(self, call: &CallExpr, parts: &[&IdedExpr]) -> Option<Why> {
        let function = call.func_name.as_str();
        match (function, parts) {
            (
                operators::EQUALS
                | operators::NOT_EQUALS
                | operators::LESS
                | operators::LESS_EQUALS
                | operators::GREATER
                | operators::GREATER_EQUALS,
                [one, other],
            ) => Some(self.compared_values(function, one, other)),
            (operators::IN, [one, other]) => Some(self.not_among(one, other)),
            ("distinct", [list]) => self.not_distinct(list),
            ("sameItems", [one, other]) => {
                let (actual, expected) = if is_constant(one) { (other, one) } else { (one, other) };
                Some(self.differing_lists(actual, expected, Order::Any))
            }
            (_, [one, other]) => {
                let word = word_of_text_function(function)?;
                let expected = format!("a text that {word} {}", short(&self.json(other)));
                Some(self.unexpected(one, &expected))
            }
            _ => None,
        }
    }

    /// Explains a comparison or a function that returned true and must not.
    pub(super) fn compared_not(self, call: &CallExpr, parts: &[&IdedExpr]) -> Option<Why> {
        let function = call.func_name.as_str();
        match (function, parts) {
            (operators::EQUALS, [one, other]) => Some(self.equal(one, other)),
            (operators::IN, [one, other]) => Some(if let Ok(Cel::Map(_)) = self.value(other) {
                let (key, name) = (self.json(one), self.name(other));
                self.uses(other);
                let text = format!("{name} has the key {}, expected none", short(&key));
                Why { text, symptom: self.wrong_field(other), ..Why::default() }
            } else {
                let expected = format!("none of {}", short(&self.json(other)));
                self.unexpected(one, &expected)
            }),
            (_, [one, other]) => {
                let word = word_of_text_function(function)?;
                let expected = format!("no text that {word} {}", short(&self.json(other)));
                Some(self.unexpected(one, &expected))
            }
            _ => None,
        }
    }

    fn compared_values(self, operator: &str, one: &IdedExpr, other: &IdedExpr) -> Why {
        let (operator, actual, expected) = if is_constant(one) && !is_constant(other) {
            (mirrored(operator), other, one)
        } else {
            (operator, one, other)
        };
        if let Some(list) = sized(actual)
            && let Some(count) = self.json(expected).as_i64()
        {
            return self.counted(list, operator, count);
        }
        if operator == operators::NOT_EQUALS {
            return self.equal(actual, expected);
        }
        let (shown, wanted) = (self.json(actual), self.json(expected));
        match (&shown, &wanted) {
            (Value::Array(_), Value::Array(_)) => {
                return self.differing_lists(actual, expected, Order::Given);
            }
            (Value::Object(_), Value::Object(_)) => {
                return self.differing_objects(actual, expected);
            }
            _ => {}
        }
        self.uses(actual);
        self.uses(expected);
        let name = self.name(actual);
        let word = word_of(operator);
        let value = format!("{word}{}", short(&self.as_written(expected)));
        let found = short(&self.as_written(actual));
        let text = if let Some(returned) = self.returned(actual) {
            format!("{returned}, expected {value}")
        } else if is_constant(expected) {
            format!("{name} is {found}, expected {value}")
        } else {
            match same_field(&name, &self.name(expected)) {
                Some((field, here, there)) => {
                    format!("{field} is {found} in {here}, expected {value} as in {there}")
                }
                None => {
                    format!("{name} is {found}, expected {value} ({})", self.name(expected))
                }
            }
        };
        Why {
            text,
            symptom: self.symptom(actual, std::slice::from_ref(&wanted)),
            facts: vec![(name, shown), (self.fact_name(expected), wanted)],
            differing: None,
        }
    }

    /// Explains equal values that must differ.
    fn equal(self, one: &IdedExpr, other: &IdedExpr) -> Why {
        self.uses(one);
        self.uses(other);
        let (name, value) = (self.name(one), self.json(one));
        let found = short(&value);
        let text = if value.is_null() {
            format!("{name} is null, expected a value")
        } else if is_constant(other) {
            format!("{name} is {found}, expected another value")
        } else {
            match same_field(&name, &self.name(other)) {
                Some((field, here, there)) => {
                    format!(
                        "{field} is {found} in {here} and in {there}, expected different values"
                    )
                }
                None => format!("{name} and {} are both {found}", self.name(other)),
            }
        };
        Why { text, symptom: self.wrong_field(one), facts: vec![(name, value)], differing: None }
    }

    fn not_among(self, one: &IdedExpr, other: &IdedExpr) -> Why {
        if let (Ok(Cel::Map(_)), Some(key)) = (self.value(other), self.json(one).as_str()) {
            return self.absent(other, key);
        }
        let choices = self.json(other);
        if is_constant(one) {
            self.uses(other);
            let name = self.name(other);
            let text = format!(
                "{name} is {}, expected {} among it",
                short(&choices),
                short(&self.json(one))
            );
            let symptom = self.wrong_field(other);
            return Why { text, symptom, facts: vec![(name, choices)], differing: None };
        }
        let items = choices.as_array().cloned().unwrap_or_default();
        let shown: Vec<String> = items.iter().take(NAMED).map(short).collect();
        let expected = format!("one of {}", shown.join(", "));
        let mut why = self.unexpected(one, &expected);
        if let Some(returned) = self.returned(one) {
            why.text = format!("{returned}, expected {expected}");
        }
        why.symptom = self.symptom(one, &items);
        why
    }

    fn differing_objects(self, actual: &IdedExpr, expected: &IdedExpr) -> Why {
        self.uses(actual);
        self.uses(expected);
        let (found, wanted) = (self.json(actual), self.json(expected));
        let difference = difference(&wanted, &found);
        let name = self.name(actual);
        Why {
            text: format!(
                "{name} differs from {}: {difference}",
                self.counterpart(expected, "object")
            ),
            symptom: self.wrong_field(actual),
            facts: vec![(name, found.clone()), (self.fact_name(expected), wanted.clone())],
            differing: Some((wanted, found)),
        }
    }

    /// Describes a status code with its request.
    fn returned(self, expression: &IdedExpr) -> Option<String> {
        let path = self.locate(expression)?;
        let (origin, rest) = self.shared.values.requests.find(&path)?;
        let is_status = matches!(rest, [Segment::Member(name)] if name == "status");
        let (step, line) = (&origin.step, origin.request.line());
        (is_status && origin.member.is_none())
            .then(|| format!("`{step}` ({line}) returned HTTP {}", origin.status))
    }

    /// Returns the symptom of a wrong value.
    pub(super) fn symptom(self, actual: &IdedExpr, expected: &[Value]) -> Option<Symptom> {
        let path = self.locate(actual)?;
        let (origin, rest) = self.shared.values.requests.find(&path)?;
        match rest {
            [Segment::Member(status)] if status == "status" => {
                let codes = expected.iter().map(|code| u16::try_from(code.as_u64()?).ok());
                let codes = codes.collect::<Option<Vec<u16>>>()?;
                let request = origin.request.verb();
                Some(Symptom::StatusCode { request, expected: codes, got: origin.status })
            }
            _ => self.wrong_field(actual),
        }
    }

    /// Returns the value before its conversion, such as a time as text.
    fn as_written(self, expression: &IdedExpr) -> Value {
        match call(expression).map(|call| (call.func_name.as_str(), operands(call))) {
            Some((name, parts)) if CONVERSIONS.contains(&name) && parts.len() == 1 => {
                self.json(parts[0])
            }
            _ => self.json(expression),
        }
    }

    pub(super) fn fact_name(self, expected: &IdedExpr) -> String {
        if is_constant(expected) { "expected".to_owned() } else { self.name(expected) }
    }

    /// Names the other side of a comparison.
    pub(super) fn counterpart(self, expected: &IdedExpr, noun: &str) -> String {
        match self.fact_name(expected).as_str() {
            "expected" | UNNAMED => format!("the expected {noun}"),
            name => name.to_owned(),
        }
    }
}

/// Returns the field and the steps of two names with the same field.
fn same_field<'n>(one: &'n str, other: &'n str) -> Option<(&'n str, &'n str, &'n str)> {
    let ((field, here), (same, there)) = (one.rsplit_once(" of ")?, other.rsplit_once(" of ")?);
    (field == same).then_some((field, here, there))
}

/// Returns the operator for exchanged operands.
fn mirrored(operator: &str) -> &str {
    match operator {
        operators::LESS => operators::GREATER,
        operators::LESS_EQUALS => operators::GREATER_EQUALS,
        operators::GREATER => operators::LESS,
        operators::GREATER_EQUALS => operators::LESS_EQUALS,
        same => same,
    }
}

fn word_of_text_function(function: &str) -> Option<&'static str> {
    Some(match function {
        "contains" => "contains",
        "startsWith" => "starts with",
        "endsWith" => "ends with",
        "matches" => "matches the expression",
        _ => return None,
    })
}
