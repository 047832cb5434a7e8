//! Validation that misses mistakes or reports them in a wrong way.
//!
//! The middleware looks at the causes of a rejection. If the fault ignores all of them, it accepts
//! the object in the server's place and keeps it.

use http::Method;
use serde_json::{Value, json};

use crate::behaviours::Fault;
use crate::behaviours::support::causes::{
    Ignores, causes, field, ignoring, is_rule_cause, message, pointer, rejecting, value,
};
use crate::behaviours::support::requests::is_update;
use crate::exchange::Request;
use crate::middleware::{Middleware, around, failures};

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
        Fault::BooleansUnchecked => |_, cause| wanted_type(cause) == Some("boolean"),
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
        Fault::OwnersNeedOnlyAUid => |_, cause| {
            let part = field(cause).strip_prefix("metadata.ownerReferences.");
            part.is_some_and(|part| part != "uid")
        },
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
            |request, cause| request.target().subresource == "status" && is_rule_cause(cause)
        }
        Fault::RulesOfFirstItem => |_, cause| {
            let later = field(cause).split('[').skip(1).any(|part| !part.starts_with("0]"));
            later && is_rule_cause(cause)
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
                    let is_rule = is_rule_cause(cause);
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

fn causes_mut(status: &mut Value) -> Option<&mut Vec<Value>> {
    status.pointer_mut("/details/causes")?.as_array_mut()
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
