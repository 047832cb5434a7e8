//! CEL expressions: parsed, with every name in them known.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use cel::common::ast::{EntryExpr, Expr, IdedExpr};

use super::Lowering;
use super::scope::Kind;
use crate::cel::Expression;
use crate::needs::Needs;
use crate::syntax::{Located, Scalar};

/// What an expression can call: macros and functions of the standard library, and kubeproof's own.
const FUNCTIONS: [&str; 44] = [
    "after",
    "all",
    "bool",
    "bytes",
    "contains",
    "distinct",
    "double",
    "duration",
    "dyn",
    "endsWith",
    "exists",
    "existsOne",
    "exists_one",
    "filter",
    "flatten",
    "getDate",
    "getDayOfMonth",
    "getDayOfWeek",
    "getDayOfYear",
    "getFullYear",
    "getHours",
    "getMilliseconds",
    "getMinutes",
    "getMonth",
    "getSeconds",
    "has",
    "int",
    "json",
    "map",
    "matches",
    "max",
    "min",
    "parseTime",
    "picks",
    "range",
    "sameItems",
    "size",
    "sorted",
    "startsWith",
    "string",
    "timestamp",
    "type",
    "uint",
    "unique",
];

/// Characters of an expression, and how far it may nest. The parser follows it down, and has a stack that ends.
const LONGEST: usize = 4096;
const DEEPEST: usize = 32;

/// Why an expression is not given to the parser.
fn too_much(text: &str) -> Option<String> {
    if text.len() > LONGEST {
        return Some(format!("it has {} bytes, more than {LONGEST}", text.len()));
    }
    // Brackets in texts count as well: no expression has so many there.
    let (mut depth, mut deepest, mut choices) = (0_usize, 0, 0);
    for byte in text.bytes() {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            b'?' => choices += 1,
            _ => {}
        }
        deepest = deepest.max(depth + choices);
    }
    (deepest > DEEPEST).then(|| format!("it is nested more than {DEEPEST} deep"))
}

impl Lowering<'_> {
    /// An expression that judges: it must read something.
    pub(super) fn condition(&mut self, text: &Located<String>) -> Option<Expression> {
        let expression = self.expression(text)?;
        if expression.variables.is_empty() {
            let place = Scalar { source: self.source, value: &text.value, place: &text.place }.whole();
            self.error(&place, "cannot-fail", "this expression reads no variable: it is always the same")
                .set_help("relate it to a step, as `first.body.metadata.uid == second.body.metadata.uid`");
        }
        Some(expression)
    }

    /// Any expression; `None` when it is none.
    pub(super) fn expression(&mut self, text: &Located<String>) -> Option<Expression> {
        let source = self.source;
        let scalar = Scalar { source, value: &text.value, place: &text.place };
        if let Some(reason) = too_much(&text.value) {
            self.error(&scalar.whole(), "invalid-cel", format!("not a CEL expression: {reason}"));
            return None;
        }
        let program = match cel::Program::compile(&text.value) {
            Ok(program) => program,
            Err(errors) => {
                // The parser recovers badly: what it finds after its first error is mostly noise.
                let (position, reason) = errors
                    .errors
                    .first()
                    .map_or(((1, 1), "no expression"), |error| (error.pos, error.msg.as_str()));
                let offset = offset_of(&text.value, position);
                let reason = reason.trim_start_matches("Syntax error: ");
                let place = scalar.range(offset..offset);
                self.error(&place, "invalid-cel", format!("not a CEL expression: {reason}"));
                return None;
            }
        };
        let mut names = Names::default();
        names.collect(program.expression(), &mut Vec::new());
        let info = program.source_info();
        for (name, id) in &names.variables {
            let start = info.offset_for(*id).map_or(0, |(start, _)| usize::try_from(start).unwrap_or(0));
            let place = scalar.range(start..start + name.len());
            if let Some(known) = self.scopes.get_mut(name) {
                known.used = true;
            } else if !self.is_expression_variable(name) {
                let known = self.expression_variables();
                self.error(
                    &place,
                    "unknown-name",
                    format!("no earlier step or capture has the name `{name}`"),
                )
                .suggest_from(name, known.iter().map(String::as_str));
            }
        }
        for (step, field, id) in &names.members {
            let start = info.offset_for(*id).map_or(0, |(start, _)| usize::try_from(start).unwrap_or(0));
            self.member(step, field, &scalar.range(start..start + step.len() + 1 + field.len()));
        }
        for name in names.functions {
            let is_operator = !name.starts_with(|c: char| c.is_ascii_alphabetic());
            if !is_operator && !FUNCTIONS.contains(&name.as_str()) {
                let start = text.value.find(&name).unwrap_or(0);
                self.error(
                    &scalar.range(start..start + name.len()),
                    "unknown-function",
                    format!("no function has the name `{name}`"),
                )
                .suggest_from(&name, FUNCTIONS);
            }
        }
        let variables: BTreeSet<String> = names.variables.into_iter().map(|(name, _)| name).collect();
        Some(Expression {
            text: text.value.trim().to_owned(),
            needs: Needs::of(program.expression()),
            program: Arc::new(program),
            variables: variables.into_iter().collect(),
            span: self.source.span(text.place.start),
        })
    }

    /// A member of a step that an expression reads.
    fn member(&mut self, step: &str, field: &str, place: &Range<usize>) {
        match self.scopes.get(step).map(|known| known.kind) {
            Some(Kind::Exchange | Kind::Watch { .. }) if !MEMBERS.contains(&field) => {
                self.error(place, "unknown-member", format!("a step has no member `{field}`"))
                    .suggest_from(field, MEMBERS);
            }
            Some(Kind::Stream { .. }) => {
                let known = self.stream_members(step);
                if !known.iter().any(|member| member == field) {
                    self.error(place, "unknown-member", format!("the stream has no member `{field}`"))
                        .suggest_from(field, known.iter().map(String::as_str));
                }
            }
            Some(Kind::Results) => {
                let message = format!("`{step}` is a list of results, and has no member `{field}`");
                self.error(place, "unknown-member", message).set_help(format!(
                    "write `{step}[0].{field}`, or `{step}.all(result, result.{field}...)`"
                ));
            }
            _ => {}
        }
    }
}

/// What an expression can read of a step.
const MEMBERS: [&str; 7] = ["body", "ended", "error", "events", "headers", "status", "text"];

/// Names of types are values in CEL.
const TYPES: [&str; 10] =
    ["bool", "bytes", "double", "int", "list", "map", "null_type", "string", "type", "uint"];

/// The byte of a line and a column, both counted from one, as the parser counts.
fn offset_of(text: &str, (line, column): (isize, isize)) -> usize {
    let line = usize::try_from(line).unwrap_or(1).max(1);
    let column = usize::try_from(column).unwrap_or(1).max(1);
    let start: usize = text.split_inclusive('\n').take(line - 1).map(str::len).sum();
    (start + column - 1).min(text.trim_end().len())
}

/// The names in an expression that it does not bind itself.
#[derive(Debug, Default)]
struct Names {
    /// With the id of the node.
    variables: Vec<(String, u64)>,
    functions: BTreeSet<String>,
    /// Of what is selected from a variable: the variable, the member, and the id of the variable's node.
    members: Vec<(String, String, u64)>,
}

impl Names {
    fn collect<'e>(&mut self, expression: &'e IdedExpr, bound: &mut Vec<&'e str>) {
        match &expression.expr {
            Expr::Ident(name) => {
                let is_free = !name.starts_with('@') && !bound.contains(&name.as_str());
                if is_free && !TYPES.contains(&name.as_str()) {
                    self.variables.push((name.clone(), expression.id));
                }
            }
            Expr::Call(call) => {
                self.functions.insert(call.func_name.clone());
                for part in call.target.iter().map(AsRef::as_ref).chain(&call.args) {
                    self.collect(part, bound);
                }
            }
            Expr::Select(select) => {
                if let Expr::Ident(name) = &select.operand.expr
                    && !bound.contains(&name.as_str())
                {
                    self.members.push((name.clone(), select.field.clone(), select.operand.id));
                }
                self.collect(&select.operand, bound);
            }
            Expr::List(list) => {
                for element in &list.elements {
                    self.collect(element, bound);
                }
            }
            Expr::Map(map) => self.entries(map.entries.iter().map(|entry| &entry.expr), bound),
            Expr::Struct(value) => self.entries(value.entries.iter().map(|entry| &entry.expr), bound),
            Expr::Comprehension(comprehension) => {
                self.collect(&comprehension.iter_range, bound);
                self.collect(&comprehension.accu_init, bound);
                let outer = bound.len();
                bound.push(&comprehension.iter_var);
                bound.extend(comprehension.iter_var2.as_deref());
                bound.push(&comprehension.accu_var);
                for part in [&comprehension.loop_cond, &comprehension.loop_step, &comprehension.result] {
                    self.collect(part, bound);
                }
                bound.truncate(outer);
            }
            Expr::Literal(_) | Expr::Unspecified => {}
        }
    }

    fn entries<'e>(&mut self, entries: impl Iterator<Item = &'e EntryExpr>, bound: &mut Vec<&'e str>) {
        for entry in entries {
            match entry {
                EntryExpr::StructField(field) => self.collect(&field.value, bound),
                EntryExpr::MapEntry(entry) => {
                    self.collect(&entry.key, bound);
                    self.collect(&entry.value, bound);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_is_as_long_and_deep_as_the_parser_takes() {
        let is_taken = |text: String| too_much(&text).is_none();
        assert!(is_taken(" ".repeat(LONGEST)));
        assert!(!is_taken(" ".repeat(LONGEST + 1)));
        for (open, close) in [("(", ")"), ("[", "]"), ("{", "}"), ("(", ""), ("a ? ", "")] {
            let nested = |depth: usize| open.repeat(depth) + &close.repeat(depth);
            assert!(is_taken(nested(DEEPEST)), "{open}");
            assert!(!is_taken(nested(DEEPEST + 1)), "{open}");
        }
        assert!(is_taken("([{}])".repeat(100)), "what stands side by side is not deep");
        assert!(!is_taken("(".repeat(DEEPEST / 2) + &"?".repeat(DEEPEST / 2 + 1)), "one is in the other");
    }

    #[test]
    fn places_are_counted_as_the_parser_counts() {
        let text = "a +\nbc\n";
        let places = [(1, 1), (1, 3), (2, 1), (2, 2), (9, 9), (0, 0), (-1, -1)];
        assert_eq!(places.map(|place| offset_of(text, place)), [0, 2, 4, 5, 6, 0, 0]);
    }
}
