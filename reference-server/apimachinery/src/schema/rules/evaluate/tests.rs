use rstest::rstest;
use serde_json::json;

use super::*;
use crate::schema::meta::with_type_meta;

fn schema() -> Schema {
    let rule = |text: &str| json!([{"rule": text}]);
    let document = json!({
        "type": "object",
        "x-kubernetes-validations": [{
            "rule": "self.metadata.name != 'bad'", "message": "must be good",
        }],
        "properties": {"spec": {
            "type": "object",
            "x-kubernetes-validations": [{
                "rule": "!has(self.low) || self.low < self.high",
                "messageExpression": "'must be below ' + 'high'",
                "reason": "FieldValueForbidden", "fieldPath": ".low",
            }],
            "properties": {
                "low": {"type": "integer"},
                "high": {"type": "integer"},
                "fixed": {
                    "type": "string", "x-kubernetes-validations": rule("self == oldSelf"),
                },
                "counter": {"type": "integer", "x-kubernetes-validations": [
                    {"rule": "self >= oldSelf.orValue(5)", "optionalOldSelf": true},
                ]},
                "maybe": {
                    "type": "string", "nullable": true,
                    "x-kubernetes-validations": rule("self.size() > 1"),
                },
                "list": {
                    "type": "array", "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                    "items": {
                        "type": "object",
                        "properties": {"name": {"type": "string"}, "n": {"type": "integer"}},
                        "x-kubernetes-validations": [
                            {"rule": "self.n >= oldSelf.n"}, {"rule": "self.n < 9"},
                        ],
                    },
                },
                "set": {
                    "type": "array", "x-kubernetes-list-type": "set",
                    "items": {
                        "type": "integer", "x-kubernetes-validations": rule("self > 0"),
                    },
                },
                "map": {
                    "type": "object",
                    "additionalProperties": {
                        "type": "integer", "x-kubernetes-validations": rule("self > 0"),
                    },
                },
            },
        }},
    });
    with_type_meta(Schema::from_openapi(&document).expect("a schema"))
}

/// Returns the fields with violated rules.
fn broken(new: &Value, old: Option<&Value>) -> Vec<String> {
    let object = |spec: &Value| json!({"metadata": {"name": "good"}, "spec": spec});
    let old = old.map(object);
    let errors = schema().judge(&object(new), old.as_ref()).errors;
    errors.into_iter().map(|error| error.field).collect()
}

#[rstest]
#[case(json!({"low": 1, "high": 2}), &[])]
#[case(json!({"low": 3, "high": 2}), &["spec.low"])]
#[case(json!({"low": 3}), &["spec"])]
#[case(json!({"fixed": "a"}), &[])]
#[case(json!({"counter": 4}), &["spec.counter"])]
#[case(json!({"counter": 5}), &[])]
#[case(json!({"maybe": null}), &[])]
#[case(json!({"maybe": "a"}), &["spec.maybe"])]
#[case(json!({"list": [{"name": "a", "n": 1}, {"name": "b", "n": 9}]}), &["spec.list[1]"])]
#[case(json!({"map": {"a": 1, "b": 0}}), &["spec.map[b]"])]
fn rules_apply_to_a_new_object(#[case] spec: Value, #[case] fields: &[&str]) {
    assert_eq!(broken(&spec, None), fields);
}

#[rstest]
#[case(json!({"low": 3, "high": 2}), &["spec.low"], &[])]
#[case(json!({"set": [0]}), &["spec.set[0]"], &[])]
#[case(json!({"low": 3}), &[], &["spec"])]
fn an_unchanged_violation_is_a_warning_unless_the_rule_fails(
    #[case] spec: Value,
    #[case] warnings: &[&str],
    #[case] errors: &[&str],
) {
    let object = |name: &str| json!({"metadata": {"name": name}, "spec": spec});
    let judgement = schema().judge(&object("new"), Some(&object("old")));
    let fields = |errors: Vec<FieldError>| -> Vec<String> {
        errors.into_iter().map(|error| error.field).collect()
    };
    assert_eq!(fields(judgement.warnings), warnings);
    assert_eq!(fields(judgement.errors), errors);
}

#[rstest]
#[case(json!({"fixed": "a"}), json!({"fixed": "b"}), &["spec.fixed"])]
#[case(json!({"fixed": "a"}), json!({}), &[])]
#[case(json!({"counter": 7}), json!({"counter": 6}), &["spec.counter"])]
#[case(json!({"low": 3, "high": 2}), json!({"low": 3, "high": 2}), &[])]
#[case(json!({"low": 3, "high": 2}), json!({"low": 4, "high": 2}), &["spec.low"])]
#[case(json!({"list": [{"name": "a", "n": 5}, {"name": "b", "n": 2}]}),
       json!({"list": [{"name": "b", "n": 2}, {"name": "a", "n": 5}]}), &[])]
#[case(
    json!({"list": [{"name": "a", "n": 5}]}),
    json!({"list": [{"name": "b", "n": 1}, {"name": "a", "n": 4}]}),
    &["spec.list[1]"]
)]
#[case(json!({"set": [0]}), json!({"set": [0], "low": 1, "high": 2}), &[])]
#[case(json!({"set": [0]}), json!({"set": [0, 1]}), &["spec.set[0]"])]
fn rules_apply_to_the_changed_parts(
    #[case] old: Value,
    #[case] new: Value,
    #[case] fields: &[&str],
) {
    assert_eq!(broken(&new, Some(&old)), fields);
}

/// Returns the messages of the violations of one rule.
fn violations(rule: &str, object: &Value) -> Vec<String> {
    let integer = json!({"type": "integer", "nullable": true});
    let texts = |kind: &str| {
        json!({
            "type": "array", "x-kubernetes-list-type": kind, "items": {"type": "string"},
        })
    };
    let pairs = json!({
        "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a-b"],
        "items": {"type": "object", "properties": {"a-b": integer, "v": integer}},
    });
    let document = json!({
        "type": "object", "x-kubernetes-validations": [{"rule": rule}],
        "x-kubernetes-preserve-unknown-fields": true,
        "properties": {
            "n": integer, "set": texts("set"), "other": texts("set"), "list": texts("atomic"),
            "pairs": pairs, "namespace": integer, "a-b": integer,
            "map": {"type": "object", "additionalProperties": integer},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            "any": {"type": "object", "additionalProperties": true},
            "one": {"type": "object", "properties": {"x": integer, "y": integer}},
        },
    });
    let schema = Schema::from_openapi(&document).expect("a schema");
    assert_eq!(schema.broken_rules, [], "{rule}");
    let errors = schema.judge(object, None).errors;
    errors.into_iter().map(|error| error.message).collect()
}

#[rstest]
#[case("!has(self.n) && !self.?n.hasValue() && !('n' in dyn(self)) && dyn(self).all(k, k != 'q')")]
#[case("has(self.map.a) && dyn(self.map.a) == null && 'a' in self.map && self.map.size() == 2")]
#[case("!has(dyn(self.free).x) && !has(dyn(self).unknown) && dyn(self.free).size() == 1")]
#[case("has(self.any) && !has(dyn(self.any).x) && dyn(self.any).size() == 1")]
#[case("self.namespace == 4 && self.__namespace__ == 4 && has(self.namespace)")]
#[case("self.a__dash__b == 5 && dyn(self)['a-b'] == 5 && dyn(self)['a__dash__b'] == 5")]
#[case("dyn(self).exists(k, k == 'a__dash__b') && !('a__other__b' in dyn(self))")]
#[case("self.set == self.other && self.other == self.set && self.set != self.list")]
#[case("self.list != self.set && self.set == ['b', 'a'] && ['b', 'a'] != self.set")]
#[case("self.set + ['c', 'a', 'c'] == ['a', 'b', 'c'] && (self.set + ['c']).size() == 3")]
#[case("self.list + self.set == ['c', 'a', 'b']")]
#[case("self.set in [self.other] && !(self.set in [['b', 'a']]) && 'a' in self.set")]
#[case("self.pairs == self.pairs.reverse() && self.pairs.reverse() != self.pairs")]
#[case("(self.pairs + self.pairs).size() == 2 && self.pairs.map(p, p.a__dash__b) == [1, 2]")]
#[case("(self.pairs + self.pairs.map(p, p)).map(p, p.v) == [3, 4]")]
#[case("self.one == self.one && dyn(self.one) == {'x': 1, 'y': 2} && self.one.x == 1")]
#[case("self.set.sort() == self.other.sort() && self.set.join() == 'ab' && self.set[1] == 'b'")]
#[case("self.set.filter(x, x != 'a') == ['b'] && sets.contains(self.set, ['a'])")]
#[case("type(ip('::1')) == net.IP && type(quantity('1')) == kubernetes.Quantity")]
#[case("type(timestamp(1)) == google.protobuf.Timestamp && type(1) != google.protobuf.Duration")]
#[case("type(optional.of(1)) == optional_type")]
fn values_of_a_schema_have_their_own_rules(#[case] rule: &str) {
    let object = json!({
        "n": null, "namespace": 4, "a-b": 5, "unknown": 1, "map": {"a": null, "b": 1},
        "set": ["a", "b"], "other": ["b", "a"], "list": ["c"],
        "pairs": [{"a-b": 1, "v": 3}, {"a-b": 2, "v": 4}],
        "free": {"x": 1}, "any": {"x": 1}, "one": {"x": 1, "y": 2},
    });
    assert_eq!(violations(rule, &object), Vec::<String>::new());
}

#[test]
fn a_null_field_is_no_key() {
    let messages = violations("self.n == 1", &json!({"n": null}));
    assert!(messages[0].contains("no such key: n evaluating rule"), "{messages:?}");
}

#[rstest]
#[case(".spec", "s.spec")]
#[case(".map.x", "s.map[x]")]
#[case(".map['x']", "s.map[x]")]
#[case(r".map['x\'y.z']", "s.map[x'y.z]")]
#[case("['spec']['a-b']", "s.spec.a-b")]
#[case("", "s")]
fn the_path_of_a_violation_is_normalized(#[case] field: &str, #[case] expected: &str) {
    let document = json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {"a-b": {"type": "string"}}},
        "map": {"type": "object", "additionalProperties": {"type": "string"}},
    }, "x-kubernetes-validations": [{"rule": "true"}]});
    let schema = Schema::from_openapi(&document).expect("a schema");
    let rule = Rule { field: field.to_owned(), ..Rule::clone(&schema.rules[0]) };
    assert_eq!(rule.place(&schema, Path::Root.field("s")), expected);
}

#[rstest]
#[case("'x' + string(self)", false, "x1")]
#[case("'x'.replace('', self == 1 ? 'ab' : '')", false, "abxab")]
#[case("lists.range(5121).map(i, 'x').join()", false, "failed rule: self > 1")]
#[case("oldSelf.hasValue() ? 'a' : 'b'", true, "failed rule: oldSelf.orValue(0) > 9")]
fn messages_are_evaluated(#[case] text: &str, #[case] looks_back: bool, #[case] expected: &str) {
    let rule = if looks_back { "oldSelf.orValue(0) > 9" } else { "self > 1" };
    let mut rule = json!({"rule": rule, "messageExpression": text});
    if looks_back {
        rule["optionalOldSelf"] = json!(true);
    }
    let document = json!({"type": "integer", "x-kubernetes-validations": [rule]});
    let schema = Schema::from_openapi(&document).expect("a schema");
    assert_eq!(schema.broken_rules, []);
    let errors = schema.judge(&json!(1), looks_back.then_some(&json!(2))).errors;
    assert_eq!(errors[0].message, format!("Invalid value: 1: {expected}"));
}

#[rstest]
#[case("dyn(self.namespace) < dyn('a')", "'no such overload': call arguments did not match")]
#[case("dyn(1) || false", "'no such overload': call arguments did not match")]
#[case("bool(dyn(self.namespace))", "'no such overload: bool(int)': call arguments")]
#[case("dyn(self.namespace).size() == 1", "'no such overload: size(int)': call arguments")]
#[case("int('a' + 'b') == 1", "type conversion error from 'string' to 'int' evaluating")]
#[case("self.list.filter(x, false).max() == 'a'", "max called on empty list evaluating rule")]
fn errors_have_the_words_of_kubernetes(#[case] rule: &str, #[case] expected: &str) {
    let messages = violations(rule, &json!({"namespace": 1, "list": []}));
    assert!(messages[0].contains(expected), "{messages:?}");
}

#[test]
fn patterns_have_the_syntax_of_go() {
    let schema = |rule: &str| {
        let rules = json!([{ "rule": rule }]);
        let document = json!({
            "type": "object", "x-kubernetes-validations": rules,
            "properties": {"a": {"type": "string", "maxLength": 20}},
        });
        Schema::from_openapi(&document)
    };
    for rule in ["self.a.matches('(?x)a')", "matches(self.a, 'a**')", "self.a.find('[')=='b'"] {
        let errors = schema(rule).expect("a schema").broken_rules;
        let is_rejected = ["invalid matches argument", "instantiation failed: error parsing"];
        let message = &errors[0].message;
        assert!(is_rejected.iter().any(|why| message.contains(why)), "{errors:?}");
    }
    let schema = schema("'b'.matches(self.a)").expect("a schema");
    assert_eq!(schema.judge(&json!({"a": r"\p{Letter}"}), None).errors, []);
    let errors = schema.judge(&json!({"a": r"\h"}), None).errors;
    assert!(errors[0].message.contains("invalid escape sequence"), "{errors:?}");
}

#[test]
fn values_without_a_type_have_no_rules() {
    let document = json!({
        "x-kubernetes-preserve-unknown-fields": true,
        "x-kubernetes-validations": [{"rule": "self == 1"}],
    });
    let schema = Schema::from_openapi(&document).expect("a schema");
    let error = &schema.broken_rules[0];
    assert_eq!(error.field, "x-kubernetes-validations");
    assert!(error.message.contains("unable to convert structural schema"), "{error}");
}

#[test]
fn an_expensive_evaluation_is_rejected() {
    let document = json!({
        "type": "object",
        "x-kubernetes-validations": [
            {"rule": "self.items.all(x, self.items.all(y, x + y >= 0))"},
            {"rule": "false"},
        ],
        "properties": {
            "items": {"type": "array", "maxItems": 1000, "items": {"type": "integer"}},
        },
    });
    let schema = Schema::from_openapi(&document).expect("a schema");
    let messages = |count: usize| {
        let errors = schema.judge(&json!({"items": vec![1; count]}), None).errors;
        errors.into_iter().map(|error| error.message).collect::<Vec<_>>()
    };
    assert_eq!(messages(10), ["Invalid value: failed rule: false"]);
    let expensive = messages(1000);
    assert_eq!(expensive.len(), 1, "{expensive:?}");
    assert!(expensive[0].contains("call cost exceeds limit for rule: self.items"));
}

#[test]
fn an_object_has_a_budget() {
    let document = json!({
        "type": "array",
        "items": {
            "type": "string", "maxLength": 3000,
            "x-kubernetes-validations": [{"rule": "self.contains(self)"}],
        },
    });
    let schema = Schema::from_openapi(&document).expect("a schema");
    let violations =
        |count: usize| schema.judge(&json!(vec!["x".repeat(3000); count]), None).errors;
    assert_eq!(violations(111), []);
    let errors = violations(200);
    assert_eq!(errors.len(), 1);
    assert!(errors[0].message.contains("running out of cost budget"), "{errors:?}");
    assert_eq!(errors[0].field, "[111]");
}

#[test]
fn a_violation_has_a_field_a_reason_and_a_message() {
    let object =
        json!({"metadata": {"name": "bad"}, "spec": {"low": 3, "high": 2, "map": {"a": 0}}});
    let errors = schema().judge(&object, None).errors;
    let reported: Vec<_> = errors
        .iter()
        .map(|error| (error.field.as_str(), error.reason, error.message.as_str()))
        .collect();
    assert_eq!(
        reported,
        [
            ("", CauseReason::FieldValueInvalid, "Invalid value: must be good"),
            ("spec.low", CauseReason::FieldValueForbidden, "Forbidden: must be below high"),
            (
                "spec.map[a]",
                CauseReason::FieldValueInvalid,
                "Invalid value: 0: failed rule: self > 0"
            ),
        ]
    );
}
