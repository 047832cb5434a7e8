//! Lookups of resources in the server behind the proxy.

use kubeproof_apimachinery::request::ResourceInfo;
use serde_json::Value;

use crate::exchange::Request;
use crate::middleware::Next;

/// Returns the entry of the resource in its discovery document, or that of the subresource.
pub(crate) async fn entry(target: &ResourceInfo, next: Next<'_>) -> Option<Value> {
    let name = match target.subresource.as_str() {
        "" => target.resource.clone(),
        subresource => format!("{}/{subresource}", target.resource),
    };
    resources(target, next).await.into_iter().find(|entry| entry["name"] == name.as_str())
}

/// Returns whether the server has this resource, whatever its subresources.
pub(crate) async fn is_served(target: &ResourceInfo, next: Next<'_>) -> bool {
    let resource = ResourceInfo { subresource: String::new(), ..target.clone() };
    entry(&resource, next).await.is_some()
}

/// Returns the names of the subresources of a resource.
pub(crate) async fn subresources(target: &ResourceInfo, next: Next<'_>) -> Vec<String> {
    let prefix = format!("{}/", target.resource);
    let resources = resources(target, next).await;
    let names = resources.iter().filter_map(|entry| entry["name"].as_str());
    names.filter_map(|name| name.strip_prefix(&prefix)).map(str::to_owned).collect()
}

/// Returns the entries of the discovery document of a group and version.
async fn resources(target: &ResourceInfo, next: Next<'_>) -> Vec<Value> {
    let root = if target.group.is_empty() { "/api" } else { "/apis" };
    let document = next.server.read(&format!("{root}/{}", target.api_version())).await;
    match document.map(|mut document| document["resources"].take()) {
        Some(Value::Array(entries)) => entries,
        _ => Vec::new(),
    }
}

/// The schema of the resource of a request, in the version of the request.
pub(crate) async fn schema_of(request: &Request, next: Next<'_>) -> Option<Value> {
    let target = request.target();
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let crd =
        next.server.read(&format!("{definitions}/{}.{}", target.resource, target.group)).await?;
    let versions = crd["spec"]["versions"].as_array()?;
    let version = versions.iter().find(|version| version["name"] == target.version.as_str())?;
    version.pointer("/schema/openAPIV3Schema").cloned()
}
