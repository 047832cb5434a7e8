//! Conversion webhooks of custom resources.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::https::{HttpsServer, Received};
use crate::support::{Reply, TestServer};

const V1: &str = "/apis/example.com/v1/namespaces/default/lamps";
const V2: &str = "/apis/example.com/v2/namespaces/default/lamps";

type Damage = Arc<Mutex<Option<fn(&mut Value)>>>;

/// A server with the definition of a resource with two versions, and the webhook that converts
/// `spec.watts` of v1, which is stored, to `spec.power` of v2.
struct Setup {
    server: TestServer,
    webhook: HttpsServer,
    /// What the webhook does to converted objects.
    damage: Damage,
}

impl Setup {
    async fn start() -> Self {
        let damage: Damage = Arc::default();
        let effect = Arc::clone(&damage);
        let webhook = HttpsServer::start(move |received| {
            let change = *effect.lock().expect("no panic");
            (200, review(received, change))
        })
        .await;
        let server = TestServer::start().await;
        let definition = definition(&webhook);
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        server.post(path, &definition).await.expect(201);
        server.until(V1, |reply| reply.status == 200).await;
        Self { server, webhook, damage }
    }

    fn damage(&self, change: fn(&mut Value)) {
        *self.damage.lock().expect("no panic") = Some(change);
    }
}

fn definition(webhook: &HttpsServer) -> Value {
    let version = |name: &str, field: &str| {
        let spec = json!({"type": "object", "properties": {field: {"type": "integer"}}});
        let schema = json!({"type": "object", "properties": {"spec": spec}});
        json!({
            "name": name, "served": true, "storage": name == "v1",
            "schema": {"openAPIV3Schema": schema}, "subresources": {"status": {}},
        })
    };
    let client = json!({
        "url": format!("{}/convert", webhook.url()), "caBundle": webhook.ca_bundle(),
    });
    let conversion = json!({
        "strategy": "Webhook",
        "webhook": {"clientConfig": client, "conversionReviewVersions": ["v1"]},
    });
    json!({
        "metadata": {"name": "lamps.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "conversion": conversion,
            "names": {"plural": "lamps", "kind": "Lamp"},
            "versions": [version("v1", "watts"), version("v2", "power")],
        },
    })
}

fn review(received: &Received, damage: Option<fn(&mut Value)>) -> Value {
    let request = &received.body["request"];
    let desired = request["desiredAPIVersion"].as_str().expect("a version");
    let objects = request["objects"].as_array().expect("objects").iter().map(|object| {
        let mut object = object.clone();
        object["apiVersion"] = desired.into();
        let (from, to) =
            if desired.ends_with("v2") { ("watts", "power") } else { ("power", "watts") };
        if let Some(spec) = object["spec"].as_object_mut()
            && let Some(value) = spec.remove(from)
        {
            spec.insert(to.to_owned(), value);
        }
        object["metadata"]["labels"]["converted-to"] = desired.replace('/', "-").into();
        if let Some(damage) = damage {
            damage(&mut object);
        }
        object
    });
    let objects: Vec<Value> = objects.collect();
    json!({
        "kind": "ConversionReview", "apiVersion": "apiextensions.k8s.io/v1",
        "response": {
            "uid": request["uid"], "result": {"status": "Success"}, "convertedObjects": objects,
        },
    })
}

fn lamp(version: &str, name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": format!("example.com/{version}"), "kind": "Lamp",
        "metadata": {"name": name}, "spec": spec,
    })
}

fn power(reply: &Reply) -> Option<i64> {
    reply.json["spec"]["power"].as_i64()
}

#[tokio::test]
async fn objects_are_stored_in_one_version_and_served_in_all() {
    let Setup { server, webhook, .. } = Setup::start().await;
    let created = server.post(V2, &lamp("v2", "a", &json!({"power": 5}))).await.expect(201);
    assert_eq!((created.text_at("/apiVersion"), power(&created)), ("example.com/v2", Some(5)));
    assert_eq!(webhook.received().len(), 2, "to the stored version and back");
    let stored = server.get(&format!("{V1}/a")).await.expect(200);
    assert_eq!(stored.json["spec"], json!({"watts": 5}));
    assert_eq!(webhook.received().len(), 2, "the stored version needs no webhook");

    let one = format!("{V2}/a");
    let patched = server.merge(&one, &json!({"spec": {"power": 6}})).await.expect(200);
    assert_eq!(power(&patched), Some(6));
    let mut body = patched.json.clone();
    body["spec"]["power"] = json!(7);
    assert_eq!(power(&server.put(&one, &body).await.expect(200)), Some(7));
    let apply = [("content-type", "application/apply-patch+yaml")];
    let config = lamp("v2", "b", &json!({"power": 8})).to_string();
    let path = format!("{V2}/b?fieldManager=test");
    server.send("PATCH", &path, &apply, &config).await.expect(201);
    server.send("PATCH", &path, &apply, &config).await.expect(200);

    let list = server.get(V2).await.expect(200);
    assert_eq!(list.names(), ["a", "b"]);
    assert_eq!(list.json["items"][1]["spec"], json!({"power": 8}));
    let request = webhook.received().pop().expect("a request");
    assert_eq!(request.body["request"]["objects"].as_array().map(Vec::len), Some(2));
    assert_eq!(request.path, "/convert?timeout=30s");
    assert_eq!(server.get(V1).await.json["items"][0]["spec"], json!({"watts": 7}));
}

#[tokio::test]
async fn watches_show_their_own_version() {
    let setup = Setup::start().await;
    let server = &setup.server;
    server.post(V1, &lamp("v1", "a", &json!({"watts": 1}))).await.expect(201);
    let mut watch = server.watch(&format!("{V2}?watch=true")).await;
    server.post(V1, &lamp("v1", "b", &json!({"watts": 2}))).await.expect(201);
    server.delete(&format!("{V2}/a"), "").await.expect(200);
    for (kind, name, power) in [("ADDED", "a", 1), ("ADDED", "b", 2), ("DELETED", "a", 1)] {
        let event = watch.next().await.expect("an event");
        assert_eq!(
            (&event["type"], &event["object"]["metadata"]["name"]),
            (&json!(kind), &json!(name))
        );
        assert_eq!(event["object"]["apiVersion"], "example.com/v2");
        assert_eq!(event["object"]["spec"], json!({"power": power}));
    }
}

#[tokio::test]
async fn converters_must_keep_the_metadata() {
    let setup = Setup::start().await;
    let Setup { server, .. } = &setup;
    server.post(V1, &lamp("v1", "a", &json!({"watts": 1}))).await.expect(201);
    let one = format!("{V2}/a");
    let read = server.get(&one).await.expect(200);
    assert_eq!(read.text_at("/metadata/labels/converted-to"), "example.com-v2");
    setup.damage(|object| object["metadata"]["finalizers"] = json!(["other"]));
    let read = server.get(&one).await.expect(200);
    assert!(read.json["metadata"]["finalizers"].is_null(), "only labels may change");
    setup.damage(|object| object["metadata"]["name"] = json!("other"));
    let failed = server.get(&one).await.rejected(500, "");
    assert_eq!(
        failed.text_at("/message"),
        "conversion webhook for example.com/v1, Kind=Lamp returned invalid object: must have the \
         same name: a != other"
    );
    setup.damage(|object| object["apiVersion"] = json!("example.com/v3"));
    let failed = server.get(V2).await.rejected(500, "");
    assert!(failed.text_at("/message").contains("invalid groupVersion"), "{}", failed.text);
    server.get(V1).await.expect(200);
}

#[tokio::test]
async fn a_webhook_that_is_down_fails_only_other_versions() {
    let setup = Setup::start().await;
    let server = &setup.server;
    server.post(V1, &lamp("v1", "a", &json!({"watts": 1}))).await.expect(201);
    let url = setup.webhook.url();
    drop(setup.webhook);
    let failed = server.get(&format!("{V2}/a")).await.rejected(500, "");
    let expected = format!(
        "conversion webhook for example.com/v1, Kind=Lamp failed: \
         Post \"{url}/convert?timeout=30s\": "
    );
    assert!(failed.text_at("/message").starts_with(&expected), "{}", failed.text);
    server.post(V2, &lamp("v2", "b", &json!({}))).await.rejected(500, "");
    server.get(&format!("{V1}/b")).await.rejected(404, "NotFound");
    server.delete(&format!("{V1}/a"), "").await.expect(200);
}
