//! Bodies that are small to send and large to read: deep, wide, doubled, repeated.

use std::fmt::Write as _;

use rstest::rstest;

use super::*;

const YAML: &str = "application/yaml";
const MERGE: &str = "application/merge-patch+json";
const PATCH: &str = "application/json-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";
/// What is filled here. A body may have six times as many bytes, which shows nothing more, and takes the time of all tests.
const ROOM: usize = 512 * 1024;

/// As many copies as there is room for, with commas between them.
fn fill(item: &str) -> String {
    vec![item; ROOM / (item.len() + 1)].join(",")
}

/// Numbered copies.
fn number(item: impl Fn(usize) -> String) -> String {
    let each = item(999_999).len() + 1;
    (0..ROOM / each).map(item).collect::<Vec<_>>().join(",")
}

fn nested(open: &str, close: &str) -> String {
    open.repeat(100_000) + &close.repeat(100_000)
}

fn in_object(fields: &str) -> String {
    format!(r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"x"}},{fields}}}"#)
}

/// Each alias stands for nine of the one before.
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
#[case::unclosed(JSON, "[".repeat(ROOM), 400)]
#[case::deep_inside(JSON, in_object(&format!(r#""x":{}"#, nested("[", "]"))), 400)]
#[case::deep_labels(JSON, in_object(&format!(r#""metadata":{{"labels":{}}}"#, nested(r#"{"a":"#, "}"))), 400)]
#[case::long_paths(JSON, in_object(&format!(r#""x":{{"{}":{{{}}}}}"#, "k".repeat(1 << 20), r#""a":1,"a":2,"#.repeat(9) + r#""b":1"#)), 400)]
#[case::one_key_again_and_again(JSON, format!("{{{}}}", fill(r#""a":{}"#)), 422)]
#[case::pairs_of_keys(JSON, format!("{{{}}}", number(|n| format!(r#""{n}":0,"{n}":1"#))), 422)]
#[case::empty_objects(JSON, format!("[{}]", fill(r#"{"":0}"#)), 400)]
#[case::unknown_fields(JSON, in_object(&number(|n| format!(r#""{n}":0"#))), 201)]
#[case::a_number_of_digits(JSON, in_object(&format!(r#""x":{}"#, "9".repeat(ROOM - 100))), 400)]
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
#[case::documents(YAML, "---\n".repeat(ROOM / 4), 400)]
#[case::quoted(YAML, format!("x: \"{}\"", r"\u0000".repeat(ROOM / 6 - 10)), 422)]
#[tokio::test]
async fn bodies(#[case] media: &str, #[case] body: String, #[case] expected: u16) {
    besiege_within(Walls::default(), 2 * MEMORY, async |fortress| {
        let (code, text) = fortress.ask("POST", CONFIG_MAPS, media, body).await;
        assert!(
            code == expected || (code / 100 == 4 && expected / 100 == 4),
            "{code} {}",
            &text[..text.len().min(500)]
        );
        assert!(text.len() < ROOM * 2, "an answer of {} bytes", text.len());
    })
    .await;
}

fn operations(each: impl Fn(usize) -> String, count: usize) -> String {
    format!("[{}]", (0..count).map(each).collect::<Vec<_>>().join(","))
}

#[rstest]
#[case::doubling(PATCH, operations(|n| format!(r#"{{"op":"copy","from":"/data","path":"/data/{n}"}}"#), 40))]
#[case::deep_values(PATCH, operations(|_| format!(r#"{{"op":"add","path":"/data/x","value":{}}}"#, nested("[", "]")), 1))]
#[case::deep_by_steps(PATCH, operations(|n| format!(r#"{{"op":"add","path":"/data{}","value":{{}}}}"#, "/a".repeat(n + 1)), 1_000))]
#[case::a_huge_index(PATCH, operations(|_| r#"{"op":"add","path":"/metadata/finalizers/999999999999999999","value":"a/b"}"#.to_owned(), 1))]
#[case::a_long_path(PATCH, operations(|_| format!(r#"{{"op":"remove","path":"{}"}}"#, "/a".repeat(ROOM / 2 - 50)), 1))]
#[case::too_many(PATCH, operations(|_| r#"{"op":"test","path":"","value":0}"#.to_owned(), 80_000))]
#[case::deep_merge(MERGE, nested(r#"{"a":"#, "}"))]
#[case::a_million_entries(MERGE, format!(r#"{{"metadata":{{"annotations":{{{}}}}}}}"#, number(|n| format!(r#""{n}":"""#))))]
#[case::a_million_bad_labels(MERGE, format!(r#"{{"metadata":{{"labels":{{{}}}}}}}"#, number(|n| format!(r#""{n}!":"""#))))]
#[case::a_million_bad_finalizers(MERGE, format!(r#"{{"metadata":{{"finalizers":[{}]}}}}"#, number(|n| format!(r#""{n}!""#))))]
#[case::a_million_owners(MERGE, format!(r#"{{"metadata":{{"ownerReferences":[{}]}}}}"#, fill("{}")))]
#[case::managed_fields(MERGE, format!(r#"{{"metadata":{{"managedFields":[{}]}}}}"#, fill(r#"{"manager":"a"}"#)))]
#[case::deep_strategic(STRATEGIC, nested(r#"{"a":"#, "}"))]
#[case::a_million_in_a_set(STRATEGIC, format!(r#"{{"metadata":{{"finalizers":[{}]}}}}"#, number(|n| format!(r#""{n}""#))))]
#[case::a_million_owners_by_key(STRATEGIC, format!(r#"{{"metadata":{{"ownerReferences":[{}]}}}}"#, number(|n| format!(r#"{{"uid":"{n}"}}"#))))]
#[case::a_million_to_delete(STRATEGIC, format!(r#"{{"metadata":{{"ownerReferences":[{}]}}}}"#, number(|n| format!(r#"{{"uid":"{n}","$patch":"delete"}}"#))))]
#[case::a_million_in_order(STRATEGIC, format!(r#"{{"metadata":{{"$setElementOrder/finalizers":[{}]}}}}"#, number(|n| format!(r#""{n}""#))))]
#[case::deep_configuration(APPLY, nested("{a: ", "}"))]
#[case::laughing_configuration(APPLY, laughs(9))]
#[case::a_million_applied(APPLY, format!(r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"x","finalizers":[{}]}}}}"#, number(|n| format!(r#""{n}""#))))]
#[tokio::test]
async fn patches(#[case] media: &str, #[case] patch: String) {
    besiege_within(Walls::default(), 2 * MEMORY, async |fortress| {
        let object =
            json!({ "metadata": { "name": "x", "finalizers": ["a/b"] }, "data": { "a": "x".repeat(1_000) } });
        fortress.create(CONFIG_MAPS, &object).await;
        let path = format!("{CONFIG_MAPS}/x");
        let before = fortress.ask("GET", &path, JSON, "").await;
        let (code, text) = fortress.ask("PATCH", &format!("{path}?fieldManager=m"), media, patch).await;
        assert!(code / 100 == 4 || code == 200, "{code} {}", &text[..text.len().min(500)]);
        assert!(text.len() < ROOM * 2, "an answer of {} bytes", text.len());
        if code != 200 {
            assert_eq!(
                fortress.ask("GET", &path, JSON, "").await,
                before,
                "a patch that fails changes nothing"
            );
        }
    })
    .await;
}

/// Services and pods have lists whose items must differ.
#[rstest]
#[case::ports("services", format!(r#"{{"ports":[{}]}}"#, number(|n| format!(r#"{{"port":{n}}}"#))))]
#[case::volumes("pods", format!(r#"{{"volumes":[{}]}}"#, number(|n| format!(r#"{{"name":"v{n}"}}"#))))]
#[case::containers("pods", format!(r#"{{"containers":[{}]}}"#, number(|n| format!(r#"{{"name":"c{n}"}}"#))))]
#[case::mounts("pods", format!(r#"{{"containers":[{{"name":"c","volumeMounts":[{}]}}]}}"#, number(|n| format!(r#"{{"mountPath":"/{n}"}}"#))))]
#[tokio::test]
async fn long_lists(#[case] resource: &str, #[case] spec: String) {
    besiege_within(Walls::default(), 3 * MEMORY, async |fortress| {
        let path = format!("/api/v1/namespaces/default/{resource}");
        let body = format!(r#"{{"metadata":{{"name":"x"}},"spec":{spec}}}"#);
        let (code, text) = fortress.ask("POST", &path, JSON, body).await;
        assert_eq!(code / 100, 4, "{}", &text[..text.len().min(500)]);
        assert!(text.len() < ROOM, "an answer of {} bytes", text.len());
    })
    .await;
}

/// Tokens of lists are the client's to change.
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
async fn tokens_that_lie(#[case] token: &Value, #[case] expected: u16) {
    use base64::Engine as _;
    let token = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(token.to_string());
    besiege(Walls::default(), async |fortress| {
        let (code, text) =
            fortress.ask("GET", &format!("{CONFIG_MAPS}?limit=1&continue={token}"), JSON, "").await;
        // One that points elsewhere in the collection shows what is there, and nothing of others.
        let harmless = code == 200 && text.contains("ConfigMapList") && !text.contains("Secret");
        assert!(code == expected || harmless, "{code} {text}");
    })
    .await;
}

/// An object that is deep becomes long when it is indented.
#[rstest]
#[case("?pretty=true", JSON)]
#[case("", YAML)]
#[tokio::test]
async fn what_is_indented_is_bounded(#[case] query: &str, #[case] accept: &str) {
    besiege_within(Walls::default(), 3 * MEMORY, async |fortress| {
        definitions::anything(&fortress).await;
        let deep = format!("{}{}{}", "[".repeat(450), fill("0"), "]".repeat(450));
        let body = format!(r#"{{"apiVersion":"example.com/v1","kind":"Any","metadata":{{"name":"x"}},"spec":{{"x":{deep}}}}}"#);
        let path = format!("/apis/example.com/v1/namespaces/default/anys{query}");
        let stream = fortress.connect().await;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.expect("HTTP/1.1");
        tokio::spawn(connection);
        let request = Request::post(path)
            .header("host", "test")
            .header("authorization", format!("Bearer {}", fortress.token))
            .header("content-type", JSON)
            .header("accept", accept)
            .body(Full::new(Bytes::from(body)))
            .expect("a request");
        let answer = sender.send_request(request).await.expect("an answer");
        let bytes = answer.into_body().collect().await.expect("a whole body").to_bytes();
        assert!(bytes.len() < 17 << 20, "an answer of {} bytes", bytes.len());
    })
    .await;
}
