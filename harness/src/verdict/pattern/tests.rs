use kubeproof_cases::template::{JsonTemplate, Part, Template};
use rstest::rstest;

use super::words::text_in_words;
use super::*;
use crate::exchange::shorten;

pub(super) fn text(value: &str) -> Template {
    Template { parts: vec![Part::Text(value.to_owned())], ..Template::default() }
}

pub(super) fn value(value: &Value) -> Pattern {
    fn template(value: &Value) -> JsonTemplate {
        match value {
            Value::Null => JsonTemplate::Null,
            Value::Bool(value) => JsonTemplate::Bool(*value),
            Value::Number(value) => JsonTemplate::Number(value.clone()),
            Value::String(value) => JsonTemplate::String(text(value)),
            Value::Array(items) => JsonTemplate::Array(items.iter().map(template).collect()),
            Value::Object(members) => {
                JsonTemplate::Object(members.iter().map(|(n, v)| (text(n), template(v))).collect())
            }
        }
    }
    Pattern::Value(template(value))
}

pub(super) fn exactly(value: &Value) -> Pattern {
    let Pattern::Value(template) = self::value(value) else { unreachable!("it is a value") };
    Pattern::Exactly(template)
}

pub(super) fn object(members: Vec<(&str, Pattern)>) -> Pattern {
    Pattern::Object(members.into_iter().map(|(name, pattern)| (text(name), pattern)).collect())
}

fn holds(pattern: &Pattern, actual: &Value) -> bool {
    matches(pattern, Some(actual), &Values::new()).unwrap().is_ok()
}

#[test]
fn objects_match_as_subsets_and_arrays_item_by_item() {
    let pattern = object(vec![("a", Pattern::Array(vec![value(&json!(1)), object(vec![])]))]);
    assert!(holds(&pattern, &json!({"a": [1, {"x": 1}], "b": 2})));
    assert!(!holds(&pattern, &json!({"a": [1]})));
    assert!(!holds(&pattern, &json!({"a": [{"x": 1}, 1]})));
}

#[test]
fn absent_null_and_present_differ() {
    let absent = object(vec![("a", Pattern::Absent)]);
    let present = object(vec![("a", Pattern::Present)]);
    assert!(holds(&absent, &json!({})));
    assert!(!holds(&absent, &json!({"a": null})));
    assert!(holds(&present, &json!({"a": null})));
    assert!(!holds(&present, &json!({})));
    assert!(!holds(&object(vec![("a", value(&json!(null)))]), &json!({})));
}

#[test]
fn combinators_hold_only_for_what_they_say() {
    let each = Pattern::Each(Box::new(Pattern::Type(JsonType::Integer)));
    assert!(holds(&each, &json!([1, 2])));
    assert!(!holds(&each, &json!([1, 2.5])));
    assert!(!holds(&each, &json!({})));
    let some = Pattern::Some(vec![value(&json!("b")), value(&json!("a"))]);
    assert!(holds(&some, &json!(["a", "b", "c"])));
    assert!(!holds(&some, &json!(["a", "c"])));
    assert!(holds(&Pattern::Not(Box::new(value(&json!(1)))), &json!(2)));
    assert!(!holds(&Pattern::Not(Box::new(value(&json!(1)))), &json!(1.0)));
    assert!(!holds(&Pattern::Size(2), &json!([1])));
    assert!(!holds(&Pattern::OneOf(vec![value(&json!(1)), value(&json!(2))]), &json!(3)));
}

#[test]
fn timestamps_need_a_zone_and_uuids_their_dashes() {
    let time = Pattern::Type(JsonType::Timestamp);
    assert!(holds(&time, &json!("2026-11-21T01:02:03Z")));
    assert!(holds(&time, &json!("2026-11-21T01:02:03.000001+02:00")));
    for wrong in
        ["2026-11-21", "2026-11-21T01:02:03", "2026-13-21T01:02:03Z", "21 Nov 2026 01:02:03 GMT"]
    {
        assert!(!holds(&time, &json!(wrong)), "{wrong}");
    }
    let uuid = Pattern::Type(JsonType::Uuid);
    assert!(holds(&uuid, &json!("123e4567-e89b-12d3-a456-426614174000")));
    assert!(!holds(&uuid, &json!("123e4567e89b12d3a456426614174000")));
}

#[test]
fn a_mismatch_names_its_place() {
    let pattern =
        object(vec![("a/b", Pattern::Array(vec![object(vec![("c", value(&json!("x")))])]))]);
    let found = matches(&pattern, Some(&json!({"a/b": [{"c": "y"}]})), &Values::new()).unwrap();
    let found = found.unwrap_err();
    assert_eq!(found.in_words(), r#"[a/b][0].c is "y", expected "x""#);
    assert_eq!(found.symptom(), Symptom::WrongField { field: "a/b[].c".into() });
    let found = matches(&pattern, Some(&json!({"a/b": [{}]})), &Values::new()).unwrap();
    let found = found.unwrap_err();
    assert_eq!(
        found.in_response("the response of `a`"),
        r#"[a/b][0].c is missing in the response of `a`, expected "x""#
    );
    assert_eq!(found.symptom(), Symptom::MissingField { field: "a/b[].c".into() });
    let two = json!({"a/b": [{}, {}]});
    let found = matches(&pattern, Some(&two), &Values::new()).unwrap().unwrap_err();
    assert!(found.in_words().starts_with("[a/b] has 2 items, expected "), "{}", found.in_words());
}

#[rstest]
#[case(JsonType::Array, json!([]), "array")]
#[case(JsonType::Boolean, json!(false), "boolean")]
#[case(JsonType::Integer, json!(-1), "integer")]
#[case(JsonType::Null, json!(null), "null")]
#[case(JsonType::Number, json!(2.5), "number")]
#[case(JsonType::Object, json!({}), "object")]
#[case(JsonType::String, json!("a"), "string")]
#[case(JsonType::Timestamp, json!("2026-11-21T01:02:03Z"), "timestamp")]
#[case(JsonType::Uuid, json!("123e4567-e89b-12d3-a456-426614174000"), "uuid")]
fn a_type_is_itself_and_named(#[case] kind: JsonType, #[case] of_it: Value, #[case] name: &str) {
    let pattern = Pattern::Type(kind);
    assert!(holds(&pattern, &of_it));
    let others = [
        json!([1]),
        json!(true),
        json!(3.5),
        json!(null),
        json!({"a": 1}),
        json!("x"),
        json!(u64::MAX),
    ];
    for other in others {
        let same = std::mem::discriminant(&other) == std::mem::discriminant(&of_it);
        let narrower = matches!(kind, JsonType::Integer | JsonType::Timestamp | JsonType::Uuid);
        let expected =
            if kind == JsonType::Integer { other == json!(u64::MAX) } else { same && !narrower };
        assert_eq!(holds(&pattern, &other), expected, "{other}");
    }
    assert_eq!(describe(&pattern, &Values::new()).unwrap(), json!({"$type": name}));
    let missing = matches(&pattern, None, &Values::new()).unwrap().unwrap_err();
    assert_eq!(missing.expected, format!("a value of type {name}"));
}

#[rstest]
#[case("123e4567")]
#[case("123e4567-e89b-12d3-a456-42661417400g")]
#[case("123e4567-e89b-12d3-a456+426614174000")]
#[case("123e4567-e89b-12d3-a456-4266141740000")]
fn what_is_no_uuid(#[case] text: &str) {
    assert!(!holds(&Pattern::Type(JsonType::Uuid), &json!(text)));
}

#[rstest]
#[case(json!([1, 2]), Some(2))]
#[case(json!({"a": 1, "b": 2, "c": 3}), Some(3))]
#[case(json!("äöü"), Some(3))]
#[case(json!(""), Some(0))]
#[case(json!(2), None)]
#[case(json!(null), None)]
fn a_length_is_of_items_members_or_characters(#[case] of: Value, #[case] expected: Option<usize>) {
    for size in 0..5 {
        assert_eq!(holds(&Pattern::Size(size), &of), Some(size) == expected, "{size}");
    }
}

#[rstest]
#[case(json!(1), json!(1.0), true)]
#[case(json!(1), json!(2), false)]
#[case(json!(9_007_199_254_740_993_u64), json!(9_007_199_254_740_992_u64), false)]
#[case(json!([1, 2]), json!([1.0, 2]), true)]
#[case(json!([1, 2]), json!([1]), false)]
#[case(json!([1]), json!([1, 2]), false)]
#[case(json!([1, 2]), json!([2, 1]), false)]
#[case(json!({"a": 1, "b": [1]}), json!({"b": [1.0], "a": 1}), true)]
#[case(json!({"a": 1}), json!({"a": 1, "b": 2}), false)]
#[case(json!({"a": 1, "b": 2}), json!({"a": 1}), false)]
#[case(json!({"a": 1}), json!({"a": 2}), false)]
#[case(json!({"a": 1}), json!({"b": 1}), false)]
#[case(json!("1"), json!(1), false)]
#[case(json!(null), json!(null), true)]
fn numbers_are_equal_by_value_at_any_depth(
    #[case] a: Value,
    #[case] b: Value,
    #[case] expected: bool,
) {
    assert_eq!(equal(&a, &b), expected);
    assert_eq!(equal(&b, &a), expected);
    assert_eq!(holds(&exactly(&a), &b), expected);
    assert_eq!(holds(&value(&a), &b), expected);
}

#[rstest]
#[case(TextPattern::Equal(text("a.c")), "a.c", true, r#""a.c""#, json!("a.c"))]
#[case(TextPattern::Equal(text("a.c")), "abc", false, r#""a.c""#, json!("a.c"))]
#[case(
    TextPattern::Regex(text("a.c")),
    "xabcx",
    true,
    "text matching /a.c/",
    json!({"$match": "a.c"})
)]
#[case(
    TextPattern::Regex(text("^a.c$")),
    "xabcx",
    false,
    "text matching /^a.c$/",
    json!({"$match": "^a.c$"})
)]
#[case(TextPattern::Regex(text("(")), "(", false, "text matching /(/", json!({"$match": "("}))]
fn text_is_compared_or_searched(
    #[case] pattern: TextPattern,
    #[case] actual: &str,
    #[case] expected: bool,
    #[case] words: &str,
    #[case] described: Value,
) {
    assert_eq!(text_matches(&pattern, actual, &Values::new()), Ok(expected));
    assert_eq!(text_in_words(&pattern, &Values::new()), Ok(words.to_owned()));
    let pattern = Pattern::Match(pattern);
    assert_eq!(describe(&pattern, &Values::new()), Ok(described));
    assert_eq!(holds(&pattern, &json!(actual)), expected);
    let found = matches(&pattern, Some(&json!(1)), &Values::new()).unwrap().unwrap_err();
    assert_eq!(found.expected, words);
}

#[test]
fn a_difference_shows_what_the_pattern_speaks_of() {
    let members = object(vec![("a", value(&json!(1))), ("gone", Pattern::Absent)]);
    let pattern = object(vec![("items", Pattern::Array(vec![members, value(&json!(2))]))]);
    let part = |actual: Value| project(&pattern, &actual, &Values::new()).unwrap();
    assert_eq!(
        part(json!({"items": [{"a": 3, "b": 4}, 5], "kind": "List"})),
        json!({"items": [{"a": 3}, 5]})
    );
    // If the lengths differ, the whole array is shown.
    assert_eq!(part(json!({"items": [{"a": 3, "b": 4}]})), json!({"items": [{"a": 3, "b": 4}]}));
    assert_eq!(part(json!("text")), json!("text"));
}

#[rstest]
#[case(199, false)]
#[case(200, false)]
#[case(201, true)]
fn long_text_is_cut(#[case] length: usize, #[case] cut: bool) {
    let text = "ä".repeat(length);
    let shown = shorten(&text);
    assert_eq!(shown == text, !cut);
    assert_eq!(shown.ends_with("… (402 bytes)"), cut, "{shown}");
    assert_eq!(shown.chars().filter(|c| *c == 'ä').count(), length.min(200));
}

#[test]
fn messages_name_whole_objects() {
    let object = json!({"kind": "Pod", "metadata": {"name": "a", "resourceVersion": "3"}});
    let mismatch = matches(&value(&json!(1)), Some(&object), &Values::new()).unwrap().unwrap_err();
    let expected = r#"the object is the Pod "a" with resourceVersion 3, expected 1"#;
    assert_eq!(mismatch.in_words_of("the object"), expected);
}
