//! Definitions of resources that cost more than they look, and objects of them.

use rstest::rstest;

use super::*;

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const PATCH: &str = "application/json-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

fn definition(spec: &Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": { "name": "anys.example.com" },
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": { "plural": "anys", "kind": "Any" },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object", "properties": { "spec": spec } } },
            }],
        },
    })
}

async fn define(fortress: &Fortress, spec: &Value) {
    fortress.create(CRDS, &definition(spec)).await;
    // It is served from its own 201 on, or very soon after.
    while fortress.ask("GET", "/apis/example.com/v1/namespaces/default/anys", JSON, "").await.0 == 404 {
        tokio::task::yield_now().await;
    }
}

/// A resource whose spec may be anything.
pub(super) async fn anything(fortress: &Fortress) {
    define(fortress, &json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })).await;
}

fn rule(schema: Value, rule: &str) -> Value {
    let mut schema = schema;
    schema["x-kubernetes-validations"] = json!([{ "rule": rule }]);
    schema
}

fn strings() -> Value {
    json!({ "type": "array", "items": { "type": "string" } })
}

fn properties(count: usize, each: impl Fn(usize) -> Value) -> Value {
    let properties: serde_json::Map<String, Value> = (0..count).map(|n| (format!("p{n}"), each(n))).collect();
    json!({ "type": "object", "properties": properties })
}

fn deep(levels: usize) -> Value {
    (0..levels).fold(
        json!({ "type": "string" }),
        |inner, _| json!({ "type": "object", "properties": { "a": inner } }),
    )
}

#[rstest]
#[case::quadratic(rule(strings(), "self.all(x, self.all(y, x == y))"))]
#[case::cubic(rule(json!({ "type": "array", "maxItems": 1000, "items": { "type": "string" } }), "self.all(x, self.all(y, self.all(z, x + y == z)))"))]
#[case::brackets(rule(strings(), &("(".repeat(8_000) + "true" + &")".repeat(8_000))))]
#[case::long(rule(strings(), &"true && ".repeat(300_000)))]
#[case::patterns(rule(strings(), r"self.all(x, x.matches('(((a{1,100}){1,100}){1,100}){1,100}'))"))]
#[case::a_counting_pattern(json!({ "type": "string", "pattern": "((((a{1,100}){1,100}){1,100}){1,100})" }))]
#[case::many_counting_patterns(properties(2_000, |n| json!({ "type": "string", "pattern": format!(r"^\w{{1,50}}{n}$") })))]
#[case::a_deep_pattern(json!({ "type": "string", "pattern": "(".repeat(4_000) + &")".repeat(4_000) }))]
#[case::a_long_pattern(json!({ "type": "string", "pattern": "a".repeat(2 << 20) }))]
#[case::many_mistakes(properties(40_000, |_| json!({ "type": "x" })))]
#[case::deep(deep(300))]
#[tokio::test]
async fn definitions_that_cost_too_much_are_refused(#[case] spec: Value) {
    besiege_within(Walls::default(), 2 * MEMORY, async |fortress| {
        let body = definition(&spec).to_string();
        let (code, text) = fortress.ask("POST", CRDS, JSON, body).await;
        assert_eq!(code / 100, 4, "{code} {}", &text[..text.len().min(500)]);
        assert!(text.len() < 4 << 20, "an answer of {} bytes", text.len());
    })
    .await;
}

/// Thousands of items of a set and of a map: none of them is held against each other one.
#[rstest]
#[case::set(json!({ "type": "array", "x-kubernetes-list-type": "set", "items": { "type": "integer" } }), |n: usize| n.to_string())]
#[case::map(
    json!({ "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
            "items": { "type": "object", "required": ["k"], "properties": { "k": { "type": "integer" } } } }),
    |n: usize| format!(r#"{{"k":{n}}}"#)
)]
#[tokio::test]
async fn long_lists_of_unique_items(#[case] spec: Value, #[case] item: fn(usize) -> String) {
    besiege_within(Walls::default(), 6 * MEMORY, async |fortress| {
        define(&fortress, &spec).await;
        let items: Vec<String> = (0..8_000).map(item).collect();
        let object = |items: &[String]| {
            let items = items.join(",");
            format!(
                r#"{{"apiVersion":"example.com/v1","kind":"Any","metadata":{{"name":"x"}},"spec":[{items}]}}"#
            )
        };
        let path = "/apis/example.com/v1/namespaces/default/anys";
        let (code, text) = fortress.ask("POST", path, JSON, object(&items)).await;
        assert_eq!(code, 201, "{}", &text[..text.len().min(500)]);
        let mut twice = items.clone();
        twice.push(items[0].clone());
        let (code, text) = fortress.ask("PUT", &format!("{path}/x"), JSON, object(&twice)).await;
        assert_eq!(code, 422, "{}", &text[..text.len().min(500)]);
        let (code, text) = fortress
            .ask("PATCH", &format!("{path}/x?fieldManager=m&force=true"), APPLY, object(&items))
            .await;
        assert_eq!(code, 200, "{}", &text[..text.len().min(500)]);
    })
    .await;
}

/// Ten thousand insertions in front of a million items.
#[tokio::test]
async fn operations_on_a_long_list_are_bounded() {
    besiege_within(Walls::default(), 3 * MEMORY, async |fortress| {
        anything(&fortress).await;
        let items = vec!["0"; 500_000].join(",");
        let body = format!(r#"{{"apiVersion":"example.com/v1","kind":"Any","metadata":{{"name":"x"}},"spec":{{"l":[{items}]}}}}"#);
        let path = "/apis/example.com/v1/namespaces/default/anys";
        assert_eq!(fortress.ask("POST", path, JSON, body).await.0, 201);
        let insertions = vec![r#"{"op":"add","path":"/spec/l/0","value":0}"#; 10_000].join(",");
        let (code, text) = fortress.ask("PATCH", &format!("{path}/x"), PATCH, format!("[{insertions}]")).await;
        assert_eq!(code, 413, "{}", &text[..text.len().min(500)]);
    })
    .await;
}

/// Who applies what others own is told of each field, by its path; both may be long and many.
#[tokio::test]
async fn conflicts_of_very_many_fields_are_bounded() {
    besiege_within(Walls::default(), 4 * MEMORY, async |fortress| {
        anything(&fortress).await;
        let configuration = |value: u8| {
            let leaves: Vec<String> = (0..20_000).map(|n| format!(r#""{n}":{value}"#)).collect();
            let deep = (0..7).fold(format!("{{{}}}", leaves.join(",")), |inner, _| {
                format!(r#"{{"{}":{inner}}}"#, "k".repeat(2_000))
            });
            format!(
                r#"{{"apiVersion":"example.com/v1","kind":"Any","metadata":{{"name":"x"}},"spec":{deep}}}"#
            )
        };
        let path = "/apis/example.com/v1/namespaces/default/anys/x?fieldManager=";
        let (code, text) = fortress.ask("PATCH", &format!("{path}one"), APPLY, configuration(1)).await;
        assert_eq!(code, 201, "{}", &text[..text.len().min(500)]);
        let (code, text) = fortress.ask("PATCH", &format!("{path}two"), APPLY, configuration(2)).await;
        assert_eq!(code, 409, "{}", &text[..text.len().min(500)]);
        assert!(text.len() < 40 << 20, "an answer of {} bytes", text.len());
    })
    .await;
}
