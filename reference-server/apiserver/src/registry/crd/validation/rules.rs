//! Validates the rules of a schema: their fields, errors in expressions, and excessive costs.

use std::sync::Arc;

use kubeproof_apimachinery::schema::rules::{KEYWORD, REASONS, cardinality, multiplicity};
use kubeproof_apimachinery::schema::{FieldError, Path, Schema};
use serde_json::{Value, json};

use super::super::text;
use super::field_path;

/// The most steps of one rule in one object.
const BUDGET_OF_RULE: u64 = 10_000_000;
/// The most steps of all rules in one object.
const BUDGET_OF_SCHEMA: u64 = 100_000_000;
/// The most rules that an error about the total cost names.
const MOST_EXPENSIVE: usize = 4;

/// Returns the errors in the fields of the rules of one schema, apart from expressions.
pub(super) fn syntax_errors(document: &Value, path: Path<'_>) -> Vec<FieldError> {
    let at = path.field(KEYWORD);
    let rules = document[KEYWORD].as_array().into_iter().flatten().enumerate();
    rules.flat_map(|(index, rule)| rule_errors(rule, document, at.index(index))).collect()
}

fn rule_errors(rule: &Value, document: &Value, path: Path<'_>) -> Vec<FieldError> {
    let mut errors: Vec<_> = text_error(rule, path).into_iter().collect();
    let given = text(rule, "messageExpression");
    if !given.is_empty() && given.trim().is_empty() {
        let why = "messageExpression must be non-empty if specified";
        errors.push(FieldError::required(path.field("messageExpression"), why));
    }
    let reason = &rule["reason"];
    let reasons = REASONS.map(|reason| Value::from(reason.as_str()));
    if !reason.is_null() && !reasons.contains(reason) {
        errors.push(FieldError::not_supported(path.field("reason"), reason, &reasons));
    }
    let (at, field) = (path.field("fieldPath"), text(rule, "fieldPath"));
    if !field.is_empty() {
        let invalid = |why: &str| FieldError::invalid(at, &json!(field), why);
        let is_blank = field.trim().is_empty();
        errors.extend(is_blank.then(|| invalid("must be non-empty if specified")));
        errors.extend(has_line_break(field).then(|| invalid("must not contain line breaks")));
        let is_unknown = field_path::resolve(field, document, true).is_err();
        errors.extend(is_unknown.then(|| invalid("must be a valid path")));
    }
    errors
}

/// Returns the first error in the text or the message of a rule.
fn text_error(rule: &Value, path: Path<'_>) -> Option<FieldError> {
    let (expression, message) = (text(rule, "rule").trim(), text(rule, "message"));
    let at = path.field("message");
    let invalid = |why: &str| Some(FieldError::invalid(at, &json!(message), why));
    if expression.is_empty() {
        Some(FieldError::required(path.field("rule"), "rule is not specified"))
    } else if !message.is_empty() && message.trim().is_empty() {
        invalid("must be non-empty if specified")
    } else if has_line_break(message.trim()) {
        invalid("must not contain line breaks")
    } else if has_line_break(expression) && message.is_empty() {
        let why = "message must be specified if rule contains line breaks";
        Some(FieldError::required(at, why))
    } else {
        None
    }
}

fn has_line_break(text: &str) -> bool {
    text.contains(['\n', '\r'])
}

/// A parsed schema, and the number of its values in one object if the lists and maps above it have
/// limits.
#[derive(Clone)]
pub(super) struct Scope {
    schema: Arc<Schema>,
    times: Option<u64>,
}

impl Scope {
    pub(super) fn root(schema: Schema) -> Self {
        Self { schema: schema.into(), times: Some(1) }
    }

    /// Returns the scope of a schema in this one.
    pub(super) fn child(&self, below: impl FnOnce(&Schema) -> Option<Arc<Schema>>) -> Option<Self> {
        let factor = multiplicity(&self.schema);
        let times = self.times.zip(factor).map(|(times, factor)| times.saturating_mul(factor));
        Some(Self { schema: below(&self.schema)?, times })
    }
}

/// Returns the errors in the expressions of one schema, and adds their costs. `uncorrelated` is the
/// place of the list or map below which old values are ambiguous.
pub(super) fn validate(
    scope: &Scope,
    uncorrelated: Option<&str>,
    costs: &mut Costs,
    path: Path<'_>,
) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let keyword = path.field(KEYWORD);
    let schema = &scope.schema;
    let whole = keyword.to_string();
    errors.extend(schema.broken_rules.iter().filter(|error| error.field == whole).cloned());
    let count = schema.extra.get(KEYWORD).and_then(Value::as_array).map_or(0, Vec::len);
    for index in 0..count {
        let item = keyword.index(index);
        let rule = schema.rules.iter().find(|rule| rule.index() == index);
        let at = item.field("rule");
        if let Some(rule) = rule {
            let times = scope.times.unwrap_or_else(|| cardinality(schema));
            let cost = rule.cost().saturating_mul(times);
            errors.extend(costs.add("estimated rule cost", cost, at));
        }
        let prefix = format!("{item}.");
        let broken = schema.broken_rules.iter().filter(|error| error.field.starts_with(&prefix));
        errors.extend(broken.cloned());
        let Some(rule) = rule else { continue };
        let cost = rule.message_cost();
        let what = "estimated messageExpression cost";
        errors.extend(costs.add(what, cost, item.field("messageExpression")));
        if let Some(place) = uncorrelated.filter(|_| rule.looks_back()) {
            let why = format!(
                "oldSelf cannot be used on the uncorrelatable portion of the schema within {place}"
            );
            errors.push(FieldError::invalid(at, &rule.text().into(), &why));
        }
    }
    errors
}

/// The costs of all rules of a schema.
#[derive(Default)]
pub(super) struct Costs {
    total: u64,
    /// The places of the most expensive rules, with their costs.
    highest: Vec<(u64, String)>,
}

impl Costs {
    /// Adds the cost of an expression. Returns an error if it is too high.
    fn add(&mut self, what: &str, cost: u64, path: Path<'_>) -> Option<FieldError> {
        self.total = self.total.saturating_add(cost);
        if cost >= BUDGET_OF_SCHEMA / 100 {
            self.highest.push((cost, path.to_string()));
            self.highest.sort_by_key(|(cost, _)| std::cmp::Reverse(*cost));
            self.highest.truncate(MOST_EXPENSIVE);
        }
        let error = || FieldError::forbidden(path, &excess(what, cost, BUDGET_OF_RULE));
        (cost > BUDGET_OF_RULE).then(error)
    }

    /// Returns the errors about the total cost.
    pub(super) fn total_errors(&self, path: Path<'_>) -> Vec<FieldError> {
        if self.total <= BUDGET_OF_SCHEMA {
            return Vec::new();
        }
        let why = "contributed to estimated rule cost total exceeding cost limit for entire \
                   OpenAPIv3 schema";
        let parts = self.highest.iter().map(|(_, place)| FieldError::forbidden(place, why));
        let what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
        let whole = FieldError::forbidden(path, &excess(what, self.total, BUDGET_OF_SCHEMA));
        parts.chain([whole]).collect()
    }
}

#[expect(clippy::cast_precision_loss, reason = "the message shows one decimal")]
fn excess(what: &str, cost: u64, budget: u64) -> String {
    let factor = cost as f64 / budget as f64;
    let factor = match factor {
        _ if factor > 100.0 => "more than 100x".to_owned(),
        _ if factor < 1.5 => format!("{factor:.6}x"),
        _ => format!("{factor:.1}x"),
    };
    format!(
        "{what} exceeds budget by factor of {factor} (try simplifying the rule, or adding \
         maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)"
    )
}

#[cfg(test)]
mod tests {
    use proptest::proptest;
    use rstest::rstest;
    use serde_json::{Value, json};

    use kubeproof_apimachinery::schema::keywords;

    use super::*;

    /// Returns the errors of a schema with this field `spec`.
    fn mistakes(spec: &Value) -> Vec<(String, String)> {
        let mut document = json!({"type": "object", "properties": {"spec": spec}});
        keywords::normalize(&mut document);
        super::super::schema::validate(&document, false, Path::Root)
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

    #[test]
    fn a_mistake_shows_the_whole_rule() {
        let rules = json!([{"rule": "self + 1", "message": "m"}]);
        let found = mistakes(&json!({"type": "integer", "x-kubernetes-validations": rules}));
        let expected = concat!(
            r#"Invalid value: {"Rule":"self + 1","Message":"m","MessageExpression":"","#,
            r#""Reason":null,"FieldPath":"","OptionalOldSelf":null}: "#,
            "cel expression must evaluate to a bool",
        );
        assert_eq!(found[0].1, expected);
    }

    #[rstest]
    #[case(json!([{"rule": "true", "message": " "}]), "message")]
    #[case(json!([{"rule": "true\n", "message": "a\rb"}]), "message")]
    #[case(json!([{"rule": "true ||\ntrue"}]), "message")]
    #[case(json!([{"rule": "true", "messageExpression": " "}]), "messageExpression")]
    #[case(json!([{"rule": "true", "reason": ""}]), "reason")]
    #[case(json!([{"rule": "true", "optionalOldSelf": false}]), "optionalOldSelf")]
    fn fields_of_rules_are_checked(#[case] rules: Value, #[case] field: &str) {
        let found = mistakes(&json!({"type": "integer", "x-kubernetes-validations": rules}));
        let fields: Vec<_> = found.iter().map(|(place, _)| place.as_str()).collect();
        assert_eq!(fields, [format!("properties[spec].x-kubernetes-validations[0].{field}")]);
    }

    #[test]
    fn a_high_total_names_its_parts() {
        let rule = json!({"rule": "self.all(x, x != 'a')"});
        let list = |rules: usize| {
            json!({
                "type": "array", "maxItems": 500_000, "items": {"type": "string", "maxLength": 1},
                "x-kubernetes-validations": vec![rule.clone(); rules],
            })
        };
        assert_eq!(mistakes(&list(1)), []);
        let found = mistakes(&list(99));
        let parts = found.iter().filter(|(_, message)| message.contains("contributed to")).count();
        assert_eq!(parts, MOST_EXPENSIVE, "{found:?}");
        assert!(found.iter().any(|(place, _)| place.is_empty()), "{found:?}");
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
        let costs = |(_, message): &(String, String)| {
            message.contains("exceeds budget") || message.contains("contributed to")
        };
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
