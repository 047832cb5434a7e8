//! Literals of structures in expressions of admission.

use cel::common::ast::{
    EntryExpr, Expr, IdedEntryExpr, IdedExpr, LiteralValue, MapEntryExpr, MapExpr, SelectExpr,
};

use super::super::{syntax, value};
use super::{AUTHORIZER, REQUEST_RESOURCE};

/// Replaces literals such as `Object.spec{replicas: 1}` and `JSONPatch{op: "add"}` by maps, and
/// `authorizer.requestResource` by a variable of this name.
pub(super) fn simplified(expression: &IdedExpr) -> IdedExpr {
    let boxed = |part: &IdedExpr| Box::new(simplified(part));
    let all = |parts: &[IdedExpr]| parts.iter().map(simplified).collect();
    let expr = match &expression.expr {
        Expr::Struct(literal) if is_object(&literal.type_name) => {
            Expr::Map(MapExpr { entries: literal.entries.iter().map(entry).collect() })
        }
        Expr::Map(map) => Expr::Map(MapExpr { entries: map.entries.iter().map(entry).collect() }),
        Expr::List(list) => {
            let mut list = list.clone();
            list.elements = all(&list.elements);
            Expr::List(list)
        }
        Expr::Select(select) if is_request_resource(select) => {
            Expr::Ident(REQUEST_RESOURCE.to_owned())
        }
        Expr::Select(select) => {
            let mut select = select.clone();
            select.operand = boxed(&select.operand);
            Expr::Select(select)
        }
        Expr::Call(call) => {
            let mut call = call.clone();
            call.target = call.target.as_deref().map(boxed);
            call.args = all(&call.args);
            Expr::Call(call)
        }
        Expr::Comprehension(loops) => {
            let mut loops = loops.clone();
            loops.iter_range = simplified(&loops.iter_range);
            loops.accu_init = simplified(&loops.accu_init);
            loops.loop_cond = simplified(&loops.loop_cond);
            loops.loop_step = simplified(&loops.loop_step);
            loops.result = simplified(&loops.result);
            Expr::Comprehension(loops)
        }
        _ => return expression.clone(),
    };
    IdedExpr { id: expression.id, expr }
}

fn is_request_resource(select: &SelectExpr) -> bool {
    matches!(&select.operand.expr, Expr::Ident(name) if name == AUTHORIZER)
        && select.field == "requestResource"
}

fn is_object(name: &str) -> bool {
    matches!(name, "Object" | "JSONPatch") || name.starts_with("Object.")
}

fn entry(entry: &IdedEntryExpr) -> IdedEntryExpr {
    let expr = match &entry.expr {
        EntryExpr::StructField(field) => {
            let name = value::unescaped(&field.field).unwrap_or_else(|| field.field.clone());
            let key = Expr::Literal(LiteralValue::String(name.into()));
            EntryExpr::MapEntry(MapEntryExpr {
                key: IdedExpr { id: entry.id, expr: key },
                // Fields have different types, unlike the values of a map.
                value: syntax::call("dyn", vec![simplified(&field.value)]),
                optional: field.optional,
            })
        }
        EntryExpr::MapEntry(entry) => EntryExpr::MapEntry(MapEntryExpr {
            key: simplified(&entry.key),
            value: simplified(&entry.value),
            optional: entry.optional,
        }),
    };
    IdedEntryExpr { id: entry.id, expr }
}
