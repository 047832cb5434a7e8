//! Ports of services.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::behaviours::Fault;
use crate::behaviours::support::causes::{field, ignoring};
use crate::behaviours::support::requests::is_apply;
use crate::exchange::{Request, Response};
use crate::middleware::{Middleware, responses};

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::NodePortsUnchecked => ignoring(|_, cause| field(cause).ends_with(".nodePort")),
        Fault::ServicePortsNotCompared => ignoring(|_, cause| {
            field(cause).starts_with("spec.ports[")
                && matches!(
                    cause["reason"].as_str(),
                    Some("FieldValueDuplicate" | "FieldValueRequired")
                )
        }),
        Fault::NodePortsKept => responses(|request, response| {
            if request.method == Method::PATCH && is_service(request, response) {
                response.edit_value(|service| {
                    let is_internal = service["spec"]["type"] == "ClusterIP";
                    for port in ports(service).filter(|_| is_internal) {
                        port["nodePort"] = json!(30_999);
                    }
                });
            }
        }),
        Fault::AppliedKeysWithoutDefaults => responses(|request, response| {
            if is_apply(request) && is_service(request, response) {
                let mut sent = request.json().unwrap_or_default();
                let without_key = ports(&mut sent).filter(|port| port["protocol"].is_null());
                let again: Vec<Value> = without_key.map(|port| port.clone()).collect();
                response.edit_value(|service| {
                    if let Some(ports) =
                        service.pointer_mut("/spec/ports").and_then(Value::as_array_mut)
                    {
                        ports.extend(again);
                    }
                });
            }
        }),
        _ => return None,
    })
}

fn is_service(request: &Request, response: &Response) -> bool {
    request.target().is_core("services") && response.status == StatusCode::OK
}

fn ports(service: &mut Value) -> impl Iterator<Item = &mut Value> {
    service.pointer_mut("/spec/ports").and_then(Value::as_array_mut).into_iter().flatten()
}
