use serde_json::json;

use proptest::prelude::*;
use proptest::sample::select;

use super::*;

/// Returns which of five objects match. Each selector below selects a different subset.
fn selected(selector: &str) -> Vec<usize> {
    let objects = [
        json!({"app": "a", "tier": "fe", "n": "5"}),
        json!({"app": "a", "tier": "be", "n": "15"}),
        json!({"app": "ab", "tier": "fe"}),
        json!({"app": "b", "x": ""}),
        json!({}),
    ];
    let selector = LabelSelector::parse(selector).unwrap();
    (0..objects.len()).filter(|&i| selector.matches(&objects[i].as_object())).collect()
}

#[rstest::rstest]
#[case("", &[0, 1, 2, 3, 4])]
#[case("app=a", &[0, 1])]
#[case("app==a", &[0, 1])]
#[case("app!=a", &[2, 3, 4])]
#[case("app=a,tier=fe", &[0])]
#[case(" app = a , tier in ( fe ) ", &[0])]
#[case("app in (a,b)", &[0, 1, 3])]
#[case("app notin (a)", &[2, 3, 4])]
#[case("tier", &[0, 1, 2])]
#[case("!tier", &[3, 4])]
#[case("x=", &[3])]
#[case("x in (,z)", &[3])]
#[case("n>10", &[1])]
#[case("n<10", &[0])]
#[case("n>5", &[1])]
#[case("n<5", &[])]
#[case("in notin (x)", &[0, 1, 2, 3, 4])]
fn selects(#[case] selector: &str, #[case] expected: &[usize]) {
    assert_eq!(selected(selector), expected);
}

#[rstest::rstest]
#[case("a b", "found 'b' at offset 2, expected: in, notin, =, ==, !=, gt, lt")]
#[case("app in a", "found 'a' at offset 7, expected: '('")]
#[case("app in (", "found '' at offset 8, expected: ',', ')' or identifier")]
#[case("app in (a b)", "found 'b' at offset 10, expected: ',', ')' or identifier")]
#[case("=a", "found '=' at offset 0, expected: !, identifier, or 'end of string'")]
#[case("app=a,,tier", "found ',' at offset 6, expected: identifier after ','")]
#[case("app,", "found '' at offset 4, expected: identifier after ','")]
#[case("app=!!", "found '!' at offset 4, expected: identifier")]
#[case("!app=a", "found '=' at offset 4, expected: ',' or 'end of string'")]
#[case("app=a b", "found 'b' at offset 6, expected: ',' or 'end of string'")]
#[case(
    "app in ()",
    "values: Invalid value: \"\": for 'in', 'notin' operators, values set can't be empty"
)]
#[case(
    "n>x",
    "values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators, the value must be an integer"
)]
#[case("/a", "key: Invalid value: \"/a\": the prefix part must not be empty")]
fn invalid_text_is_rejected(#[case] selector: &str, #[case] expected: &str) {
    let error = LabelSelector::parse(selector).unwrap_err().to_string();
    assert_eq!(error, format!("unable to parse requirement: {expected}"));
}

#[rstest::rstest]
#[case("a/b/c=d")]
#[case("app=-x")]
#[case("app in (ok,_x)")]
#[case("app='a'")]
fn invalid_keys_and_values_are_rejected(#[case] selector: &str) {
    assert!(matches!(LabelSelector::parse(selector), Err(SelectorError::Invalid { .. })));
}

#[test]
fn the_object_form_and_the_text_form_are_equivalent() {
    let object = json!({
        "matchLabels": {"app": "a"},
        "matchExpressions": [
            {"key": "tier", "operator": "In", "values": ["y", "x"]},
            {"key": "old", "operator": "DoesNotExist"},
        ],
    });
    let selector = LabelSelector::from_object(&object).unwrap();
    assert_eq!(selector.to_string(), "app=a,tier in (x,y),!old");
    assert_eq!(LabelSelector::parse(&selector.to_string()), Ok(selector));
    let unknown = json!({"matchExpressions": [{"key": "a", "operator": "Like"}]});
    assert!(LabelSelector::from_object(&unknown).is_err());
}

/// A requirement as a text, and its meaning.
#[derive(Clone, Debug)]
struct Plain {
    key: &'static str,
    operator: &'static str,
    values: Vec<&'static str>,
}

impl Plain {
    fn text(&self, space: &str) -> String {
        let Self { key, operator, values } = self;
        let (first, all) = (values[0], values.join(&format!("{space},")));
        match *operator {
            "exists" => format!("{space}{key}{space}"),
            "!" => format!("!{space}{key}"),
            "in" | "notin" => format!("{key} {operator}{space}({space}{all}{space})"),
            _ => format!("{key}{space}{operator}{space}{first}"),
        }
    }

    fn holds(&self, labels: &BTreeMap<String, String>) -> bool {
        let value = labels.get(self.key).map(String::as_str);
        let number = |text: &str| text.parse::<i64>().ok();
        match (self.operator, value) {
            ("exists", value) => value.is_some(),
            ("!", value) => value.is_none(),
            ("=" | "==", value) => value == Some(self.values[0]),
            ("!=", value) => value != Some(self.values[0]),
            ("in", value) => value.is_some_and(|value| self.values.contains(&value)),
            ("notin", value) => value.is_none_or(|value| !self.values.contains(&value)),
            (_, None) => false,
            (sign, Some(value)) => match (number(value), number(self.values[0])) {
                (Some(value), Some(bound)) => {
                    if sign == ">" {
                        value > bound
                    } else {
                        value < bound
                    }
                }
                _ => false,
            },
        }
    }
}

fn plain() -> impl Strategy<Value = Plain> {
    let key = || select(vec!["a", "in", "example.com/b"]);
    let word = || select(vec!["1", "2", "x", "notin", "10"]);
    let operators = vec!["exists", "!", "=", "==", "!=", "in", "notin"];
    prop_oneof![
        4 => (key(), select(operators), prop::collection::vec(word(), 1..4))
            .prop_map(|(key, operator, values)| Plain { key, operator, values }),
        1 => (key(), select(vec![">", "<"]), select(vec!["1", "2", "-3"]))
            .prop_map(|(key, operator, value)| Plain { key, operator, values: vec![value] }),
    ]
}

proptest! {
    #[test]
    fn a_selector_matches_if_all_requirements_match(
        parts in prop::collection::vec(plain(), 1..4),
        labels in prop::collection::btree_map(
            select(vec![
                "a".to_owned(), "in".to_owned(), "example.com/b".to_owned(), "c".to_owned(),
            ]),
            select(vec![
                "1".to_owned(), "2".to_owned(), "x".to_owned(), "10".to_owned(), String::new(),
            ]),
            0..4,
        ),
        space in select(vec!["", " ", "  "]),
    ) {
        let text = parts.iter().map(|part| part.text(space)).collect::<Vec<_>>().join(",");
        let selector = LabelSelector::parse(&text)
            .map_err(|error| TestCaseError::fail(format!("{text}: {error}")))?;
        let expected = parts.iter().all(|part| part.holds(&labels));
        prop_assert_eq!(selector.matches(&labels), expected, "{}", text);
        prop_assert!(!selector.is_empty());
        prop_assert_eq!(LabelSelector::parse(&selector.to_string()), Ok(selector));
    }
}

#[test]
fn an_empty_selector_has_no_requirements() {
    assert!(
        LabelSelector::parse("").unwrap().is_empty()
            && LabelSelector::parse(" ").unwrap().is_empty()
    );
}

#[test]
fn the_number_of_requirements_is_limited() {
    let many = |count: usize| vec!["a"; count].join(",");
    assert!(LabelSelector::parse(&many(MAX_REQUIREMENTS)).is_ok());
    assert_eq!(
        LabelSelector::parse(&many(MAX_REQUIREMENTS + 1)),
        Err(SelectorError::TooMany(MAX_REQUIREMENTS))
    );
}
