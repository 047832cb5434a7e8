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
        assert!(errors[0].message.contains("argument: error parsing"), "{errors:?}");
    }
    let schema = schema("'b'.matches(self.a)").expect("a schema");
    assert_eq!(schema.judge(&json!({"a": r"\p{Letter}"}), None).errors, []);
    let errors = schema.judge(&json!({"a": r"\h"}), None).errors;
    assert!(errors[0].message.contains("invalid escape sequence"), "{errors:?}");
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
