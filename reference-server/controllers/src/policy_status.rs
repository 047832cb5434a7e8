//! The controller that checks the expressions of validating admission policies.

use kubeproof_apiserver::loopback::{Client, Resource};
use serde_json::Value;

/// Starts the controller, which runs until the server stops.
pub(crate) fn start(client: &Client) {
    let group = "admissionregistration.k8s.io";
    let Some(policies) = client.resource(group, "v1", "validatingadmissionpolicies") else {
        return;
    };
    let looped = client.clone();
    client.spawn(async move {
        let mut changes = looped.subscribe(&policies);
        loop {
            changes.reset();
            check(&looped, &policies).await;
            changes.changed().await;
        }
    });
}

/// Updates the status of each policy that has changed.
async fn check(client: &Client, policies: &Resource) {
    for policy in client.list(policies, None).items {
        let value = policy.value();
        let generation = &value["metadata"]["generation"];
        if value["status"]["observedGeneration"] == *generation {
            continue;
        }
        let checking = client.type_checking(&value);
        let change = |policy: &mut Value| {
            // A newer version is checked next.
            if policy["metadata"]["generation"] == *generation {
                policy["status"]["observedGeneration"] = generation.clone();
                policy["status"]["typeChecking"] = checking.clone();
            }
        };
        client.modify(&policy, None, change).await;
    }
}
