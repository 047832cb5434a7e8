//! Evaluates parts of an expression, and finds the places in responses that their values come from.

use std::cell::RefCell;
use std::collections::BTreeMap;

use cel::common::ast::{Expr, IdedExpr, LiteralValue, operators};
use cel::objects::Key;
use cel::{Context, ExecutionError, Value as Cel};
use serde_json::Value;

use super::macros::{Kind, Macro, call, operands};
use crate::values::{Path, Values};
use crate::verdict::cel::from_cel;

/// Limit on items of a list that the decoder looks at.
const MOST_ITEMS: usize = 5000;

/// A place in an expression, with the variables of the macros around it.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) context: &'a Context<'a, 'a>,
    pub(super) bound: Option<&'a Bound<'a>>,
    pub(super) shared: &'a Shared<'a>,
}

/// The variable of a macro.
pub(super) struct Bound<'a> {
    name: &'a str,
    path: Option<Path>,
    outer: Option<&'a Bound<'a>>,
}

/// What all places of an expression share.
pub(super) struct Shared<'a> {
    pub(super) root: &'a Context<'a, 'a>,
    /// Named expressions.
    pub(super) lets: BTreeMap<&'a str, &'a IdedExpr>,
    pub(super) values: &'a Values,
    /// The places whose values decided the expression.
    pub(super) used: RefCell<Vec<Path>>,
}

/// An item of a list, and its place.
#[derive(Clone, Debug)]
pub(super) struct Item {
    pub(super) value: Cel,
    pub(super) path: Option<Path>,
}

impl<'a> View<'a> {
    /// Evaluates an expression.
    pub(super) fn value(self, expression: &IdedExpr) -> Result<Cel, ExecutionError> {
        Cel::resolve(expression, self.context)
    }

    /// Evaluates an expression as JSON; `null` if it has no value.
    pub(super) fn json(self, expression: &IdedExpr) -> Value {
        self.value(expression).ok().as_ref().and_then(from_cel).unwrap_or_default()
    }

    /// Reports whether a condition holds.
    pub(super) fn holds(self, condition: &IdedExpr) -> bool {
        matches!(self.value(condition), Ok(Cel::Bool(true)))
    }

    /// Continues with the variable of a macro bound to an item.
    pub(super) fn with<T>(
        self,
        name: &str,
        item: &Item,
        then: impl for<'b> FnOnce(View<'b>) -> T,
    ) -> T {
        let mut context = self.context.new_inner_scope();
        context.add_variable_from_value(name, item.value.clone());
        let bound = Bound { name, path: item.path.clone(), outer: self.bound };
        then(View { context: &context, bound: Some(&bound), shared: self.shared })
    }

    /// Marks the value of an expression as one that decided.
    pub(super) fn uses(self, expression: &IdedExpr) {
        if let Some(path) = self.locate(expression) {
            self.shared.used.borrow_mut().push(path);
            return;
        }
        for item in self.items(expression).unwrap_or_default() {
            self.shared.used.borrow_mut().extend(item.path);
        }
    }

    /// Returns the place that an expression selects.
    pub(super) fn locate(self, expression: &IdedExpr) -> Option<Path> {
        match &expression.expr {
            Expr::Ident(name) => match self.bound(name) {
                Some(bound) => bound.path.clone(),
                None => match self.named(name) {
                    Some((named, view)) => view.locate(named),
                    None => Some(Path::of(name)),
                },
            },
            Expr::Select(select) if !select.test => {
                Some(self.locate(&select.operand)?.member(&select.field))
            }
            Expr::Call(call) if call.func_name == operators::INDEX => {
                let [of, at] = call.args.as_slice() else { return None };
                match (self.locate(of), self.value(at).ok()?) {
                    (Some(path), Cel::String(name)) => Some(path.member(&name)),
                    (Some(path), Cel::Int(index)) => Some(path.item(usize::try_from(index).ok()?)),
                    (None, Cel::Int(index)) => {
                        self.items(of)?.get(usize::try_from(index).ok()?)?.path.clone()
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// Returns the items of a list, or the keys of a map, with their places.
    pub(super) fn items(self, expression: &IdedExpr) -> Option<Vec<Item>> {
        if let Some(found) = Macro::of(expression) {
            return self.items_of_macro(found);
        }
        match &expression.expr {
            Expr::List(list) => {
                let items = list.elements.iter().map(|element| {
                    Some(Item { value: self.value(element).ok()?, path: self.locate(element) })
                });
                return items.collect();
            }
            Expr::Ident(name) if self.bound(name).is_none() => {
                if let Some((named, view)) = self.named(name) {
                    return view.items(named);
                }
            }
            _ => {}
        }
        if let Some(call) = call(expression) {
            match (call.func_name.as_str(), operands(call).as_slice()) {
                (operators::ADD, [one, two]) => {
                    let mut items = self.items(one)?;
                    items.extend(self.items(two)?);
                    return Some(items);
                }
                ("flatten", [lists]) => {
                    let lists = self.items(lists)?.into_iter();
                    let inner = lists.map(|list| inside(&list.value, list.path.as_ref()));
                    return inner.collect::<Option<Vec<_>>>().map(|lists| lists.concat());
                }
                _ => {}
            }
        }
        inside(&self.value(expression).ok()?, self.locate(expression).as_ref())
    }

    fn items_of_macro(self, found: Macro<'_>) -> Option<Vec<Item>> {
        if !matches!(found.kind, Kind::Filter | Kind::Map) {
            return None;
        }
        let range = self.items(found.range)?;
        let condition = if found.kind == Kind::Filter { Some(found.body) } else { found.filter };
        let kept = range.into_iter().filter(|item| {
            condition.is_none_or(|condition| {
                self.with(found.variable, item, |inner| inner.holds(condition))
            })
        });
        if found.kind == Kind::Filter {
            return Some(kept.collect());
        }
        let made = kept.map(|item| {
            self.with(found.variable, &item, |inner| {
                let path = inner.locate(found.body).or_else(|| inner.first_place(found.body));
                Some(Item { value: inner.value(found.body).ok()?, path })
            })
        });
        made.collect()
    }

    /// Returns the first place that an expression reads.
    fn first_place(self, expression: &IdedExpr) -> Option<Path> {
        match &expression.expr {
            Expr::Call(call) => operands(call)
                .into_iter()
                .find_map(|part| self.locate(part).or_else(|| self.first_place(part))),
            Expr::Select(select) => self.locate(&select.operand),
            Expr::List(list) => list.elements.iter().find_map(|part| self.locate(part)),
            _ => None,
        }
    }

    fn bound(self, name: &str) -> Option<&'a Bound<'a>> {
        let mut bound = self.bound;
        while let Some(inner) = bound {
            if inner.name == name {
                return Some(inner);
            }
            bound = inner.outer;
        }
        None
    }

    /// Returns a named expression, with the variables that it sees.
    pub(super) fn named(self, name: &str) -> Option<(&'a IdedExpr, View<'a>)> {
        if self.bound(name).is_some() {
            return None;
        }
        let named = self.shared.lets.get(name)?;
        Some((named, View { context: self.shared.root, bound: None, shared: self.shared }))
    }
}

/// Returns the items of a list, or the keys of a map.
fn inside(value: &Cel, path: Option<&Path>) -> Option<Vec<Item>> {
    match value {
        Cel::List(items) => {
            let items = items.iter().take(MOST_ITEMS).enumerate();
            let item = |(at, value): (usize, &Cel)| Item {
                value: value.clone(),
                path: path.map(|path| path.item(at)),
            };
            Some(items.map(item).collect())
        }
        Cel::Map(map) => {
            let mut keys: Vec<&Key> = map.map.keys().collect();
            keys.sort();
            let key = |key: &Key| Item {
                value: Cel::String(key.to_string().into()),
                path: path.cloned(),
            };
            Some(keys.into_iter().take(MOST_ITEMS).map(key).collect())
        }
        _ => None,
    }
}

/// Reports whether an expression is a constant.
pub(super) fn is_constant(expression: &IdedExpr) -> bool {
    match &expression.expr {
        Expr::Literal(_) => true,
        Expr::List(list) => list.elements.iter().all(is_constant),
        Expr::Call(call) => {
            !call.func_name.is_empty() && !operands(call).is_empty() && {
                operands(call).into_iter().all(is_constant)
            }
        }
        _ => false,
    }
}

/// Returns a text constant.
pub(super) fn text_of(expression: &IdedExpr) -> Option<&str> {
    match &expression.expr {
        Expr::Literal(LiteralValue::String(text)) => Some(text.inner()),
        _ => None,
    }
}
