//! Checks of loops.

use cel::common::ast::{ComprehensionExpr, Expr, LiteralValue};

use super::super::node::Node;
use super::super::size::Place;
use super::super::types::Type;
use super::{ACCUMULATOR, Checker, Variable, steps};

impl<'s> Checker<'s> {
    pub(super) fn comprehension(&mut self, loops: &ComprehensionExpr) -> Result<Node<'s>, String> {
        let range = self.infer(&loops.iter_range)?;
        let start = self.infer(&loops.accu_init)?;
        let depth = self.scope.len();
        self.declare(&loops.accu_var, &start);
        self.declare_items(loops, &range)?;
        let goes_on = self.infer(&loops.loop_cond)?;
        let step = self.infer(&loops.loop_step)?;
        if !goes_on.ty.agrees(&Type::Bool) {
            let ty = goes_on.ty;
            return Err(format!("found no matching overload for a condition of type '{ty}'"));
        }
        if !start.ty.agrees(&step.ty) {
            let ty = step.ty;
            return Err(format!("found no matching overload for a predicate of type '{ty}'"));
        }
        self.scope.truncate(depth + 1);
        if let Some(accumulator) = self.scope.last_mut() {
            accumulator.ty = match (start.ty.clone(), step.ty) {
                (Type::List(_), Type::List(item)) => Type::List(item),
                (start, step) => start.join(step),
            };
        }
        let result = self.infer(&loops.result)?;
        self.scope.truncate(depth);
        let rounds = range.size_or_unknown();
        let round = goes_on.cost.saturating_add(step.cost);
        let fixed = steps(&[range, start.clone()], result.cost);
        let mut node = Node::new(result.ty, fixed.saturating_add(rounds.max.saturating_mul(round)));
        match &loops.accu_init.expr {
            Expr::Literal(_) => node.size = start.size,
            Expr::List(_) | Expr::Map(_) => {
                node.size = Some(rounds);
                node.entry = step.entry;
            }
            _ => {}
        }
        Ok(node)
    }

    /// Declares the variables of a loop over a list or map.
    fn declare_items(&mut self, loops: &ComprehensionExpr, range: &Node<'s>) -> Result<(), String> {
        let (keys, values) = match &range.ty {
            Type::List(item) => (Type::Int, (**item).clone()),
            Type::Map(key, value) => ((**key).clone(), (**value).clone()),
            Type::Dyn => (Type::Dyn, Type::Dyn),
            other => {
                return Err(format!(
                    "expression of type '{other}' cannot be range of a comprehension (must be \
                     list, map, or dynamic)"
                ));
            }
        };
        let is_list = matches!(range.ty, Type::List(_));
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
        Ok(())
    }

    /// Checks a loop that only gives a name to a value, such as that of `optMap`.
    pub(super) fn binding(&mut self, loops: &ComprehensionExpr) -> Result<Node<'s>, String> {
        let range = self.infer(&loops.iter_range)?;
        let bound = self.infer(&loops.accu_init)?;
        self.declare(&loops.accu_var, &bound);
        let result = self.infer(&loops.result);
        self.scope.pop();
        let result = result?;
        let mut node = Node::new(result.ty, steps(&[range, bound], result.cost));
        node.size = result.size;
        node.entry = result.entry;
        Ok(node)
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
