//! Static type check and cost estimate of expressions.
//!
//! A definition with an invalid expression must be rejected before objects of it exist. Therefore
//! each expression is walked once with the types of the schema. The same walk adds up the cost of
//! an evaluation on values of the maximum size, in the units of kube-apiserver.

mod calls;
mod loops;

use std::sync::Arc;

use cel::common::ast::{EntryExpr, Expr, IdedExpr, LiteralValue, SelectExpr};

use self::loops::is_binding;
use super::super::{Kind, Schema};
use super::cost::{NEW_LIST, NEW_MAP};
use super::device::Part;
use super::expression::{AUTHORIZER, Names, REQUEST_RESOURCE};
use super::messages;
use super::node::{Entry, Node};
use super::size::{Place, Range};
use super::types::Type;

/// The variable in which macros collect their result.
const ACCUMULATOR: &str = "@result";

/// The names of types with a package.
const TYPES: [&str; 5] = [
    "google.protobuf.Duration",
    "google.protobuf.Timestamp",
    "kubernetes.Quantity",
    "net.CIDR",
    "net.IP",
];

#[derive(Debug)]
pub(super) struct Checked<'s> {
    /// The type of the result.
    pub(super) ty: Type<'s>,
    /// The maximum number of evaluation steps.
    pub(super) cost: u64,
}

/// Checks an expression about values of a schema. The error is a message for the user.
pub(super) fn check<'s>(
    expression: &IdedExpr,
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
    let node = Checker::new(Place::At(schema), scope).infer(expression)?;
    Ok(Checked { ty: node.ty, cost: node.cost })
}

/// Checks a selector of devices.
pub(super) fn check_device<'s>(expression: &IdedExpr) -> Result<Checked<'s>, String> {
    let device = Variable {
        name: "device".to_owned(),
        ty: Type::Device,
        place: Place::Device(Part::Device),
        size: None,
        entry: None,
    };
    let node = Checker::new(Place::Undeclared, vec![device]).infer(expression)?;
    Ok(Checked { ty: node.ty, cost: node.cost })
}

/// Checks an expression whose variables have no schema, except those in `names.types`. Returns the
/// name of its type.
pub(super) fn check_dynamic(expression: &IdedExpr, names: &Names) -> Result<String, String> {
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
            _ => known.map_or(Type::Dyn, |(_, schema)| Type::of(schema)),
        };
        variable(name, ty)
    }));
    let root = Place::At(&dynamic);
    let ty = Checker::new(root, scope).infer(expression)?.ty.to_string();
    Ok(ty)
}

struct Variable<'s> {
    name: String,
    ty: Type<'s>,
    place: Place<'s>,
    size: Option<Range>,
    entry: Option<Entry>,
}

struct Checker<'s> {
    /// The place of a selection in the result of a function.
    root: Place<'s>,
    scope: Vec<Variable<'s>>,
    /// The number of calls of `format` around the expression. Their lists can have mixed types.
    formats: u64,
    /// The types of the items of the last list.
    items: Vec<Type<'s>>,
}

impl<'s> Checker<'s> {
    fn new(root: Place<'s>, scope: Vec<Variable<'s>>) -> Self {
        Self { root, scope, formats: 0, items: Vec::new() }
    }

    fn infer(&mut self, expression: &IdedExpr) -> Result<Node<'s>, String> {
        match &expression.expr {
            Expr::Literal(value) => Ok(literal(value)),
            Expr::Ident(name) => self.variable(name),
            Expr::Select(select) => self.select(select),
            Expr::Call(call) => self.call(call),
            Expr::List(list) => {
                let mut nodes = self.infer_all(&list.elements)?;
                for &index in &list.optional_indices {
                    unwrap(&mut nodes[index])?;
                }
                self.check_types(&nodes)?;
                self.items = nodes.iter().map(|node| node.ty.clone()).collect();
                let ty = nodes.iter().fold(Type::Dyn, |ty, node| ty.join_item(node.ty.clone()));
                let size = Range::exactly(nodes.len() as u64);
                let mut node = Node::new(Type::List(Box::new(ty)), steps(&nodes, NEW_LIST));
                node.entry = Some(Entry { keys: Range::ONE, values: common_size(&nodes) });
                Ok(node.sized(Some(size)))
            }
            Expr::Map(map) => {
                let (mut keys, mut values) = (Vec::new(), Vec::new());
                for entry in &map.entries {
                    if let EntryExpr::MapEntry(entry) = &entry.expr {
                        keys.push(self.infer(&entry.key)?);
                        let mut value = self.infer(&entry.value)?;
                        if entry.optional {
                            unwrap(&mut value)?;
                        }
                        values.push(value);
                    }
                }
                self.check_types(&keys)?;
                self.check_types(&values)?;
                let join = |nodes: &[Node<'s>]| {
                    nodes.iter().fold(Type::Dyn, |ty, node| ty.join_item(node.ty.clone()))
                };
                let ty = Type::Map(Box::new(join(&keys)), Box::new(join(&values)));
                let mut node = Node::new(ty, steps(&values, steps(&keys, NEW_MAP)));
                node.entry = Some(Entry { keys: common_size(&keys), values: common_size(&values) });
                Ok(node.sized(Some(Range::exactly(map.entries.len() as u64))))
            }
            Expr::Comprehension(loops) if is_binding(loops) => self.binding(loops),
            Expr::Comprehension(loops) => self.comprehension(loops),
            Expr::Struct(literal) => self.infer(&messages::value(literal)?),
            Expr::Unspecified => Err("an empty expression".to_owned()),
        }
    }

    fn infer_all(&mut self, expressions: &[IdedExpr]) -> Result<Vec<Node<'s>>, String> {
        expressions.iter().map(|expression| self.infer(expression)).collect()
    }

    /// Checks that the items of a list, or the keys or values of a map, have the same type.
    fn check_types(&self, nodes: &[Node<'s>]) -> Result<(), String> {
        let Some((first, rest)) = nodes.split_first() else { return Ok(()) };
        let differs = |node: &&Node<'s>| {
            !first.ty.agrees(&node.ty) || first.ty.is_dynamic() != node.ty.is_dynamic()
        };
        match rest.iter().filter(|_| self.formats == 0).find(differs) {
            Some(other) => Err(format!("expected type '{}' but found '{}'", first.ty, other.ty)),
            None => Ok(()),
        }
    }

    fn variable(&self, name: &str) -> Result<Node<'s>, String> {
        if let Some(variable) = self.scope.iter().rev().find(|variable| variable.name == name) {
            let mut node = Node::new(variable.ty.clone(), 1);
            node.size = node.size.or(variable.size);
            node.entry = variable.entry;
            return Ok(node.at(variable.place));
        }
        match name {
            "bool" | "int" | "uint" | "double" | "string" | "bytes" | "list" | "map"
            | "null_type" | "optional_type" | "type" => Ok(Node::new(Type::Meta, 1).at(self.root)),
            _ => Err(format!("undeclared reference to '{name}'")),
        }
    }

    fn select(&mut self, select: &SelectExpr) -> Result<Node<'s>, String> {
        if !select.test && self.is_type(select) {
            return Ok(Node::new(Type::Meta, 1).at(self.root));
        }
        let operand = self.infer(&select.operand)?;
        let field = operand.ty.field(&select.field)?;
        if select.test {
            return Ok(Node::new(Type::Bool, operand.cost));
        }
        let own = u64::from(matches!(operand.ty, Type::Map(..) | Type::Object(_) | Type::Device));
        let place = operand.place.field(&select.field, self.root);
        Ok(Node::new(field, operand.cost.saturating_add(own)).at(place))
    }

    /// Reports whether an expression is the name of a type.
    fn is_type(&self, select: &SelectExpr) -> bool {
        let mut names = vec![select.field.as_str()];
        let mut operand = &select.operand.expr;
        while let Expr::Select(inner) = operand {
            names.push(&inner.field);
            operand = &inner.operand.expr;
        }
        let Expr::Ident(first) = operand else { return false };
        names.push(first);
        names.reverse();
        TYPES.contains(&names.join(".").as_str())
            && self.scope.iter().all(|variable| variable.name != *first)
    }
}

/// Replaces the type of an optional value by that of the value.
fn unwrap(node: &mut Node<'_>) -> Result<(), String> {
    node.ty = match &node.ty {
        Type::Optional(inner) => (**inner).clone(),
        Type::Dyn => Type::Dyn,
        other => return Err(format!("expected type 'optional({other})' but found '{other}'")),
    };
    Ok(())
}

/// Returns the sum of the costs.
fn steps(nodes: &[Node<'_>], base: u64) -> u64 {
    nodes.iter().fold(base, |sum, node| sum.saturating_add(node.cost))
}

/// Returns a range that contains the sizes of all nodes.
fn common_size(nodes: &[Node<'_>]) -> Range {
    nodes.iter().map(Node::size_or_unknown).reduce(Range::union).unwrap_or(Range::exactly(0))
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
