//! Probes for pods and their subresources.

use serde_json::{Value, json};

use super::{
    ProbeResult, Requester, Resources, collection, creatable, creatable_by_dry_run, named,
};
use crate::capability::ProbeOptions;
use crate::event::SkipReason;

pub(super) async fn pods(
    requester: &Requester<'_>,
    resources: &Resources,
    options: &ProbeOptions<'_>,
) -> ProbeResult {
    creatable(resources, &named("pods", "v1", ""))?;
    let manifest = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": options.probe_name},
        "spec": {"containers": [{"name": "probe", "image": "registry.invalid/probe"}]},
    });
    let namespace = options.home();
    creatable_by_dry_run(
        requester,
        options,
        &format!("/api/v1/namespaces/{namespace}/pods"),
        &manifest,
    )
    .await
}

/// A subresource of pods is missing if it is neither listed nor routed. A 404 that names the pod
/// means that the subresource exists, and cases judge it.
pub(super) async fn stream(
    requester: &Requester<'_>,
    resources: &Resources,
    options: &ProbeOptions<'_>,
    subresource: &str,
) -> ProbeResult {
    let pods = named("pods", "v1", "");
    let listed = resources
        .get(&pods)
        .ok_or_else(|| SkipReason::ResourceNotServed { resource: pods.clone() })?;
    if listed.subresources.contains_key(subresource) {
        return Ok(());
    }
    let (collection, name) = (collection(&pods, true, options), options.probe_name);
    let exchange =
        requester.get(&format!("{collection}/{name}/{subresource}"), "application/json").await;
    let names_the_pod = exchange.json().is_some_and(|status| status["details"]["name"] == name);
    if exchange.status() == 404 && !names_the_pod {
        return Err(SkipReason::MissingSubresource {
            resource: pods,
            subresource: subresource.to_owned(),
        }
        .into());
    }
    Ok(())
}

/// Pods run where a node is ready and has the image. A user without access to nodes may still run
/// pods.
pub(super) async fn running_pods(
    requester: &Requester<'_>,
    resources: &Resources,
    options: &ProbeOptions<'_>,
) -> ProbeResult {
    creatable(resources, &named("pods", "v1", ""))?;
    let ready = ready_nodes(requester).await;
    if ready.as_ref().is_some_and(Vec::is_empty) {
        return Err(
            "no node of the target is ready, so pods do not run; --with-node adds a node".into()
        );
    }
    if options.pod_image.is_some() || ready.is_some_and(|nodes| nodes.iter().any(is_scripted)) {
        return Ok(());
    }
    Err("the nodes of the target need a real image; name one with --pod-image (such as busybox)"
        .into())
}

/// Pods of a node that the run brings have addresses that the API server cannot reach.
pub(super) async fn scripted_pods(
    requester: &Requester<'_>,
    options: &ProbeOptions<'_>,
) -> ProbeResult {
    if let Some(image) = options.pod_image {
        return Err(
            format!("the suite cannot predict the responses of the ports of {image}").into()
        );
    }
    let own = |node: &Value| {
        let endpoint = node["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"].as_u64();
        is_scripted(node) && endpoint.unwrap_or_default() == 0
    };
    let nodes = ready_nodes(requester).await.unwrap_or_default();
    if nodes.iter().any(own) {
        Ok(())
    } else {
        Err("the target runs no scripted pods, and cannot reach pods of the node of a run".into())
    }
}

/// Returns the nodes that are ready, or `None` without permission to list them.
async fn ready_nodes(requester: &Requester<'_>) -> Option<Vec<Value>> {
    let nodes = requester.get("/api/v1/nodes?limit=500", "application/json").await;
    let items = nodes.json().filter(|_| nodes.status() == 200)?["items"].as_array()?;
    let is_ready = |node: &&Value| {
        let conditions = node["status"]["conditions"].as_array();
        conditions
            .into_iter()
            .flatten()
            .any(|one| one["type"] == "Ready" && one["status"] == "True")
    };
    Some(items.iter().filter(is_ready).cloned().collect())
}

fn is_scripted(node: &Value) -> bool {
    node["status"]["nodeInfo"]["osImage"]
        .as_str()
        .is_some_and(|image| image.starts_with("kubeproof"))
}
