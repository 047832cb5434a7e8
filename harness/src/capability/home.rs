//! The existing namespace for probes and for cases that only read.

use std::collections::BTreeMap;

use kubeproof_cases::case::ResourceName;
use serde_json::json;

use super::{Discovered, ProbeOptions, Requester};

const NAMESPACES: &str = "/api/v1/namespaces";

/// An existing namespace.
pub(super) struct Home {
    pub(super) name: String,
    /// True if the probes created it. They remove it, too.
    is_own: bool,
}

impl Home {
    /// Returns the namespace of the user or `default`. A server without both gets a namespace for
    /// the time of the probes. If it rejects that too, returns any existing namespace.
    pub(super) async fn find(
        requester: &Requester<'_>,
        resources: &BTreeMap<ResourceName, Discovered>,
        options: &ProbeOptions<'_>,
    ) -> Self {
        let name = options.home();
        let existing = |name: &str| Self { name: name.to_owned(), is_own: false };
        let has_namespaces =
            resources.keys().any(|name| name.resource == "namespaces" && name.group.is_empty());
        if options.namespace.is_some() || !has_namespaces {
            return existing(name);
        }
        let found = requester.get(&format!("{NAMESPACES}/{name}"), "application/json").await;
        if found.status() != 404 {
            return existing(name);
        }
        let own = format!("{}-home", options.probe_name);
        let manifest = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": own}});
        if options.may_send("POST", NAMESPACES)
            && (200..300)
                .contains(&requester.send("POST", NAMESPACES, Some(&manifest)).await.status())
        {
            return Self { name: own, is_own: true };
        }
        let list = requester.get(&format!("{NAMESPACES}?limit=1"), "application/json").await;
        let first = list.json().and_then(|list| list["items"][0]["metadata"]["name"].as_str());
        existing(first.unwrap_or(name))
    }

    /// Removes a namespace of the probes.
    pub(super) async fn leave(self, requester: &Requester<'_>) {
        if self.is_own {
            requester.send("DELETE", &format!("{NAMESPACES}/{}", self.name), None).await;
        }
    }
}
