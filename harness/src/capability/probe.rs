//! Questions that discovery does not answer, each a request or two, asked together.

use std::collections::BTreeMap;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, join_all};
use kubeproof_cases::case::{Capability, Identity, ResourceName};
use serde_json::{Value, json};

use super::{Asker, Discovered, Questions, outgoing};
use crate::exchange::{BrokenKind, Exchange, Outcome};
use crate::watch::Next;

/// It can, or why not.
type Answer = Result<(), String>;

const RBAC: &str = "rbac.authorization.k8s.io";

type Resources = BTreeMap<ResourceName, Discovered>;

/// Asks what the questions want to know, beyond what discovery said.
pub(super) async fn all(
    asker: &Asker<'_>,
    resources: &Resources,
    questions: &Questions<'_>,
) -> Vec<(Capability, Answer)> {
    let probes = questions.needs.iter().filter_map(|need| {
        let probe: BoxFuture<'_, Answer> = match need {
            Capability::AggregatedDiscovery | Capability::Core | Capability::Token => return None,
            Capability::OpenapiV2 => openapi_v2(asker).boxed(),
            Capability::OpenapiV3 => openapi_v3(asker).boxed(),
            Capability::Attach => stream(asker, resources, questions, "attach").boxed(),
            Capability::Exec => stream(asker, resources, questions, "exec").boxed(),
            Capability::Log => stream(asker, resources, questions, "log").boxed(),
            Capability::Portforward => stream(asker, resources, questions, "portforward").boxed(),
            Capability::Proxy => stream(asker, resources, questions, "proxy").boxed(),
            Capability::Namespaces => namespaces(asker, resources, questions).boxed(),
            Capability::Crds => crds(asker, resources, questions).boxed(),
            Capability::GarbageCollection => garbage_collection(asker).boxed(),
            Capability::Impersonation => impersonation(asker, questions).boxed(),
            Capability::Pods => pods(asker, resources, questions).boxed(),
            Capability::Roles => roles(asker, resources, questions).boxed(),
            Capability::RunningPods => running_pods(asker, resources, questions).boxed(),
            Capability::ScriptedPods => scripted_pods(asker, questions).boxed(),
            Capability::SecondUser => second_user(asker, resources, questions).boxed(),
            Capability::Table => representation(asker, resources, questions, "Table").boxed(),
            Capability::PartialMetadata => {
                representation(asker, resources, questions, "PartialObjectMetadataList").boxed()
            }
            Capability::WatchBookmarks => bookmarks(asker, resources, questions).boxed(),
            Capability::StreamingLists => streaming_lists(asker, resources, questions).boxed(),
            Capability::FieldSelectors => field_selectors(asker, resources, questions).boxed(),
            Capability::Paging => paging(asker, resources, questions).boxed(),
            Capability::JsonPatch => patch(asker, resources, questions, "json-patch+json").boxed(),
            Capability::MergePatch => patch(asker, resources, questions, "merge-patch+json").boxed(),
            Capability::StrategicMergePatch => {
                patch(asker, resources, questions, "strategic-merge-patch+json").boxed()
            }
            Capability::ServerSideApply => patch(asker, resources, questions, "apply-patch+yaml").boxed(),
            Capability::ShortHistory => short_history(asker, resources, questions).boxed(),
            Capability::ValidationRules => validation_rules(asker, resources, questions).boxed(),
        };
        Some(probe.map(|answer| (*need, answer)))
    });
    join_all(probes).await
}

async fn openapi_v2(asker: &Asker<'_>) -> Answer {
    let exchange = asker.get("/openapi/v2", "application/json").await;
    let too_long = matches!(&exchange.outcome, Outcome::Broken(broken) if broken.kind == BrokenKind::Budget);
    let is_it = exchange.json().is_some_and(|document| document["swagger"] == "2.0");
    if too_long || is_it {
        Ok(())
    } else {
        Err(format!("/openapi/v2 holds no document: {}", exchange.in_words()))
    }
}

async fn openapi_v3(asker: &Asker<'_>) -> Answer {
    let exchange = asker.get("/openapi/v3", "application/json").await;
    let is_it = exchange.json().is_some_and(|document| document["paths"].is_object());
    if is_it { Ok(()) } else { Err(format!("/openapi/v3 holds no index: {}", exchange.in_words())) }
}

async fn namespaces(asker: &Asker<'_>, resources: &Resources, questions: &Questions<'_>) -> Answer {
    creatable(resources, &named("namespaces", "v1", ""))?;
    let manifest =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": questions.probe_name}});
    asked(asker, questions, "/api/v1/namespaces", &manifest).await
}

async fn crds(asker: &Asker<'_>, resources: &Resources, questions: &Questions<'_>) -> Answer {
    creatable(resources, &named("customresourcedefinitions", "v1", "apiextensions.k8s.io"))?;
    let collection = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    match questions.crd {
        Some(manifest) => asked(asker, questions, collection, manifest).await,
        None => Ok(()),
    }
}

async fn pods(asker: &Asker<'_>, resources: &Resources, questions: &Questions<'_>) -> Answer {
    creatable(resources, &named("pods", "v1", ""))?;
    let manifest = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": questions.probe_name},
        "spec": {"containers": [{"name": "probe", "image": "registry.invalid/probe"}]},
    });
    let namespace = questions.namespace.unwrap_or("default");
    asked(asker, questions, &format!("/api/v1/namespaces/{namespace}/pods"), &manifest).await
}

/// A subresource of pods that is neither listed nor answers is not there. One that answers all the same is for cases to judge:
/// of a pod that there is not, it says that.
async fn stream(
    asker: &Asker<'_>,
    resources: &Resources,
    questions: &Questions<'_>,
    subresource: &str,
) -> Answer {
    let pods = named("pods", "v1", "");
    let listed = resources.get(&pods).ok_or_else(|| format!("the server does not serve {pods}"))?;
    if listed.subresources.contains_key(subresource) {
        return Ok(());
    }
    let (collection, name) = (collection(&pods, true, questions), questions.probe_name);
    let exchange = asker.get(&format!("{collection}/{name}/{subresource}"), "application/json").await;
    let names_the_pod = exchange.json().is_some_and(|status| status["details"]["name"] == name);
    if exchange.status() == 404 && !names_the_pod {
        return Err(format!(
            "pods.v1 lists no subresource {subresource}, and has none: {}",
            exchange.in_words()
        ));
    }
    Ok(())
}

/// Pods run where a node is ready, and has the image. Who may not look at nodes may still have pods that run.
async fn running_pods(asker: &Asker<'_>, resources: &Resources, questions: &Questions<'_>) -> Answer {
    creatable(resources, &named("pods", "v1", ""))?;
    let ready = ready_nodes(asker).await;
    if ready.as_ref().is_some_and(Vec::is_empty) {
        return Err("no node of the target is ready, so pods do not run (--with-node brings one)".to_owned());
    }
    if questions.pod_image.is_some() || ready.is_some_and(|nodes| nodes.iter().any(is_scripted)) {
        return Ok(());
    }
    Err("the target's nodes run real images: name one with --pod-image (busybox will do)".to_owned())
}

/// Behind a node that a run brings, pods have addresses that lead nowhere.
async fn scripted_pods(asker: &Asker<'_>, questions: &Questions<'_>) -> Answer {
    if let Some(image) = questions.pod_image {
        return Err(format!("what the ports of {image} answer is not known"));
    }
    let own = |node: &Value| {
        let endpoint = node["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"].as_u64();
        is_scripted(node) && endpoint.unwrap_or_default() == 0
    };
    let nodes = ready_nodes(asker).await.unwrap_or_default();
    if nodes.iter().any(own) {
        Ok(())
    } else {
        Err("the target itself runs no scripted pods, and reaches no address of those that a run brings"
            .to_owned())
    }
}

/// The nodes that take pods; `None` for who may not look.
async fn ready_nodes(asker: &Asker<'_>) -> Option<Vec<Value>> {
    let nodes = asker.get("/api/v1/nodes?limit=500", "application/json").await;
    let items = nodes.json().filter(|_| nodes.status() == 200)?["items"].as_array()?;
    let is_ready = |node: &&Value| {
        let conditions = node["status"]["conditions"].as_array();
        conditions.into_iter().flatten().any(|one| one["type"] == "Ready" && one["status"] == "True")
    };
    Some(items.iter().filter(is_ready).cloned().collect())
}

fn is_scripted(node: &Value) -> bool {
    node["status"]["nodeInfo"]["osImage"].as_str().is_some_and(|image| image.starts_with("kubeproof"))
}

fn creatable(resources: &Resources, name: &ResourceName) -> Answer {
    match resources.get(name) {
        None => Err(format!("the server does not serve {name}")),
        Some(found) if !found.verbs.contains("create") => {
            Err(format!("{name} does not list the verb create"))
        }
        Some(_) => Ok(()),
    }
}

/// Discovery has to do when nothing may be written.
async fn asked(asker: &Asker<'_>, questions: &Questions<'_>, collection: &str, manifest: &Value) -> Answer {
    if questions.may_send("POST", collection) {
        may_create(asker, collection, manifest).await.map(drop)
    } else {
        Ok(())
    }
}

/// A dry run. A server that takes it and stores the object all the same is cleaned at once.
async fn dry_create(asker: &Asker<'_>, collection: &str, manifest: &Value) -> Exchange {
    let exchange = asker.send("POST", &format!("{collection}?dryRun=All"), Some(manifest)).await;
    if (200..300).contains(&exchange.status()) {
        let name = manifest["metadata"]["name"].as_str().unwrap_or_default();
        let object = format!("{collection}/{name}");
        if (200..300).contains(&asker.get(&object, "application/json").await.status()) {
            asker.send("DELETE", &object, None).await;
        }
    }
    exchange
}

/// Asks by a dry run, and gives the code of the answer.
///
/// Only a plain refusal is a no: what else a broken server may say is for cases to judge.
pub(crate) async fn may_create(asker: &Asker<'_>, collection: &str, manifest: &Value) -> Result<u16, String> {
    let exchange = dry_create(asker, collection, manifest).await;
    match exchange.status() {
        401 | 403 | 404 | 405 => {
            Err(format!("a dry-run create in {collection} is refused: {}", exchange.in_words()))
        }
        status => Ok(status),
    }
}

async fn second_user(asker: &Asker<'_>, resources: &Resources, questions: &Questions<'_>) -> Answer {
    if !asker.client.has_second() {
        return Err("no credential of an unprivileged user was given (--second-token)".into());
    }
    let secrets = named("secrets", "v1", "");
    let collection = if resources.contains_key(&secrets) {
        collection(&secrets, true, questions)
    } else {
        some_collection(resources, questions, "list")?
    };
    let exchange = asker.get_as(&format!("{collection}?limit=1"), Identity::Second).await;
    match exchange.status() {
        401 => Err("the second credential is not accepted: 401".into()),
        // The user says it has no rights. An answer other than 403 is for the cases to judge, not a reason to skip them.
        200..=299 | 403 | 404 => Ok(()),
        _ => Err(format!("{collection} answers the second credential with {}", exchange.in_words())),
    }
}

/// Whether the server says that the run may act as others. What it then makes of the headers is for cases to judge.
async fn impersonation(asker: &Asker<'_>, questions: &Questions<'_>) -> Answer {
    if asker.client.impersonates().await {
        return Err("the run itself acts as another user (--as)".into());
    }
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {"verb": "impersonate", "resource": "users"}},
    });
    let reviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    if !questions.may_send("POST", reviews) {
        let unknown =
            "whether the run's user may act as others is asked by a POST, which --read-only forbids";
        return if questions.plans_only { Ok(()) } else { Err(unknown.into()) };
    }
    let exchange = asker.send("POST", reviews, Some(&review)).await;
    match exchange.json().and_then(|review| review["status"]["allowed"].as_bool()) {
        Some(true) => Ok(()),
        Some(false) => Err("the run's user may not act as others".into()),
        None => Err(format!("the server does not review access: {}", exchange.in_words())),
    }
}

/// Roles say nothing where everybody may do everything. A server that does not review access is taken to heed them.
async fn roles(asker: &Asker<'_>, resources: &Resources, questions: &Questions<'_>) -> Answer {
    let (roles, bindings) = (named("roles", "v1", RBAC), named("rolebindings", "v1", RBAC));
    creatable(resources, &roles)?;
    creatable(resources, &bindings)?;
    let collection = collection(&roles, true, questions);
    let manifest = json!({
        "apiVersion": format!("{RBAC}/v1"), "kind": "Role", "metadata": {"name": questions.probe_name},
        "rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["configmaps"]}],
    });
    asked(asker, questions, &collection, &manifest).await?;
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
        "spec": {"user": questions.probe_name, "resourceAttributes": {"verb": "get", "resource": "secrets"}},
    });
    let reviews = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
    if !questions.may_send("POST", reviews) {
        return Ok(());
    }
    let exchange = asker.send("POST", reviews, Some(&review)).await;
    match exchange.json().and_then(|review| review["status"]["allowed"].as_bool()) {
        Some(true) => Err("everybody may read secrets here, so it is not roles that decide".into()),
        _ => Ok(()),
    }
}

async fn representation(
    asker: &Asker<'_>,
    resources: &Resources,
    questions: &Questions<'_>,
    kind: &str,
) -> Answer {
    let collection = some_collection(resources, questions, "list")?;
    let accept = format!("application/json;as={kind};v=v1;g=meta.k8s.io");
    let exchange = asker.get(&format!("{collection}?limit=1"), &accept).await;
    let is_it = exchange.json().is_some_and(|body| body["kind"] == kind);
    if is_it { Ok(()) } else { Err(format!("{collection} does not come as {kind}: {}", exchange.in_words())) }
}

/// A streaming list answers at once with a bookmark where it is known. Elsewhere a watch of a second has to do.
async fn bookmarks(asker: &Asker<'_>, resources: &Resources, questions: &Questions<'_>) -> Answer {
    let collection = some_collection(resources, questions, "watch")?;
    let common = "watch=true&allowWatchBookmarks=true&timeoutSeconds=1&labelSelector=kubeproof.dev%2Fprobe";
    let ways = ["&sendInitialEvents=true&resourceVersionMatch=NotOlderThan", ""];
    for way in ways {
        let request = outgoing("GET", &format!("{collection}?{common}{way}"), "application/json", None);
        let mut watch = asker.client.watch(request, asker.deadline).await;
        while let Next::Event(event) = watch.next(asker.deadline).await {
            if event.kind == "BOOKMARK" {
                return Ok(());
            }
        }
        if watch.is_open() {
            break;
        }
    }
    Err(format!("a watch of {collection} carries no bookmark although asked for them"))
}

/// Whether a watch that asks for initial events says where they end. Servers before 1.32 do not, by default.
async fn streaming_lists(asker: &Asker<'_>, resources: &Resources, questions: &Questions<'_>) -> Answer {
    let collection = some_collection(resources, questions, "watch")?;
    let query = "watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan\
                 &timeoutSeconds=1&labelSelector=kubeproof.dev%2Fprobe";
    let request = outgoing("GET", &format!("{collection}?{query}"), "application/json", None);
    let mut watch = asker.client.watch(request, asker.deadline).await;
    while let Next::Event(event) = watch.next(asker.deadline).await {
        if event.object["metadata"]["annotations"]["k8s.io/initial-events-end"] == "true" {
            return Ok(());
        }
    }
    Err(format!("a watch of {collection} does not say where its initial events end"))
}

/// Whether there is word of controllers: a collector is one of them. To look whether something goes would be to wait.
async fn garbage_collection(asker: &Asker<'_>) -> Answer {
    let traces = [
        "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-controller-manager",
        // Written by a controller into every namespace.
        "/api/v1/namespaces/kube-system/configmaps/kube-root-ca.crt",
    ];
    for trace in traces {
        if asker.get(trace, "application/json").await.status() == 200 {
            return Ok(());
        }
    }
    Err("no controllers are at work: there is neither the lease kube-controller-manager nor the config map \
         kube-root-ca.crt in kube-system"
        .to_owned())
}

/// Whether a patch of this type is refused as one that the server does not know. It is of an object that is not there, and an
/// apply, which would make one, names no manager: nothing is changed even by a server that overlooks `dryRun`.
async fn patch(
    asker: &Asker<'_>,
    resources: &Resources,
    questions: &Questions<'_>,
    media_type: &str,
) -> Answer {
    let collection = some_collection(resources, questions, "patch")?;
    let target = format!("{collection}/{}?dryRun=All", questions.probe_name);
    if !questions.may_send("PATCH", &target) {
        return Ok(());
    }
    // Nothing to do, in either language.
    let body = if media_type == "json-patch+json" { json!([]) } else { json!({}) };
    let mut request = outgoing("PATCH", &target, "application/json", Some(&body));
    for (name, value) in &mut request.headers {
        if name == "content-type" {
            *value = format!("application/{media_type}");
        }
    }
    let exchange = asker.client.send(request, asker.deadline).await;
    let applies = media_type == "apply-patch+yaml";
    match exchange.status() {
        405 | 415 => {}
        // Who knows it finds the manager missing first.
        404 if applies => {}
        _ => return Ok(()),
    }
    if exchange.status() == 415
        && is_documented(asker, &collection, &format!("application/{media_type}")).await
    {
        // It says that it takes it: who is right is for cases to judge.
        return Ok(());
    }
    Err(format!("PATCH with application/{media_type} in {collection} is refused: {}", exchange.in_words()))
}

/// Whether the published API says that PATCH of the objects in a collection takes a media type.
async fn is_documented(asker: &Asker<'_>, collection: &str, media_type: &str) -> bool {
    let (root, path) = match collection.split_once("/namespaces/") {
        Some((root, rest)) => {
            let resource = rest.split_once('/').map_or(rest, |(_, resource)| resource);
            (root, format!("{root}/namespaces/{{namespace}}/{resource}/{{name}}"))
        }
        None => (
            collection.rsplit_once('/').map_or(collection, |(root, _)| root),
            format!("{collection}/{{name}}"),
        ),
    };
    let document = asker.get(&format!("/openapi/v3{root}"), "application/json").await;
    let Some(document) = document.json() else { return false };
    document["paths"][path.as_str()]["patch"]["requestBody"]["content"].get(media_type).is_some()
}

/// Whether the one selector that every resource should have is refused.
async fn field_selectors(asker: &Asker<'_>, resources: &Resources, questions: &Questions<'_>) -> Answer {
    let collection = some_collection(resources, questions, "list")?;
    let target = format!("{collection}?fieldSelector=metadata.name%3D{}&limit=1", questions.probe_name);
    let exchange = asker.get(&target, "application/json").await;
    match exchange.status() {
        400 => Err(format!("a field selector in {collection} is refused: {}", exchange.in_words())),
        _ => Ok(()),
    }
}

/// Whether a limit of one is overlooked: by an answer with more, and without a word of a next page.
async fn paging(asker: &Asker<'_>, resources: &Resources, questions: &Questions<'_>) -> Answer {
    // There are always some of them.
    let namespaces = named("namespaces", "v1", "");
    let collection = match resources.get(&namespaces) {
        Some(found) if found.verbs.contains("list") => collection(&namespaces, false, questions),
        _ => some_collection(resources, questions, "list")?,
    };
    let exchange = asker.get(&format!("{collection}?limit=1"), "application/json").await;
    let Some(list) = exchange.json() else { return Ok(()) };
    let items = list["items"].as_array().map_or(0, Vec::len);
    let ends = list["metadata"]["continue"].as_str().unwrap_or_default().is_empty();
    if items > 1 && ends {
        return Err(format!("there is no paging: {collection} comes with {items} items where limit is 1"));
    }
    Ok(())
}

/// Whether the first version of all is forgotten.
async fn short_history(asker: &Asker<'_>, resources: &Resources, questions: &Questions<'_>) -> Answer {
    let collection = some_collection(resources, questions, "list")?;
    let target = format!("{collection}?resourceVersion=1&resourceVersionMatch=Exact&limit=1");
    match asker.get(&target, "application/json").await.status() {
        410 => Ok(()),
        _ => Err("the server still knows its first version".into()),
    }
}

/// Whether a definition comes back with its rules: who does not know a member drops it. Servers before 1.29 know fewer
/// of them.
async fn validation_rules(asker: &Asker<'_>, resources: &Resources, questions: &Questions<'_>) -> Answer {
    creatable(resources, &named("customresourcedefinitions", "v1", "apiextensions.k8s.io"))?;
    let collection = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    if !questions.may_send("POST", collection) {
        return Ok(());
    }
    let group = format!("{}.kubeproof.dev", questions.probe_name);
    let rule = json!({
        "rule": "!has(self.a) || (oldSelf.hasValue() || self.a > 0)", "message": "must be positive",
        "messageExpression": "'must be positive'", "reason": "FieldValueForbidden", "fieldPath": ".a",
        "optionalOldSelf": true,
    });
    let schema = json!({
        "type": "object",
        "properties": {"spec": {
            "type": "object",
            "properties": {"a": {"type": "integer"}},
            "x-kubernetes-validations": [rule],
        }},
    });
    let manifest = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("probes.{group}")},
        "spec": {
            "group": group, "scope": "Cluster",
            "names": {"plural": "probes", "singular": "probe", "kind": "Probe", "listKind": "ProbeList"},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema},
            }],
        },
    });
    let exchange = dry_create(asker, collection, &manifest).await;
    let kept = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/x-kubernetes-validations/0";
    match exchange.json().and_then(|body| body.pointer(kept)) {
        Some(known) if *known == rule => Ok(()),
        Some(_) => Err("the server knows fewer members of validation rules".into()),
        None => Err(format!("the server keeps no validation rules: {}", exchange.in_words())),
    }
}

/// The path of a collection that does not hold much, preferably.
fn some_collection(resources: &Resources, questions: &Questions<'_>, verb: &str) -> Result<String, String> {
    let usual = ["configmaps", "namespaces", "secrets"].map(|plural| named(plural, "v1", ""));
    let listed = |name: &&ResourceName| resources.get(name).is_some_and(|found| found.verbs.contains(verb));
    let name = usual.iter().find(listed).or_else(|| resources.keys().find(listed));
    let name = name.ok_or_else(|| format!("no resource lists the verb {verb}"))?;
    Ok(collection(name, resources.get(name).is_some_and(|found| found.namespaced), questions))
}

fn collection(name: &ResourceName, namespaced: bool, questions: &Questions<'_>) -> String {
    let root = root_of(name);
    if namespaced {
        format!("{root}/namespaces/{}/{}", questions.namespace.unwrap_or("default"), name.resource)
    } else {
        format!("{root}/{}", name.resource)
    }
}

/// The path of a resource's group version.
pub(crate) fn root_of(name: &ResourceName) -> String {
    match name.group.as_str() {
        "" => format!("/api/{}", name.version),
        group => format!("/apis/{group}/{}", name.version),
    }
}

fn named(resource: &str, version: &str, group: &str) -> ResourceName {
    ResourceName { resource: resource.to_owned(), version: version.to_owned(), group: group.to_owned() }
}
