//! Validates the rules of a schema: errors in expressions, and excessive costs.

use kubeproof_apimachinery::schema::rules::{KEYWORD, cardinality, multiplicity};
use kubeproof_apimachinery::schema::{FieldError, ListType, Path, Schema};

/// The most steps of one rule in one object.
const BUDGET_OF_RULE: u64 = 10_000_000;
/// The most steps of all rules in one object.
const BUDGET_OF_SCHEMA: u64 = 100_000_000;

/// Returns the errors in the rules of a schema at `path`.
pub(super) fn validate(schema: &Schema, path: Path<'_>) -> Vec<FieldError> {
    let mut check = Check { errors: Vec::new(), total: 0 };
    check.node(schema, path, Some(1), true);
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
}

impl Check {
    /// `times` is the number of values of this schema in one object, if the lists and maps above it
    /// have limits. `traceable` means that the old value is known.
    fn node(&mut self, schema: &Schema, path: Path<'_>, times: Option<u64>, traceable: bool) {
        if !schema.has_rules {
            return;
        }
        self.errors.extend(schema.broken_rules.iter().cloned());
        let keyword = path.field(KEYWORD);
        for (index, rule) in schema.rules.iter().enumerate() {
            let item = keyword.index(index);
            let at = item.field("rule");
            if rule.looks_back() && !traceable {
                let why = "oldSelf cannot be used below a list that is not a map, because its old \
                           value is ambiguous";
                self.errors.push(FieldError::invalid(at, &rule.text().into(), why));
            }
            let times = times.unwrap_or_else(|| cardinality(schema));
            self.pay("estimated rule cost", rule.cost().saturating_mul(times), at);
            let what = "estimated messageExpression cost";
            self.pay(what, rule.message_cost(), item.field("messageExpression"));
        }
        let below =
            times.zip(multiplicity(schema)).map(|(times, factor)| times.saturating_mul(factor));
        if let Some(items) = &schema.items {
            self.node(
                items,
                path.field("items"),
                below,
                traceable && schema.list_type == ListType::Map,
            );
        }
        if let Some(values) = &schema.additional_properties {
            self.node(values, path.field("additionalProperties"), below, traceable);
        }
        let properties = path.field("properties");
        for (name, child) in &schema.properties {
            self.node(child, properties.key(name), times, traceable);
        }
    }

    /// Adds the cost of an expression, and reports it if it is too high.
    fn pay(&mut self, what: &str, cost: u64, path: Path<'_>) {
        self.total = self.total.saturating_add(cost);
        if cost > BUDGET_OF_RULE {
            let why = format!("{what} exceeds budget {}", excess(cost, BUDGET_OF_RULE));
            self.errors.push(FieldError::forbidden(path, &why));
        }
    }
}

fn excess(cost: u64, budget: u64) -> String {
    let factor = cost.div_ceil(budget);
    format!(
        "by factor of {factor} (try simplifying the rule, or adding maxItems, maxProperties, and \
         maxLength where arrays, maps, and strings are declared)"
    )
}

#[cfg(test)]
mod tests {
    use proptest::proptest;
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    /// Returns the errors of a schema with this field `spec`.
    fn mistakes(spec: &Value) -> Vec<(String, String)> {
        let document = json!({"type": "object", "properties": {"spec": spec}});
        let schema = Schema::from_openapi(&document).expect("a schema");
        validate(&schema, Path::Root)
            .into_iter()
            .map(|error| (error.field, error.message))
            .collect()
    }

    fn items(list_type: &str, rule: &str) -> Value {
        let map_keys = if list_type == "map" { json!(["name"]) } else { json!([]) };
        json!({
            "type": "array", "maxItems": 10, "x-kubernetes-list-type": list_type,
            "x-kubernetes-list-map-keys": map_keys,
            "items": {
                "type": "object", "required": ["name"], "properties": {"name": {"type": "string"}},
                "x-kubernetes-validations": [{"rule": rule}],
            },
        })
    }

    #[rstest]
    #[case(json!({
        "type": "integer", "x-kubernetes-validations": [{"rule": "self > 1 && self == oldSelf"}],
    }))]
    #[case(items("map", "self.name == oldSelf.name"))]
    #[case(items("atomic", "self.name != ''"))]
    fn good_rules(#[case] spec: Value) {
        assert_eq!(mistakes(&spec), []);
    }

    #[rstest]
    #[case(json!({"rule": ""}), "rule", "rule is not specified")]
    #[case(json!({"rule": "self >"}), "rule", "compilation failed")]
    #[case(json!({"rule": "self == 'a'"}), "rule", "found no matching overload")]
    #[case(json!({"rule": "self + 1"}), "rule", "must evaluate to a bool")]
    #[case(
        json!({"rule": "self > 1", "messageExpression": "self"}),
        "messageExpression",
        "must evaluate to a string"
    )]
    #[case(json!({"rule": "self > 1", "message": "a\nb"}), "message", "line breaks")]
    #[case(json!({"rule": "self > 1", "reason": "Odd"}), "reason", "supported values")]
    #[case(json!({"rule": "self > 1", "fieldPath": ".missing"}), "fieldPath", "valid path")]
    #[case(
        json!({"rule": "self > 1", "optionalOldSelf": true}),
        "optionalOldSelf",
        "oldSelf is not used"
    )]
    fn a_mistake_has_a_place_and_a_reason(
        #[case] rule: Value,
        #[case] field: &str,
        #[case] message: &str,
    ) {
        let found = mistakes(&json!({"type": "integer", "x-kubernetes-validations": [rule]}));
        let [(place, text)] = found.as_slice() else { panic!("one mistake expected: {found:?}") };
        assert_eq!(place, &format!("properties[spec].x-kubernetes-validations[0].{field}"));
        assert!(text.contains(message), "{text}");
    }

    fn texts(max_items: Option<u64>, max_length: Option<u64>, rule: &str) -> Value {
        let mut text = json!({"type": "string", "x-kubernetes-validations": [{"rule": rule}]});
        let mut list = json!({"type": "array"});
        if let Some(length) = max_length {
            text["maxLength"] = length.into();
        }
        if let Some(items) = max_items {
            list["maxItems"] = items.into();
        }
        list["items"] = text;
        list
    }

    /// The results are those of kube-apiserver 1.36.
    #[rstest]
    #[case::pattern(texts(Some(31), None, "self.matches('^a$')"), true)]
    #[case::pattern_of_too_many_texts(texts(Some(32), None, "self.matches('^a$')"), false)]
    #[case::parsed_texts_without_a_limit(texts(None, None, "isURL(self)"), true)]
    #[case::sized_texts_without_a_limit(texts(None, None, "self.size() < 9"), true)]
    #[case::short_texts(texts(None, Some(9), "self.matches('^a$')"), true)]
    #[case::long_texts(texts(None, Some(90), "self.matches('^a$')"), false)]
    #[case::long_texts_as_argument(texts(None, Some(90), "matches(self, '^a$')"), true)]
    #[case::keys_have_no_size(
        json!({
            "type": "object", "additionalProperties": {"type": "string"},
            "x-kubernetes-validations": [{"rule": "self.all(key, key.contains('a'))"}],
        }),
        true,
    )]
    #[case::values_have_a_size(
        json!({
            "type": "object", "additionalProperties": {"type": "string"},
            "x-kubernetes-validations": [{"rule": "self.all(key, self[key].contains('a'))"}],
        }),
        false,
    )]
    #[case::parts_of_a_text_have_no_size(
        json!({
            "type": "string",
            "x-kubernetes-validations": [{"rule": "self.split('/').all(x, x.contains('aaaa'))"}],
        }),
        false,
    )]
    fn expensive_rules_are_rejected(#[case] spec: Value, #[case] accepted: bool) {
        let found = mistakes(&spec);
        assert_eq!(found.is_empty(), accepted, "{found:?}");
        let costs = |(_, message): &(String, String)| message.contains("exceeds budget");
        assert!(found.iter().all(costs), "{found:?}");
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
    fn a_rule_of_any_depth_is_parsed_or_rejected(
        #[case] start: &str,
        #[case] again: &str,
        #[case] end: &str,
    ) {
        for times in [10, 90, 100, 300, 8_000] {
            let rule = format!("{start}{}{end}", again.repeat(times));
            mistakes(&json!({"type": "integer", "x-kubernetes-validations": [{"rule": rule}]}));
        }
    }

    proptest! {
        #[test]
        fn any_text_is_parsed_or_rejected(
            rule in "(self|oldSelf|1|0x|1u|'a'|b'|\"|\\\\|\\.|\\?|:|\\(|\\)|\\[|\\]|\\{|\\}\
                     |==|&&|!|-|,| |in|has|all|x|size|\\PC){0,12}"
        ) {
            mistakes(&json!({"type": "string", "x-kubernetes-validations": [{"rule": rule}]}));
        }
    }
}
