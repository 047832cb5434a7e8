//! The parts of each variable that an expression reads.
//!
//! A response may hold thousands of objects, and an expression may compare only their uids. The
//! harness converts only these. The analysis follows values through selections, indexes, list
//! literals, conditionals and macros. After any other use, it needs the whole value, so that a
//! mistake here costs time, not a verdict.

use std::collections::{BTreeMap, BTreeSet};

use cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, LiteralValue, operators,
};

/// What an expression needs of its variables.
#[derive(Clone, Debug, Default)]
pub struct Needs {
    nodes: Vec<Node>,
    roots: BTreeMap<String, usize>,
}

/// What is needed of one value.
#[derive(Clone, Copy, Debug)]
pub struct Need<'a> {
    needs: &'a Needs,
    node: usize,
}

#[derive(Clone, Debug, Default)]
struct Node {
    whole: bool,
    members: BTreeMap<String, usize>,
    items: Option<usize>,
}

impl Needs {
    /// Returns what an expression needs, given the named expressions that it may use.
    pub fn of(expression: &IdedExpr, lets: &[(&str, &IdedExpr)]) -> Self {
        let lets = lets.iter().copied().collect();
        let mut analysis = Analysis { needs: Self::default(), lets, origins: BTreeMap::new() };
        let value = analysis.visit(expression, &mut Vec::new());
        analysis.consume(&value);
        analysis.needs
    }

    /// What is needed of a variable.
    pub fn variable(&self, name: &str) -> Option<Need<'_>> {
        self.roots.get(name).map(|node| Need { needs: self, node: *node })
    }
}

impl<'a> Need<'a> {
    /// All of it.
    pub fn is_whole(self) -> bool {
        self.here().whole
    }

    /// Returns what the expression needs of a member of an object, if anything.
    pub fn member(self, name: &str) -> Option<Self> {
        self.here().members.get(name).map(|node| Self { node: *node, ..self })
    }

    /// What is needed of each item of a list. Of an object, which has keys in place of items, all
    /// is needed then.
    pub fn items(self) -> Option<Self> {
        self.here().items.map(|node| Self { node, ..self })
    }

    fn here(self) -> &'a Node {
        &self.needs.nodes[self.node]
    }
}

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
struct Analysis<'e> {
    needs: Needs,
    lets: BTreeMap<&'e str, &'e IdedExpr>,
    /// Of the named expressions that were visited.
    origins: BTreeMap<&'e str, Origin>,
}

impl<'e> Analysis<'e> {
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
                self.items(of)
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
            return *node;
        }
        let node = self.node();
        self.needs.roots.insert(name.to_owned(), node);
        node
    }

    fn members(&mut self, of: &Origin, name: &str) -> Origin {
        let nodes = of.nodes.iter().map(|node| {
            if let Some(member) = self.needs.nodes[*node].members.get(name) {
                return *member;
            }
            let member = self.node();
            self.needs.nodes[*node].members.insert(name.to_owned(), member);
            member
        });
        Origin { nodes: nodes.collect(), items: None }
    }

    fn items(&mut self, of: &Origin) -> Origin {
        let nodes = of.nodes.iter().map(|node| {
            if let Some(items) = self.needs.nodes[*node].items {
                return items;
            }
            let items = self.node();
            self.needs.nodes[*node].items = Some(items);
            items
        });
        let nodes = Origin { nodes: nodes.collect(), items: None };
        of.items.as_deref().cloned().unwrap_or_default().join(nodes)
    }

    fn node(&mut self) -> usize {
        self.needs.nodes.push(Node::default());
        self.needs.nodes.len() - 1
    }
}

fn is_null(expression: &IdedExpr) -> bool {
    matches!(expression.expr, Expr::Literal(LiteralValue::Null))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    /// The needed places: `a.b` of an object, `a[]` of a list, with a star where all below is
    /// needed.
    fn places(text: &str) -> String {
        fn tell(need: Need<'_>, path: &str, places: &mut Vec<String>) {
            let node = need.here();
            if need.is_whole() || (node.members.is_empty() && node.items.is_none()) {
                places.push(format!("{path}{}", if need.is_whole() { "*" } else { "" }));
                return;
            }
            for name in node.members.keys() {
                tell(need.member(name).unwrap(), &format!("{path}.{name}"), places);
            }
            if let Some(items) = need.items() {
                tell(items, &format!("{path}[]"), places);
            }
        }
        let program = cel::Program::compile(text).unwrap();
        let needs = Needs::of(program.expression(), &[]);
        let mut places = Vec::new();
        for name in needs.roots.keys().filter(|name| !name.starts_with('@')) {
            tell(needs.variable(name).unwrap(), name, &mut places);
        }
        places.join(" ")
    }

    #[rstest]
    #[case(
        "a.body.metadata.uid == b.body.metadata.uid",
        "a.body.metadata.uid* b.body.metadata.uid*"
    )]
    #[case("a.events == b.events", "a.events* b.events*")]
    #[case("a.events[0].object == b.body", "a.events[].object* b.body*")]
    #[case("a.body.items.map(i, i.metadata.name) == ['x']", "a.body.items[].metadata.name*")]
    #[case(
        "a.events.filter(e, e.type == 'X').map(e, e.object.name) == []",
        "a.events[].object.name* a.events[].type*"
    )]
    #[case("a.events.filter(e, e.type == 'X') == []", "a.events[]*")]
    #[case("a.events.filter(e, e.type == 'X')[0].n == 1", "a.events[].n* a.events[].type*")]
    #[case("a.events.size() == 1", "a.events[]")]
    #[case("has(a.body.metadata) && a.body.metadata['x'] == 1", "a.body.metadata.x*")]
    #[case("has(a.body.spec)", "a.body.spec")]
    #[case("'x' in a.headers", "a.headers*")]
    #[case("[a, b].all(p, p.body.v == c.body.v)", "a.body.v* b.body.v* c.body.v*")]
    #[case(
        "flatten([a, b].map(p, p.items.map(i, i.uid))) == c",
        "a.items[].uid* b.items[].uid* c*"
    )]
    #[case("flatten(a.map(w, w.list.map(o, o.uid))) == []", "a[].list[].uid*")]
    #[case("flatten(a.map(w, w.list))[0].x == 1", "a[].list[].x*")]
    #[case("(a.ok ? a.one : a.two).x == 1", "a.ok* a.one.x* a.two.x*")]
    #[case("a.map(w, [w.x] + w.list.map(l, l.y)) == []", "a[].list[].y* a[].x*")]
    #[case("b.all(i, a.list[i].x == 1)", "a.list[].x* b[]*")]
    #[case("a.all(a, a.x) && a.y == 1", "a.y* a[].x*")]
    #[case("a.map(x, {'k': x.y})[0].k == 1", "a[].y*")]
    #[case("a != null && a.body.x == 1", "a.body.x*")]
    #[case("size(a.text) > 0 && a.text.startsWith('x')", "a.text*")]
    fn an_expression_needs_what_it_looks_at(#[case] text: &str, #[case] expected: &str) {
        assert_eq!(places(text), expected);
    }

    #[test]
    fn a_named_expression_is_seen_through() {
        let names = cel::Program::compile("list.items.map(i, i.name)").unwrap();
        let program = cel::Program::compile("names == ['a'] && list.status == 200").unwrap();
        let needs = Needs::of(program.expression(), &[("names", names.expression())]);
        let list = needs.variable("list").unwrap();
        assert!(needs.variable("names").is_none() && !list.is_whole());
        let items = list.member("items").unwrap().items().unwrap();
        assert!(items.member("name").unwrap().is_whole());
    }
}
