//! Deletes the objects of a namespace from the extension servers.

use http::{Method, Response};
use serde_json::Value;

use super::documents::{TIMEOUT, send};
use crate::http::client::Client;
use crate::registry::remote::Remote;
use crate::server::ApiServer;

/// The content of a namespace on extension servers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RemoteContent {
    /// The groups and versions whose resources are unknown, such as `farm.example.com/v1`.
    pub undiscovered: Vec<String>,
    /// The number of remaining objects of each resource, such as `barns.farm.example.com`.
    pub remaining: Vec<(String, usize)>,
    /// The requests that failed, with their reason.
    pub errors: Vec<String>,
}

impl RemoteContent {
    /// Returns whether the extension servers have no object of the namespace.
    pub fn is_empty(&self) -> bool {
        self.undiscovered.is_empty() && self.remaining.is_empty() && self.errors.is_empty()
    }
}

/// Deletes the objects of a namespace from all extension servers, and returns what remains.
pub(crate) async fn delete_content(api: &ApiServer, namespace: &str) -> RemoteContent {
    let mut content = RemoteContent::default();
    for remote in api.remotes.current().iter() {
        let (Ok(client), Some(resources), true) =
            (&remote.client, remote.documents.resources.as_ref(), remote.is_available)
        else {
            let spec = &remote.spec;
            content.undiscovered.push(format!("{}/{}", spec.group, spec.version));
            continue;
        };
        for resource in resources.as_array().into_iter().flatten() {
            if let Some(plural) = deletable(resource) {
                let collection = Collection { remote, client, namespace, plural };
                match collection.delete(allows(resource, "deletecollection")).await {
                    Ok(0) => {}
                    Ok(count) => content.remaining.push((collection.resource(), count)),
                    Err(why) => content.errors.push(format!("{}: {why}", collection.resource())),
                }
            }
        }
    }
    content
}

/// Returns the plural name of a resource if a namespace contains its objects and a client can
/// delete them.
fn deletable(resource: &Value) -> Option<&str> {
    let is_deletable = resource["scope"] == "Namespaced"
        && allows(resource, "list")
        && (allows(resource, "delete") || allows(resource, "deletecollection"));
    resource["resource"].as_str().filter(|_| is_deletable)
}

fn allows(resource: &Value, verb: &str) -> bool {
    resource["verbs"].as_array().is_some_and(|verbs| verbs.iter().any(|known| known == verb))
}

/// The objects of one resource in a namespace.
struct Collection<'a> {
    remote: &'a Remote,
    client: &'a Client,
    namespace: &'a str,
    plural: &'a str,
}

impl Collection<'_> {
    /// Deletes the objects. Returns how many remain, for example because of finalizers.
    async fn delete(&self, at_once: bool) -> Result<usize, String> {
        if at_once {
            self.send(Method::DELETE, "").await?;
        } else {
            for name in self.names().await? {
                self.send(Method::DELETE, &format!("/{name}")).await?;
            }
        }
        Ok(self.names().await?.len())
    }

    /// Returns the names of the objects.
    async fn names(&self) -> Result<Vec<String>, String> {
        let list = self.send(Method::GET, "").await?;
        let items = list["items"].as_array().map_or(&[][..], Vec::as_slice);
        let name = |item: &Value| item["metadata"]["name"].as_str().map(str::to_owned);
        Ok(items.iter().filter_map(name).collect())
    }

    /// Sends a request. An object that does not exist any more is no error.
    async fn send(&self, method: Method, end: &str) -> Result<Value, String> {
        let Self { remote, namespace, plural, .. } = self;
        let path = format!("{}/namespaces/{namespace}/{plural}{end}", remote.spec.path());
        let response = send(self.client, method, &path, "application/json", TIMEOUT).await;
        let response: Response<_> = response.map_err(|error| error.to_string())?;
        let code = response.status().as_u16();
        if !response.status().is_success() && code != 404 {
            return Err(format!("the server responded with the code {code}"));
        }
        Ok(serde_json::from_slice(response.body()).unwrap_or_default())
    }

    fn resource(&self) -> String {
        format!("{}.{}", self.plural, self.remote.spec.group)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_listed_resources_of_namespaces_are_deletable() {
        let resource = |scope: &str, verbs: &[&str]| {
            let mut resource = json!({"resource": "barns", "verbs": verbs});
            resource["scope"] = scope.into();
            resource
        };
        assert_eq!(deletable(&resource("Namespaced", &["list", "delete"])), Some("barns"));
        assert_eq!(
            deletable(&resource("Namespaced", &["list", "deletecollection"])),
            Some("barns")
        );
        assert_eq!(deletable(&resource("Namespaced", &["delete"])), None);
        assert_eq!(deletable(&resource("Namespaced", &["list", "create"])), None);
        assert_eq!(deletable(&resource("Cluster", &["list", "delete"])), None);
    }
}
