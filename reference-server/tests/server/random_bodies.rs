//! Random bodies for all operations that write. The server accepts or rejects each of them, and
//! never fails.

use serde_json::{Map, Value, json};

use crate::support::TestServer;

/// Rounds over all paths. Each round has other bodies.
const ROUNDS: u64 = 6;
/// Deeper objects are empty.
const MAX_DEPTH: usize = 9;

/// Writes random values for the schemas of an OpenAPI v2 document.
struct Writer<'d> {
    document: &'d Value,
    /// The state of the random numbers. The same bodies appear in each run.
    state: u64,
}

impl Writer<'_> {
    fn below(&mut self, end: usize) -> usize {
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        usize::try_from(self.state >> 33).expect("31 bits") % end
    }

    /// Returns a value of the schema, or, now and then, one of another type.
    fn value(&mut self, schema: &Value, depth: usize) -> Value {
        let target = schema["$ref"].as_str().and_then(|path| path.strip_prefix('#'));
        let schema = target.and_then(|path| self.document.pointer(path)).unwrap_or(schema);
        match self.below(60) {
            0 => return Value::Null,
            1 => return json!([{}]),
            2 => return json!("text"),
            3 => return json!({"a": null}),
            _ => {}
        }
        match schema["type"].as_str() {
            Some("string") => {
                let texts = ["", "a", "1", "b.c/d", "2026-11-22T21:54:47Z", "*/5 * * * *"];
                schema["enum"][self.below(9)]
                    .as_str()
                    .map_or_else(|| json!(texts[self.below(texts.len())]), |listed| json!(listed))
            }
            Some("integer" | "number") => json!([-1, 0, 1, 70_000][self.below(4)]),
            Some("boolean") => json!(self.below(2) == 0),
            Some("array") if depth < MAX_DEPTH => {
                let length = self.below(3);
                (0..length).map(|_| self.value(&schema["items"], depth + 1)).collect()
            }
            Some("array") => json!([]),
            _ => self.object(schema, depth),
        }
    }

    fn object(&mut self, schema: &Value, depth: usize) -> Value {
        let mut object = Map::new();
        let properties = schema["properties"].as_object();
        for (name, property) in properties.into_iter().flatten() {
            // Deep objects would be very large.
            if depth < MAX_DEPTH && self.below(depth + 2) < 2 && self.below(4) > 0 {
                object.insert(name.clone(), self.value(property, depth + 1));
            }
        }
        if schema["additionalProperties"].is_object() && depth < MAX_DEPTH {
            let value = self.value(&schema["additionalProperties"], depth + 1);
            object.insert(["", "a", "cpu"][self.below(3)].to_owned(), value);
        }
        Value::Object(object)
    }

    /// Returns a body of an operation. Most bodies get past the checks of kind and name.
    fn body(&mut self, path: &str, operation: &Value, name: &str) -> Option<Value> {
        let parameters = operation["parameters"].as_array()?;
        let body = parameters.iter().find(|parameter| parameter["in"] == "body")?;
        let mut body = self.value(&body["schema"], 0);
        let kind = &operation["x-kubernetes-group-version-kind"];
        if let Some(object) = body.as_object_mut().filter(|_| self.below(12) > 0) {
            let api_version = match (kind["group"].as_str(), kind["version"].as_str()) {
                (Some("") | None, version) => json!(version),
                (Some(group), version) => json!(format!("{group}/{}", version?)),
            };
            object.insert("apiVersion".to_owned(), api_version);
            object.insert("kind".to_owned(), kind["kind"].clone());
            if path.ends_with("/customresourcedefinitions") || self.below(4) > 0 {
                object.insert("metadata".to_owned(), json!({"name": name}));
            }
        }
        Some(body)
    }
}

/// Returns the concrete path of a template.
fn concrete(template: &str, name: &str) -> String {
    let path = template.replace("{namespace}", "default").replace("{name}", name);
    path.replace("/{path}", "")
}

#[tokio::test]
async fn a_random_body_is_accepted_or_rejected() {
    let server = TestServer::start().await;
    let document = server.get("/openapi/v2").await.expect(200).json;
    let mut writer = Writer { document: &document, state: 7 };
    let (mut accepted, mut rejected) = (0, 0);
    let paths = document["paths"].as_object().expect("paths");
    for round in 0..ROUNDS {
        // Every other round, the objects exist already.
        let name = format!("random-{}", round / 2);
        for (template, operations) in paths {
            if template.ends_with("/proxy") || template.contains("/proxy/") {
                continue;
            }
            for (method, media_type) in [
                ("post", "application/json"),
                ("put", "application/json"),
                ("patch", "application/merge-patch+json"),
                ("patch", "application/apply-patch+yaml"),
            ] {
                let Some(body) = writer.body(template, &operations[method], &name) else {
                    continue;
                };
                let path = concrete(template, &name);
                let force = if media_type.contains("apply") { "&force=true" } else { "" };
                let path = format!("{path}?fieldManager=a{force}");
                let headers = [("content-type", media_type)];
                let method = method.to_uppercase();
                let reply = server.send(&method, &path, &headers, &body.to_string()).await;
                let code = reply.status.as_u16();
                // kube-apiserver responds to such configurations with 500, too.
                let is_untyped = reply.text.contains("failed to create typed patch object");
                assert!(code < 500 || is_untyped, "{method} {path} {body}: {}", reply.text);
                *(if code < 300 { &mut accepted } else { &mut rejected }) += 1;
            }
        }
    }
    assert!(accepted > 100 && rejected > 1000, "{accepted} accepted, {rejected} rejected");
    server.get("/readyz").await.expect(200);
}
