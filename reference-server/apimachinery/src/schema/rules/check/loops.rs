//! Checks of loops.

use cel::common::ast::{ComprehensionExpr, Expr, IdedExpr, LiteralValue};

use super::super::node::Node;
use super::super::size::Place;
use super::super::types::Type;
use super::{Checker, Variable, steps};

/// The variable in which macros collect their result.
const ACCUMULATOR: &str = "@result";
/// The name of this variable in kube-apiserver.
const RESERVED: &str = "__result__";
/// A macro of the library. kube-apiserver only has the form with two variables.
const UNKNOWN_MACRO: &str = "existsOne";

impl<'s> Checker<'_, 's> {
    pub(super) fn comprehension(&mut self, loops: &ComprehensionExpr) -> Node<'s> {
        let names = [Some(&loops.iter_var), loops.iter_var2.as_ref()];
        if names.into_iter().flatten().any(|name| name == RESERVED) {
            return self.failed("iteration variable overwrites accumulator variable".to_owned());
        }
        if loops.iter_var2.is_none() && self.issues.is_called(self.at, UNKNOWN_MACRO) {
            let why = format!("undeclared reference to '{UNKNOWN_MACRO}' (in container '')");
            return self.failed(why);
        }
        let range = self.infer(&loops.iter_range);
        let start = self.infer(&loops.accu_init);
        let depth = self.scope.len();
        self.declare(&loops.accu_var, &start);
        self.declare_items(loops, &range);
        let goes_on = self.infer(&loops.loop_cond);
        self.expect(&loops.loop_cond, &goes_on, &Type::Bool);
        let step = self.infer(&loops.loop_step);
        self.expect(&loops.loop_step, &step, &start.ty);
        self.scope.truncate(depth + 1);
        let result = self.infer(&loops.result);
        self.scope.truncate(depth);
        let rounds = range.size_or_unknown();
        let round = goes_on.cost.saturating_add(step.cost);
        let fixed = steps(&[range, start.clone()], result.cost);
        let ty = self.types.resolved(&result.ty);
        let mut node = Node::new(ty, fixed.saturating_add(rounds.max.saturating_mul(round)));
        match &loops.accu_init.expr {
            Expr::Literal(_) => node.size = start.size,
            Expr::List(_) | Expr::Map(_) => {
                node.size = Some(rounds);
                node.entry = step.entry;
            }
            _ => {}
        }
        node
    }

    /// Reports a part of a loop that has another type.
    fn expect(&mut self, part: &IdedExpr, node: &Node<'s>, ty: &Type<'s>) {
        if !self.types.assigns(ty, &node.ty) {
            let (expected, found) = (self.types.settled(ty), self.types.settled(&node.ty));
            self.report_at(part, format!("expected type '{expected}' but found '{found}'"));
        }
    }

    /// Declares the variables of a loop over a list or map.
    fn declare_items(&mut self, loops: &ComprehensionExpr, range: &Node<'s>) {
        let ty = self.types.resolved(&range.ty);
        let (keys, values) = match &ty {
            Type::List(item) => (Type::Int, (**item).clone()),
            Type::Map(key, value) => ((**key).clone(), (**value).clone()),
            Type::Dyn | Type::Error => (Type::Dyn, Type::Dyn),
            Type::Variable(_) => {
                self.types.assigns(&Type::Dyn, &ty);
                (Type::Dyn, Type::Dyn)
            }
            other => {
                let why = format!(
                    "expression of type '{other}' cannot be range of a comprehension (must be \
                     list, map, or dynamic)"
                );
                self.report_at(&loops.iter_range, why);
                (Type::Error, Type::Error)
            }
        };
        let is_list = matches!(ty, Type::List(_));
        let contents = range.place.contents(self.root);
        let key = |name: &String, ty| Variable {
            name: name.clone(),
            ty,
            place: if is_list { Place::Undeclared } else { range.place.keys(self.root) },
            size: range.entry.map(|entry| entry.keys),
            entry: None,
        };
        let value = |name: &String, ty| Variable {
            name: name.clone(),
            ty,
            place: contents,
            size: range.entry.map(|entry| entry.values),
            entry: None,
        };
        match &loops.iter_var2 {
            Some(second) => {
                self.scope.push(key(&loops.iter_var, keys));
                self.scope.push(value(second, values));
            }
            None if is_list => self.scope.push(value(&loops.iter_var, values)),
            None => self.scope.push(key(&loops.iter_var, keys)),
        }
    }

    /// Checks a loop that only gives a name to a value, such as that of `optMap`.
    pub(super) fn binding(&mut self, loops: &ComprehensionExpr) -> Node<'s> {
        let range = self.infer(&loops.iter_range);
        let bound = self.infer(&loops.accu_init);
        self.declare(&loops.accu_var, &bound);
        let result = self.infer(&loops.result);
        self.scope.pop();
        let mut node = Node::new(result.ty, steps(&[range, bound], result.cost));
        node.size = result.size;
        node.entry = result.entry;
        node
    }

    fn declare(&mut self, name: &str, value: &Node<'s>) {
        self.scope.push(Variable {
            name: name.to_owned(),
            ty: value.ty.clone(),
            place: value.place,
            size: value.size,
            entry: value.entry,
        });
    }
}

pub(super) fn is_binding(loops: &ComprehensionExpr) -> bool {
    let is_empty = matches!(&loops.iter_range.expr, Expr::List(list) if list.elements.is_empty());
    let never = matches!(
        &loops.loop_cond.expr,
        Expr::Literal(LiteralValue::Boolean(goes_on)) if !*goes_on.inner()
    );
    is_empty && never && loops.accu_var != ACCUMULATOR
}
