//! The parts of each variable that an expression reads.
//!
//! A response may hold thousands of objects, and an expression may compare only their uids. The
//! harness converts only these. The analysis follows values through selections, indexes, list
//! literals, conditionals and macros. After any other use, it needs the whole value, so that a
//! mistake here costs time, not a verdict.

mod analysis;
mod names;

use cel::common::ast::IdedExpr;

use self::analysis::Analysis;
use self::names::Names;

/// What an expression needs of its variables.
#[derive(Clone, Debug, Default)]
pub struct Needs {
    nodes: Vec<Node>,
    roots: Names,
}

/// What an expression needs of one value.
#[derive(Clone, Copy, Debug)]
pub struct Need<'a> {
    needs: &'a Needs,
    node: usize,
}

#[derive(Clone, Debug, Default)]
struct Node {
    whole: bool,
    members: Names,
    /// What a loop needs: of the items of a list, or of the keys of an object.
    items: Option<usize>,
    /// What an index needs: of the items of a list, or of the members of an object.
    indexed: Option<usize>,
    /// True if the expression looks for an item of a list, or a key of an object.
    searched: bool,
}

impl Needs {
    /// Returns what an expression needs, given the named expressions that it may use.
    pub fn of(expression: &IdedExpr, lets: &[(&str, &IdedExpr)]) -> Self {
        let mut needs = Analysis::new(lets).needs(expression);
        needs.complete();
        needs
    }

    /// Combines what different uses need of the same part.
    fn complete(&mut self) {
        let mut at = 0;
        while at < self.nodes.len() {
            let Node { members, items, indexed, searched, .. } = self.nodes[at].clone();
            if let Some(indexed) = indexed {
                for (name, member) in members.iter() {
                    let both = self.merge(member, indexed);
                    self.nodes[at].members.insert(name, both);
                }
            }
            let of_list = match (items, indexed) {
                (Some(items), Some(indexed)) => Some(self.merge(items, indexed)),
                (items, indexed) => items.or(indexed),
            };
            self.nodes[at].items = match (of_list, searched) {
                (_, true) => Some(self.add(Node { whole: true, ..Node::default() })),
                (of_list, false) => of_list,
            };
            at += 1;
        }
        self.nodes.shrink_to_fit();
    }

    /// Adds a node for what either of two uses needs.
    fn merge(&mut self, one: usize, two: usize) -> usize {
        let [mut one, two] = [self.nodes[one].clone(), self.nodes[two].clone()];
        for (name, node) in two.members.iter() {
            let both = match one.members.get(name) {
                Some(known) => self.merge(known, node),
                None => node,
            };
            one.members.insert(name, both);
        }
        let mut either = |one: Option<usize>, two: Option<usize>| match (one, two) {
            (Some(one), Some(two)) => Some(self.merge(one, two)),
            (one, two) => one.or(two),
        };
        one.items = either(one.items, two.items);
        one.indexed = either(one.indexed, two.indexed);
        one.whole |= two.whole;
        one.searched |= two.searched;
        self.add(one)
    }

    fn add(&mut self, node: Node) -> usize {
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    /// Returns what the expression needs of a variable, if anything.
    pub fn variable(&self, name: &str) -> Option<Need<'_>> {
        self.roots.get(name).map(|node| Need { needs: self, node })
    }
}

impl<'a> Need<'a> {
    /// Reports whether the expression needs the whole value.
    pub fn is_whole(self) -> bool {
        self.here().whole
    }

    /// Returns what the expression needs of a member of an object, if anything.
    pub fn member(self, name: &str) -> Option<Self> {
        let here = self.here();
        here.members.get(name).or(here.indexed).map(|node| Self { node, ..self })
    }

    /// Reports whether the expression needs all keys of an object.
    pub fn keys(self) -> bool {
        let here = self.here();
        here.searched || here.items.is_some()
    }

    /// Returns what the expression needs of each item of a list, if anything.
    pub fn items(self) -> Option<Self> {
        self.here().items.map(|node| Self { node, ..self })
    }

    fn here(self) -> &'a Node {
        &self.needs.nodes[self.node]
    }
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
            let has_parts =
                node.members.iter().next().is_some() || need.keys() || node.indexed.is_some();
            if need.is_whole() || !has_parts {
                places.push(format!("{path}{}", if need.is_whole() { "*" } else { "" }));
                return;
            }
            for (name, _) in node.members.iter() {
                tell(need.member(name).unwrap(), &format!("{path}.{name}"), places);
            }
            if node.searched {
                places.push(format!("{path}[in]"));
            } else if let Some(items) = need.items() {
                tell(items, &format!("{path}[]"), places);
            }
        }
        let program = cel::Program::compile(text).unwrap();
        let needs = Needs::of(program.expression(), &[]);
        let mut places = Vec::new();
        for (name, _) in needs.roots.iter().filter(|(name, _)| !name.starts_with('@')) {
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
    #[case("'x' in a.headers", "a.headers[in]")]
    #[case("a.paths.filter(p, p in b.paths).size() == 1", "a.paths[]* b.paths[in]")]
    #[case("b.all(p, a[p].x == 1) && a['y'].z == 2", "a.y.x* a.y.z* a[].x* b[]*")]
    #[case("a.all(k, a[k].x == k)", "a[]*")]
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
