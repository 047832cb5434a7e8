//! Static type check and cost estimate of expressions.
//!
//! A definition with an invalid expression must be rejected before objects of it exist. Therefore
//! each expression is walked once with the types of the schema. The same walk adds up the cost of
//! an evaluation on values of the maximum size, in the units of kube-apiserver. The walk goes on
//! after a mistake, because kube-apiserver reports all mistakes.

mod aggregates;
mod calls;
mod constants;
mod literals;
mod loops;

use std::collections::HashMap;
use std::sync::Arc;

use cel::common::ast::{Expr, IdedExpr, LiteralValue, SelectExpr, SourceInfo};

pub(super) use self::constants::mistake as mistake_of_constants;
use self::loops::is_binding;
use super::super::{Kind, Schema};
use super::device::Part;
use super::expression::{AUTHORIZER, Names, REQUEST_RESOURCE, request};
use super::inference::Inference;
use super::issues::Issues;
use super::messages;
use super::node::{Entry, Node};
use super::size::{Place, Range};
use super::types::Type;

/// The variable with the request of admission.
const REQUEST: &str = "request";
/// The names of types with a package.
const TYPES: [(&str, Type<'static>); 5] = [
    ("google.protobuf.Duration", Type::Duration),
    ("google.protobuf.Timestamp", Type::Timestamp),
    ("kubernetes.Quantity", Type::Kind("Quantity")),
    ("net.CIDR", Type::Kind("CIDR")),
    ("net.IP", Type::Kind("IP")),
];

/// A parsed expression with the places of its parts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parsed<'p> {
    pub(super) expression: &'p IdedExpr,
    pub(super) source: &'p SourceInfo,
}

#[derive(Debug)]
pub(super) struct Checked<'s> {
    /// The type of the result.
    pub(super) ty: Type<'s>,
    /// The maximum number of evaluation steps.
    pub(super) cost: u64,
}

/// Checks an expression about values of a schema. The error lists all mistakes.
pub(super) fn check<'s>(
    parsed: Parsed<'_>,
    schema: &'s Schema,
    optional_old: bool,
) -> Result<Checked<'s>, String> {
    let now = Type::of(schema);
    let before = if optional_old { Type::Optional(Box::new(now.clone())) } else { now.clone() };
    let variable = |name: &str, ty| Variable {
        name: name.to_owned(),
        ty,
        place: Place::At(schema),
        size: None,
        entry: None,
    };
    let scope = vec![variable("self", now), variable("oldSelf", before)];
    Checker::new(parsed.source, Place::At(schema), scope).checked(parsed.expression)
}

/// Checks a selector of devices.
pub(super) fn check_device(parsed: Parsed<'_>) -> Result<Checked<'static>, String> {
    let device = Variable {
        name: "device".to_owned(),
        ty: Type::Device,
        place: Place::Device(Part::Device),
        size: None,
        entry: None,
    };
    Checker::new(parsed.source, Place::Undeclared, vec![device]).checked(parsed.expression)
}

/// Checks an expression whose variables have no schema, except those in `names.types`. Returns the
/// name of its type.
pub(super) fn check_dynamic(parsed: Parsed<'_>, names: &Names) -> Result<String, String> {
    // Fields of this type are known only during evaluation.
    let dynamic = Arc::new(Schema { int_or_string: true, ..Schema::default() });
    let fields = names.variables.iter().map(|name| (name.clone(), Arc::clone(&dynamic)));
    let variables =
        Schema { kind: Some(Kind::Object), properties: fields.collect(), ..Schema::default() };
    let variable = |name: &str, ty| Variable {
        name: name.to_owned(),
        ty,
        place: Place::None,
        size: None,
        entry: None,
    };
    let mut scope = vec![variable("variables", Type::of(&variables))];
    scope.extend(names.roots.iter().map(|name| {
        let known = names.types.iter().find(|(typed, _)| typed == name);
        let ty = match *name {
            AUTHORIZER => Type::Kind("Authorizer"),
            REQUEST_RESOURCE => Type::Kind("ResourceCheck"),
            REQUEST => request::schema().map_or(Type::Dyn, Type::of),
            _ => known.map_or(Type::Dyn, |(_, schema)| Type::of(schema)),
        };
        variable(name, ty)
    }));
    let mut checker = Checker::new(parsed.source, Place::At(&dynamic), scope);
    checker.has_patches = true;
    checker.checked(parsed.expression).map(|checked| checked.ty.to_string())
}

struct Variable<'s> {
    name: String,
    ty: Type<'s>,
    place: Place<'s>,
    size: Option<Range>,
    entry: Option<Entry>,
}

struct Checker<'p, 's> {
    /// The place of a selection in the result of a function.
    root: Place<'s>,
    scope: Vec<Variable<'s>>,
    /// The expression may use the functions for patches.
    has_patches: bool,
    types: Inference<'s>,
    issues: Issues<'p>,
    /// The part of the expression that is checked. Macros add parts without a place in the text.
    at: u64,
    /// The types of the parts, by their numbers.
    known: HashMap<u64, Type<'s>>,
}

impl<'p, 's> Checker<'p, 's> {
    fn new(source: &'p SourceInfo, root: Place<'s>, scope: Vec<Variable<'s>>) -> Self {
        Self {
            root,
            scope,
            has_patches: false,
            types: Inference::default(),
            issues: Issues::new(source),
            at: 0,
            known: HashMap::new(),
        }
    }

    fn checked(mut self, expression: &IdedExpr) -> Result<Checked<'s>, String> {
        let node = self.infer(expression);
        if self.issues.is_empty() {
            literals::check(expression, &mut self);
        }
        if !self.issues.is_empty() {
            return Err(self.issues.text());
        }
        Ok(Checked { ty: self.types.settled(&node.ty), cost: node.cost })
    }

    fn report(&mut self, message: String) {
        self.issues.report(self.at, message);
    }

    fn report_at(&mut self, part: &IdedExpr, message: String) {
        let id = if self.issues.knows(part.id) { part.id } else { self.at };
        self.issues.report(id, message);
    }

    fn infer(&mut self, expression: &IdedExpr) -> Node<'s> {
        let outer = self.at;
        if self.issues.knows(expression.id) {
            self.at = expression.id;
        }
        let node = match &expression.expr {
            Expr::Literal(value) => literal(value),
            Expr::Ident(name) => self.variable(name),
            Expr::Select(select) => self.select(select),
            Expr::Call(call) => self.call(call),
            Expr::List(list) => self.list(list),
            Expr::Map(map) => self.map(map),
            Expr::Comprehension(loops) if is_binding(loops) => self.binding(loops),
            Expr::Comprehension(loops) => self.comprehension(loops),
            Expr::Struct(literal) => self.message(literal),
            Expr::Unspecified => self.failed("unexpected unspecified type".to_owned()),
        };
        self.at = outer;
        self.known.insert(expression.id, node.ty.clone());
        node
    }

    fn infer_all(&mut self, expressions: &[IdedExpr]) -> Vec<Node<'s>> {
        expressions.iter().map(|expression| self.infer(expression)).collect()
    }

    /// Reports a mistake of the current part, and returns its type.
    fn failed(&mut self, message: String) -> Node<'s> {
        self.report(message);
        Node::new(Type::Error, 0)
    }

    fn variable(&mut self, name: &str) -> Node<'s> {
        let plain = name.strip_prefix('.').unwrap_or(name);
        if let Some(variable) = self.scope.iter().rev().find(|variable| variable.name == plain) {
            let mut node = Node::new(self.types.resolved(&variable.ty), 1);
            node.size = node.size.or(variable.size);
            node.entry = variable.entry;
            return node.at(variable.place);
        }
        match named_type(plain) {
            Some(ty) => Node::new(Type::Meta(Box::new(ty)), 1).at(self.root),
            None => self.failed(format!("undeclared reference to '{name}' (in container '')")),
        }
    }

    fn select(&mut self, select: &SelectExpr) -> Node<'s> {
        if !select.test
            && let Some(ty) = self.qualified_name(select)
        {
            return Node::new(ty, 1).at(self.root);
        }
        let operand = self.infer(&select.operand);
        let ty = self.types.resolved(&operand.ty);
        let field = self.field(&ty, &select.field);
        if select.test {
            return Node::new(Type::Bool, operand.cost);
        }
        let own = u64::from(matches!(ty, Type::Map(..) | Type::Object(_) | Type::Device));
        let place = operand.place.field(&select.field, self.root);
        Node::new(field, operand.cost.saturating_add(own)).at(place)
    }

    /// Returns the type of a field of a value.
    fn field(&mut self, ty: &Type<'s>, name: &str) -> Type<'s> {
        let undefined = || format!("undefined field '{name}'");
        let found = match ty {
            Type::Optional(inner) => return Type::Optional(Box::new(self.field(inner, name))),
            Type::Dyn | Type::Any | Type::Error => return Type::Dyn,
            Type::Variable(_) => {
                self.types.assigns(&Type::Dyn, ty);
                return Type::Dyn;
            }
            Type::Map(_, values) => return (**values).clone(),
            Type::Device => Part::type_of(name),
            Type::Object(schema) => super::size::field(schema, name).map(Type::of),
            Type::Kind(_) => None,
            other => {
                self.report(format!("type '{other}' does not support field selection"));
                return Type::Dyn;
            }
        };
        found.unwrap_or_else(|| {
            self.report(undefined());
            Type::Error
        })
    }

    /// Returns the type of a name with a package.
    fn qualified_name(&self, select: &SelectExpr) -> Option<Type<'s>> {
        let name = dotted(select)?;
        let (first, _) = name.split_once('.')?;
        if self.scope.iter().any(|variable| variable.name == first) {
            return None;
        }
        let known = TYPES.into_iter().find(|(known, _)| *known == name);
        let ty = known.map(|(_, ty)| Type::Meta(Box::new(ty)));
        ty.or_else(|| (name == messages::NULL_VALUE).then_some(Type::Int))
    }
}

/// Returns the type that a plain name denotes.
fn named_type(name: &str) -> Option<Type<'static>> {
    let dynamic = || Box::new(Type::Dyn);
    Some(match name {
        "list" => Type::List(dynamic()),
        "map" => Type::Map(dynamic(), dynamic()),
        "null_type" => Type::Null,
        "optional_type" => Type::Optional(dynamic()),
        "type" => Type::Meta(dynamic()),
        name => return Type::scalar(name),
    })
}

/// Returns a selection in a name as text, such as `net.IP`.
pub(super) fn dotted(select: &SelectExpr) -> Option<String> {
    let mut names = vec![select.field.as_str()];
    let mut operand = &select.operand.expr;
    while let Expr::Select(inner) = operand {
        if inner.test {
            return None;
        }
        names.push(&inner.field);
        operand = &inner.operand.expr;
    }
    let Expr::Ident(first) = operand else { return None };
    names.push(first);
    names.reverse();
    Some(names.join("."))
}

/// Returns the sum of the costs.
fn steps(nodes: &[Node<'_>], base: u64) -> u64 {
    nodes.iter().fold(base, |sum, node| sum.saturating_add(node.cost))
}

fn literal<'s>(value: &LiteralValue) -> Node<'s> {
    let (ty, size) = match value {
        LiteralValue::Boolean(_) => (Type::Bool, 1),
        LiteralValue::Bytes(bytes) => (Type::Bytes, bytes.inner().len() as u64),
        LiteralValue::Double(_) => (Type::Double, 1),
        LiteralValue::Int(_) => (Type::Int, 1),
        LiteralValue::Null => (Type::Null, 1),
        LiteralValue::String(text) => (Type::String, text.inner().chars().count() as u64),
        LiteralValue::UInt(_) => (Type::Uint, 1),
    };
    let mut node = Node::new(ty, 0).sized(Some(Range::exactly(size)));
    if let LiteralValue::Int(number) = value {
        // A list of a negative length is empty.
        node.literal = Some(u64::try_from(*number.inner()).unwrap_or(0));
    }
    node
}

#[cfg(test)]
mod tests;
