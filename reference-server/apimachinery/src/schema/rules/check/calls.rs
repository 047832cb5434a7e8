//! Checks of calls.

use cel::common::ast::{CallExpr, Expr, IdedExpr, LiteralValue, operators};

use super::super::node::{Entry, Node};
use super::super::types::Type;
use super::super::{cost, signatures};
use super::{Checker, dotted, steps};

/// The prefix of functions that only patches may call.
const PATCHES: &str = "jsonpatch.";

impl<'s> Checker<'_, 's> {
    pub(super) fn call(&mut self, call: &CallExpr) -> Node<'s> {
        if call.func_name == operators::OPT_SELECT {
            return self.optional_select(call);
        }
        let mut arguments = self.infer_all(&call.args);
        let name = match &call.target {
            None => call.func_name.clone(),
            Some(target) => {
                if let Some(name) = self.qualified(target, &call.func_name) {
                    name
                } else {
                    arguments.insert(0, self.infer(target));
                    format!(".{}", call.func_name)
                }
            }
        };
        if !signatures::is_declared(name.trim_start_matches('.')) {
            let name = &call.func_name;
            return self.failed(format!("undeclared reference to '{name}' (in container '')"));
        }
        if matches!(name.as_str(), operators::LOGICAL_AND | operators::LOGICAL_OR) {
            return self.logical(call, &arguments);
        }
        let types: Vec<Type<'s>> = arguments.iter().map(|argument| argument.ty.clone()).collect();
        let ty = signatures::call(&name, &types, &mut self.types);
        for argument in &mut arguments {
            argument.ty = self.types.resolved(&argument.ty);
        }
        let Some(ty) = ty else {
            let types: Vec<Type<'s>> = types.iter().map(|ty| self.types.settled(ty)).collect();
            return self.failed(signatures::mismatch(&name, &types));
        };
        self.called(&name, ty, &arguments)
    }

    /// Checks the operands of `&&` and `||`.
    fn logical(&mut self, call: &CallExpr, operands: &[Node<'s>]) -> Node<'s> {
        let mut ty = Type::Bool;
        for (operand, part) in operands.iter().zip(&call.args) {
            if !self.types.assigns(&operand.ty, &Type::Bool) {
                let found = self.types.resolved(&operand.ty);
                self.report_at(part, format!("expected type 'bool' but found '{found}'"));
                ty = Type::Error;
            }
        }
        Node::new(ty, steps(operands, 0))
    }

    /// Returns the result of a call with its size and cost.
    fn called(&self, name: &str, ty: Type<'s>, arguments: &[Node<'s>]) -> Node<'s> {
        let all = steps(arguments, 0);
        match (name, arguments) {
            (operators::CONDITIONAL, [condition, yes, no]) => {
                let cost = condition.cost.saturating_add(yes.cost.max(no.cost));
                let size = yes.size_or_unknown().union(no.size_or_unknown());
                let mut node = Node::new(ty, cost).sized(Some(size));
                node.entry = Entry::union(yes.entry, no.entry);
                node
            }
            ("dyn", [value]) => {
                let mut node = Node::new(ty, all.saturating_add(1)).sized(value.size);
                node.entry = value.entry;
                node
            }
            (operators::INDEX, [container, _]) if !matches!(container.ty, Type::Optional(_)) => {
                let node = Node::new(ty, all.saturating_add(1));
                let node = node.at(container.place.contents(self.root));
                node.sized(container.entry.map(|entry| entry.values))
            }
            _ => {
                let own = cost::of(name, arguments);
                let mut node = Node::new(ty, all.saturating_add(own.cost)).sized(own.size);
                if let (operators::ADD, [one, other]) = (name, arguments) {
                    node.entry = Entry::union(one.entry, other.entry);
                }
                node
            }
        }
    }

    /// Returns the qualified name of a function like `optional.of`, which looks like a method call.
    fn qualified(&self, target: &IdedExpr, method: &str) -> Option<String> {
        let namespace = match &target.expr {
            Expr::Ident(name) => name.clone(),
            Expr::Select(select) if !select.test => dotted(select)?,
            _ => return None,
        };
        let name = format!("{namespace}.{method}");
        let is_known = signatures::is_function(&name);
        (is_known && (self.has_patches || !name.starts_with(PATCHES))).then_some(name)
    }

    /// Checks `a.?b`. The parser represents the field as a literal.
    fn optional_select(&mut self, call: &CallExpr) -> Node<'s> {
        let [operand, IdedExpr { expr: Expr::Literal(LiteralValue::String(field)), .. }] =
            call.args.as_slice()
        else {
            let why = "unsupported optional field selection: incorrect signature.";
            return self.failed(why.to_owned());
        };
        let operand = self.infer(operand);
        let ty = self.types.resolved(&operand.ty);
        let ty = match self.field(&ty, field.inner()) {
            already @ Type::Optional(_) => already,
            ty => Type::Optional(Box::new(ty)),
        };
        Node::new(ty, operand.cost.saturating_add(1))
    }
}
