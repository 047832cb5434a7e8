//! Bodies that are cheap to send and expensive to parse: deep, wide, or repetitive.

use std::fmt::Write as _;

use rstest::rstest;

use super::*;

const YAML: &str = "application/yaml";
const MERGE: &str = "application/merge-patch+json";
const PATCH: &str = "application/json-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";
/// The size of a generated body. The limit of the server is six times higher, but bodies of that
/// size only make the tests slower.
const SIZE: usize = 512 * 1024;

/// Repeats an item up to `SIZE`, with commas in between.
fn fill(item: &str) -> String {
    vec![item; SIZE / (item.len() + 1)].join(",")
}

/// Generates numbered items up to `SIZE`, with commas in between.
fn number(item: impl Fn(usize) -> String) -> String {
    let each = item(999_999).len() + 1;
    (0..SIZE / each).map(item).collect::<Vec<_>>().join(",")
}

fn nested(open: &str, close: &str) -> String {
    open.repeat(100_000) + &close.repeat(100_000)
}

fn in_object(fields: &str) -> String {
    format!(r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"x"}},{fields}}}"#)
}

/// Builds the "billion laughs": each alias contains the previous one nine times.
fn laughs(levels: usize) -> String {
    let mut text = "a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]\n".to_owned();
    for level in 1..levels {
        let before = vec![format!("*a{}", level - 1); 9].join(", ");
        let _ = writeln!(text, "a{level}: &a{level} [{before}]");
    }
    text
}

#[rstest]
#[case::arrays(JSON, nested("[", "]"), 400)]
#[case::objects(JSON, nested(r#"{"a":"#, "}"), 400)]
#[case::unclosed(JSON, "[".repeat(SIZE), 400)]
#[case::deep_inside(JSON, in_object(&format!(r#""x":{}"#, nested("[", "]"))), 400)]
#[case::deep_labels(
    JSON,
    in_object(&format!(r#""metadata":{{"labels":{}}}"#, nested(r#"{"a":"#, "}"))),
    400
)]
#[case::long_paths(
    JSON,
    in_object(&format!(
        r#""x":{{"{}":{{{}}}}}"#,
        "k".repeat(1 << 20),
        r#""a":1,"a":2,"#.repeat(9) + r#""b":1"#
    )),
    400
)]
#[case::repeated_key(JSON, format!("{{{}}}", fill(r#""a":{}"#)), 422)]
#[case::pairs_of_keys(JSON, format!("{{{}}}", number(|n| format!(r#""{n}":0,"{n}":1"#))), 422)]
#[case::empty_objects(JSON, format!("[{}]", fill(r#"{"":0}"#)), 400)]
#[case::unknown_fields(JSON, in_object(&number(|n| format!(r#""{n}":0"#))), 201)]
#[case::a_number_of_digits(JSON, in_object(&format!(r#""x":{}"#, "9".repeat(SIZE - 100))), 400)]
#[case::a_huge_exponent(JSON, in_object(r#""x":1e999999999"#), 400)]
#[case::a_small_exponent(JSON, in_object(r#""x":1e-999999999"#), 201)]
#[case::flow(YAML, nested("[", "]"), 400)]
#[case::flow_maps(YAML, nested("{a: ", "}"), 400)]
#[case::blocks(YAML, "- ".repeat(100_000), 400)]
#[case::questions(YAML, "? ".repeat(100_000), 400)]
#[case::laughs(YAML, laughs(9), 400)]
#[case::an_alias_of_itself(YAML, "a: &a [*a]".to_owned(), 400)]
#[case::anchors(YAML, number(|n| format!("&a{n} x")).replace(',', "\n"), 400)]
#[case::merge_keys(YAML, "a: &a {b: 1}\n".to_owned() + &"<<: *a\n".repeat(200_000), 400)]
#[case::tags(YAML, "!!binary ".repeat(100_000), 400)]
#[case::documents(YAML, "---\n".repeat(SIZE / 4), 400)]
#[case::quoted(YAML, format!("x: \"{}\"", r"\u0000".repeat(SIZE / 6 - 10)), 422)]
#[tokio::test]
async fn bodies(#[case] media: &str, #[case] body: String, #[case] expected: u16) {
    stress_within(Options::default(), 2 * MEMORY, async |server| {
        let (code, text) = server.ask("POST", CONFIG_MAPS, media, body).await;
        assert!(
            code == expected || (code / 100 == 4 && expected / 100 == 4),
            "{code} {}",
            &text[..text.len().min(500)]
        );
        assert!(text.len() < SIZE * 2, "the response has {} bytes", text.len());
    })
    .await;
}

fn operations(each: impl Fn(usize) -> String, count: usize) -> String {
    format!("[{}]", (0..count).map(each).collect::<Vec<_>>().join(","))
}

#[rstest]
#[case::doubling(
    PATCH,
    operations(|n| format!(r#"{{"op":"copy","from":"/data","path":"/data/{n}"}}"#), 40)
)]
#[case::deep_values(
    PATCH,
    operations(|_| format!(r#"{{"op":"add","path":"/data/x","value":{}}}"#, nested("[", "]")), 1)
)]
#[case::deep_by_steps(
    PATCH,
    operations(
        |n| format!(r#"{{"op":"add","path":"/data{}","value":{{}}}}"#, "/a".repeat(n + 1)),
        1_000
    )
)]
#[case::a_huge_index(
    PATCH,
    operations(
        |_| {
            let path = "/metadata/finalizers/999999999999999999";
            format!(r#"{{"op":"add","path":"{path}","value":"a/b"}}"#)
        },
        1
    )
)]
#[case::a_long_path(
    PATCH,
    operations(|_| format!(r#"{{"op":"remove","path":"{}"}}"#, "/a".repeat(SIZE / 2 - 50)), 1)
)]
#[case::too_many(PATCH, operations(|_| r#"{"op":"test","path":"","value":0}"#.to_owned(), 80_000))]
#[case::deep_merge(MERGE, nested(r#"{"a":"#, "}"))]
#[case::a_million_entries(
    MERGE,
    format!(r#"{{"metadata":{{"annotations":{{{}}}}}}}"#, number(|n| format!(r#""{n}":"""#)))
)]
#[case::a_million_bad_labels(
    MERGE,
    format!(r#"{{"metadata":{{"labels":{{{}}}}}}}"#, number(|n| format!(r#""{n}!":"""#)))
)]
#[case::a_million_bad_finalizers(
    MERGE,
    format!(r#"{{"metadata":{{"finalizers":[{}]}}}}"#, number(|n| format!(r#""{n}!""#)))
)]
#[case::a_million_owners(
    MERGE,
    format!(r#"{{"metadata":{{"ownerReferences":[{}]}}}}"#, fill("{}"))
)]
#[case::managed_fields(
    MERGE,
    format!(r#"{{"metadata":{{"managedFields":[{}]}}}}"#, fill(r#"{"manager":"a"}"#))
)]
#[case::deep_strategic(STRATEGIC, nested(r#"{"a":"#, "}"))]
#[case::a_million_in_a_set(
    STRATEGIC,
    format!(r#"{{"metadata":{{"finalizers":[{}]}}}}"#, number(|n| format!(r#""{n}""#)))
)]
#[case::a_million_owners_by_key(
    STRATEGIC,
    format!(
        r#"{{"metadata":{{"ownerReferences":[{}]}}}}"#,
        number(|n| format!(r#"{{"uid":"{n}"}}"#))
    )
)]
#[case::a_million_to_delete(
    STRATEGIC,
    format!(
        r#"{{"metadata":{{"ownerReferences":[{}]}}}}"#,
        number(|n| format!(r#"{{"uid":"{n}","$patch":"delete"}}"#))
    )
)]
#[case::a_million_in_order(
    STRATEGIC,
    format!(
        r#"{{"metadata":{{"$setElementOrder/finalizers":[{}]}}}}"#,
        number(|n| format!(r#""{n}""#))
    )
)]
#[case::deep_configuration(APPLY, nested("{a: ", "}"))]
#[case::laughing_configuration(APPLY, laughs(9))]
#[case::a_million_applied(
    APPLY,
    format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"x","finalizers":[{}]}}}}"#,
        number(|n| format!(r#""{n}""#))
    )
)]
#[tokio::test]
async fn patches(#[case] media: &str, #[case] patch: String) {
    stress_within(Options::default(), 2 * MEMORY, async |server| {
        let object = json!({
            "metadata": { "name": "x", "finalizers": ["a/b"] },
            "data": { "a": "x".repeat(1_000) },
        });
        server.create(CONFIG_MAPS, &object).await;
        let path = format!("{CONFIG_MAPS}/x");
        let before = server.ask("GET", &path, JSON, "").await;
        let (code, text) =
            server.ask("PATCH", &format!("{path}?fieldManager=m"), media, patch).await;
        assert!(code / 100 == 4 || code == 200, "{code} {}", &text[..text.len().min(500)]);
        assert!(text.len() < SIZE * 2, "the response has {} bytes", text.len());
        if code != 200 {
            assert_eq!(
                server.ask("GET", &path, JSON, "").await,
                before,
                "a patch that fails changes nothing"
            );
        }
    })
    .await;
}

/// The server compares the items of these lists, because they must be unique.
#[rstest]
#[case::ports("services", format!(r#"{{"ports":[{}]}}"#, number(|n| format!(r#"{{"port":{n}}}"#))))]
#[case::volumes(
    "pods",
    format!(r#"{{"volumes":[{}]}}"#, number(|n| format!(r#"{{"name":"v{n}"}}"#)))
)]
#[case::containers(
    "pods",
    format!(r#"{{"containers":[{}]}}"#, number(|n| format!(r#"{{"name":"c{n}"}}"#)))
)]
#[case::mounts(
    "pods",
    format!(
        r#"{{"containers":[{{"name":"c","volumeMounts":[{}]}}]}}"#,
        number(|n| format!(r#"{{"mountPath":"/{n}"}}"#))
    )
)]
#[tokio::test]
async fn long_lists(#[case] resource: &str, #[case] spec: String) {
    stress_within(Options::default(), 3 * MEMORY, async |server| {
        let path = format!("/api/v1/namespaces/default/{resource}");
        let body = format!(r#"{{"metadata":{{"name":"x"}},"spec":{spec}}}"#);
        let (code, text) = server.ask("POST", &path, JSON, body).await;
        assert_eq!(code / 100, 4, "{}", &text[..text.len().min(500)]);
        assert!(text.len() < SIZE, "the response has {} bytes", text.len());
    })
    .await;
}

/// Clients can forge continue tokens.
#[rstest]
#[case(&json!({ "v": "meta.k8s.io/v1", "rv": 1, "start": "default/a\u{0}" }), 410)]
#[case(&json!({ "v": "meta.k8s.io/v1", "rv": i64::MAX, "start": "default/a\u{0}" }), 504)]
#[case(&json!({ "v": "meta.k8s.io/v1", "rv": -2, "start": "default/a\u{0}" }), 400)]
#[case(&json!({ "v": "meta.k8s.io/v1", "rv": u64::MAX, "start": "default/a\u{0}" }), 400)]
#[case(&json!({ "v": "meta.k8s.io/v1", "rv": -1, "start": "other/a\u{0}" }), 400)]
#[case(&json!({ "v": "meta.k8s.io/v1", "rv": -1, "start": "../../secrets/a" }), 400)]
#[case(&json!({ "v": "meta.k8s.io/v1", "rv": -1, "start": "x".repeat(20_000) }), 400)]
#[case(&json!({ "v": "meta.k8s.io/v1", "rv": [], "start": {} }), 400)]
#[case(&json!([[]]), 400)]
#[tokio::test]
async fn forged_continue_tokens_are_rejected(#[case] token: &Value, #[case] expected: u16) {
    use base64::Engine as _;
    let token = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(token.to_string());
    stress(Options::default(), async |server| {
        let (code, text) =
            server.ask("GET", &format!("{CONFIG_MAPS}?limit=1&continue={token}"), JSON, "").await;
        // A token for another place in the same collection is harmless.
        let harmless = code == 200 && text.contains("ConfigMapList") && !text.contains("Secret");
        assert!(code == expected || harmless, "{code} {text}");
    })
    .await;
}

/// Indentation multiplies the size of a deeply nested object.
#[rstest]
#[case("?pretty=true", JSON)]
#[case("", YAML)]
#[tokio::test]
async fn indented_responses_have_a_limited_size(#[case] query: &str, #[case] accept: &str) {
    stress_within(Options::default(), 3 * MEMORY, async |server| {
        definitions::anything(&server).await;
        let deep = format!("{}{}{}", "[".repeat(450), fill("0"), "]".repeat(450));
        let body = definitions::object(&format!(r#"{{"x":{deep}}}"#));
        let path = format!("/apis/example.com/v1/namespaces/default/anys{query}");
        let stream = server.connect().await;
        let handshake = http1::handshake(TokioIo::new(stream));
        let (mut sender, connection) = handshake.await.expect("HTTP/1.1");
        tokio::spawn(connection);
        let request = Request::post(path)
            .header("host", "test")
            .header("authorization", format!("Bearer {}", server.token))
            .header("content-type", JSON)
            .header("accept", accept)
            .body(Full::new(Bytes::from(body)))
            .expect("a request");
        let response = sender.send_request(request).await.expect("a response");
        let bytes = response.into_body().collect().await.expect("a whole body").to_bytes();
        assert!(bytes.len() < 17 << 20, "the response has {} bytes", bytes.len());
    })
    .await;
}
