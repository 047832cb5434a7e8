//! Follows values through an expression.

use std::collections::{BTreeMap, BTreeSet};

use cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, LiteralValue, operators,
};

use super::{Needs, Node};

/// The possible sources of a value.
#[derive(Clone, Debug, Default)]
struct Origin {
    /// Places in variables.
    nodes: BTreeSet<usize>,
    /// The sources of the items, if the expression makes a list.
    items: Option<Box<Origin>>,
}

impl Origin {
    fn join(mut self, other: Self) -> Self {
        self.nodes.extend(other.nodes);
        self.items = match (self.items, other.items) {
            (Some(one), Some(two)) => Some(Box::new(one.join(*two))),
            (one, two) => one.or(two),
        };
        self
    }
}

/// The variables of macros, the innermost last.
type Bound<'e> = Vec<(&'e str, Origin)>;

/// An analysis under way.
pub(super) struct Analysis<'e> {
    needs: Needs,
    lets: BTreeMap<&'e str, &'e IdedExpr>,
    /// Of the named expressions that were visited.
    origins: BTreeMap<&'e str, Origin>,
}

impl<'e> Analysis<'e> {
    /// Starts an analysis with named expressions.
    pub(super) fn new(lets: &[(&'e str, &'e IdedExpr)]) -> Self {
        let lets = lets.iter().copied().collect();
        Self { needs: Needs::default(), lets, origins: BTreeMap::new() }
    }

    /// Returns what an expression needs.
    pub(super) fn needs(mut self, expression: &'e IdedExpr) -> Needs {
        let value = self.visit(expression, &mut Vec::new());
        self.consume(&value);
        self.needs
    }

    fn visit(&mut self, expression: &'e IdedExpr, bound: &mut Bound<'e>) -> Origin {
        match &expression.expr {
            Expr::Ident(name) => match bound.iter().rev().find(|(known, _)| known == name) {
                Some((_, origin)) => origin.clone(),
                None => self.free(name),
            },
            Expr::Select(select) => {
                let operand = self.visit(&select.operand, bound);
                let member = self.members(&operand, &select.field);
                if select.test { Origin::default() } else { member }
            }
            Expr::Call(call) => self.call(call, bound),
            Expr::Comprehension(comprehension) => self.comprehension(comprehension, bound),
            Expr::List(list) => {
                let elements = list.elements.iter().map(|element| self.visit(element, bound));
                let items = elements.reduce(Origin::join).unwrap_or_default();
                Origin { nodes: BTreeSet::new(), items: Some(Box::new(items)) }
            }
            Expr::Map(map) => self.entries(map.entries.iter().map(|entry| &entry.expr), bound),
            Expr::Struct(value) => {
                self.entries(value.entries.iter().map(|entry| &entry.expr), bound)
            }
            Expr::Literal(_) | Expr::Unspecified => Origin::default(),
        }
    }

    fn call(&mut self, call: &'e CallExpr, bound: &mut Bound<'e>) -> Origin {
        let parts: Vec<&IdedExpr> =
            call.target.iter().map(AsRef::as_ref).chain(&call.args).collect();
        let origins: Vec<Origin> = parts.iter().map(|part| self.visit(part, bound)).collect();
        match (call.func_name.as_str(), origins.as_slice()) {
            (operators::INDEX, [of, at]) => {
                if let Expr::Literal(LiteralValue::String(name)) = &parts[1].expr {
                    return self.members(of, name.inner());
                }
                self.consume(at);
                self.indexed(of)
            }
            (operators::IN, [item, of]) => {
                self.consume(item);
                self.search(of);
                Origin::default()
            }
            // Whether a step ran shows without its members.
            (operators::EQUALS | operators::NOT_EQUALS, _)
                if parts.iter().any(|part| is_null(part)) =>
            {
                Origin::default()
            }
            (operators::ADD, [one, two]) => one.clone().join(two.clone()),
            (operators::CONDITIONAL, [condition, one, two]) => {
                self.consume(condition);
                one.clone().join(two.clone())
            }
            ("size", [of]) => {
                self.items(of);
                Origin::default()
            }
            ("flatten", [lists]) => {
                let inner = self.items(lists);
                let items = self.items(&inner);
                Origin { nodes: BTreeSet::new(), items: Some(Box::new(items)) }
            }
            _ => {
                for origin in &origins {
                    self.consume(origin);
                }
                Origin::default()
            }
        }
    }

    fn comprehension(
        &mut self,
        comprehension: &'e ComprehensionExpr,
        bound: &mut Bound<'e>,
    ) -> Origin {
        let range = self.visit(&comprehension.iter_range, bound);
        let gathered = self.visit(&comprehension.accu_init, bound);
        let item = self.items(&range);
        let outer = bound.len();
        if let Some(second) = &comprehension.iter_var2 {
            self.consume(&range);
            bound.push((second, Origin::default()));
        }
        bound.push((&comprehension.iter_var, item));
        bound.push((&comprehension.accu_var, gathered.clone()));
        let condition = self.visit(&comprehension.loop_cond, bound);
        self.consume(&condition);
        let step = self.visit(&comprehension.loop_step, bound);
        bound.pop();
        bound.push((&comprehension.accu_var, gathered.join(step)));
        let result = self.visit(&comprehension.result, bound);
        bound.truncate(outer);
        result
    }

    /// A map or a message: all that goes into it is needed.
    fn entries(
        &mut self,
        entries: impl Iterator<Item = &'e EntryExpr>,
        bound: &mut Bound<'e>,
    ) -> Origin {
        for entry in entries {
            let parts = match entry {
                EntryExpr::StructField(field) => vec![&field.value],
                EntryExpr::MapEntry(entry) => vec![&entry.key, &entry.value],
            };
            for part in parts {
                let origin = self.visit(part, bound);
                self.consume(&origin);
            }
        }
        Origin::default()
    }

    /// Something is done with the value that may look at any part of it.
    fn consume(&mut self, origin: &Origin) {
        for node in &origin.nodes {
            self.needs.nodes[*node].whole = true;
        }
        if let Some(items) = &origin.items {
            self.consume(items);
        }
    }

    /// A variable of the case, or one of its named expressions.
    fn free(&mut self, name: &'e str) -> Origin {
        let Some(expression) = self.lets.get(name).copied() else {
            return Origin { nodes: [self.root(name)].into(), items: None };
        };
        if let Some(origin) = self.origins.get(name) {
            return origin.clone();
        }
        // A definition that uses itself is reported elsewhere; here it ends.
        self.origins.insert(name, Origin::default());
        let origin = self.visit(expression, &mut Vec::new());
        self.origins.insert(name, origin.clone());
        origin
    }

    fn root(&mut self, name: &str) -> usize {
        if let Some(node) = self.needs.roots.get(name) {
            return node;
        }
        let node = self.node();
        self.needs.roots.insert(name, node);
        node
    }

    fn members(&mut self, of: &Origin, name: &str) -> Origin {
        let nodes = of.nodes.iter().map(|node| {
            if let Some(member) = self.needs.nodes[*node].members.get(name) {
                return member;
            }
            let member = self.node();
            self.needs.nodes[*node].members.insert(name, member);
            member
        });
        Origin { nodes: nodes.collect(), items: None }
    }

    fn items(&mut self, of: &Origin) -> Origin {
        self.each(of, |node| &mut node.items)
    }

    fn indexed(&mut self, of: &Origin) -> Origin {
        self.each(of, |node| &mut node.indexed)
    }

    /// Returns the sources of each part of a value. `part` selects the node of the parts.
    fn each(&mut self, of: &Origin, part: fn(&mut Node) -> &mut Option<usize>) -> Origin {
        let nodes = of.nodes.iter().map(|node| {
            if let Some(known) = *part(&mut self.needs.nodes[*node]) {
                return known;
            }
            let new = self.node();
            *part(&mut self.needs.nodes[*node]) = Some(new);
            new
        });
        let nodes = Origin { nodes: nodes.collect(), items: None };
        of.items.as_deref().cloned().unwrap_or_default().join(nodes)
    }

    fn search(&mut self, of: &Origin) {
        for node in &of.nodes {
            self.needs.nodes[*node].searched = true;
        }
        if let Some(items) = &of.items {
            self.consume(items);
        }
    }

    fn node(&mut self) -> usize {
        self.needs.add(Node::default())
    }
}

fn is_null(expression: &IdedExpr) -> bool {
    matches!(expression.expr, Expr::Literal(LiteralValue::Null))
}
