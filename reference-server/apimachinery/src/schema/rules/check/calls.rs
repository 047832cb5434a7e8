//! Checks of calls.

use cel::common::ast::{CallExpr, Expr, IdedExpr, LiteralValue, operators};
use cel::{Context, Value as Cel};

use super::super::super::pattern;
use super::super::counted::counted;
use super::super::node::{Entry, Node};
use super::super::types::Type;
use super::super::{cost, format, library, signatures};
use super::{Checker, steps};

impl<'s> Checker<'s> {
    pub(super) fn call(&mut self, call: &CallExpr) -> Result<Node<'s>, String> {
        if call.func_name == operators::OPT_SELECT {
            return self.optional_select(call);
        }
        let mut arguments = Vec::new();
        let formats = u64::from(call.func_name == "format");
        self.formats += formats;
        let name = match &call.target {
            None => call.func_name.clone(),
            Some(target) => {
                if let Some(name) = self.qualified(target, &call.func_name) {
                    name
                } else {
                    arguments.push(self.infer(target)?);
                    format!(".{}", call.func_name)
                }
            }
        };
        arguments.extend(self.infer_all(&call.args)?);
        self.formats -= formats;
        let types: Vec<Type<'s>> = arguments.iter().map(|argument| argument.ty.clone()).collect();
        let ty = signatures::call(&name, &types)?;
        check_literal(&name, call)?;
        self.check_format(&name, call)?;
        Ok(self.called(&name, ty, &arguments))
    }

    /// Checks a constant text of `format` with a list of arguments.
    fn check_format(&self, name: &str, call: &CallExpr) -> Result<(), String> {
        let target = call.target.as_deref().map(|target| &target.expr);
        match (name, target, call.args.as_slice()) {
            (
                ".format",
                Some(Expr::Literal(LiteralValue::String(text))),
                [IdedExpr { expr: Expr::List(list), .. }],
            ) => {
                debug_assert_eq!(list.elements.len(), self.items.len());
                format::check(text.inner(), &self.items)
            }
            _ => Ok(()),
        }
    }

    /// Returns the result of a call with its size and cost.
    fn called(&self, name: &str, ty: Type<'s>, arguments: &[Node<'s>]) -> Node<'s> {
        let all = steps(arguments, 0);
        match (name, arguments) {
            (operators::LOGICAL_AND | operators::LOGICAL_OR, _) => Node::new(ty, all),
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
        let Expr::Ident(namespace) = &target.expr else { return None };
        let name = format!("{namespace}.{method}");
        let shadowed = self.scope.iter().any(|variable| variable.name == *namespace);
        (!shadowed && signatures::is_function(&name)).then_some(name)
    }

    /// Checks `a.?b`. The parser represents the field as a literal.
    fn optional_select(&mut self, call: &CallExpr) -> Result<Node<'s>, String> {
        let [operand, IdedExpr { expr: Expr::Literal(LiteralValue::String(field)), .. }] =
            call.args.as_slice()
        else {
            return Err("an optional field must be named".to_owned());
        };
        let operand = self.infer(operand)?;
        let ty = match operand.ty.field(field.inner())? {
            already @ Type::Optional(_) => already,
            ty => Type::Optional(Box::new(ty)),
        };
        Ok(Node::new(ty, operand.cost.saturating_add(1)))
    }
}

/// Checks a constant pattern, duration or time. Others are checked during the evaluation.
fn check_literal(name: &str, call: &CallExpr) -> Result<(), String> {
    let literal = match name {
        ".matches" | ".find" | ".findAll" => call.args.first(),
        "matches" => call.args.get(1),
        "duration" | "timestamp" | "bool" | "int" | "uint" | "double" => {
            let is_literal =
                matches!(call.args.as_slice(), [IdedExpr { expr: Expr::Literal(_), .. }]);
            let expression = counted(&IdedExpr { id: 0, expr: Expr::Call(call.clone()) });
            let evaluate = || Cel::resolve(&expression, &Context::with_env(library::env()));
            if is_literal && evaluate().is_err() {
                return Err(format!("invalid {name} argument"));
            }
            None
        }
        _ => None,
    };
    match literal.map(|literal| &literal.expr) {
        Some(Expr::Literal(LiteralValue::String(text))) => pattern::check(text.inner())
            .map_err(|error| format!("invalid {} argument: {error}", name.trim_start_matches('.'))),
        _ => Ok(()),
    }
}
