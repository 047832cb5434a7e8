//! Probes by dry-run writes.

use serde_json::json;

use super::{
    ProbeResult, Requester, Resources, creatable, creatable_by_dry_run, create_rejection,
    dry_create, named, some_collection,
};
use crate::capability::{ProbeOptions, outgoing};

pub(super) async fn namespaces(
    requester: &Requester<'_>,
    resources: &Resources,
    options: &ProbeOptions<'_>,
) -> ProbeResult {
    creatable(resources, &named("namespaces", "v1", ""))?;
    let manifest =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": options.probe_name}});
    creatable_by_dry_run(requester, options, "/api/v1/namespaces", &manifest).await
}

pub(super) async fn crds(
    requester: &Requester<'_>,
    resources: &Resources,
    options: &ProbeOptions<'_>,
) -> ProbeResult {
    creatable(resources, &named("customresourcedefinitions", "v1", "apiextensions.k8s.io"))?;
    let collection = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    match options.crd {
        Some(manifest) => creatable_by_dry_run(requester, options, collection, manifest).await,
        None => Ok(()),
    }
}

pub(super) async fn api_services(
    requester: &Requester<'_>,
    resources: &Resources,
    options: &ProbeOptions<'_>,
) -> ProbeResult {
    creatable(resources, &named("apiservices", "v1", "apiregistration.k8s.io"))?;
    let group = format!("{}.kubeproof.dev", options.probe_name);
    let manifest = json!({
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
        "metadata": {"name": format!("v1.{group}")},
        "spec": {
            "group": group, "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 10,
            "insecureSkipTLSVerify": true,
            "service": {"namespace": "default", "name": options.probe_name},
        },
    });
    let collection = "/apis/apiregistration.k8s.io/v1/apiservices";
    creatable_by_dry_run(requester, options, collection, &manifest).await
}

/// Sends a patch of this media type for an object that does not exist. An apply without a manager
/// cannot create it, even on a server that ignores `dryRun`.
pub(super) async fn patch(
    requester: &Requester<'_>,
    resources: &Resources,
    options: &ProbeOptions<'_>,
    media_type: &str,
) -> ProbeResult {
    let collection = some_collection(resources, options, "patch")?;
    let target = format!("{collection}/{}?dryRun=All", options.probe_name);
    if !options.may_send("PATCH", &target) {
        return Ok(());
    }
    // Empty in either patch language.
    let body = if media_type == "json-patch+json" { json!([]) } else { json!({}) };
    let mut request = outgoing("PATCH", &target, "application/json", Some(&body));
    for (name, value) in &mut request.headers {
        if name == "content-type" {
            *value = format!("application/{media_type}");
        }
    }
    let exchange = requester.client.send(request, requester.deadline).await;
    let applies = media_type == "apply-patch+yaml";
    match exchange.status() {
        405 | 415 => {}
        // A server with server-side apply first rejects the missing manager.
        404 if applies => {}
        _ => return Ok(()),
    }
    if exchange.status() == 415
        && is_documented(requester, &collection, &format!("application/{media_type}")).await
    {
        // The server documents the media type, so cases judge the contradiction.
        return Ok(());
    }
    Err(format!(
        "PATCH with application/{media_type} in {collection} is rejected: {}",
        exchange.in_words()
    )
    .into())
}

/// Looks up the media type in the OpenAPI v3 document.
async fn is_documented(requester: &Requester<'_>, collection: &str, media_type: &str) -> bool {
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
    let document = requester.get(&format!("/openapi/v3{root}"), "application/json").await;
    let Some(document) = document.json() else { return false };
    document["paths"][path.as_str()]["patch"]["requestBody"]["content"].get(media_type).is_some()
}

/// Tests whether the server returns a definition with its rules. Servers drop unknown members.
/// Servers before 1.29 lack some members of rules.
pub(super) async fn validation_rules(
    requester: &Requester<'_>,
    resources: &Resources,
    options: &ProbeOptions<'_>,
) -> ProbeResult {
    creatable(resources, &named("customresourcedefinitions", "v1", "apiextensions.k8s.io"))?;
    let collection = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    if !options.may_send("POST", collection) {
        return Ok(());
    }
    let group = format!("{}.kubeproof.dev", options.probe_name);
    let rule = json!({
        "rule": "!has(self.a) || (oldSelf.hasValue() || self.a > 0)", "message": "must be positive",
        "messageExpression": "'must be positive'", "reason": "FieldValueForbidden",
        "fieldPath": ".a",
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
            "names": {
                "plural": "probes", "singular": "probe", "kind": "Probe", "listKind": "ProbeList",
            },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": schema},
            }],
        },
    });
    let exchange = dry_create(requester, collection, &manifest).await;
    if let Some(reason) = create_rejection(collection, &exchange) {
        return Err(reason.into());
    }
    let kept = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/x-kubernetes-validations/0";
    match exchange.json().and_then(|body| body.pointer(kept)) {
        Some(known) if *known == rule => Ok(()),
        Some(_) => Err("the server drops members of validation rules".into()),
        None => Err(format!("the server drops validation rules: {}", exchange.in_words()).into()),
    }
}
