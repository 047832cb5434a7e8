//! Checks of literals of lists, maps and messages.

use cel::common::ast::{EntryExpr, IdedExpr, ListExpr, MapExpr, StructExpr};

use super::super::cost::{NEW_LIST, NEW_MAP};
use super::super::messages::{self, Message};
use super::super::node::{Entry, Node};
use super::super::size::Range;
use super::super::types::Type;
use super::{Checker, steps};

impl<'s> Checker<'_, 's> {
    pub(super) fn list(&mut self, list: &ListExpr) -> Node<'s> {
        let mut nodes = self.infer_all(&list.elements);
        for &index in &list.optional_indices {
            self.unwrap(&mut nodes[index], &list.elements[index]);
        }
        let ty = self.common_type(&nodes);
        let size = Range::exactly(nodes.len() as u64);
        let mut node = Node::new(Type::List(Box::new(ty)), steps(&nodes, NEW_LIST));
        node.entry = Some(Entry { keys: Range::ONE, values: common_size(&nodes) });
        node.sized(Some(size))
    }

    pub(super) fn map(&mut self, map: &MapExpr) -> Node<'s> {
        let (mut keys, mut values) = (Vec::new(), Vec::new());
        for entry in &map.entries {
            if let EntryExpr::MapEntry(entry) = &entry.expr {
                let key = self.infer(&entry.key);
                let mut value = self.infer(&entry.value);
                if entry.optional {
                    self.unwrap(&mut value, &entry.value);
                }
                keys.push(key);
                values.push(value);
            }
        }
        let (key, value) = (self.common_type(&keys), self.common_type(&values));
        let ty = Type::Map(Box::new(key), Box::new(value));
        let mut node = Node::new(ty, steps(&values, steps(&keys, NEW_MAP)));
        node.entry = Some(Entry { keys: common_size(&keys), values: common_size(&values) });
        node.sized(Some(Range::exactly(map.entries.len() as u64)))
    }

    /// Returns the type of the items of a list, or of the keys or values of a map.
    fn common_type(&mut self, nodes: &[Node<'s>]) -> Type<'s> {
        let mut all = nodes.iter().map(|node| node.ty.clone());
        let Some(first) = all.next() else { return self.types.fresh() };
        all.fold(first, |first, other| self.types.joined(first, other))
    }

    /// Replaces the type of an optional value by that of the value.
    fn unwrap(&mut self, node: &mut Node<'s>, part: &IdedExpr) {
        match self.types.resolved(&node.ty) {
            Type::Optional(inner) => node.ty = *inner,
            Type::Dyn | Type::Any => {}
            other => {
                let why = format!("expected type 'optional_type({other})' but found '{other}'");
                self.report_at(part, why);
            }
        }
    }

    pub(super) fn message(&mut self, literal: &StructExpr) -> Node<'s> {
        let Some(message) = Message::of(literal) else {
            let name = &literal.type_name;
            return self.failed(format!("undeclared reference to '{name}' (in container '')"));
        };
        let mut cost = messages::COST;
        for field in message.fields() {
            let node = self.infer(field.value);
            cost = cost.saturating_add(node.cost);
            let Some(expected) = field.ty else {
                self.issues.report(field.id, format!("undefined field '{}'", field.name));
                continue;
            };
            let found = self.types.resolved(&node.ty);
            if !self.types.assigns(&expected, &found) {
                let why = format!(
                    "expected type of field '{}' is '{expected}' but provided type is '{found}'",
                    field.name
                );
                self.issues.report(field.id, why);
            }
        }
        Node::new(message.ty(), cost)
    }
}

/// Returns a range that contains the sizes of all nodes.
fn common_size(nodes: &[Node<'_>]) -> Range {
    nodes.iter().map(Node::size_or_unknown).reduce(Range::union).unwrap_or(Range::exactly(0))
}
