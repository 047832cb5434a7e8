//! The groups that extension servers serve, as `APIService` objects name them.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kubeproof_apimachinery::object::Object as _;
use serde_json::Value;

use super::services::ServicePort;
use crate::http::client::Client;

/// The port of an extension server whose `APIService` names none.
const DEFAULT_PORT: u16 = 443;

/// The spec of an `APIService` with a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ApiService {
    /// The name of the object.
    pub(crate) name: String,
    pub(crate) group: String,
    pub(crate) version: String,
    /// Groups with a higher priority come first.
    pub(crate) group_priority: i64,
    /// Versions with a higher priority come first in their group.
    pub(crate) version_priority: i64,
    pub(crate) service: ServicePort,
    /// The authorities of the server as PEM. If empty, those of the system.
    pub(crate) ca_pem: Vec<u8>,
    /// The certificate of the server is not verified.
    pub(crate) insecure: bool,
}

/// The documents of an extension server for one group and version.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct RemoteDocuments {
    /// The resources in the form of aggregated discovery.
    pub(crate) resources: Option<Value>,
    /// The URL of the OpenAPI v3 document, relative to the server.
    pub(crate) openapi_v3: Option<String>,
    /// The OpenAPI v2 document of the whole server.
    pub(crate) openapi_v2: Option<Arc<Value>>,
}

/// A group and version of an extension server.
#[derive(Clone, Debug)]
pub(crate) struct Remote {
    pub(crate) spec: Arc<ApiService>,
    /// The client of the server, or the reason why there is none.
    pub(crate) client: Result<Arc<Client>, Arc<str>>,
    /// The last check of the server succeeded.
    pub(crate) is_available: bool,
    /// The last documents of the server.
    pub(crate) documents: RemoteDocuments,
}

/// All groups and versions of extension servers.
#[derive(Default)]
pub(crate) struct Remotes {
    /// Most servers have none, and then no request takes the lock.
    any: AtomicBool,
    current: RwLock<Arc<Vec<Remote>>>,
}

impl ApiService {
    /// Returns the spec of an object, or none if the server itself serves the group.
    pub(crate) fn of(object: &Value) -> Option<Self> {
        let spec = &object["spec"];
        let service = spec["service"].as_object()?;
        let text =
            |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
        let port = service.get("port").and_then(Value::as_u64);
        let bundle = text(spec.get("caBundle"));
        Some(Self {
            name: object.meta("name").to_owned(),
            group: text(spec.get("group")),
            version: text(spec.get("version")),
            group_priority: spec["groupPriorityMinimum"].as_i64().unwrap_or_default(),
            version_priority: spec["versionPriority"].as_i64().unwrap_or_default(),
            service: ServicePort {
                namespace: text(service.get("namespace")),
                name: text(service.get("name")),
                port: port.and_then(|port| port.try_into().ok()).unwrap_or(DEFAULT_PORT),
            },
            ca_pem: STANDARD.decode(bundle).unwrap_or_default(),
            insecure: spec["insecureSkipTLSVerify"] == true,
        })
    }

    /// Returns the path of the group and version.
    pub(crate) fn path(&self) -> String {
        format!("/apis/{}/{}", self.group, self.version)
    }

    /// Returns the name of the server, which its certificate must be for.
    pub(crate) fn host(&self) -> String {
        let ServicePort { namespace, name, .. } = &self.service;
        format!("{name}.{namespace}.svc")
    }
}

impl Remotes {
    /// Returns all groups and versions in the order of discovery.
    pub(crate) fn current(&self) -> Arc<Vec<Remote>> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the server of a group and version.
    pub(crate) fn find(&self, group: &str, version: &str) -> Option<Remote> {
        if !self.any.load(Ordering::Acquire) {
            return None;
        }
        let is_wanted =
            |known: &&Remote| known.spec.group == group && known.spec.version == version;
        self.current().iter().find(is_wanted).cloned()
    }

    /// Replaces all groups and versions.
    pub(crate) fn replace(&self, mut remotes: Vec<Remote>) {
        remotes.sort_by(|a, b| order(&a.spec).cmp(&order(&b.spec)));
        let any = !remotes.is_empty();
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(remotes);
        self.any.store(any, Ordering::Release);
    }
}

fn order(spec: &ApiService) -> impl Ord + '_ {
    let priorities = (-spec.group_priority, &spec.group, -spec.version_priority);
    (priorities, &spec.version)
}

impl fmt::Debug for Remotes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.current().iter().map(|remote| &remote.spec.name)).finish()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn remote(name: &str, group_priority: i64, version_priority: i64) -> Remote {
        let (version, group) = name.split_once('.').expect("a version and a group");
        let spec = json!({
            "group": group, "version": version, "service": {"namespace": "n", "name": "s"},
            "groupPriorityMinimum": group_priority, "versionPriority": version_priority,
        });
        let object = json!({"metadata": {"name": name}, "spec": spec});
        Remote {
            spec: Arc::new(ApiService::of(&object).expect("a service")),
            client: Err("no client".into()),
            is_available: true,
            documents: RemoteDocuments::default(),
        }
    }

    #[test]
    fn groups_and_versions_come_by_priority() {
        let remotes = Remotes::default();
        assert!(remotes.find("b.io", "v1").is_none());
        remotes.replace(vec![
            remote("v1.b.io", 100, 10),
            remote("v1.a.io", 100, 10),
            remote("v2.b.io", 100, 20),
            remote("v1.c.io", 2000, 1),
        ]);
        let current = remotes.current();
        let names: Vec<_> = current.iter().map(|remote| remote.spec.name.as_str()).collect();
        assert_eq!(names, ["v1.c.io", "v1.a.io", "v2.b.io", "v1.b.io"]);
        let found = remotes.find("b.io", "v1").expect("a server");
        assert_eq!((found.spec.host(), found.spec.service.port), ("s.n.svc".to_owned(), 443));
        assert!(remotes.find("b.io", "v3").is_none());
    }

    #[test]
    fn a_local_group_has_no_server() {
        let object = json!({"metadata": {"name": "v1."}, "spec": {"version": "v1"}});
        assert_eq!(ApiService::of(&object), None);
    }
}
