//! Expressions that rewrites add. They have no place in the source.

use cel::common::ast::{
    CallExpr, ComprehensionExpr, Expr, IdedExpr, ListExpr, LiteralValue, MapExpr,
};

/// Returns an expression in which a variable has a value: a loop without rounds.
pub(super) fn bound(name: &str, value: IdedExpr, result: IdedExpr) -> IdedExpr {
    let loops = ComprehensionExpr {
        iter_range: list(Vec::new()),
        iter_var: "#unused".to_owned(),
        iter_var2: None,
        accu_var: name.to_owned(),
        accu_init: value,
        loop_cond: boolean(false),
        loop_step: ident(name),
        result,
    };
    IdedExpr { id: 0, expr: Expr::Comprehension(Box::new(loops)) }
}

pub(super) fn ident(name: &str) -> IdedExpr {
    IdedExpr { id: 0, expr: Expr::Ident(name.to_owned()) }
}

pub(super) fn call(name: &str, args: Vec<IdedExpr>) -> IdedExpr {
    let call = CallExpr { func_name: name.to_owned(), target: None, args };
    IdedExpr { id: 0, expr: Expr::Call(call) }
}

pub(super) fn list(elements: Vec<IdedExpr>) -> IdedExpr {
    IdedExpr { id: 0, expr: Expr::List(ListExpr::new(elements)) }
}

pub(super) fn empty_map() -> IdedExpr {
    IdedExpr { id: 0, expr: Expr::Map(MapExpr { entries: Vec::new() }) }
}

pub(super) fn boolean(value: bool) -> IdedExpr {
    IdedExpr { id: 0, expr: Expr::Literal(LiteralValue::Boolean(value.into())) }
}

pub(super) fn number(value: i64) -> IdedExpr {
    IdedExpr { id: 0, expr: Expr::Literal(LiteralValue::Int(value.into())) }
}
