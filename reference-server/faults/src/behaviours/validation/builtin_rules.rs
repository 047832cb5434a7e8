//! Rules of built-in kinds that the server does not enforce, and bodies that it should not accept.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::{HeaderValue, Method, header};
use serde_json::{Map, Value};

use crate::behaviours::Fault;
use crate::behaviours::support::causes::{field, ignoring};
use crate::behaviours::support::objects::remove;
use crate::behaviours::support::requests::{is_create, is_post_or_put, is_update, rewrite};
use crate::exchange::{Request, Response};
use crate::middleware::{Middleware, Next, around, only, requests, responses};

/// Resources that a fault does not validate.
const OTHER_KINDS: [&str; 8] = [
    "runtimeclasses",
    "ingressclasses",
    "priorityclasses",
    "clusterroles",
    "persistentvolumes",
    "resourcequotas",
    "limitranges",
    "networkpolicies",
];

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    let ignores: fn(&Request, &Value) -> bool = match fault {
        Fault::TwoControllersAccepted => |_, cause| says(cause, "Only one reference"),
        Fault::TwoControllersAfterUpdates => {
            |request, cause| is_update(request) && says(cause, "Only one reference")
        }
        Fault::DataKeysOverlap => |_, cause| says(cause, "duplicate of key"),
        Fault::BudgetWithBothLimits => |_, cause| says(cause, "cannot be both set"),
        Fault::CronSchedulesUnchecked => |_, cause| cause["field"] == "spec.schedule",
        Fault::AutoscalerLimitsUnchecked => |request, cause| {
            request.target().group == "autoscaling" && cause["field"] == "spec.maxReplicas"
        },
        Fault::TlsSecretsUnchecked => |_, cause| field(cause).starts_with("data[tls."),
        Fault::WebhooksUnchecked => {
            |request, _| request.target().resource.ends_with("webhookconfigurations")
        }
        Fault::OtherKindsUnchecked => {
            |request, _| OTHER_KINDS.contains(&request.target().resource.as_str())
        }
        Fault::PodTemplatesNotCompared => |_, cause| {
            let field = field(cause);
            field.starts_with("spec.template.spec.containers")
                && matches!(
                    cause["reason"].as_str(),
                    Some("FieldValueDuplicate" | "FieldValueNotFound")
                )
        },
        Fault::PathTypesOptional => |_, cause| field(cause).ends_with(".pathType"),
        Fault::PodsWithoutContainers => |_, cause| field(cause).ends_with("spec.containers"),
        Fault::ClusterIpsMayChange => |_, cause| says(cause, "may not change once set"),
        Fault::StorageClassesMayChange => |request, cause| {
            request.target().resource == "storageclasses"
                && matches!(field(cause), "provisioner" | "parameters")
        },
        _ => {
            return groups_of_rules(fault).or_else(|| definitions(fault)).or_else(|| bodies(fault));
        }
    };
    Some(ignoring(ignores))
}

/// Faults that drop all rules of some kinds, or of a part of pods.
fn groups_of_rules(fault: Fault) -> Option<Box<dyn Middleware>> {
    let ignores: fn(&Request, &Value) -> bool = match fault {
        Fault::RolesAndQuotasUnchecked => |request, _| {
            let resource = request.target().resource;
            matches!(resource.as_str(), "roles" | "rolebindings" | "resourcequotas" | "limitranges")
        },
        Fault::DefinitionsUnchecked => {
            |request, _| request.target().resource == "customresourcedefinitions"
        }
        Fault::FlowControlUnchecked => {
            |request, _| request.target().group == "flowcontrol.apiserver.k8s.io"
        }
        Fault::CsiDriversUnchecked => |request, _| request.target().resource == "csidrivers",
        Fault::ServiceAddressesUnchecked => |request, cause| {
            request.target().is_core("services")
                && ["spec.externalIPs", "spec.ipFamil", "spec.loadBalancer"]
                    .iter()
                    .any(|start| field(cause).starts_with(start))
        },
        Fault::PlacementUnchecked => |_, cause| {
            ["topologySpreadConstraints", "affinity", "tolerations"]
                .iter()
                .any(|part| field(cause).contains(part))
        },
        Fault::ProbesUnchecked => |_, cause| field(cause).contains("Probe"),
        Fault::MountsUnchecked => {
            |_, cause| [".volumeMounts", ".env["].iter().any(|part| field(cause).contains(part))
        }
        Fault::UpdateStrategiesUnchecked => {
            |request, cause| request.target().group == "apps" && field(cause).contains("trategy")
        }
        _ => return None,
    };
    Some(ignoring(ignores))
}

/// Rules of custom resource definitions.
fn definitions(fault: Fault) -> Option<Box<dyn Middleware>> {
    let ignores: fn(&Request, &Value) -> bool = match fault {
        Fault::InvalidDefaultsAccepted => |_, cause| field(cause).ends_with(".default"),
        Fault::StorageVersionsUnchecked => {
            |_, cause| matches!(field(cause), "spec.versions" | "status.storedVersions")
        }
        Fault::StoredVersionsMayVanish => {
            |_, cause| field(cause).starts_with("status.storedVersions[")
        }
        Fault::DefinitionNamesUnchecked => |_, cause| says(cause, "must be spec.names.plural"),
        _ => return None,
    };
    let applies = |request: &Request| request.target().resource == "customresourcedefinitions";
    Some(only(applies, ignoring(ignores)))
}

fn says(cause: &Value, text: &str) -> bool {
    cause["message"].as_str().is_some_and(|message| message.contains(text))
}

/// Faults in the bodies of writes.
fn bodies(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::StringDataLoses => {
            around(|request, next| Box::pin(string_data_loses(request, next)))
        }
        Fault::StringDataReturned => responses(|request, response| {
            let sent = request.json().unwrap_or_default();
            let writes = request.target().is_core("secrets") && response.status.is_success();
            if let Some(texts) = sent.get("stringData").filter(|_| writes) {
                response.edit_value(|secret| secret["stringData"] = texts.clone());
            }
        }),
        Fault::BinaryDataUnchecked => requests(|request| {
            let field = match request.target() {
                target if target.is_core("secrets") => "data",
                target if target.is_core("configmaps") => "binaryData",
                _ => return,
            };
            if is_post_or_put(request) {
                rewrite(request, |object| {
                    if let Some(data) = object.get_mut(field).and_then(Value::as_object_mut) {
                        encode(data);
                    }
                });
            }
        }),
        Fault::BytesAfterDocumentIgnored => requests(|request| {
            if is_create(request) && !request.media_type().ends_with("yaml") {
                let mut documents =
                    serde_json::Deserializer::from_slice(&request.body).into_iter::<Value>();
                if let Some(Ok(_)) = documents.next() {
                    let end = documents.byte_offset();
                    request.body.truncate(end);
                }
            }
        }),
        Fault::MediaTypeOfPutIgnored => requests(|request| {
            if request.method == Method::PUT && request.media_type() == "text/plain" {
                let json = HeaderValue::from_static("application/json");
                request.headers.insert(header::CONTENT_TYPE, json);
            }
        }),
        _ => return None,
    })
}

/// Encodes the values of a map that are not base64.
fn encode(data: &mut Map<String, Value>) {
    for value in data.values_mut() {
        if let Some(text) = value.as_str().filter(|text| BASE64_STANDARD.decode(text).is_err()) {
            *value = BASE64_STANDARD.encode(text).into();
        }
    }
}

/// Removes the keys of the data, old or new, from the `stringData` of a secret.
async fn string_data_loses(mut request: Request, next: Next<'_>) -> Response {
    if request.target().is_core("secrets") && !request.body.is_empty() {
        let current = match request.method {
            Method::PATCH => next.server.read(&request.path).await.unwrap_or_default(),
            _ => Value::Null,
        };
        request.edit_json(|secret| {
            let known: Vec<String> = [&secret["data"], &current["data"]]
                .into_iter()
                .flat_map(|data| data.as_object().into_iter().flat_map(Map::keys).cloned())
                .collect();
            let texts = secret.get_mut("stringData").and_then(Value::as_object_mut);
            if let Some(texts) = texts {
                texts.retain(|key, _| !known.contains(key));
                if texts.is_empty() {
                    remove(secret, "stringData");
                }
            }
        });
    }
    next.send(request).await
}
