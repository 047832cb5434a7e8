//! CEL expressions: parsed, with every name in them known.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::ops::Range;
use std::sync::Arc;

use cel::common::ast::{CallExpr, EntryExpr, Expr, IdedExpr, LiteralValue, operators};

use super::Lowering;
use super::scope::Kind;
use crate::expression::{Expression, Needs};
use crate::yaml::{Located, Scalar, Source};

/// Functions and macros of the standard library, and kubeproof's own with their description.
pub(crate) const FUNCTIONS: [(&str, &str); 45] = [
    (
        "after",
        "`after(list, item)`: the items after the first such item; an error when there is none",
    ),
    ("all", ""),
    ("bool", ""),
    ("bytes", ""),
    ("contains", ""),
    ("distinct", "`distinct(list)`: whether no value occurs twice"),
    ("double", ""),
    ("duration", ""),
    ("dyn", ""),
    ("endsWith", ""),
    ("exists", ""),
    ("existsOne", ""),
    ("exists_one", ""),
    ("filter", ""),
    ("flatten", "`flatten(lists)`: the items of all lists, in order"),
    ("getDate", ""),
    ("getDayOfMonth", ""),
    ("getDayOfWeek", ""),
    ("getDayOfYear", ""),
    ("getFullYear", ""),
    ("getHours", ""),
    ("getMilliseconds", ""),
    ("getMinutes", ""),
    ("getMonth", ""),
    ("getSeconds", ""),
    ("has", ""),
    ("int", ""),
    ("json", "`json(text)`: the value of a JSON text"),
    ("map", ""),
    ("matches", ""),
    ("max", ""),
    ("min", ""),
    ("parseTime", "`parseTime(text)`: an RFC 3339 time in seconds"),
    ("picks", "`picks(list, n, seed)`: n random items of the list, the same for the same seed"),
    ("range", "`range(n)`: the numbers from 0 to n - 1"),
    ("sameItems", "`sameItems(a, b)`: whether both lists hold the same values, in any order"),
    ("size", ""),
    ("sorted", "`sorted(list)`: the items in ascending order"),
    ("startsWith", ""),
    ("string", ""),
    ("timestamp", ""),
    ("type", ""),
    ("uint", ""),
    ("unique", "`unique(list)`: each value once, in order"),
    ("upperAscii", "`upperAscii(text)`: the text with ASCII letters in upper case"),
];

/// Characters of an expression, and how far it may nest. The parser follows it down, and has a
/// stack that ends.
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

/// An expression that the parser accepts, with the names in it.
#[derive(Clone, Debug)]
pub(super) struct Parsed<'a> {
    pub(super) source: &'a Source,
    pub(super) text: Located<String>,
    pub(super) program: Arc<cel::Program>,
    pub(super) names: Names,
}

impl Parsed<'_> {
    fn scalar(&self) -> Scalar<'_> {
        Scalar { source: self.source, value: &self.text.value, place: &self.text.place }
    }

    /// The place of a name, by the id of its node.
    fn place(&self, id: u64, len: usize) -> Range<usize> {
        let offset = self.program.source_info().offset_for(id);
        let start = offset.map_or(0, |(start, _)| usize::try_from(start).unwrap_or(0));
        self.scalar().range(start..start + len)
    }
}

impl<'a> Lowering<'a> {
    /// An expression that judges: it must read something.
    pub(super) fn condition(&mut self, text: &Located<String>) -> Option<Expression> {
        let expression = self.expression(text)?;
        if expression.variables.is_empty() {
            let source = self.source;
            let place = Scalar { source, value: &text.value, place: &text.place }.whole();
            let message = "this expression reads no variable, so its value is always the same";
            self.error(&place, "cannot-fail", message)
                .set_help("compare steps: `first.body.metadata.uid == second.body.metadata.uid`");
        }
        Some(expression)
    }

    /// Any expression; `None` when it is not one.
    pub(super) fn expression(&mut self, text: &Located<String>) -> Option<Expression> {
        let parsed = self.parse(text)?;
        Some(self.resolve(&parsed))
    }

    /// Parses an expression and checks the functions in it.
    pub(super) fn parse(&mut self, text: &Located<String>) -> Option<Parsed<'a>> {
        let source = self.source;
        let scalar = Scalar { source, value: &text.value, place: &text.place };
        if let Some(reason) = too_much(&text.value) {
            let message = format!("not a CEL expression: {reason}");
            self.error(&scalar.whole(), "invalid-cel", message);
            return None;
        }
        let program = match self.known.programs.compile(&text.value) {
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
        for name in &names.functions {
            let is_operator = !name.starts_with(|c: char| c.is_ascii_alphabetic());
            if !is_operator && !FUNCTIONS.iter().any(|(known, _)| known == name) {
                let start = text.value.find(name).unwrap_or(0);
                let place = scalar.range(start..start + name.len());
                let message = format!("no function has the name `{name}`");
                self.error(&place, "unknown-function", message)
                    .suggest_from(name, FUNCTIONS.iter().map(|(known, _)| *known));
            }
        }
        Some(Parsed { source, text: text.clone(), program, names })
    }

    /// Checks every name in an expression, and in the named expressions that it uses, at this point
    /// of the case.
    pub(super) fn resolve(&mut self, parsed: &Parsed<'a>) -> Expression {
        let lets = self.lets_of(&parsed.names);
        let mut variables = BTreeSet::new();
        self.names_are_known(parsed, None, &parsed.names.compared_with_null, &mut variables);
        for definition in &lets {
            let compared =
                &parsed.names.compared_with_null | &definition.parsed.names.compared_with_null;
            self.names_are_known(
                &definition.parsed,
                Some((&definition.name, parsed)),
                &compared,
                &mut variables,
            );
        }
        let asts: Vec<_> =
            lets.iter().map(|one| (one.name.as_str(), one.parsed.program.expression())).collect();
        Expression {
            text: parsed.text.value.trim().to_owned(),
            needs: Needs::of(parsed.program.expression(), &asts),
            program: Arc::clone(&parsed.program),
            variables: variables.into_iter().collect(),
            lets: lets.iter().map(|one| one.to_let()).collect(),
            span: self.source.span(parsed.text.place.start),
        }
    }

    /// Checks the names of one expression. `used_by` is the name of a `let` and the expression that
    /// uses it.
    fn names_are_known(
        &mut self,
        parsed: &Parsed<'a>,
        used_by: Option<(&str, &Parsed<'a>)>,
        compared: &BTreeSet<String>,
        variables: &mut BTreeSet<String>,
    ) {
        let source = std::mem::replace(&mut self.source, parsed.source);
        for (name, id) in &parsed.names.variables {
            let is_type = TYPES.contains(&name.as_str()) && self.scopes.get(name).is_none();
            if is_type || self.is_let(name) {
                continue;
            }
            variables.insert(name.clone());
            let place = parsed.place(*id, name.len());
            if let Some(known) = self.scopes.get_mut(name) {
                known.used = true;
                self.is_unconditional(name, &place, compared);
            } else if !self.is_expression_variable(name) && self.is_news(parsed, &place) {
                let known = self.expression_variables();
                let mut message = format!("no earlier step or capture has the name `{name}`");
                if let Some((user, at)) = used_by {
                    let line = at.source.span(at.text.place.start).line;
                    let _ = write!(message, " where line {line} uses `{user}`");
                }
                self.error(&place, "unknown-name", message)
                    .suggest_from(name, known.iter().map(String::as_str));
            }
        }
        for (step, field, id) in &parsed.names.members {
            let place = parsed.place(*id, step.len() + 1 + field.len());
            if used_by.is_none() || self.is_news(parsed, &place) {
                self.member(step, field, &place);
            }
        }
        self.source = source;
    }

    /// Returns false if this place already has an error, since several expressions may use one
    /// `let`.
    fn is_news(&self, parsed: &Parsed<'_>, place: &Range<usize>) -> bool {
        !self.errors.iter().any(|error| error.stands_at(parsed.source, place))
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
                    self.error(
                        place,
                        "unknown-member",
                        format!("the stream has no member `{field}`"),
                    )
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

/// Members of steps in expressions.
pub(crate) const MEMBERS: [&str; 8] =
    ["body", "ended", "error", "events", "headers", "sha256", "status", "text"];

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
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    /// With the id of the node.
    pub(super) variables: Vec<(String, u64)>,
    functions: BTreeSet<String>,
    /// Members of variables: the variable, the member, and the id of the variable's node.
    members: Vec<(String, String, u64)>,
    compared_with_null: BTreeSet<String>,
}

impl Names {
    fn collect<'e>(&mut self, expression: &'e IdedExpr, bound: &mut Vec<&'e str>) {
        match &expression.expr {
            Expr::Ident(name) => {
                if !name.starts_with('@') && !bound.contains(&name.as_str()) {
                    self.variables.push((name.clone(), expression.id));
                }
            }
            Expr::Call(call) => {
                self.comparison_with_null(call);
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
            Expr::Struct(value) => {
                self.entries(value.entries.iter().map(|entry| &entry.expr), bound);
            }
            Expr::Comprehension(comprehension) => {
                self.collect(&comprehension.iter_range, bound);
                self.collect(&comprehension.accu_init, bound);
                let outer = bound.len();
                bound.push(&comprehension.iter_var);
                bound.extend(comprehension.iter_var2.as_deref());
                bound.push(&comprehension.accu_var);
                for part in
                    [&comprehension.loop_cond, &comprehension.loop_step, &comprehension.result]
                {
                    self.collect(part, bound);
                }
                bound.truncate(outer);
            }
            Expr::Literal(_) | Expr::Unspecified => {}
        }
    }

    fn comparison_with_null(&mut self, call: &CallExpr) {
        let name = call.func_name.as_str();
        if let (operators::EQUALS | operators::NOT_EQUALS, [one, other]) =
            (name, call.args.as_slice())
        {
            for (side, against) in [(one, other), (other, one)] {
                if let (Expr::Ident(name), Expr::Literal(LiteralValue::Null)) =
                    (&side.expr, &against.expr)
                {
                    self.compared_with_null.insert(name.clone());
                }
            }
        }
    }

    fn entries<'e>(
        &mut self,
        entries: impl Iterator<Item = &'e EntryExpr>,
        bound: &mut Vec<&'e str>,
    ) {
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
        assert!(
            !is_taken("(".repeat(DEEPEST / 2) + &"?".repeat(DEEPEST / 2 + 1)),
            "one is in the other"
        );
    }

    #[test]
    fn places_are_counted_as_the_parser_counts() {
        let text = "a +\nbc\n";
        let places = [(1, 1), (1, 3), (2, 1), (2, 2), (9, 9), (0, 0), (-1, -1)];
        assert_eq!(places.map(|place| offset_of(text, place)), [0, 2, 4, 5, 6, 0, 0]);
    }
}
