//! Query parameters of writes: `fieldValidation` with its warnings, and `fieldManager`.

use http::{HeaderMap, Method, StatusCode, header};

use crate::behaviours::Fault;
use crate::behaviours::support::requests::{MERGE_PATCH, STRATEGIC_PATCH, is_apply, is_update};
use crate::exchange::{Request, Response};
use crate::middleware::{Middleware, Next, around, requests};

const VALIDATION: &str = "fieldValidation";
const JSON_PATCH: &str = "application/json-patch+json";

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    let hidden: fn(&Request, &str) -> bool = match fault {
        Fault::UnknownFieldsAtTopOnly => {
            |_, complaint| complaint.starts_with("unknown field") && complaint.contains('.')
        }
        Fault::DuplicatesUnreported => |_, complaint| is_duplicate(complaint),
        Fault::PutDuplicatesUnreported => {
            |request, complaint| request.method == Method::PUT && is_duplicate(complaint)
        }
        Fault::CustomMetadataNotStrict => |request, complaint| {
            request.target().is_custom() && complaint.starts_with("unknown field \"metadata.")
        },
        Fault::YamlDuplicatesUnreported => {
            |request, complaint| is_duplicate(complaint) && request.media_type().ends_with("yaml")
        }
        Fault::ManagersUnknownByDefault => return Some(requests(unknown_manager)),
        Fault::PutManagerIgnored => {
            return Some(without_manager(|request| request.method == Method::PUT));
        }
        Fault::ScalePutManagerIgnored => {
            return Some(without_manager(|request| {
                request.method == Method::PUT && request.target().subresource == "scale"
            }));
        }
        Fault::PatchManagersIgnored => {
            return Some(without_manager(|request| request.media_type() == MERGE_PATCH));
        }
        Fault::JsonPatchManagersIgnored => {
            return Some(without_manager(|request| request.media_type() == JSON_PATCH));
        }
        Fault::StatusManagersIgnored => {
            return Some(without_manager(|request| {
                is_update(request) && !is_apply(request) && request.target().subresource == "status"
            }));
        }
        Fault::StatusManagersUnknown => return Some(unknown_manager_of("status")),
        Fault::ScaleManagersUnknown => return Some(unknown_manager_of("scale")),
        Fault::ApplyNeedsNoManager => return Some(requests(name_manager)),
        Fault::StatusApplyNeedsNoManager => {
            return Some(requests(|request| {
                if request.target().subresource == "status" {
                    name_manager(request);
                }
            }));
        }
        _ => return mode(fault),
    };
    Some(around(move |request, next| Box::pin(without_complaints(request, next, hidden))))
}

/// Returns whether a request writes the status or the scale.
fn is_part(request: &Request) -> bool {
    is_update(request) && matches!(request.target().subresource.as_str(), "status" | "scale")
}

/// Removes `fieldManager` from some requests.
fn without_manager(applies: fn(&Request) -> bool) -> Box<dyn Middleware> {
    requests(move |request| {
        if applies(request) {
            request.edit_query(|query| drop(query.remove("fieldManager")));
        }
    })
}

/// Faults that replace the value of `fieldValidation`.
fn mode(fault: Fault) -> Option<Box<dyn Middleware>> {
    let replaced: fn(&Request, &str) -> Option<&'static str> = match fault {
        Fault::StrictValidationIgnored => |_, value| (value == "Strict").then_some("Ignore"),
        Fault::WarningsMissing => |_, value| matches!(value, "" | "Warn").then_some("Ignore"),
        Fault::IgnoredFieldsWarned => |_, value| (value == "Ignore").then_some("Warn"),
        Fault::SilentByDefault => |_, value| value.is_empty().then_some("Ignore"),
        Fault::FieldValidationUnchecked => |_, value| (!is_valid(value)).then_some("Warn"),
        Fault::PutsNotStrict => |request, value| {
            (request.method == Method::PUT && value == "Strict").then_some("Ignore")
        },
        Fault::PutsSilentByDefault => {
            |request, value| (request.method == Method::PUT && value.is_empty()).then_some("Ignore")
        }
        Fault::PatchesSilentByDefault => |request, value| {
            (request.method == Method::PATCH && !is_apply(request) && value.is_empty())
                .then_some("Ignore")
        },
        Fault::OtherPatchesSilent => |request, value| {
            (matches!(request.media_type().as_str(), JSON_PATCH | STRATEGIC_PATCH)
                && value.is_empty())
            .then_some("Ignore")
        },
        Fault::SubresourcesSilent => {
            |request, value| (is_part(request) && value.is_empty()).then_some("Ignore")
        }
        Fault::SubresourcesNotStrict => {
            |request, value| (is_part(request) && value == "Strict").then_some("Ignore")
        }
        Fault::ReviewsNotStrict => |request, value| {
            (request.target().group == "authorization.k8s.io" && value == "Strict")
                .then_some("Ignore")
        },
        Fault::PatchesNotStrict => |request, value| {
            (request.method == Method::PATCH && !is_apply(request) && is_valid(value))
                .then_some("Ignore")
        },
        Fault::StrategicPatchesNotStrict => |request, value| {
            (request.media_type() == STRATEGIC_PATCH && is_valid(value)).then_some("Ignore")
        },
        _ => return None,
    };
    Some(requests(move |request| {
        if !matches!(request.method, Method::POST | Method::PUT | Method::PATCH)
            || !request.target().is_resource()
        {
            return;
        }
        let value = request.query().get(VALIDATION).unwrap_or_default().to_owned();
        if let Some(value) = replaced(request, &value) {
            request.edit_query(|query| query.set(VALIDATION, value));
        }
    }))
}

/// Adds the field manager that an apply lacks.
fn name_manager(request: &mut Request) {
    if is_apply(request) && request.query().get("fieldManager").is_none_or(str::is_empty) {
        request.edit_query(|query| query.set("fieldManager", "unknown"));
    }
}

/// Names the manager of a write that names none, instead of its User-Agent.
fn unknown_manager(request: &mut Request) {
    if matches!(request.method, Method::POST | Method::PUT | Method::PATCH)
        && request.target().is_resource()
        && !is_apply(request)
        && request.query().get("fieldManager").is_none_or(str::is_empty)
    {
        request.edit_query(|query| query.set("fieldManager", "unknown"));
    }
}

/// Names the manager of writes to a subresource that name none.
fn unknown_manager_of(subresource: &'static str) -> Box<dyn Middleware> {
    requests(move |request| {
        if request.target().subresource == subresource {
            unknown_manager(request);
        }
    })
}

fn is_valid(value: &str) -> bool {
    matches!(value, "" | "Ignore" | "Warn" | "Strict")
}

fn is_duplicate(complaint: &str) -> bool {
    complaint.starts_with("duplicate field")
}

/// Removes the warnings that are hidden, and accepts what the server rejects for their sake alone.
async fn without_complaints(
    mut request: Request,
    next: Next<'_>,
    hidden: fn(&Request, &str) -> bool,
) -> Response {
    let mut response = next.send(request.clone()).await;
    remove_warnings(&mut response.headers, |warning| hidden(&request, warning));
    let errors = strict_errors(&response);
    if errors.is_empty() || !errors.iter().all(|error| hidden(&request, error)) {
        return response;
    }
    request.edit_query(|query| query.set(VALIDATION, "Ignore"));
    next.send(request).await
}

fn remove_warnings(headers: &mut HeaderMap, hidden: impl Fn(&str) -> bool) {
    let warnings: Vec<_> = headers.get_all(header::WARNING).iter().cloned().collect();
    headers.remove(header::WARNING);
    for warning in warnings {
        let text = warning
            .to_str()
            .ok()
            .and_then(|value| Some(value.split_once('"')?.1.replace('\\', "")));
        if !text.is_some_and(|text| hidden(&text)) {
            headers.append(header::WARNING, warning);
        }
    }
}

/// The complaints of a strict decoding error; none for other responses.
fn strict_errors(response: &Response) -> Vec<String> {
    if !matches!(response.status, StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY) {
        return Vec::new();
    }
    let status = response.value().unwrap_or_default();
    let message = status["message"].as_str().unwrap_or_default();
    let errors = message.split_once("strict decoding error: ").map(|(_, errors)| errors);
    errors.into_iter().flat_map(|errors| errors.split(", ")).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(Fault::StrictValidationIgnored, "fieldValidation=Strict", "Ignore")]
    #[case(Fault::SilentByDefault, "", "Ignore")]
    #[case(Fault::SilentByDefault, "fieldValidation=Warn", "Warn")]
    #[case(Fault::FieldValidationUnchecked, "fieldValidation=Odd", "Warn")]
    #[tokio::test]
    async fn modes_are_replaced(#[case] fault: Fault, #[case] query: &str, #[case] expected: &str) {
        let request = Request::new(Method::POST, &format!("/api/v1/pods?{query}"));
        let seen = crate::behaviours::sent(of(fault), request).await.expect("a fault of this file");
        assert_eq!(seen.query().get(VALIDATION), Some(expected));
    }

    #[test]
    fn hidden_warnings_are_removed() {
        let mut headers = HeaderMap::new();
        for warning in [r#"299 - "unknown field \"a\"""#, r#"299 - "duplicate field \"b\"""#] {
            headers.append(header::WARNING, HeaderValue::from_static(warning));
        }
        remove_warnings(&mut headers, is_duplicate);
        let kept: Vec<_> = headers.get_all(header::WARNING).iter().collect();
        assert_eq!(kept, [r#"299 - "unknown field \"a\"""#]);
    }

    #[test]
    fn strict_errors_are_listed() {
        let message = "ConfigMap cannot be handled: strict decoding error: unknown field \"a\", \
                       duplicate field \"b\"";
        let response = Response::failure(StatusCode::BAD_REQUEST, "BadRequest", message);
        assert_eq!(strict_errors(&response), [r#"unknown field "a""#, r#"duplicate field "b""#]);
    }
}
