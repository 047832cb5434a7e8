//! Controllers, watchers, reflectors and appliers of the `kube` runtime.

use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::entry::Entry;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kube::core::PartialObjectMeta;
use kube::runtime::controller::{self, Action, Controller};
use kube::runtime::finalizer::{self, Event as Finalizer, finalizer};
use kube::runtime::watcher::{self, Event, watch_object, watcher};
use kube::runtime::{WatchStreamExt as _, predicates, reflector};
use kube::{Resource as _, ResourceExt};
use serde_json::json;
use tokio::time::timeout;

use crate::{DEADLINE, config_map, next, object, rejection, start};

/// The finalizer of the controller.
const FINALIZER: &str = "example.com/cleanup";

/// The controller creates a secret for each config map, restores it after a deletion, updates it
/// with its config map, and deletes it before the config map.
#[rstest::rstest]
#[case::by_list(watcher::Config::default())]
#[case::by_stream(watcher::Config::default().streaming_lists())]
#[tokio::test]
async fn a_controller_reconciles_its_objects(#[case] config: watcher::Config) {
    let (_server, client) = start().await;
    let parents: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let children: Api<Secret> = Api::default_namespaced(client.clone());
    parents.create(&PostParams::default(), &config_map("before")).await.unwrap();

    let controller = Controller::new(parents.clone(), config.clone().labels("app=test"))
        .owns(children.clone(), config)
        .run(reconcile, |_, _, _| Action::requeue(Duration::from_millis(20)), Arc::new(client));
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let running = tokio::spawn(async move {
        let mut results = pin!(futures_util::StreamExt::take_until(controller, stopped));
        while let Some(result) = futures_util::StreamExt::next(&mut results).await {
            // An event of a child may arrive after the deletion of its parent.
            let gone = matches!(result, Err(controller::Error::ObjectNotFound(_)));
            assert!(gone || result.is_ok() || is_stale(&result), "{result:?}");
        }
    });

    let child = appears(&children, "before").await;
    assert_eq!(child.owner_references()[0].name, "before");
    parents.create(&PostParams::default(), &config_map("after")).await.unwrap();
    appears(&children, "after").await;

    children.delete("before", &DeleteParams::default()).await.unwrap();
    let again =
        becomes(&children, "before", |found| found.is_some_and(|found| found.uid() != child.uid()))
            .await;
    assert!(again.is_some());

    let changed = Patch::Merge(json!({"data": {"a": "2"}}));
    parents.patch("before", &PatchParams::default(), &changed).await.unwrap();
    becomes(&children, "before", |found| {
        found.is_some_and(|found| found.annotations()["example.com/a"] == "2")
    })
    .await;

    parents.delete("before", &DeleteParams::default()).await.unwrap();
    becomes(&parents, "before", |found| found.is_none()).await;
    assert_eq!(
        children.get_opt("before").await.unwrap(),
        None,
        "the finalizer ran before its object went"
    );
    assert!(children.get_opt("after").await.unwrap().is_some());
    let _ = stop.send(());
    timeout(DEADLINE, running)
        .await
        .expect("the controller hangs")
        .expect("the controller ends well");
}

/// Returns whether the controller added its finalizer to a stale cached object. It then retries.
fn is_stale<T, E: std::error::Error>(
    result: &Result<T, controller::Error<finalizer::Error<kube::Error>, E>>,
) -> bool {
    match result {
        Err(controller::Error::ReconcilerFailed(
            finalizer::Error::AddFinalizer(kube::Error::Api(status)),
            _,
        )) => status.code == 422,
        _ => false,
    }
}

async fn reconcile(
    parent: Arc<ConfigMap>,
    client: Arc<kube::Client>,
) -> Result<Action, finalizer::Error<kube::Error>> {
    let parents: Api<ConfigMap> = Api::default_namespaced((*client).clone());
    let children: Api<Secret> = Api::default_namespaced((*client).clone());
    finalizer(&parents, FINALIZER, parent, |event| async move {
        match event {
            Finalizer::Apply(parent) => {
                let name = parent.name_any();
                let wanted = json!({
                    "apiVersion": "v1", "kind": "Secret",
                    "metadata": {
                        "name": name,
                        "ownerReferences": [parent.controller_owner_ref(&()).expect("an owner")],
                        "annotations": {"example.com/a": parent.data.as_ref().expect("data")["a"]},
                    },
                });
                children
                    .patch(&name, &PatchParams::apply("controller"), &Patch::Apply(wanted))
                    .await?;
            }
            Finalizer::Cleanup(parent) => {
                match children.delete(&parent.name_any(), &DeleteParams::default()).await {
                    Err(kube::Error::Api(status)) if status.code == 404 => {}
                    deleted => drop(deleted?),
                }
            }
        }
        Ok(Action::await_change())
    })
    .await
}

async fn appears(api: &Api<Secret>, name: &str) -> Secret {
    becomes(api, name, |found| found.is_some()).await.expect("the object that appeared")
}

/// Watches one object until it has the wanted state.
async fn becomes<K>(api: &Api<K>, name: &str, wanted: impl Fn(Option<&K>) -> bool) -> Option<K>
where
    K: kube::Resource + Clone + serde::de::DeserializeOwned + std::fmt::Debug + Send + 'static,
{
    let mut states = pin!(watch_object(api.clone(), name));
    loop {
        let state = next(&mut states).await.expect("a state");
        if wanted(state.as_ref()) {
            return state;
        }
    }
}

#[tokio::test]
async fn metadata_watchers_work_with_pages_and_streaming_lists() {
    let (_server, client) = start().await;
    let api: Api<ConfigMap> = Api::default_namespaced(client.clone());
    for number in 0..7 {
        api.create(&PostParams::default(), &config_map(&format!("n{number}"))).await.unwrap();
    }
    let metadata: Api<PartialObjectMeta<ConfigMap>> = Api::default_namespaced(client);
    let config = || watcher::Config::default().labels("app=test");
    for config in [config().page_size(3), config().streaming_lists()] {
        let mut events = pin!(watcher(metadata.clone(), config));
        let mut names = BTreeSet::new();
        loop {
            match next(&mut events).await.expect("an event") {
                Event::Init => {}
                Event::InitApply(found) => {
                    assert!(names.insert(found.name_any()), "{} twice", found.name_any());
                }
                Event::InitDone => break,
                other => panic!("not an initial event: {other:?}"),
            }
        }
        assert_eq!(names.len(), 7);
    }
}

/// The predicate accepts changes of labels and drops changes of annotations.
#[tokio::test]
async fn a_predicate_filters_the_changes_of_a_reflector() {
    let (_server, client) = start().await;
    let api: Api<ConfigMap> = Api::default_namespaced(client);
    api.create(&PostParams::default(), &config_map("one")).await.unwrap();
    let (store, writer) = reflector::store();
    let stream = watcher(api.clone(), watcher::Config::default().labels("app").streaming_lists());
    let mut applied = pin!(
        stream
            .reflect(writer)
            .applied_objects()
            .predicate_filter(predicates::labels, kube::runtime::PredicateConfig::default())
    );
    assert_eq!(next(&mut applied).await.expect("an object").name_any(), "one");
    let annotated = Patch::Merge(json!({"metadata": {"annotations": {"step": "1"}}}));
    api.patch("one", &PatchParams::default(), &annotated).await.unwrap();
    let labelled = Patch::Merge(json!({"metadata": {"labels": {"step": "2"}}}));
    api.patch("one", &PatchParams::default(), &labelled).await.unwrap();
    let seen = next(&mut applied).await.expect("an object");
    assert_eq!((seen.labels()["step"].as_str(), seen.annotations()["step"].as_str()), ("2", "1"));
    let kept = store.get(&reflector::ObjectRef::from_obj(&seen)).expect("the reflector keeps it");
    assert_eq!(kept.resource_version(), seen.resource_version());
}

#[tokio::test]
async fn an_entry_writes_only_changed_objects() {
    let (_server, client) = start().await;
    let api: Api<ConfigMap> = Api::default_namespaced(client);
    let options = PostParams::default();
    let mut entry = api.entry("one").await.unwrap().or_insert(|| config_map("one"));
    entry.commit(&options).await.unwrap();
    let version = entry.get().resource_version();
    entry.commit(&options).await.unwrap();
    assert_eq!(entry.get().resource_version(), version, "nothing was to be written");

    let Entry::Occupied(stale) = api.entry("one").await.unwrap() else {
        panic!("the object is gone")
    };
    let set = |value: &str| {
        let value = value.to_owned();
        move |found: &mut ConfigMap| {
            found.data.get_or_insert_default().insert("a".to_owned(), value);
        }
    };
    entry.get_mut().data.get_or_insert_default().insert("b".to_owned(), "1".to_owned());
    entry.commit(&options).await.unwrap();
    assert_ne!(entry.get().resource_version(), version);
    let error =
        stale.and_modify(set("2")).commit(&options).await.expect_err("another writer was first");
    assert!(error.to_string().to_lowercase().contains("failed to save"), "{error}");
}

#[tokio::test]
async fn appliers_share_an_object_and_conflict_over_a_field() {
    let (_server, client) = start().await;
    let api: Api<ConfigMap> = Api::default_namespaced(client);
    let wanted = |data: serde_json::Value| {
        let wanted = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "shared"}, "data": data,
        });
        Patch::Apply(object::<ConfigMap>(wanted))
    };
    let (one, two) = (PatchParams::apply("one"), PatchParams::apply("two"));
    api.patch("shared", &one, &wanted(json!({"a": "1"}))).await.unwrap();
    let shared = api.patch("shared", &two, &wanted(json!({"b": "1"}))).await.unwrap();
    assert_eq!(shared.data.as_ref().map(std::collections::BTreeMap::len), Some(2));
    let managers: BTreeSet<_> =
        shared.managed_fields().iter().filter_map(|entry| entry.manager.clone()).collect();
    assert_eq!(managers, ["one", "two"].map(str::to_owned).into());

    let conflict = api.patch("shared", &two, &wanted(json!({"a": "2", "b": "1"}))).await;
    assert_eq!(rejection(conflict), (409, "Conflict".to_owned()));
    let forced = api.patch("shared", &two.force(), &wanted(json!({"a": "2"}))).await.unwrap();
    assert_eq!(
        forced.data.unwrap().into_iter().collect::<Vec<_>>(),
        [("a".to_owned(), "2".to_owned())]
    );
}
