//! Custom resource definitions that are expensive to evaluate, and their objects.

use rstest::rstest;

use super::*;

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const PATCH: &str = "application/json-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

fn definition(spec: &Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "anys.example.com" },
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": { "plural": "anys", "kind": "Any" },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {
                    "openAPIV3Schema": { "type": "object", "properties": { "spec": spec } },
                },
            }],
        },
    })
}

async fn define(server: &StressServer, spec: &Value) {
    server.create(CRDS, &definition(spec)).await;
    // The resource can appear shortly after the 201 response.
    while server.ask("GET", "/apis/example.com/v1/namespaces/default/anys", JSON, "").await.0 == 404
    {
        tokio::task::yield_now().await;
    }
}

/// Defines a resource whose spec accepts any fields.
pub(super) async fn anything(server: &StressServer) {
    define(server, &json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true }))
        .await;
}

/// An object of this resource with this spec, as JSON.
pub(super) fn object(spec: &str) -> String {
    let head = r#""apiVersion":"example.com/v1","kind":"Any","metadata":{"name":"x"}"#;
    format!(r#"{{{head},"spec":{spec}}}"#)
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
    let properties: serde_json::Map<String, Value> =
        (0..count).map(|n| (format!("p{n}"), each(n))).collect();
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
#[case::cubic(rule(
    json!({ "type": "array", "maxItems": 1000, "items": { "type": "string" } }),
    "self.all(x, self.all(y, self.all(z, x + y == z)))"
))]
#[case::brackets(rule(strings(), &("(".repeat(8_000) + "true" + &")".repeat(8_000))))]
#[case::long(rule(strings(), &"true && ".repeat(300_000)))]
#[case::patterns(rule(
    strings(),
    r"self.all(x, x.matches('(((a{1,100}){1,100}){1,100}){1,100}'))"
))]
#[case::a_counting_pattern(json!({
    "type": "string", "pattern": "((((a{1,100}){1,100}){1,100}){1,100})",
}))]
#[case::many_counting_patterns(properties(
    2_000,
    |n| json!({ "type": "string", "pattern": format!(r"^\w{{1,50}}{n}$") })
))]
#[case::a_deep_pattern(json!({
    "type": "string", "pattern": "(".repeat(4_000) + &")".repeat(4_000),
}))]
#[case::a_long_pattern(json!({ "type": "string", "pattern": "a".repeat(2 << 20) }))]
#[case::many_mistakes(properties(40_000, |_| json!({ "type": "x" })))]
#[case::deep(deep(300))]
#[tokio::test]
async fn expensive_definitions_are_rejected(#[case] spec: Value) {
    stress_within(Options::default(), 2 * MEMORY, async |server| {
        let body = definition(&spec).to_string();
        let (code, text) = server.ask("POST", CRDS, JSON, body).await;
        assert_eq!(code / 100, 4, "{code} {}", &text[..text.len().min(500)]);
        assert!(text.len() < 4 << 20, "the response has {} bytes", text.len());
    })
    .await;
}

/// The server checks thousands of unique items without comparing all pairs.
#[rstest]
#[case::set(
    json!({ "type": "array", "x-kubernetes-list-type": "set", "items": { "type": "integer" } }),
    |n: usize| n.to_string()
)]
#[case::map(
    json!({
        "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
        "items": {
            "type": "object", "required": ["k"], "properties": { "k": { "type": "integer" } },
        },
    }),
    |n: usize| format!(r#"{{"k":{n}}}"#)
)]
#[tokio::test]
async fn long_lists_of_unique_items_are_validated(
    #[case] spec: Value,
    #[case] item: fn(usize) -> String,
) {
    stress_within(Options::default(), 6 * MEMORY, async |server| {
        define(&server, &spec).await;
        let items: Vec<String> = (0..8_000).map(item).collect();
        let body = |items: &[String]| object(&format!("[{}]", items.join(",")));
        let path = "/apis/example.com/v1/namespaces/default/anys";
        let (code, text) = server.ask("POST", path, JSON, body(&items)).await;
        assert_eq!(code, 201, "{}", &text[..text.len().min(500)]);
        let mut twice = items.clone();
        twice.push(items[0].clone());
        let (code, text) = server.ask("PUT", &format!("{path}/x"), JSON, body(&twice)).await;
        assert_eq!(code, 422, "{}", &text[..text.len().min(500)]);
        let applied = format!("{path}/x?fieldManager=m&force=true");
        let (code, text) = server.ask("PATCH", &applied, APPLY, body(&items)).await;
        assert_eq!(code, 200, "{}", &text[..text.len().min(500)]);
    })
    .await;
}

/// The patch inserts 10,000 items at the front of a long list.
#[tokio::test]
async fn patch_operations_on_a_long_list_are_limited() {
    stress_within(Options::default(), 3 * MEMORY, async |server| {
        anything(&server).await;
        let items = vec!["0"; 500_000].join(",");
        let body = object(&format!(r#"{{"l":[{items}]}}"#));
        let path = "/apis/example.com/v1/namespaces/default/anys";
        assert_eq!(server.ask("POST", path, JSON, body).await.0, 201);
        let insertions = vec![r#"{"op":"add","path":"/spec/l/0","value":0}"#; 10_000].join(",");
        let insertions = format!("[{insertions}]");
        let (code, text) = server.ask("PATCH", &format!("{path}/x"), PATCH, insertions).await;
        assert_eq!(code, 413, "{}", &text[..text.len().min(500)]);
    })
    .await;
}

/// A conflict lists the path of each field, and both the paths and their number can be large.
#[tokio::test]
async fn conflicts_over_many_fields_have_a_limited_size() {
    stress_within(Options::default(), 4 * MEMORY, async |server| {
        anything(&server).await;
        let configuration = |value: u8| {
            let leaves: Vec<String> = (0..20_000).map(|n| format!(r#""{n}":{value}"#)).collect();
            let deep = (0..7).fold(format!("{{{}}}", leaves.join(",")), |inner, _| {
                format!(r#"{{"{}":{inner}}}"#, "k".repeat(2_000))
            });
            object(&deep)
        };
        let path = "/apis/example.com/v1/namespaces/default/anys/x";
        let (one, two) = (format!("{path}?fieldManager=one"), format!("{path}?fieldManager=two"));
        let (code, text) = server.ask("PATCH", &one, APPLY, configuration(1)).await;
        assert_eq!(code, 201, "{}", &text[..text.len().min(500)]);
        let (code, text) = server.ask("PATCH", &two, APPLY, configuration(2)).await;
        assert_eq!(code, 409, "{}", &text[..text.len().min(500)]);
        assert!(text.len() < 40 << 20, "the response has {} bytes", text.len());
    })
    .await;
}
