//! Mistakes in the validation rules of a schema: those that cannot be evaluated, and those that cost too much.

use crate::faults::{Fault, Faults};
use crate::schema::rules::{KEYWORD, multiplicity};
use crate::schema::{FieldError, ListType, Path, Schema};

/// Most steps of one rule in one object.
const BUDGET_OF_RULE: u64 = 10_000_000;
/// Most steps of all rules in one object.
const BUDGET_OF_SCHEMA: u64 = 100_000_000;

/// Mistakes in the rules of a schema, which stands at `path`.
pub(super) fn validate(schema: &Schema, path: Path<'_>, faults: Faults) -> Vec<FieldError> {
    let mut check = Check { errors: Vec::new(), total: 0, faults };
    check.node(schema, path, 1, true);
    if check.total > BUDGET_OF_SCHEMA && check.errors.is_empty() {
        let why = format!(
            "x-kubernetes-validations estimated cost total exceeds budget {}",
            excess(check.total, BUDGET_OF_SCHEMA)
        );
        check.errors.push(FieldError::forbidden(path, &why));
    }
    check.errors
}

struct Check {
    errors: Vec<FieldError>,
    total: u64,
    faults: Faults,
}

impl Check {
    /// `times` is how often a value of this schema can stand in one object; `traceable` whether the value that it had
    /// before a change can be told.
    fn node(&mut self, schema: &Schema, path: Path<'_>, times: u64, traceable: bool) {
        if !schema.has_rules {
            return;
        }
        if !self.faults.on(Fault::BrokenRulesAccepted) {
            self.errors.extend(schema.broken_rules.iter().cloned());
        }
        let at = path.field(KEYWORD);
        for (index, rule) in schema.rules.iter().enumerate() {
            let at = at.index(index);
            let at = at.field("rule");
            if rule.looks_back() && !traceable && !self.faults.on(Fault::UntraceableRulesAccepted) {
                let why = "oldSelf cannot be used where the value before a change cannot be told, below a list that is no map";
                self.errors.push(FieldError::invalid(at, &rule.text().into(), why));
            }
            let cost = rule.cost().saturating_mul(times);
            if self.faults.on(Fault::CostlyRulesAccepted) {
                continue;
            }
            self.total = self.total.saturating_add(cost);
            if cost > BUDGET_OF_RULE {
                let why = format!("estimated rule cost exceeds budget {}", excess(cost, BUDGET_OF_RULE));
                self.errors.push(FieldError::forbidden(at, &why));
            }
        }
        let below = times.saturating_mul(multiplicity(schema));
        if let Some(items) = &schema.items {
            self.node(items, path.field("items"), below, traceable && schema.list_type == ListType::Map);
        }
        if let Some(values) = &schema.additional_properties {
            self.node(values, path.field("additionalProperties"), below, traceable);
        }
        let properties = path.field("properties");
        for (name, child) in &schema.properties {
            self.node(child, properties.key(name), times, traceable);
        }
    }
}

fn excess(cost: u64, budget: u64) -> String {
    let factor = cost.div_ceil(budget);
    format!(
        "by factor of {factor} (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where \
         arrays, maps, and strings are declared)"
    )
}

#[cfg(test)]
mod tests {
    use proptest::proptest;
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    /// The mistakes of a schema whose field `spec` is this.
    fn mistakes(spec: &Value, faults: Faults) -> Vec<(String, String)> {
        let document = json!({"type": "object", "properties": {"spec": spec}});
        let schema = Schema::from_openapi(&document).expect("a schema");
        validate(&schema, Path::Root, faults).into_iter().map(|error| (error.field, error.message)).collect()
    }

    fn items(list_type: &str, rule: &str) -> Value {
        json!({
            "type": "array", "maxItems": 10, "x-kubernetes-list-type": list_type,
            "x-kubernetes-list-map-keys": if list_type == "map" { json!(["name"]) } else { json!([]) },
            "items": {
                "type": "object", "required": ["name"], "properties": {"name": {"type": "string"}},
                "x-kubernetes-validations": [{"rule": rule}],
            },
        })
    }

    #[rstest]
    #[case(json!({"type": "integer", "x-kubernetes-validations": [{"rule": "self > 1 && self == oldSelf"}]}))]
    #[case(items("map", "self.name == oldSelf.name"))]
    #[case(items("atomic", "self.name != ''"))]
    fn good_rules(#[case] spec: Value) {
        assert_eq!(mistakes(&spec, Faults::none()), []);
    }

    #[rstest]
    #[case(json!({"rule": ""}), "rule", "rule is not specified")]
    #[case(json!({"rule": "self >"}), "rule", "compilation failed")]
    #[case(json!({"rule": "self == 'a'"}), "rule", "found no matching overload")]
    #[case(json!({"rule": "self + 1"}), "rule", "must evaluate to a bool")]
    #[case(json!({"rule": "self > 1", "messageExpression": "self"}), "messageExpression", "must evaluate to a string")]
    #[case(json!({"rule": "self > 1", "message": "a\nb"}), "message", "line breaks")]
    #[case(json!({"rule": "self > 1", "reason": "Odd"}), "reason", "supported values")]
    #[case(json!({"rule": "self > 1", "fieldPath": ".missing"}), "fieldPath", "valid path")]
    #[case(json!({"rule": "self > 1", "optionalOldSelf": true}), "optionalOldSelf", "oldSelf is not used")]
    fn a_mistake_has_a_place_and_a_reason(#[case] rule: Value, #[case] field: &str, #[case] message: &str) {
        let found = mistakes(&json!({"type": "integer", "x-kubernetes-validations": [rule]}), Faults::none());
        let [(place, text)] = found.as_slice() else { panic!("one mistake expected: {found:?}") };
        assert_eq!(place, &format!("properties[spec].x-kubernetes-validations[0].{field}"));
        assert!(text.contains(message), "{text}");
    }

    #[rstest]
    #[case(Fault::BrokenRulesAccepted, json!({"type": "integer", "x-kubernetes-validations": [{"rule": "self."}]}))]
    #[case(Fault::UntraceableRulesAccepted, items("atomic", "self.name == oldSelf.name"))]
    #[case(Fault::CostlyRulesAccepted, json!({
        "type": "array", "items": {"type": "string"},
        "x-kubernetes-validations": [{"rule": "self.all(x, self.all(y, x == y))"}],
    }))]
    fn faults(#[case] fault: Fault, #[case] spec: Value) {
        assert_eq!(mistakes(&spec, Faults::none()).len(), 1);
        assert_eq!(mistakes(&spec, fault.into()), []);
    }

    #[rstest]
    #[case("1", "+1", " == 1")]
    #[case("self", ".a", " == 1")]
    #[case("self", "[0]", " == 1")]
    #[case("", "(", "1")]
    #[case("", "[", "1")]
    #[case("", "!", "true")]
    #[case("", "-", "1 == 1")]
    #[case("true", " && true", "")]
    #[case("true", " ? true : true", "")]
    #[case("self", ".all(x, self", "")]
    #[case("", "{1: ", "1")]
    #[case("'", "\\u", "'")]
    fn a_rule_of_any_depth_is_read_or_refused(#[case] start: &str, #[case] again: &str, #[case] end: &str) {
        for times in [10, 90, 100, 300, 8_000] {
            let rule = format!("{start}{}{end}", again.repeat(times));
            mistakes(
                &json!({"type": "integer", "x-kubernetes-validations": [{"rule": rule}]}),
                Faults::none(),
            );
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(rule in "(self|oldSelf|1|0x|1u|'a'|b'|\"|\\\\|\\.|\\?|:|\\(|\\)|\\[|\\]|\\{|\\}|==|&&|!|-|,| |in|has|all|x|size|\\PC){0,12}") {
            mistakes(&json!({"type": "string", "x-kubernetes-validations": [{"rule": rule}]}), Faults::none());
        }
    }
}
