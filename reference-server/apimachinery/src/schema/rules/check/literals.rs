//! Checks of literals after the types of all parts are known.

use cel::common::ast::{CallExpr, EntryExpr, Expr, IdedExpr, ListExpr, LiteralValue, MapExpr};
use cel::{Context, Value as Cel};

use super::super::super::pattern;
use super::super::counted::counted;
use super::super::types::Type;
use super::super::{format, library};
use super::Checker;

/// Checks constant patterns, durations, times and formats, and reports lists of mixed types.
pub(super) fn check(expression: &IdedExpr, checker: &mut Checker<'_, '_>) {
    Literals { checker, formats: 0, at: expression.id }.walk(expression);
}

struct Literals<'c, 'p, 's> {
    checker: &'c mut Checker<'p, 's>,
    /// The number of calls of `format` around the expression. Their lists can have mixed types.
    formats: u64,
    /// The part of the expression that is checked.
    at: u64,
}

impl<'s> Literals<'_, '_, 's> {
    fn walk(&mut self, expression: &IdedExpr) {
        let outer = self.at;
        if self.checker.issues.knows(expression.id) {
            self.at = expression.id;
        }
        match &expression.expr {
            Expr::Select(select) => self.walk(&select.operand),
            Expr::Call(call) => self.call(call),
            Expr::List(list) => {
                self.list(list);
                list.elements.iter().for_each(|element| self.walk(element));
            }
            Expr::Map(map) => self.map(map),
            Expr::Struct(literal) => {
                for entry in &literal.entries {
                    match &entry.expr {
                        EntryExpr::StructField(field) => self.walk(&field.value),
                        EntryExpr::MapEntry(entry) => self.walk(&entry.value),
                    }
                }
            }
            Expr::Comprehension(loops) => {
                for part in [
                    &loops.iter_range,
                    &loops.accu_init,
                    &loops.loop_cond,
                    &loops.loop_step,
                    &loops.result,
                ] {
                    self.walk(part);
                }
            }
            Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) => {}
        }
        self.at = outer;
    }

    fn call(&mut self, call: &CallExpr) {
        self.argument(call);
        self.format(call);
        let formats = u64::from(call.func_name == "format");
        self.formats += formats;
        if let Some(target) = &call.target {
            self.walk(target);
        }
        call.args.iter().for_each(|argument| self.walk(argument));
        self.formats -= formats;
    }

    /// Checks the first argument of a call.
    fn argument(&mut self, call: &CallExpr) {
        let Some(argument) = call.args.first() else { return };
        let Expr::Literal(literal) = &argument.expr else { return };
        let is_wrong = match (call.func_name.as_str(), literal) {
            ("duration" | "timestamp", _) => {
                let call = IdedExpr { id: 0, expr: Expr::Call(call.clone()) };
                let context = Context::with_env(library::env());
                Cel::resolve(&counted(&call), &context).is_err()
            }
            ("matches", LiteralValue::String(text)) => pattern::check(text.inner()).is_err(),
            _ => false,
        };
        if is_wrong {
            let why = format!("invalid {} argument", call.func_name);
            self.checker.report_at(argument, why);
        }
    }

    /// Checks a constant text of `format` with a list of arguments.
    fn format(&mut self, call: &CallExpr) {
        let target = call.target.as_deref().map(|target| &target.expr);
        let (
            "format",
            Some(Expr::Literal(LiteralValue::String(text))),
            [IdedExpr { expr: Expr::List(list), .. }],
        ) = (call.func_name.as_str(), target, call.args.as_slice())
        else {
            return;
        };
        let items = &list.elements;
        let accepts = |index: usize, clause: format::Clause| match items.get(index) {
            Some(item) => self.unwritten(item, clause).map_or(Ok(()), Err),
            None => Ok(()),
        };
        match format::check(text.inner(), items.len(), accepts) {
            Ok(()) => {}
            Err(format::Mistake::Text(why)) => self.checker.issues.report(self.at, why),
            Err(format::Mistake::Item(id, why)) => self.checker.issues.report(id, why),
        }
    }

    /// Returns the part of an argument that a clause cannot write.
    fn unwritten(&self, item: &IdedExpr, clause: format::Clause) -> Option<(u64, String)> {
        let ty = self.ty(item)?;
        if !clause.accepts(&ty) {
            return Some((item.id, ty.name()));
        }
        if !clause.writes_parts() {
            return None;
        }
        match &item.expr {
            Expr::List(list) => list.elements.iter().find_map(|part| self.unwritten(part, clause)),
            Expr::Map(map) => map.entries.iter().find_map(|entry| match &entry.expr {
                EntryExpr::MapEntry(entry) => self
                    .unwritten(&entry.key, clause)
                    .or_else(|| self.unwritten(&entry.value, clause)),
                EntryExpr::StructField(_) => None,
            }),
            _ => None,
        }
    }

    fn list(&mut self, list: &ListExpr) {
        if self.formats > 0 {
            return;
        }
        let mut first = None;
        for (index, element) in list.elements.iter().enumerate() {
            let Some(mut ty) = self.ty(element) else { continue };
            if list.optional_indices.contains(&index) {
                ty = unwrapped(ty);
            }
            if self.differs(&mut first, &ty, element) {
                return;
            }
        }
    }

    fn map(&mut self, map: &MapExpr) {
        let (mut first_key, mut first_value) = (None, None);
        for entry in &map.entries {
            let EntryExpr::MapEntry(entry) = &entry.expr else { continue };
            if self.formats == 0
                && let (Some(key), Some(value)) = (self.ty(&entry.key), self.ty(&entry.value))
            {
                let value = if entry.optional { unwrapped(value) } else { value };
                self.differs(&mut first_key, &key, &entry.key);
                self.differs(&mut first_value, &value, &entry.value);
            }
            self.walk(&entry.key);
            self.walk(&entry.value);
        }
    }

    /// Reports a part with another type than the first one.
    fn differs(&mut self, first: &mut Option<Type<'s>>, ty: &Type<'s>, part: &IdedExpr) -> bool {
        let expected = first.get_or_insert_with(|| ty.clone());
        if *expected == *ty {
            return false;
        }
        let why = format!("expected type '{expected}' but found '{ty}'");
        self.checker.report_at(part, why);
        true
    }

    fn ty(&self, part: &IdedExpr) -> Option<Type<'s>> {
        self.checker.known.get(&part.id).map(|ty| self.checker.types.settled(ty))
    }
}

fn unwrapped(ty: Type<'_>) -> Type<'_> {
    match ty {
        Type::Optional(inner) => *inner,
        other => other,
    }
}
