//! Whether an expression can have a value, of what type, and at what cost.
//!
//! The expression language finds out at run time; a definition must be refused before it has objects. So every
//! expression is walked once with the types that the schema declares. The same walk adds up what an evaluation
//! costs when every list, map and text is as large as it may be.

use cel::common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, LiteralValue, operators};

use super::signatures;
use super::types::Type;

/// An expression that has been looked through.
#[derive(Debug)]
pub(super) struct Checked<'s> {
    /// What it gives.
    pub(super) ty: Type<'s>,
    /// The most steps that it takes.
    pub(super) cost: u64,
}

/// Walks an expression whose free variables have these types. An error says what is wrong in words.
pub(super) fn check<'s>(
    expression: &IdedExpr,
    variables: &[(&str, Type<'s>)],
) -> Result<Checked<'s>, String> {
    let scope = variables.iter().map(|(name, ty)| ((*name).to_owned(), ty.clone())).collect();
    let mut checker = Checker { scope, cost: 0 };
    let ty = checker.infer(expression)?;
    Ok(Checked { ty, cost: checker.cost })
}

struct Checker<'s> {
    scope: Vec<(String, Type<'s>)>,
    cost: u64,
}

impl<'s> Checker<'s> {
    fn infer(&mut self, expression: &IdedExpr) -> Result<Type<'s>, String> {
        self.pay(1);
        match &expression.expr {
            Expr::Literal(literal) => Ok(literal_type(literal)),
            Expr::Ident(name) => self.variable(name),
            Expr::Select(select) => {
                let field = self.infer(&select.operand)?.field(&select.field)?;
                Ok(if select.test { Type::Bool } else { field })
            }
            Expr::Call(call) => self.call(call),
            Expr::List(list) => {
                let mut item = Type::Dyn;
                for element in &list.elements {
                    item = item.join_item(self.infer(element)?);
                }
                Ok(Type::List(Box::new(item), list.elements.len() as u64))
            }
            Expr::Map(map) => {
                let (mut keys, mut values) = (Type::Dyn, Type::Dyn);
                for entry in &map.entries {
                    if let EntryExpr::MapEntry(entry) = &entry.expr {
                        keys = keys.join_item(self.infer(&entry.key)?);
                        values = values.join_item(self.infer(&entry.value)?);
                    }
                }
                Ok(Type::Map(Box::new(keys), Box::new(values), map.entries.len() as u64))
            }
            Expr::Comprehension(comprehension) => self.comprehension(comprehension),
            Expr::Struct(literal) => Err(format!("undeclared reference to '{}'", literal.type_name)),
            Expr::Unspecified => Err("an empty expression".to_owned()),
        }
    }

    fn variable(&self, name: &str) -> Result<Type<'s>, String> {
        if let Some((_, ty)) = self.scope.iter().rev().find(|(variable, _)| variable == name) {
            return Ok(ty.clone());
        }
        match name {
            "bool" | "int" | "uint" | "double" | "string" | "bytes" | "list" | "map" | "null_type"
            | "type" => Ok(Type::Meta),
            _ => Err(format!("undeclared reference to '{name}'")),
        }
    }

    fn call(&mut self, call: &CallExpr) -> Result<Type<'s>, String> {
        if call.func_name == operators::OPT_SELECT {
            return self.optional_select(call);
        }
        let mut types = Vec::new();
        let name = match &call.target {
            None => call.func_name.clone(),
            Some(target) => {
                if let Some(name) = self.qualified(target, &call.func_name) {
                    name
                } else {
                    types.push(self.infer(target)?);
                    format!(".{}", call.func_name)
                }
            }
        };
        for argument in &call.args {
            types.push(self.infer(argument)?);
        }
        let result = signatures::call(&name, &types)?;
        self.pay(cost_of(&name, &types));
        Ok(result)
    }

    /// `optional.of(x)` is a function and not a method, as nothing is called `optional`.
    fn qualified(&self, target: &IdedExpr, method: &str) -> Option<String> {
        let Expr::Ident(namespace) = &target.expr else { return None };
        let name = format!("{namespace}.{method}");
        let shadowed = self.scope.iter().any(|(variable, _)| variable == namespace);
        (!shadowed && signatures::is_function(&name)).then_some(name)
    }

    /// `a.?b`: the field stands there as a literal.
    fn optional_select(&mut self, call: &CallExpr) -> Result<Type<'s>, String> {
        let [operand, IdedExpr { expr: Expr::Literal(LiteralValue::String(field)), .. }] =
            call.args.as_slice()
        else {
            return Err("an optional field must be named".to_owned());
        };
        Ok(match self.infer(operand)?.field(field.inner())? {
            already @ Type::Optional(_) => already,
            ty => Type::Optional(Box::new(ty)),
        })
    }

    fn comprehension(&mut self, loops: &ComprehensionExpr) -> Result<Type<'s>, String> {
        let range = self.infer(&loops.iter_range)?;
        let rounds = range.size();
        let (first, second) = match range {
            Type::List(item, _) => {
                (if loops.iter_var2.is_some() { Type::Int } else { (*item).clone() }, *item)
            }
            Type::Map(key, value, _) => (*key, *value),
            Type::Dyn => (Type::Dyn, Type::Dyn),
            other => {
                return Err(format!(
                    "expression of type '{other}' cannot be range of a comprehension (must be list, map, or dynamic)"
                ));
            }
        };
        let depth = self.scope.len();
        let start = self.infer(&loops.accu_init)?;
        self.scope.push((loops.iter_var.clone(), first));
        if let Some(variable) = &loops.iter_var2 {
            self.scope.push((variable.clone(), second));
        }
        self.scope.push((loops.accu_var.clone(), start.clone()));
        let before = std::mem::take(&mut self.cost);
        let goes_on = self.infer(&loops.loop_cond)?;
        let step = self.infer(&loops.loop_step)?;
        let round = std::mem::replace(&mut self.cost, before);
        self.pay(round.saturating_mul(rounds));
        if !goes_on.agrees(&Type::Bool) {
            return Err(format!("found no matching overload for a condition of type '{goes_on}'"));
        }
        if !start.agrees(&step) {
            return Err(format!("found no matching overload for a predicate of type '{step}'"));
        }
        let result = match (start, step) {
            // A list grows by one item a round at most.
            (Type::List(_, most), Type::List(item, _)) => Type::List(item, most.saturating_add(rounds)),
            (start, step) => start.join(step),
        };
        if let Some((_, ty)) = self.scope.last_mut() {
            *ty = result;
        }
        let result = self.infer(&loops.result)?;
        self.scope.truncate(depth);
        Ok(result)
    }

    fn pay(&mut self, cost: u64) {
        self.cost = self.cost.saturating_add(cost);
    }
}

fn literal_type<'s>(literal: &LiteralValue) -> Type<'s> {
    match literal {
        LiteralValue::Boolean(_) => Type::Bool,
        LiteralValue::Bytes(bytes) => Type::Bytes(bytes.inner().len() as u64),
        LiteralValue::Double(_) => Type::Double,
        LiteralValue::Int(_) => Type::Int,
        LiteralValue::Null => Type::Null,
        LiteralValue::String(text) => Type::String(text.inner().len() as u64),
        LiteralValue::UInt(_) => Type::Uint,
    }
}

/// What a call costs beyond its arguments, when these are as large as they may be. Ten characters are one step.
fn cost_of(name: &str, arguments: &[Type<'_>]) -> u64 {
    let size = |index: usize| arguments.get(index).map_or(0, Type::size);
    let product = || size(0).saturating_mul(size(1).max(1));
    match name {
        operators::EQUALS | operators::NOT_EQUALS => size(0).min(size(1)) / 10,
        operators::IN => size(1),
        operators::ADD => size(0).saturating_add(size(1)) / 10,
        ".contains" | ".indexOf" | ".lastIndexOf" | ".replace" | ".split" => product() / 100,
        // A pattern has fewer states than characters.
        ".matches" | "matches" | ".find" | ".findAll" => product() / 40,
        "sets.contains" | "sets.equivalent" | "sets.intersects" => product(),
        ".distinct" => size(0).saturating_mul(size(0)),
        // The price of a comparison for each halving of the longest list.
        ".sort" | ".@sortByAssociatedKeys" => size(0).saturating_mul(20),
        ".reverse" | ".slice" | ".isSorted" | ".sum" | ".min" | ".max" => size(0),
        ".validate" | ".containsIP" | ".containsCIDR" => size(1) / 10,
        "quantity" | "url" | "ip" | "cidr" | "isQuantity" | "isURL" | "isIP" | "isCIDR" => size(0) / 10,
        // What is put in may come again at each verb.
        ".format" => size(0).saturating_add(product() / 10),
        _ if name.starts_with('.') => size(0) / 10,
        _ => 0,
    }
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
            "size": {"type": "integer"}, "ratio": {"type": "number"}, "name": {"type": "string", "maxLength": 20},
            "when": {"type": "string", "format": "date-time"}, "port": {"x-kubernetes-int-or-string": true},
            "max-size": {"type": "integer"},
            "list": {"type": "array", "maxItems": 10, "items": {"type": "object", "properties": {"a": {"type": "string"}}}},
            "wide": {"type": "array", "items": {"type": "string"}},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        }});
        Schema::from_openapi(&document).expect("a schema")
    }

    fn look(text: &str) -> Result<(String, u64), String> {
        let (schema, program) = (schema(), env().compile(text).expect("an expression"));
        check(program.expression(), &[("self", Type::of(&schema))])
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
    #[case("self.list.sortBy(item, item.a).slice(0, 2).map(item, item.a).distinct().sort()", "list(string)")]
    #[case("self.wide.reverse()", "list(string)")]
    #[case("self.name == null", "bool")]
    #[case("self.?name.optMap(x, quantity(x)).orValue(quantity('1')).add(1)", "Quantity")]
    #[case("format.named('uuid').value().validate(self.name).orValue([])", "list(string)")]
    #[case("ip(self.name).family() + cidr(self.name).ip().family()", "int")]
    #[case("url(self.name).getQuery()['a'][0] + string(ip(self.name))", "string")]
    #[case("'%s'.format([self.name, self.size])", "string")]
    fn an_expression_has_a_type(#[case] text: &str, #[case] expected: &str) {
        assert_eq!(look(text).map(|(ty, _)| ty).as_deref(), Ok(expected));
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
    fn a_mistake_is_told_in_words(#[case] text: &str, #[case] expected: &str) {
        let error = look(text).expect_err("a mistake");
        assert!(error.contains(expected), "{error}");
    }

    #[test]
    fn cost_grows_with_what_the_schema_leaves_open() {
        let cost = |text: &str| look(text).expect("an expression").1;
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
