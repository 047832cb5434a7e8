//! Explains comparisons of lists and of their lengths.

use cel::common::ast::{IdedExpr, operators};
use serde_json::{Value, json};

use super::Why;
use super::macros::{Kind, Macro, call, operands};
use super::names::UNNAMED;
use super::shown::{difference, is_scalar, occurrences, short, tally, word_of};
use super::view::{Item, View};
use crate::verdict::cel::from_cel;

/// Items of a list that a message names.
pub(super) const NAMED: usize = 5;

/// Whether the order of a list counts.
#[derive(Clone, Copy, Eq, PartialEq)]
pub(super) enum Order {
    Given,
    Any,
}

impl View<'_> {
    /// Explains a list with equal items.
    pub(super) fn not_distinct(self, list: &IdedExpr) -> Option<Why> {
        let items = self.items(list)?;
        let values: Vec<Value> =
            items.iter().map(|item| from_cel(&item.value).unwrap_or_default()).collect();
        let repeated = |value: &Value| values.iter().filter(|other| *other == value).count() > 1;
        let mut again: Vec<Value> = Vec::new();
        for (item, value) in items.iter().zip(&values) {
            if repeated(value) {
                self.shared.used.borrow_mut().extend(item.path.clone());
                again.push(value.clone());
            }
        }
        let name = self.name(list);
        let plural = if name == UNNAMED { "the values" } else { &name };
        Some(Why {
            text: format!("{plural} are not all different: {}", occurrences(&again)),
            symptom: None,
            facts: vec![(name, json!(values))],
            differing: None,
        })
    }

    /// Explains a list that differs from another one.
    pub(super) fn differing_lists(
        self,
        actual: &IdedExpr,
        expected: &IdedExpr,
        order: Order,
    ) -> Why {
        self.uses(actual);
        self.uses(expected);
        let (found, wanted) = (self.list(actual), self.list(expected));
        let missing = without(&wanted, &found);
        let unexpected = without(&found, &wanted);
        let name = self.name(actual);
        let text = if missing.is_empty() && unexpected.is_empty() {
            format!(
                "{name} are in another order: {}, expected {}",
                short(&json!(found)),
                short(&json!(wanted))
            )
        } else if order == Order::Given
            && found.len() == wanted.len()
            && missing.iter().any(|item| !is_scalar(item))
        {
            let difference = difference(&json!(wanted), &json!(found));
            format!("{name} differ from {}: {difference}", self.counterpart(expected, "list"))
        } else if found.len().max(wanted.len()) <= NAMED {
            let (found, wanted) = (short(&json!(found)), short(&json!(wanted)));
            format!("{name}: {found}, expected {wanted}")
        } else {
            let parts = [("missing", &missing), ("unexpected", &unexpected)];
            let parts = parts.iter().filter(|(_, values)| !values.is_empty());
            let parts: Vec<String> = parts
                .map(|(what, values)| format!("{} {what}: {}", values.len(), tally(values)))
                .collect();
            let expected = self.counterpart(expected, "list");
            format!("{name} differ from {expected}; {}", parts.join("; "))
        };
        Why {
            text,
            symptom: self.wrong_field(actual),
            facts: vec![(name, json!(found)), (self.fact_name(expected), json!(wanted))],
            differing: Some((json!(wanted), json!(found))),
        }
    }

    /// Explains a list with a wrong number of items.
    pub(super) fn counted(self, list: &IdedExpr, operator: &str, expected: i64) -> Why {
        if let Some(found) = Macro::of(list)
            && found.kind == Kind::Filter
            && let Some(why) = self.counted_matches(found, &count_in_words(operator, expected))
        {
            return why;
        }
        self.uses(list);
        let value = self.json(list);
        let count = match &value {
            Value::Array(items) => items.len(),
            Value::Object(members) => members.len(),
            Value::String(text) => text.chars().count(),
            _ => 0,
        };
        let wanted = count_in_words(operator, expected);
        let name = match &value {
            Value::String(_) => format!("{} has {count} characters", self.name(list)),
            _ => self.range_name(list, count),
        };
        let contents = self.contents(list).map(|of| format!(" ({of})")).unwrap_or_default();
        Why {
            text: format!("{name}{contents}, expected {wanted}"),
            symptom: self.wrong_field(list),
            facts: vec![(self.name(list), json!(count))],
            differing: None,
        }
    }

    /// Returns the types of events or the names of objects in a list.
    fn contents(self, list: &IdedExpr) -> Option<String> {
        let items = self.items(list)?;
        let label = |item: &Item| {
            let value = self.shared.values.at(item.path.as_ref()?)?;
            let name = value.pointer("/metadata/name").or_else(|| value.get("type"));
            name.or_else(|| value.get("name")).filter(|name| name.is_string()).cloned()
        };
        let labels: Option<Vec<Value>> = items.iter().map(label).collect();
        labels.filter(|labels| !labels.is_empty()).map(|labels| tally(&labels))
    }

    fn list(self, expression: &IdedExpr) -> Vec<Value> {
        self.json(expression).as_array().cloned().unwrap_or_default()
    }
}

/// Returns the list whose size an expression is.
pub(super) fn sized(expression: &IdedExpr) -> Option<&IdedExpr> {
    let call = call(expression).filter(|call| call.func_name == "size")?;
    operands(call).first().copied()
}

/// Returns the items that another list lacks.
fn without(items: &[Value], others: &[Value]) -> Vec<Value> {
    let mut rest: Vec<&Value> = others.iter().collect();
    let mut lacking = Vec::new();
    for item in items {
        match rest.iter().position(|other| *other == item) {
            Some(at) => drop(rest.swap_remove(at)),
            None => lacking.push(item.clone()),
        }
    }
    lacking
}

fn count_in_words(operator: &str, expected: i64) -> String {
    let word = match operator {
        operators::EQUALS => "exactly ",
        operators::NOT_EQUALS => "another number than ",
        other => return format!("{}{expected}", word_of(other)),
    };
    format!("{word}{expected}")
}
