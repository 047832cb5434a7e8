//! The `kube` crate with the server: the requests, watches and caches of controllers.

mod runtime;
mod streams;

use std::pin::pin;
use std::time::Duration;

use futures_util::{Stream, StreamExt as _};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{
    Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams, WatchParams,
};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::WatchEvent;
use kube::runtime::reflector;
use kube::runtime::wait::{await_condition, conditions};
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Client, ResourceExt};
use kubeproof_reference_server::{Running, Server};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::timeout;

/// The timeout of each operation.
const DEADLINE: Duration = Duration::from_mins(1);

async fn start() -> (Running, Client) {
    let server = Server::builder().tls().start().await.expect("a server starts");
    let client = server.client().await.expect("a client");
    (server, client)
}

/// Connects as the administrator.
async fn client(server: &Running) -> Client {
    let kubeconfig = Kubeconfig::from_yaml(&server.kubeconfig()).expect("a kubeconfig");
    let options = KubeConfigOptions::default();
    let config =
        kube::Config::from_custom_kubeconfig(kubeconfig, &options).await.expect("a configuration");
    Client::try_from(config).expect("a client")
}

fn object<K: DeserializeOwned>(value: Value) -> K {
    serde_json::from_value(value).expect("an object of this type")
}

fn config_map(name: &str) -> ConfigMap {
    object(json!({"metadata": {"name": name, "labels": {"app": "test"}}, "data": {"a": "1"}}))
}

async fn next<T>(stream: &mut (impl Stream<Item = T> + Unpin)) -> T {
    timeout(DEADLINE, stream.next()).await.expect("the stream is silent").expect("the stream ended")
}

/// Returns the code and the reason of a rejection.
fn rejection<T: std::fmt::Debug>(result: kube::Result<T>) -> (u16, String) {
    match result {
        Err(kube::Error::Api(status)) => (status.code, status.reason.clone()),
        other => panic!("expected a rejection by the server, got {other:?}"),
    }
}

#[tokio::test]
async fn objects_are_created_updated_and_deleted() {
    let (_server, client) = start().await;
    let api: Api<ConfigMap> = Api::default_namespaced(client);
    let created = api.create(&PostParams::default(), &config_map("one")).await.unwrap();
    assert!(created.uid().is_some() && created.resource_version().is_some());
    let again = api.create(&PostParams::default(), &config_map("one")).await;
    assert_eq!(rejection(again), (409, "AlreadyExists".to_owned()));

    let patch = Patch::Merge(json!({"data": {"b": "2", "a": null}}));
    let patched = api.patch("one", &PatchParams::default(), &patch).await.unwrap();
    assert_eq!(patched.data.unwrap().keys().collect::<Vec<_>>(), ["b"]);
    let patch = Patch::Strategic(json!({"metadata": {"finalizers": ["example.com/hold"]}}));
    api.patch("one", &PatchParams::default(), &patch).await.unwrap();
    let stale = api.replace("one", &PostParams::default(), &created).await;
    assert_eq!(rejection(stale), (409, "Conflict".to_owned()));

    let held = api
        .delete("one", &DeleteParams::default())
        .await
        .unwrap()
        .left()
        .expect("the object is held");
    assert!(held.metadata.deletion_timestamp.is_some());
    let patch = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    api.patch("one", &PatchParams::default(), &patch).await.unwrap();
    assert_eq!(rejection(api.get("one").await), (404, "NotFound".to_owned()));
    assert_eq!(api.get_opt("one").await.unwrap(), None);
}

#[tokio::test]
async fn lists_support_pages_and_selectors() {
    let (_server, client) = start().await;
    let api: Api<ConfigMap> = Api::default_namespaced(client);
    for name in ["a", "b", "c"] {
        api.create(&PostParams::default(), &config_map(name)).await.unwrap();
    }
    let first = api.list(&ListParams::default().labels("app in (test)").limit(2)).await.unwrap();
    assert_eq!(first.items.len(), 2);
    let token = first.metadata.continue_.expect("a second page");
    let second = api
        .list(&ListParams::default().labels("app in (test)").limit(2).continue_token(&token))
        .await
        .unwrap();
    assert_eq!(second.items.iter().map(ResourceExt::name_any).collect::<Vec<_>>(), ["c"]);
    let one = api.list_metadata(&ListParams::default().fields("metadata.name=b")).await.unwrap();
    assert_eq!(one.items.len(), 1);
    let bad = api.list(&ListParams::default().labels("a b")).await;
    assert_eq!(rejection(bad).0, 400);
}

#[tokio::test]
async fn status_and_scale_are_separate_subresources() {
    let (_server, client) = start().await;
    let api: Api<Deployment> = Api::default_namespaced(client);
    let deployment: Deployment = object(json!({
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 2, "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "c", "image": "i"}]},
            },
        },
    }));
    api.create(&PostParams::default(), &deployment).await.unwrap();
    let scaled = Patch::Merge(json!({"spec": {"replicas": 5}}));
    let scale = api.patch_scale("web", &PatchParams::default(), &scaled).await.unwrap();
    assert_eq!(scale.spec.unwrap().replicas, Some(5));
    let ready = Patch::Merge(json!({"spec": {"replicas": 9}, "status": {"replicas": 5}}));
    api.patch_status("web", &PatchParams::default(), &ready).await.unwrap();
    let deployment = api.get("web").await.unwrap();
    assert_eq!(deployment.spec.unwrap().replicas, Some(5));
    assert_eq!(deployment.status.unwrap().replicas, Some(5));
    assert_eq!(deployment.metadata.generation, Some(2));
}

#[rstest::rstest]
#[case::by_list(watcher::Config::default())]
#[case::by_stream(watcher::Config::default().streaming_lists())]
#[tokio::test]
async fn a_watcher_receives_every_change_once(#[case] config: watcher::Config) {
    let (_server, client) = start().await;
    let api: Api<ConfigMap> = Api::default_namespaced(client);
    api.create(&PostParams::default(), &config_map("before")).await.unwrap();
    let mut events = pin!(watcher(api.clone(), config.labels("app=test")));
    assert!(matches!(next(&mut events).await, Ok(Event::Init)));
    assert!(matches!(
        next(&mut events).await,
        Ok(Event::InitApply(found)) if found.name_any() == "before"
    ));
    assert!(matches!(next(&mut events).await, Ok(Event::InitDone)));

    api.create(&PostParams::default(), &config_map("after")).await.unwrap();
    assert!(
        matches!(next(&mut events).await, Ok(Event::Apply(found)) if found.name_any() == "after")
    );
    let unlabelled = Patch::Merge(json!({"metadata": {"labels": {"app": "other"}}}));
    api.patch("before", &PatchParams::default(), &unlabelled).await.unwrap();
    assert!(
        matches!(next(&mut events).await, Ok(Event::Delete(gone)) if gone.name_any() == "before")
    );
    api.delete("after", &DeleteParams::default()).await.unwrap();
    assert!(
        matches!(next(&mut events).await, Ok(Event::Delete(gone)) if gone.name_any() == "after")
    );
}

#[tokio::test]
async fn a_reflector_mirrors_the_collection() {
    let (_server, client) = start().await;
    let api: Api<ConfigMap> = Api::default_namespaced(client);
    let (store, writer) = reflector::store();
    let mut events = pin!(reflector(writer, watcher(api.clone(), watcher::Config::default())));
    while !matches!(next(&mut events).await, Ok(Event::InitDone)) {}
    for number in 0..20 {
        api.create(&PostParams::default(), &config_map(&format!("n{number}"))).await.unwrap();
    }
    for _ in 0..20 {
        assert!(matches!(next(&mut events).await, Ok(Event::Apply(_))));
    }
    assert_eq!(
        store.state().iter().filter(|object| object.name_any().starts_with('n')).count(),
        20
    );
}

#[tokio::test]
async fn a_raw_watch_resumes_from_a_version() {
    let (_server, client) = start().await;
    let api: Api<ConfigMap> = Api::default_namespaced(client);
    let created = api.create(&PostParams::default(), &config_map("one")).await.unwrap();
    let version = created.resource_version().expect("a version");
    api.delete("one", &DeleteParams::default()).await.unwrap();
    let mut events = pin!(api.watch(&WatchParams::default(), &version).await.unwrap());
    assert!(
        matches!(next(&mut events).await, Ok(WatchEvent::Deleted(gone)) if gone.name_any() == "one")
    );
}

#[tokio::test]
async fn custom_resources_are_found_once_established() {
    let (_server, client) = start().await;
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let definition: CustomResourceDefinition = object(json!({
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {"size": {"type": "integer", "default": 1}},
                            },
                        },
                    },
                },
            }],
        },
    }));
    definitions.create(&PostParams::default(), &definition).await.unwrap();
    let established = await_condition(
        definitions.clone(),
        "widgets.example.com",
        conditions::is_crd_established(),
    );
    timeout(DEADLINE, established).await.expect("the CRD is never established").unwrap();

    let kind = kube::core::GroupVersionKind::gvk("example.com", "v1", "Widget");
    let (resource, capabilities) = kube::discovery::pinned_kind(&client, &kind).await.unwrap();
    assert_eq!(resource.plural, "widgets");
    assert_eq!(capabilities.scope, kube::discovery::Scope::Namespaced);
    let aggregated = kube::Discovery::new(client.clone()).run_aggregated().await.unwrap();
    assert!(aggregated.resolve_gvk(&kind).is_some());

    let api: Api<DynamicObject> = Api::default_namespaced_with(client, &resource);
    let widget = DynamicObject::new("w", &resource).data(json!({"spec": {}}));
    let created = api.create(&PostParams::default(), &widget).await.unwrap();
    assert_eq!(created.data["spec"]["size"], 1);
    let uid = created.uid().expect("a uid");
    let options = DeleteParams::default();
    let (deleted, gone) = tokio::join!(
        api.delete("w", &options),
        timeout(DEADLINE, await_condition(api.clone(), "w", conditions::is_deleted(&uid))),
    );
    deleted.unwrap();
    gone.expect("the object never goes").unwrap();
}
