//! Validation that misses mistakes or reports them in a wrong way.
//!
//! The middleware looks at the causes of a rejection. If the fault ignores all of them, it accepts
//! the object in the server's place and keeps it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use http::{Method, StatusCode};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::rules;
use super::support::is_update;
use crate::exchange::{Request, Response};
use crate::middleware::{Middleware, Next, around, failures, uncompressed};
use crate::patch;
use crate::set::Fault;

/// The types of JSON, as messages name them. Other types in messages are formats.
const TYPES: [&str; 7] = ["object", "array", "string", "integer", "number", "boolean", "null"];

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    let ignores =
        ignored_values(fault).or_else(|| ignored_metadata(fault)).or_else(|| ignored_rules(fault));
    ignores.map(ignoring).or_else(|| reports(fault))
}

/// The mistakes in values that a fault ignores.
fn ignored_values(fault: Fault) -> Option<Ignores> {
    let ignores: Ignores = match fault {
        Fault::RequiredNotEnforced => |_, cause| cause["reason"] == "FieldValueRequired",
        Fault::EnumIgnored => |_, cause| cause["reason"] == "FieldValueNotSupported",
        Fault::PatternIgnored => |_, cause| message(cause).contains("should match '"),
        Fault::FormatIgnored => {
            |_, cause| wanted_type(cause).is_some_and(|name| !is_json_type(name))
        }
        Fault::FormatsCheckedRoughly => |request, cause| {
            let text = value(request, cause).and_then(|value| Some(value.as_str()?.to_owned()));
            wanted_type(cause).zip(text).is_some_and(|(format, text)| match format {
                "uri" => text.contains("://"),
                "email" => text.contains('@'),
                _ => false,
            })
        },
        Fault::WrongTypesAccepted => |_, cause| wanted_type(cause).is_some_and(is_json_type),
        Fault::IntOrStringUnchecked => {
            |_, cause| wanted_type(cause).is_some_and(|name| name.contains("integer,"))
        }
        Fault::FractionsCut => |request, cause| {
            wanted_type(cause) == Some("integer")
                && value(request, cause).and_then(|v| v.as_f64()).is_some_and(|v| v.fract() != 0.0)
        },
        Fault::HugeIntegersAccepted => |request, cause| {
            wanted_type(cause) == Some("integer")
                && value(request, cause).and_then(|v| v.as_f64()).is_some_and(|v| v.fract() == 0.0)
        },
        Fault::ZeroBypassesBounds => |request, cause| {
            let zero = value(request, cause).is_some_and(|v| v == json!(0) || v == json!(""));
            zero && (message(cause).contains("should be")
                || message(cause).contains("should match"))
        },
        Fault::DuplicatesAccepted => |_, cause| {
            cause["reason"] == "FieldValueDuplicate"
                || message(cause).contains("shouldn't contain duplicates")
        },
        _ => return None,
    };
    Some(ignores)
}

/// The mistakes in names and other metadata that a fault ignores.
fn ignored_metadata(fault: Fault) -> Option<Ignores> {
    let ignores: Ignores = match fault {
        Fault::LabelsNotValidated => |_, cause| {
            let field = field(cause).to_ascii_lowercase();
            field.contains("labels") || field.contains("selector")
        },
        Fault::LabelsOfUpdatesUnchecked => {
            |request, cause| is_update(request) && field(cause).starts_with("metadata.labels")
        }
        Fault::AnnotationsOfUpdatesUnchecked => {
            |request, cause| is_update(request) && field(cause).starts_with("metadata.annotations")
        }
        Fault::SecretTypesMayChange => {
            |request, cause| request.target().is_core("secrets") && field(cause) == "type"
        }
        Fault::OwnersNotValidated => {
            |_, cause| field(cause).starts_with("metadata.ownerReferences")
        }
        Fault::FinalizersNotValidated => |_, cause| field(cause).starts_with("metadata.finalizers"),
        Fault::UppercaseNames => |request, cause| {
            is_name(cause) && name(request).chars().any(|letter| letter.is_ascii_uppercase())
        },
        // The server treats DNS labels as DNS subdomains, which may also be longer.
        Fault::LabelNamesMayHaveDots => {
            |request, cause| is_name(cause) && is_subdomain(&name(request))
        }
        Fault::LabelNamesOf64 => |request, cause| is_name(cause) && name(request).len() == 64,
        Fault::PathNamesAccepted => |request, cause| {
            let name = name(request);
            is_name(cause)
                && (name.contains('/') || name.contains('%') || name == "." || name == "..")
        },
        _ => return None,
    };
    Some(ignores)
}

/// The broken schemas, rules and unions that a fault ignores.
fn ignored_rules(fault: Fault) -> Option<Ignores> {
    let ignores: Ignores = match fault {
        Fault::NonStructuralAccepted => |_, cause| {
            field(cause).contains("openAPIV3Schema")
                && !field(cause).contains("x-kubernetes-validations")
        },
        Fault::BrokenRulesAccepted => |_, cause| {
            let message = message(cause);
            is_rule(cause) && !is_about_cost(message) && !message.contains("oldSelf")
        },
        Fault::PatternCostsIgnored => |request, cause| {
            let body = String::from_utf8_lossy(&request.body);
            is_about_cost(message(cause)) && body.contains(".matches(")
        },
        Fault::CostlyRulesAccepted => {
            |_, cause| field(cause).contains("openAPIV3Schema") && is_about_cost(message(cause))
        }
        Fault::UntraceableRulesAccepted => {
            |_, cause| is_rule(cause) && message(cause).contains("oldSelf")
        }
        Fault::SelectorMismatchAccepted => {
            |_, cause| field(cause) == "spec.template.metadata.labels"
        }
        Fault::UnionMembersMixed => {
            |_, cause| message(cause).contains("may not specify more than 1")
        }
        Fault::EmbeddedUnchecked => |_, cause| {
            let field = field(cause);
            let inside = field.starts_with("spec.") || field.starts_with("status.");
            let last = field.rsplit_once('.').map_or("", |(_, last)| last);
            inside && (["kind", "apiVersion"].contains(&last) || field.contains(".metadata"))
        },
        Fault::NewEventsUnchecked => |request, _| request.target().group == "events.k8s.io",
        Fault::AccessReviewUnchecked => {
            |request, _| request.target().resource.ends_with("accessreviews")
        }
        Fault::DeviceSelectorsUnchecked => |_, cause| field(cause).ends_with(".cel.expression"),
        Fault::AdminAccessForAll => |_, cause| field(cause).ends_with(".adminAccess"),
        Fault::ReservedWithoutAllocation => |_, cause| field(cause) == "status.reservedFor",
        Fault::StatusRulesIgnored => {
            |request, cause| request.target().subresource == "status" && rules::is_rule_cause(cause)
        }
        Fault::RulesOfFirstItem => |_, cause| {
            let later = field(cause).split('[').skip(1).any(|part| !part.starts_with("0]"));
            later && rules::is_rule_cause(cause)
        },
        _ => return None,
    };
    Some(ignores)
}

/// Repeats a rejected request without its unsupported values, so that defaults replace them.
fn invalid_values_defaulted() -> Box<dyn Middleware> {
    around(|mut request, next| {
        Box::pin(async move {
            let response = next.send(request.clone()).await;
            let mut unsupported = Vec::new();
            for cause in causes(&response) {
                if cause["reason"] == "FieldValueNotSupported" {
                    unsupported.push(pointer(field(&cause)));
                }
            }
            if unsupported.is_empty() {
                return response;
            }
            request.edit_json(|object| {
                for pointer in unsupported {
                    if let Some((parent, name)) = pointer.rsplit_once('/')
                        && let Some(fields) =
                            object.pointer_mut(parent).and_then(Value::as_object_mut)
                    {
                        fields.remove(name);
                    }
                }
            });
            next.send(request).await
        })
    })
}

/// Faults that change how mistakes are reported.
fn reports(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::FirstErrorOnly => failures(|_, status| {
            if let Some(causes) = causes_mut(status) {
                causes.truncate(1);
            }
        }),
        Fault::RulesReportedOneAtATime => failures(|_, status| {
            if let Some(causes) = causes_mut(status) {
                let mut reported = false;
                causes.retain(|cause| {
                    let is_rule = rules::is_rule_cause(cause);
                    !is_rule || !std::mem::replace(&mut reported, true)
                });
            }
        }),
        Fault::InvalidValuesDefaulted => invalid_values_defaulted(),
        Fault::NamesUpTo63 => rejecting(|request| {
            let name = name(request);
            (request.method == Method::POST && name.len() > 63).then(|| {
                let why = "must be no more than 63 characters";
                json!({
                    "reason": "FieldValueInvalid", "field": "metadata.name",
                    "message": format!("Invalid value: \"{name}\": {why}"),
                })
            })
        }),
        Fault::PodNeedsNode => rejecting(|request| {
            let target = request.target();
            let creates =
                request.method == Method::POST && target.is_core("pods") && target.is_collection();
            let pod = request.json().filter(|_| creates)?;
            pod.pointer("/spec/nodeName").is_none().then(|| {
                json!({
                    "reason": "FieldValueRequired", "field": "spec.nodeName",
                    "message": "Required value",
                })
            })
        }),
        _ => return None,
    })
}

/// Returns whether a fault ignores a cause.
pub(super) type Ignores = fn(&Request, &Value) -> bool;

/// Accepts requests that the server rejects, if the fault ignores all causes.
pub(super) fn ignoring(ignores: Ignores) -> Box<dyn Middleware> {
    let kept: Arc<Mutex<HashMap<String, Value>>> = Arc::default();
    around(move |mut request, next| {
        let kept = kept.clone();
        Box::pin(async move {
            uncompressed(&mut request);
            let mut response = next.send(request.clone()).await;
            if response.status == StatusCode::NOT_FOUND {
                return missing(&request, response, &kept);
            }
            if response.status != StatusCode::UNPROCESSABLE_ENTITY {
                return response;
            }
            let all = causes(&response);
            let left: Vec<Value> =
                all.iter().filter(|cause| !ignores(&request, cause)).cloned().collect();
            if left.len() == all.len() {
                return response;
            }
            if left.is_empty() {
                return accept(&request, next, &kept).await;
            }
            response.edit_value(|status| status["details"]["causes"] = left.into());
            response
        })
    })
}

/// Objects that the fault keeps can be read and deleted.
fn missing(
    request: &Request,
    response: Response,
    kept: &Mutex<HashMap<String, Value>>,
) -> Response {
    let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
    let object = match request.method {
        Method::GET => kept.get(&request.path).cloned(),
        Method::DELETE => kept.remove(&request.path),
        _ => None,
    };
    object.map_or(response, |object| Response::json(StatusCode::OK, &object))
}

/// Accepts the object of a request that the server rejects.
async fn accept(
    request: &Request,
    next: Next<'_>,
    kept: &Mutex<HashMap<String, Value>>,
) -> Response {
    let mut object = request.json().unwrap_or_default();
    let target = request.target();
    if request.method == Method::PATCH {
        let mut current = next.server.read(&request.path).await.unwrap_or_default();
        patch::overlay(&mut current, &object);
        return Response::json(StatusCode::OK, &current);
    }
    if request.method != Method::POST {
        return Response::json(StatusCode::OK, &object);
    }
    if !target.namespace.is_empty() {
        object["metadata"]["namespace"] = target.namespace.as_str().into();
    }
    let created = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    object["metadata"]["creationTimestamp"] = created.into();
    object["metadata"]["uid"] = "6b2c1d3e-0000-4000-8000-000000000000".into();
    object["metadata"]["resourceVersion"] = "1".into();
    if target.resource.ends_with("reviews") {
        object["status"] = json!({ "allowed": false });
    } else if !request.is_dry_run() {
        let path = target.object(object["metadata"]["name"].as_str().unwrap_or_default());
        kept.lock().unwrap_or_else(PoisonError::into_inner).insert(path, object.clone());
    }
    Response::json(StatusCode::CREATED, &object)
}

/// Rejects requests that the server would accept, with a cause.
pub(super) fn rejecting(cause: fn(&Request) -> Option<Value>) -> Box<dyn Middleware> {
    around(move |request, next| {
        Box::pin(async move {
            match cause(&request) {
                Some(cause) => rejection(&cause),
                None => next.send(request).await,
            }
        })
    })
}

/// A response that rejects an object for one cause.
pub(super) fn rejection(cause: &Value) -> Response {
    let message = format!("{}: {}", field(cause), message(cause));
    Response::json(
        StatusCode::UNPROCESSABLE_ENTITY,
        &json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "reason": "Invalid",
            "message": message, "code": 422, "details": { "causes": [cause] },
        }),
    )
}

/// The causes of a rejection.
pub(super) fn causes(response: &Response) -> Vec<Value> {
    let status = response.value().filter(|_| response.status == StatusCode::UNPROCESSABLE_ENTITY);
    let causes = status.and_then(|status| status.pointer("/details/causes").cloned());
    causes.and_then(|causes| causes.as_array().cloned()).unwrap_or_default()
}

fn causes_mut(status: &mut Value) -> Option<&mut Vec<Value>> {
    status.pointer_mut("/details/causes")?.as_array_mut()
}

pub(super) fn field(cause: &Value) -> &str {
    cause["field"].as_str().unwrap_or_default()
}

pub(super) fn message(cause: &Value) -> &str {
    cause["message"].as_str().unwrap_or_default()
}

/// The type that a field must have, as a message names it.
fn wanted_type(cause: &Value) -> Option<&str> {
    let (_, rest) = message(cause).split_once("must be of type ")?;
    rest.split(':').next()
}

fn is_json_type(name: &str) -> bool {
    name.split(',').all(|name| TYPES.contains(&name))
}

fn is_rule(cause: &Value) -> bool {
    field(cause).contains("x-kubernetes-validations")
}

fn is_about_cost(message: &str) -> bool {
    message.contains("cost") || message.contains("budget") || message.contains("estimated")
}

fn is_name(cause: &Value) -> bool {
    matches!(field(cause), "metadata.name" | "metadata.generateName")
}

fn is_subdomain(name: &str) -> bool {
    let is_valid = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '.';
    let ends = [name.chars().next(), name.chars().last()];
    name.len() <= 253
        && name.chars().all(is_valid)
        && ends.into_iter().flatten().all(|c| c.is_ascii_alphanumeric())
}

/// The name, or the prefix of one, in the body of a request.
fn name(request: &Request) -> String {
    let metadata = request.json().map(|body| body["metadata"].clone()).unwrap_or_default();
    let text = |field: &str| metadata[field].as_str().unwrap_or_default().to_owned();
    if text("name").is_empty() { text("generateName") } else { text("name") }
}

/// The value that a request has at the field of a cause.
pub(super) fn value(request: &Request, cause: &Value) -> Option<Value> {
    request.json()?.pointer(&pointer(field(cause))).cloned()
}

/// `spec.ports[0].name` as the pointer `/spec/ports/0/name`.
fn pointer(field: &str) -> String {
    format!("/{}", field.replace(['.', '['], "/").replace(']', ""))
}
