//! Static type check and cost estimate of expressions.
//!
//! A definition with an invalid expression must be rejected before objects of it exist. Therefore
//! each expression is walked once with the types of the schema. The same walk adds up the cost of
//! an evaluation on values of the maximum size, in the units of kube-apiserver.

use std::sync::Arc;

use cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, LiteralValue, SelectExpr, operators,
};

use super::super::{Kind, Schema, pattern};
use super::cost::{self, NEW_LIST, NEW_MAP};
use super::expression::{AUTHORIZER, Names, REQUEST_RESOURCE};
use super::node::{Entry, Node};
use super::signatures;
use super::size::{Place, Range};
use super::types::Type;

/// The variable in which macros collect their result.
const ACCUMULATOR: &str = "@result";

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
    let node = Checker { root: schema, scope }.infer(expression)?;
    Ok(Checked { ty: node.ty, cost: node.cost })
}

/// Checks an expression whose variables have no schema, except those in `names.types`. Returns the
/// name of its type.
pub(super) fn check_dynamic(expression: &IdedExpr, names: &Names) -> Result<String, String> {
    let dynamic = Arc::new(Schema::default());
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
    let ty = Checker { root: &dynamic, scope }.infer(expression)?.ty.to_string();
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
    root: &'s Schema,
    scope: Vec<Variable<'s>>,
}

impl<'s> Checker<'s> {
    fn infer(&mut self, expression: &IdedExpr) -> Result<Node<'s>, String> {
        match &expression.expr {
            Expr::Literal(value) => Ok(literal(value)),
            Expr::Ident(name) => self.variable(name),
            Expr::Select(select) => self.select(select),
            Expr::Call(call) => self.call(call),
            Expr::List(list) => {
                let nodes = self.infer_all(&list.elements)?;
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
                        values.push(self.infer(&entry.value)?);
                    }
                }
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
            Expr::Struct(literal) => {
                Err(format!("undeclared reference to '{}'", literal.type_name))
            }
            Expr::Unspecified => Err("an empty expression".to_owned()),
        }
    }

    fn infer_all(&mut self, expressions: &[IdedExpr]) -> Result<Vec<Node<'s>>, String> {
        expressions.iter().map(|expression| self.infer(expression)).collect()
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
            | "null_type" | "type" => Ok(Node::new(Type::Meta, 1).at(Place::At(self.root))),
            _ => Err(format!("undeclared reference to '{name}'")),
        }
    }

    fn select(&mut self, select: &SelectExpr) -> Result<Node<'s>, String> {
        let operand = self.infer(&select.operand)?;
        let field = operand.ty.field(&select.field)?;
        if select.test {
            return Ok(Node::new(Type::Bool, operand.cost));
        }
        let own = u64::from(matches!(operand.ty, Type::Map(..) | Type::Object(_)));
        let place = operand.place.field(&select.field, self.root);
        Ok(Node::new(field, operand.cost.saturating_add(own)).at(place))
    }

    fn call(&mut self, call: &CallExpr) -> Result<Node<'s>, String> {
        if call.func_name == operators::OPT_SELECT {
            return self.optional_select(call);
        }
        let mut arguments = Vec::new();
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
        check_pattern(&name, call)?;
        let types: Vec<Type<'s>> = arguments.iter().map(|argument| argument.ty.clone()).collect();
        let ty = signatures::call(&name, &types)?;
        Ok(self.called(&name, ty, &arguments))
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

    fn comprehension(&mut self, loops: &ComprehensionExpr) -> Result<Node<'s>, String> {
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
    fn binding(&mut self, loops: &ComprehensionExpr) -> Result<Node<'s>, String> {
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

/// Checks a constant pattern. Other patterns are checked during the evaluation.
fn check_pattern(name: &str, call: &CallExpr) -> Result<(), String> {
    let literal = match name {
        ".matches" | ".find" | ".findAll" => call.args.first(),
        "matches" => call.args.get(1),
        _ => None,
    };
    match literal.map(|literal| &literal.expr) {
        Some(Expr::Literal(LiteralValue::String(text))) => pattern::check(text.inner())
            .map_err(|error| format!("invalid {} argument: {error}", name.trim_start_matches('.'))),
        _ => Ok(()),
    }
}

fn is_binding(loops: &ComprehensionExpr) -> bool {
    let is_empty = matches!(&loops.iter_range.expr, Expr::List(list) if list.elements.is_empty());
    let never = matches!(
        &loops.loop_cond.expr,
        Expr::Literal(LiteralValue::Boolean(goes_on)) if !*goes_on.inner()
    );
    is_empty && never && loops.accu_var != ACCUMULATOR
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
        node.literal = u64::try_from(*number.inner()).ok();
    }
    node
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::super::library::env;
    use super::*;
    use crate::schema::Schema;

    fn schema() -> Schema {
        let document = json!({"type": "object", "properties": {
            "size": {"type": "integer"}, "ratio": {"type": "number"},
            "name": {"type": "string", "maxLength": 20},
            "when": {"type": "string", "format": "date-time"},
            "port": {"x-kubernetes-int-or-string": true},
            "max-size": {"type": "integer"},
            "list": {
                "type": "array", "maxItems": 10,
                "items": {"type": "object", "properties": {"a": {"type": "string"}}},
            },
            "wide": {"type": "array", "items": {"type": "string"}},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        }});
        Schema::from_openapi(&document).expect("a schema")
    }

    fn check_text(text: &str) -> Result<(String, u64), String> {
        let (schema, program) = (schema(), env().compile(text).expect("an expression"));
        check(program.expression(), &schema, false)
            .map(|checked| (checked.ty.to_string(), checked.cost))
    }

    #[rstest]
    #[case("self.size > 1 && self.ratio < 2.0", "bool")]
    #[case("self.size < self.ratio", "bool")]
    #[case("self.max__dash__size + 1", "int")]
    #[case("self.name.size() + self.name.indexOf('a')", "int")]
    #[case("self.list.all(item, item.a.startsWith('x'))", "bool")]
    #[case("self.list.map(item, item.a)", "list(string)")]
    #[case("self.list.filter(item, has(item.a)).size() == 0", "bool")]
    #[case("self.list.exists_one(item, item.a == self.name)", "bool")]
    #[case("self.labels.all(key, self.labels[key] != '' && key.size() < 5)", "bool")]
    #[case("'a' in self.labels ? self.labels['a'] : 'none'", "string")]
    #[case("self.port == 80 || self.port == 'http'", "bool")]
    #[case("type(self.port) == int ? self.port > 0 : self.port != ''", "bool")]
    #[case("self.when > timestamp('2026-01-01T00:00:00Z')", "bool")]
    #[case("self.?name.orValue('none')", "string")]
    #[case("optional.of(1).value() + 1", "int")]
    #[case("[1, 2].map(x, x * 2).sum()", "int")]
    #[case(
        "self.list.sortBy(item, item.a).slice(0, 2).map(item, item.a).distinct().sort()",
        "list(string)"
    )]
    #[case("self.wide.reverse()", "list(string)")]
    #[case("self.name == null", "bool")]
    #[case("self.?name.optMap(x, quantity(x)).orValue(quantity('1')).add(1)", "Quantity")]
    #[case("format.named('uuid').value().validate(self.name).orValue([])", "list(string)")]
    #[case("ip(self.name).family() + cidr(self.name).ip().family()", "int")]
    #[case("url(self.name).getQuery()['a'][0] + string(ip(self.name))", "string")]
    #[case("'%s'.format([self.name, self.size])", "string")]
    fn an_expression_has_a_type(#[case] text: &str, #[case] expected: &str) {
        assert_eq!(check_text(text).map(|(ty, _)| ty).as_deref(), Ok(expected));
    }

    #[rstest]
    #[case("self.missing", "undefined field 'missing'")]
    #[case("self.size.more", "type 'int' does not support field selection")]
    #[case("self.size == 'a'", "applied to '(int, string)'")]
    #[case("self.name + 1 == ''", "applied to '(string, int)'")]
    #[case("other.size", "undeclared reference to 'other'")]
    #[case("self.name.shout()", "undeclared reference to 'shout'")]
    #[case("self.size && true", "applied to '(int, bool)'")]
    #[case("self.size.all(x, true)", "cannot be range of a comprehension")]
    #[case("self.list.all(x, x.b == '')", "undefined field 'b'")]
    #[case("self.list.all(x, x.a)", "applied to '(bool, string)'")]
    #[case("quantity('1') == url('/')", "applied to '(Quantity, URL)'")]
    #[case("quantity(1)", "applied to '(int)'")]
    #[case("Widget{}", "undeclared reference to 'Widget'")]
    fn an_invalid_expression_is_rejected_with_a_message(
        #[case] text: &str,
        #[case] expected: &str,
    ) {
        let error = check_text(text).expect_err("a mistake");
        assert!(error.contains(expected), "{error}");
    }

    #[test]
    fn cost_grows_with_the_sizes_that_the_schema_permits() {
        let cost = |text: &str| check_text(text).expect("an expression").1;
        assert!(cost("self.size > 1") < 10);
        assert!(cost("self.list.all(x, x.a != '')") < 1_000);
        let bound = cost("self.?wide.optMap(x, x.all(y, y != '')).orValue(true)");
        assert!(bound > 1_000, "{bound}");
        let once = cost("self.wide.all(x, x != '')");
        let nested = cost("self.wide.all(x, self.wide.all(y, x != y))");
        assert!(once < 10_000_000, "{once}");
        assert!(nested > 10_000_000, "{nested}");
        assert!(cost("[1, 2, 3].map(x, x * 2).all(y, y > 0)") < 100);
    }
}
