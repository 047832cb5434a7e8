//! Names values as a user does: `metadata.uid of created`, `put.status of 20 writers`.

use cel::common::ast::{CallExpr, Expr, IdedExpr, LiteralValue, operators};
use serde_json::{Value, json};

use super::macros::{Kind, Macro, call, operands, reads};
use super::shown::{plain, short, tally};
use super::view::{View, text_of};
use crate::values::{Path, Segment, Values, dotted};

/// Functions that keep the meaning of their first argument.
const TRANSPARENT: [&str; 10] =
    ["double", "dyn", "flatten", "int", "json", "parseTime", "sorted", "string", "uint", "unique"];

/// The name of a value that is neither a place nor a function of places.
pub(super) const UNNAMED: &str = "the value";

/// Returns the name of a place.
pub(super) fn of_place(values: &Values, path: &Path) -> String {
    let Some((origin, rest)) = values.requests.find(path) else { return path.to_string() };
    if let Some(member) = &origin.member {
        format!("{member} of `{}`", origin.step)
    } else {
        let step = dotted(&path.0[..path.0.len() - rest.len()]);
        format!("{} of `{step}`", of_part(rest))
    }
}

fn counted(count: usize, items: &str) -> String {
    match (count, items) {
        (1, "items") => "1 item".to_owned(),
        (1, "events") => "1 event".to_owned(),
        _ => format!("{count} {items}"),
    }
}

/// Returns the name of a part of a response.
pub(super) fn of_part(rest: &[Segment]) -> String {
    let member = |at: usize| match rest.get(at) {
        Some(Segment::Member(name)) => Some(name.as_str()),
        _ => None,
    };
    match (member(0), rest) {
        (None, _) => "the response".to_owned(),
        (Some("body"), [_]) => "the body".to_owned(),
        (Some("body"), [_, rest @ ..]) => dotted(rest),
        (Some("status"), [_]) => "HTTP status".to_owned(),
        (Some("headers"), [_, Segment::Member(name)]) => format!("header {name}"),
        (Some("events"), [_, Segment::Index(at)]) => format!("event {}", at + 1),
        (Some("events"), [_, Segment::Index(at), rest @ ..]) => {
            let rest = match rest {
                [Segment::Member(object), rest @ ..] if object == "object" && !rest.is_empty() => {
                    rest
                }
                rest => rest,
            };
            format!("{} of event {}", dotted(rest), at + 1)
        }
        _ => dotted(rest),
    }
}

/// Returns the field of a body or an event without indexes, as symptoms name it.
pub(super) fn field_of(rest: &[Segment]) -> Option<String> {
    let field = match rest {
        [Segment::Member(part), field @ ..] if part == "body" && !field.is_empty() => field,
        [Segment::Member(events), Segment::Index(_), Segment::Member(object), field @ ..]
            if events == "events" && object == "object" && !field.is_empty() =>
        {
            field
        }
        _ => return None,
    };
    let mut text = String::new();
    for segment in field {
        match segment {
            Segment::Index(_) => text.push_str("[]"),
            Segment::Member(name) => {
                if !text.is_empty() {
                    text.push('.');
                }
                text.push_str(name);
            }
        }
    }
    Some(text)
}

/// Returns the path from a variable to the place that an expression selects.
pub(super) fn relative(expression: &IdedExpr, variable: &str) -> Option<Vec<Segment>> {
    match &expression.expr {
        Expr::Ident(name) if name == variable => Some(Vec::new()),
        Expr::Select(select) if !select.test => {
            let mut path = relative(&select.operand, variable)?;
            path.push(Segment::Member(select.field.clone()));
            Some(path)
        }
        Expr::Call(call) if call.func_name == operators::INDEX => {
            let [of, at] = call.args.as_slice() else { return None };
            let mut path = relative(of, variable)?;
            path.push(match &at.expr {
                Expr::Literal(LiteralValue::String(name)) => {
                    Segment::Member(name.inner().to_owned())
                }
                Expr::Literal(LiteralValue::Int(index)) => {
                    Segment::Index(usize::try_from(*index.inner()).ok()?)
                }
                _ => return None,
            });
            Some(path)
        }
        _ => None,
    }
}

/// Returns the places below a variable that an expression reads.
pub(super) fn leaves<'e>(expression: &'e IdedExpr, variable: &str) -> Vec<&'e IdedExpr> {
    if relative(expression, variable).is_some() {
        return vec![expression];
    }
    let parts: Vec<&IdedExpr> = match &expression.expr {
        Expr::Call(call) => operands(call),
        Expr::Select(select) => {
            let has_leaf = relative(&select.operand, variable).is_some();
            return if has_leaf && select.test { vec![expression] } else { Vec::new() };
        }
        Expr::List(list) => list.elements.iter().collect(),
        _ => return Vec::new(),
    };
    let mut found: Vec<&IdedExpr> = Vec::new();
    for leaf in parts.into_iter().flat_map(|part| leaves(part, variable)) {
        if !found.iter().any(|known| known.expr == leaf.expr) {
            found.push(leaf);
        }
    }
    found
}

/// Returns the name of a place below a variable; empty for the variable itself.
pub(super) fn leaf_name(leaf: &IdedExpr, variable: &str) -> String {
    let path = match &leaf.expr {
        Expr::Select(select) if select.test => {
            relative(&select.operand, variable).map(|mut path| {
                path.push(Segment::Member(select.field.clone()));
                path
            })
        }
        _ => relative(leaf, variable),
    };
    let path = path.unwrap_or_default();
    let is = |segment: &Segment, name: &str| matches!(segment, Segment::Member(m) if m == name);
    if let Some(body) = path.iter().position(|segment| is(segment, "body"))
        && body + 1 < path.len()
    {
        return dotted(&path[body + 1..]);
    }
    match path.as_slice() {
        [object, rest @ ..] if is(object, "object") && !rest.is_empty() => dotted(rest),
        path => dotted(path),
    }
}

impl View<'_> {
    /// Returns the name of a value.
    pub(super) fn name(self, expression: &IdedExpr) -> String {
        if let Some(path) = self.locate(expression) {
            return of_place(self.shared.values, &path);
        }
        if let Some(found) = Macro::of(expression) {
            let count = self.items(expression).map_or(0, |items| items.len());
            let of = self.range_name(found.range, count);
            return match (found.kind, leaf_name(found.body, found.variable)) {
                (Kind::Map, leaf) if !leaf.is_empty() => format!("{leaf} of {of}"),
                _ => of,
            };
        }
        match &expression.expr {
            Expr::Ident(name) => match self.named(name) {
                Some((named, view)) => view.name(named),
                None => name.clone(),
            },
            Expr::List(list) if list.elements.len() <= 3 => {
                let names: Vec<String> = list.elements.iter().map(|one| self.name(one)).collect();
                names.join(", ")
            }
            Expr::Literal(_) => short(&self.json(expression)),
            Expr::Select(select) => format!("{} of {}", select.field, self.name(&select.operand)),
            Expr::Call(call) => self.name_of_call(call),
            _ => UNNAMED.to_owned(),
        }
    }

    fn name_of_call(self, call: &CallExpr) -> String {
        match (call.func_name.as_str(), operands(call).as_slice()) {
            ("size", [of]) => format!("the number of {}", self.name(of)),
            (name, [of, ..]) if TRANSPARENT.contains(&name) || name == "after" => self.name(of),
            (operators::INDEX, [of, at]) => match self.json(at).as_u64() {
                Some(index) => format!("item {} of {}", index + 1, self.name(of)),
                None => self.name(of),
            },
            (operators::CONDITIONAL, [condition, one, other]) => {
                self.name(if self.holds(condition) { one } else { other })
            }
            (_, parts) => {
                let parts = parts.iter().filter(|part| !super::view::is_constant(part));
                let names: Vec<String> = parts.map(|part| self.name(part)).take(3).collect();
                if names.is_empty() { UNNAMED.to_owned() } else { names.join(" and ") }
            }
        }
    }

    /// Returns the name of the items of a list: `20 writers`, `3 items of listed`.
    pub(super) fn range_name(self, range: &IdedExpr, count: usize) -> String {
        if let Some(path) = self.locate(range) {
            return match self.shared.values.requests.find(&path) {
                Some((origin, rest)) if origin.member.is_none() => {
                    let step = dotted(&path.0[..path.0.len() - rest.len()]);
                    format!("{} of `{step}`", counted(count, &of_part(rest)))
                }
                _ => format!("{count} {path}"),
            };
        }
        if let Some(found) = Macro::of(range) {
            let of = self.range_name(found.range, count);
            return match (found.kind, self.condition(found.body, found.variable)) {
                (Kind::Filter, Some(condition)) => format!("{of} with {condition}"),
                _ => of,
            };
        }
        if let Expr::Ident(name) = &range.expr
            && let Some((named, view)) = self.named(name)
        {
            return view.range_name(named, count);
        }
        match call(range) {
            Some(call) if TRANSPARENT.contains(&call.func_name.as_str()) => {
                operands(call).first().map_or_else(String::new, |of| self.range_name(of, count))
            }
            _ => counted(count, "items"),
        }
    }

    /// Returns a condition on the variable of a macro in words, such as `status 201`.
    pub(super) fn condition(self, condition: &IdedExpr, variable: &str) -> Option<String> {
        let leaf = |expression: &IdedExpr| {
            relative(expression, variable)?;
            Some(leaf_name(expression, variable))
        };
        if let Expr::Select(select) = &condition.expr
            && select.test
        {
            return Some(leaf_name(condition, variable));
        }
        let call = call(condition)?;
        let parts = operands(call);
        let of_both = |joined: &str| {
            let both: Option<Vec<String>> =
                parts.iter().map(|part| self.condition(part, variable)).collect();
            both.map(|both| both.join(joined))
        };
        match (call.func_name.as_str(), parts.as_slice()) {
            (operators::LOGICAL_AND, [one, other]) => {
                let (one, other) =
                    (self.condition(one, variable)?, self.condition(other, variable)?);
                // `has(a) && a == 1` names `a` once.
                let is_repeated =
                    other.strip_prefix(&one).is_some_and(|rest| rest.starts_with(' '));
                Some(if is_repeated { other } else { format!("{one} and {other}") })
            }
            (operators::LOGICAL_OR, _) => of_both(" or "),
            (operators::LOGICAL_NOT, [inner]) => {
                let inner = self.condition(inner, variable)?;
                Some(format!("no {}", inner.strip_prefix("a ").unwrap_or(&inner)))
            }
            (operator, [one, other]) => {
                let (of, value, swapped) = match (leaf(one), leaf(other)) {
                    (Some(of), None) if !reads(other, variable) => (of, other, false),
                    (None, Some(of)) if !reads(one, variable) => (of, one, true),
                    _ => return None,
                };
                let word = word_of(operator, swapped)?;
                let of = if of.is_empty() { "a value" } else { &of };
                let value = self.operand(value);
                let parts = [of, word, &value].into_iter().filter(|part| !part.is_empty());
                Some(parts.collect::<Vec<_>>().join(" "))
            }
            _ => None,
        }
    }

    /// Returns the value of a condition in words.
    fn operand(self, value: &IdedExpr) -> String {
        if let Some(text) = text_of(value) {
            return format!("{text:?}");
        }
        match self.json(value) {
            Value::Object(members) => {
                let name = self.name(value);
                let keys: Vec<Value> = members.keys().map(|key| json!(key)).collect();
                if name == UNNAMED { tally(&keys) } else { format!("the keys of {name}") }
            }
            value => plain(&value),
        }
    }
}

/// Returns the words between a field and a value.
fn word_of(operator: &str, swapped: bool) -> Option<&'static str> {
    Some(match (operator, swapped) {
        (operators::EQUALS, _) => "",
        (operators::NOT_EQUALS, _) => "other than",
        (operators::LESS, false) | (operators::GREATER, true) => "below",
        (operators::LESS_EQUALS, false) | (operators::GREATER_EQUALS, true) => "at most",
        (operators::GREATER, false) | (operators::LESS, true) => "above",
        (operators::GREATER_EQUALS, false) | (operators::LESS_EQUALS, true) => "at least",
        (operators::IN, false) => "among",
        (operators::IN, true) | ("contains", false) => "containing",
        ("startsWith", false) => "starting with",
        ("endsWith", false) => "ending with",
        ("matches", false) => "matching",
        _ => return None,
    })
}
