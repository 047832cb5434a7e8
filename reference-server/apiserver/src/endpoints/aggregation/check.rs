//! Checks whether an extension server is available, and reports it in the status.

use std::sync::Arc;
use std::time::Duration;

use kubeproof_apimachinery::object::timestamp;
use kubeproof_storage::Stored;
use serde_json::{Value, json};

use super::documents::get;
use crate::endpoints::commit::update_latest;
use crate::registry::ResourceType;
use crate::registry::remote::{ApiService, Remote};
use crate::registry::services::{RouteError, ServicePort, route};
use crate::server::ApiServer;

/// The time that the response of a server may take.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The reason of groups that the server itself serves.
const LOCAL: &str = "Local";

/// The condition `Available` of an `APIService`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Availability {
    pub(super) is_available: bool,
    pub(super) reason: &'static str,
    pub(super) message: String,
}

/// Checks the service of an extension server, and requests the resources of its group.
pub(super) async fn check(api: &ApiServer, remote: &Remote) -> Availability {
    let spec = &remote.spec;
    if let Err(error) = route(api.context(), api.kubelet.get(), &spec.service) {
        return no_route(&spec.service, &error);
    }
    let url = format!("https://{}:{}{}", spec.host(), spec.service.port, spec.path());
    let failed = |why: String| Availability {
        is_available: false,
        reason: "FailedDiscoveryCheck",
        message: format!("failing or missing response from {url}: {why}"),
    };
    let client = match &remote.client {
        Ok(client) => client,
        Err(why) => return failed(why.to_string()),
    };
    match get(client, &spec.path(), "application/json", TIMEOUT).await {
        Ok(response) if response.status().is_success() || response.status().is_redirection() => {
            Availability {
                is_available: true,
                reason: "Passed",
                message: "all checks passed".to_owned(),
            }
        }
        Ok(response) => failed(format!("bad status from {url}: {}", response.status().as_u16())),
        Err(error) => failed(format!("Get {url:?}: {error}")),
    }
}

/// Returns the availability of a group that the server itself serves.
pub(super) fn local() -> Availability {
    let message = "Local APIServices are always available".to_owned();
    Availability { is_available: true, reason: LOCAL, message }
}

/// Returns whether the status of an object shows that the server itself serves the group.
pub(super) fn is_local(object: &Value) -> bool {
    let conditions = object["status"]["conditions"].as_array();
    conditions.into_iter().flatten().any(|condition| condition["reason"] == LOCAL)
}

/// Writes the condition `Available` if it has changed.
pub(super) async fn report(
    api: &ApiServer,
    ty: &ResourceType,
    stored: Arc<Stored>,
    availability: &Availability,
) {
    update_latest(api, ty, stored, None, |object| set_condition(object, availability)).await;
}

fn no_route(service: &ServicePort, error: &RouteError) -> Availability {
    let ServicePort { namespace, name, port } = service;
    let (reason, message) = match error {
        RouteError::Service(_) => {
            ("ServiceNotFound", format!("service/{name} in {namespace:?} is not present"))
        }
        RouteError::Port(..) => (
            "ServicePortError",
            format!("service/{name} in {namespace:?} is not listening on port {port}"),
        ),
        RouteError::Endpoints(_) => (
            "EndpointsNotFound",
            format!("cannot find endpointslices for service/{name} in {namespace:?}"),
        ),
    };
    Availability { is_available: false, reason, message }
}

fn set_condition(object: &mut Value, availability: &Availability) {
    // The service may have been added or removed in the meantime.
    if ApiService::of(object).is_none() != (availability.reason == LOCAL) {
        return;
    }
    let status = if availability.is_available { "True" } else { "False" };
    let old = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let is_own = |condition: &&Value| condition["type"] == "Available";
    let before = old.iter().find(is_own).filter(|before| before["status"] == status);
    let since = before.map_or_else(|| timestamp(0).into(), |it| it["lastTransitionTime"].clone());
    let condition = json!({
        "type": "Available", "status": status, "lastTransitionTime": since,
        "reason": availability.reason, "message": availability.message,
    });
    let mut conditions: Vec<Value> =
        old.iter().filter(|condition| !is_own(condition)).cloned().collect();
    conditions.push(condition);
    object["status"]["conditions"] = conditions.into();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_keeps_its_time_while_its_status_is_the_same() {
        let service = json!({"namespace": "n", "name": "s"});
        let since = "2020-01-01T00:00:00Z";
        let condition = json!({
            "type": "Available", "status": "False", "reason": "ServiceNotFound",
            "message": "", "lastTransitionTime": since,
        });
        let mut object =
            json!({"spec": {"service": service}, "status": {"conditions": [condition]}});
        let error = RouteError::Port("s".to_owned(), 443);
        let port = ServicePort { namespace: "n".to_owned(), name: "s".to_owned(), port: 443 };
        let mut availability = no_route(&port, &error);
        set_condition(&mut object, &availability);
        let condition = &object["status"]["conditions"][0];
        assert_eq!(condition["reason"], "ServicePortError");
        assert_eq!(condition["lastTransitionTime"], since);
        availability.is_available = true;
        set_condition(&mut object, &availability);
        let condition = &object["status"]["conditions"][0];
        assert_eq!(condition["status"], "True");
        assert_ne!(condition["lastTransitionTime"], since);
        assert!(object["status"]["conditions"].get(1).is_none());
    }
}
