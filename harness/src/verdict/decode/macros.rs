//! Recognises the macros of CEL in a parsed expression. The parser replaces them by loops.

use cel::common::ast::{CallExpr, ComprehensionExpr, Expr, IdedExpr, operators};

/// A macro over the items of a list, or the keys of a map.
#[derive(Clone, Copy, Debug)]
pub(super) struct Macro<'e> {
    pub(super) kind: Kind,
    pub(super) range: &'e IdedExpr,
    pub(super) variable: &'e str,
    /// The condition, or the new item of `map`.
    pub(super) body: &'e IdedExpr,
    /// The condition of a `map` with three arguments.
    pub(super) filter: Option<&'e IdedExpr>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Kind {
    All,
    Exists,
    ExistsOne,
    Filter,
    Map,
}

impl<'e> Macro<'e> {
    /// Returns the macro that an expression was written as.
    pub(super) fn of(expression: &'e IdedExpr) -> Option<Self> {
        let Expr::Comprehension(inner) = &expression.expr else { return None };
        let (kind, body, filter) = kind_of(inner)?;
        Some(Self { kind, range: &inner.iter_range, variable: &inner.iter_var, body, filter })
    }
}

fn kind_of(inner: &ComprehensionExpr) -> Option<(Kind, &IdedExpr, Option<&IdedExpr>)> {
    if inner.iter_var2.is_some() {
        return None;
    }
    let step = call(&inner.loop_step)?;
    match (step.func_name.as_str(), step.args.as_slice()) {
        (operators::LOGICAL_AND, [_, condition]) => Some((Kind::All, condition, None)),
        (operators::LOGICAL_OR, [_, condition]) => Some((Kind::Exists, condition, None)),
        (operators::CONDITIONAL, [condition, added, _]) => match appended(added) {
            None => Some((Kind::ExistsOne, condition, None)),
            Some(item) if matches!(&item.expr, Expr::Ident(name) if *name == inner.iter_var) => {
                Some((Kind::Filter, condition, None))
            }
            Some(item) => Some((Kind::Map, item, Some(condition))),
        },
        _ => Some((Kind::Map, appended(&inner.loop_step)?, None)),
    }
}

/// Returns the item of `@result + [item]`.
fn appended(expression: &IdedExpr) -> Option<&IdedExpr> {
    match call(expression)?.args.as_slice() {
        [_, IdedExpr { expr: Expr::List(list), .. }] => list.elements.first(),
        _ => None,
    }
}

/// Returns a call of a function or an operator.
pub(super) fn call(expression: &IdedExpr) -> Option<&CallExpr> {
    match &expression.expr {
        Expr::Call(call) => Some(call),
        _ => None,
    }
}

/// Returns the operands of an operator, or the receiver and the arguments of a function.
pub(super) fn operands(call: &CallExpr) -> Vec<&IdedExpr> {
    call.target.iter().map(AsRef::as_ref).chain(&call.args).collect()
}

/// Reports whether an expression reads a variable.
pub(super) fn reads(expression: &IdedExpr, variable: &str) -> bool {
    let any = |parts: &[&IdedExpr]| parts.iter().any(|part| reads(part, variable));
    match &expression.expr {
        Expr::Ident(name) => name == variable,
        Expr::Select(select) => reads(&select.operand, variable),
        Expr::Call(call) => any(&operands(call)),
        Expr::List(list) => any(&list.elements.iter().collect::<Vec<_>>()),
        Expr::Comprehension(inner) => {
            reads(&inner.iter_range, variable)
                || (inner.iter_var != variable
                    && any(&[&inner.loop_cond, &inner.loop_step, &inner.result]))
        }
        Expr::Map(_) | Expr::Struct(_) | Expr::Literal(_) | Expr::Unspecified => false,
    }
}

#[cfg(test)]
mod tests {
    use cel::Program;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("a.all(x, x == 1)", Kind::All, false)]
    #[case("a.exists(x, x == 1)", Kind::Exists, false)]
    #[case("a.exists_one(x, x == 1)", Kind::ExistsOne, false)]
    #[case("a.filter(x, x == 1)", Kind::Filter, false)]
    #[case("a.map(x, x.b)", Kind::Map, false)]
    #[case("a.map(x, x.b == 1, x.c)", Kind::Map, true)]
    #[case("a.map(x, true)", Kind::Map, false)]
    fn macros_are_recognised(#[case] text: &str, #[case] kind: Kind, #[case] filtered: bool) {
        let program = Program::compile(text).unwrap();
        let found = Macro::of(program.expression()).unwrap();
        assert_eq!((found.kind, found.variable, found.filter.is_some()), (kind, "x", filtered));
        assert!(matches!(&found.range.expr, Expr::Ident(name) if name == "a"));
    }

    #[rstest]
    #[case("x.b == 1", true)]
    #[case("[1, x].size() == 1", true)]
    #[case("a.all(y, y == x)", true)]
    #[case("a.all(x, x == 1)", false)]
    #[case("x.all(x, x == 1)", true)]
    #[case("a.x == 'x'", false)]
    fn variables_are_found_where_they_are_free(#[case] text: &str, #[case] expected: bool) {
        assert_eq!(reads(Program::compile(text).unwrap().expression(), "x"), expected);
    }
}
