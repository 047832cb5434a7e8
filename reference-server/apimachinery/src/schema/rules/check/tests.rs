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
        "free": {"x-kubernetes-preserve-unknown-fields": true},
        "frees": {"type": "array", "items": {"x-kubernetes-preserve-unknown-fields": true}},
        "open": {"type": "object", "additionalProperties": true},
    }});
    Schema::from_openapi(&document).expect("a schema")
}

fn check_text(text: &str) -> Result<(String, u64), String> {
    let (schema, program) = (schema(), env().compile(text).expect("an expression"));
    let parsed = Parsed { expression: program.expression(), source: program.source_info() };
    check(parsed, &schema, false).map(|checked| (checked.ty.to_string(), checked.cost))
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
#[case("timestamp(self.size)", "timestamp")]
#[case("self.?name.orValue('none')", "string")]
#[case("optional.of(1).value() + 1", "int")]
#[case("[1, 2].map(x, x * 2).sum()", "int")]
#[case(
    "self.list.sortBy(item, item.a).slice(0, 2).map(item, item.a).distinct().sort()",
    "list(string)"
)]
#[case("self.wide.reverse()", "list(string)")]
#[case("self.when == null && self.list[0] != null && self.port == null", "bool")]
#[case("self.labels.all(k, v, k != v) && self.list.exists(i, v, v.a == string(i))", "bool")]
#[case("self.labels.transformMap(k, v, size(v))", "map(string, int)")]
#[case("self.wide.transformMapEntry(i, v, {v: i})", "map(string, int)")]
#[case("self.wide.transformList(i, v, i > 0, v)", "list(string)")]
#[case("[?self.?name]", "list(string)")]
#[case("{?'a': self.?size}", "map(string, int)")]
#[case("self.wide.first().orValue(self.name)", "string")]
#[case("[self.wide].flatten() + lists.range(2).map(x, string(x))", "list(string)")]
#[case("self.?name.optMap(x, quantity(x)).orValue(quantity('1')).add(1)", "kubernetes.Quantity")]
#[case("format.named('uuid').value().validate(self.name).orValue([])", "list(string)")]
#[case("ip(self.name).family() + cidr(self.name).ip().family()", "int")]
#[case("url(self.name).getQuery()['a'][0] + string(ip(self.name))", "string")]
#[case("'%s: %d'.format([self.name, self.size])", "string")]
fn an_expression_has_a_type(#[case] text: &str, #[case] expected: &str) {
    assert_eq!(check_text(text).map(|(ty, _)| ty).as_deref(), Ok(expected));
}

#[rstest]
#[case("self.missing", "undefined field 'missing'")]
#[case("self.free", "undefined field 'free'")]
#[case("self.frees == []", "undefined field 'frees'")]
#[case("self.open.a == 1", "undefined field 'a'")]
#[case("self.open.size() == 1", "applied to 'object.()'")]
#[case("self.size.more", "type 'int' does not support field selection")]
#[case("self.name == null", "applied to '(string, null)'")]
#[case("self.list == null", "null)'")]
#[case("[1, 'a'].size() == 2", "expected type 'int' but found 'string'")]
#[case("{'a': 1, 'b': 2.0}.size() == 2", "expected type 'int' but found 'double'")]
#[case("duration('x') == duration('1h')", "invalid duration argument")]
#[case("timestamp('x') == self.when", "invalid timestamp argument")]
#[case("timestamp(253402300800) == self.when", "invalid timestamp argument")]
#[case("timestamp(1u) == self.when", "applied to '(uint)'")]
#[case("[self.port, 1].size() == 2", "expected type 'dyn' but found 'int'")]
#[case("'%s'.format([self.name, self.size])", "(expected 1, got 2)")]
#[case("'%d'.format([self.name])", "can only be used on integers, was given string")]
#[case("'%s'.format([quantity(self.name)])", "was given kubernetes.Quantity")]
#[case("[?self.size]", "expected type 'optional_type(int)' but found 'int'")]
#[case("self.size == 'a'", "applied to '(int, string)'")]
#[case("self.name + 1 == ''", "applied to '(string, int)'")]
#[case("other.size", "undeclared reference to 'other'")]
#[case("self.name.shout()", "undeclared reference to 'shout'")]
#[case("self.size && true", "expected type 'bool' but found 'int'")]
#[case("self.size.all(x, true)", "cannot be range of a comprehension")]
#[case("self.list.all(x, x.b == '')", "undefined field 'b'")]
#[case("self.list.all(x, x.a)", "expected type 'bool' but found 'string'")]
#[case("quantity('1') == url('/')", "applied to '(kubernetes.Quantity, kubernetes.URL)'")]
#[case("quantity(1)", "applied to '(int)'")]
#[case("Widget{}", "undeclared reference to 'Widget'")]
#[case("self.wide.existsOne(x, x == '')", "undeclared reference to 'existsOne'")]
#[case("self.wide.all(__result__, true)", "overwrites accumulator variable")]
#[case("[self.wide].sort()", "no matching overload for 'sort' applied to 'list(list(string)).()'")]
#[case("self.list.map(x, x.a).max() > [quantity('1')].min()", "'list(kubernetes.Quantity).()'")]
#[case("jsonpatch.escapeKey('a')", "undeclared reference to 'jsonpatch'")]
#[case(
    "quantity('1').sign()",
    "no matching overload for 'sign' applied to 'kubernetes.Quantity.()'"
)]
fn an_invalid_expression_is_rejected_with_a_message(#[case] text: &str, #[case] expected: &str) {
    let error = check_text(text).expect_err("a mistake");
    assert!(error.contains(expected), "{error}");
}

/// kube-apiserver 1.36.2 reported these mistakes.
#[rstest]
#[case(
    "self.zz == foo(self.yy)",
    "ERROR: <input>:1:5: undefined field 'zz'\n | self.zz == foo(self.yy)\n | ....^\n\
     ERROR: <input>:1:15: undeclared reference to 'foo' (in container '')\n \
     | self.zz == foo(self.yy)\n | ..............^\n\
     ERROR: <input>:1:20: undefined field 'yy'\n | self.zz == foo(self.yy)\n \
     | ...................^"
)]
#[case(
    "self.name.indexOf(1) == 1",
    "ERROR: <input>:1:18: found no matching overload for 'indexOf' applied to 'string.(int)'\n \
     | self.name.indexOf(1) == 1\n | .................^"
)]
#[case(
    "duration('x') == self.zz.yy",
    "ERROR: <input>:1:22: undefined field 'zz'\n | duration('x') == self.zz.yy\n \
     | .....................^"
)]
fn all_mistakes_are_reported(#[case] text: &str, #[case] expected: &str) {
    assert_eq!(check_text(text), Err(expected.to_owned()));
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
