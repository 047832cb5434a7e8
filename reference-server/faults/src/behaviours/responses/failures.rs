//! Failures with a wrong `Status` body, status code or header.

use http::{StatusCode, header};
use serde_json::{Value, json};

use crate::behaviours::Fault;
use crate::behaviours::support::objects::remove;
use crate::behaviours::support::requests::is_post_or_put;
use crate::exchange::{Request, Response};
use crate::middleware::{Middleware, failures, responses};

/// Members that a fault removes: the pointer to their parent, and their names.
const REMOVED: [(Fault, &str, &[&str]); 8] = [
    (Fault::StatusWithoutReason, "", &["reason"]),
    (Fault::StatusWithoutDetails, "", &["details"]),
    (Fault::StatusWithoutKind, "", &["kind", "apiVersion"]),
    (Fault::StatusWithoutMessage, "", &["message"]),
    (Fault::DetailsNameMissing, "/details", &["name"]),
    (Fault::DetailsGroupMissing, "/details", &["group"]),
    (Fault::DetailsCausesMissing, "/details", &["causes"]),
    (Fault::RetryAfterInHeaderOnly, "/details", &["retryAfterSeconds"]),
];

/// Words that a fault replaces in the messages of causes.
const REPLACED: [(Fault, &str, &str); 5] = [
    (Fault::MessagesSayShould, "must", "should"),
    (Fault::MessagesSayCannot, "may not", "cannot"),
    (Fault::ValuesOpenNoQuotes, "Invalid value: \"", "Invalid value: "),
    (Fault::MessagesUseSymbols, "greater than or equal to", ">="),
    (Fault::MessagesUseSymbols, "less than or equal to", "<="),
];

type EditText = fn(&str) -> String;

/// Faults that change the field paths of causes.
const FIELD_PATHS: [(Fault, EditText); 4] = [
    (Fault::OneBasedIndexes, one_based),
    (Fault::FieldPathLeafOnly, |path| path.rsplit('.').next().unwrap_or_default().to_owned()),
    (Fault::FieldPathLeadingDot, |path| format!(".{path}")),
    (Fault::FieldPathIsPointer, |path| {
        format!("/{}", path.replace(['.', '['], "/").replace(']', ""))
    }),
];

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    match fault {
        Fault::ErrorsAsTables => return Some(responses(as_table)),
        Fault::MissingStatusWithoutName => {
            return Some(failures(|request, status| {
                if request.target().subresource == "status" && status["code"] == 404 {
                    remove(&mut status["details"], "name");
                }
            }));
        }
        _ => {}
    }
    let removed = REMOVED.iter().find(|(known, ..)| *known == fault);
    if let Some(&(_, place, members)) = removed {
        return Some(failures(move |_, status| {
            if let Some(fields) = status.pointer_mut(place).and_then(Value::as_object_mut) {
                fields.retain(|name, _| !members.contains(&name.as_str()));
            }
        }));
    }
    let replaced: Vec<_> = REPLACED.iter().filter(|(known, ..)| *known == fault).collect();
    if !replaced.is_empty() {
        return Some(causes("message", move |message| {
            replaced.iter().fold(message.to_owned(), |text, (_, good, bad)| text.replace(good, bad))
        }));
    }
    let field_path = FIELD_PATHS.iter().find(|(known, _)| *known == fault);
    if let Some(&(_, edit)) = field_path {
        return Some(causes("field", edit));
    }
    Some(match fault {
        Fault::StatusCodeMismatch => failures(|_, status| status["code"] = 500.into()),
        Fault::ReasonsInWords => failures(|_, status| {
            let code = status["code"].as_u64().and_then(|code| u16::try_from(code).ok());
            let code = code.and_then(|code| StatusCode::from_u16(code).ok());
            if let Some(phrase) = code.and_then(|code| code.canonical_reason()) {
                status["reason"] = phrase.into();
            }
        }),
        Fault::RetryAfterInBodyOnly => responses(|_, response| {
            response.headers.remove(header::RETRY_AFTER);
        }),
        Fault::MalformedBodyAsServerError => responses(malformed_body_as_500),
        Fault::UnsupportedMediaTypeAsBadRequest => responses(|_, response| {
            if response.status == StatusCode::UNSUPPORTED_MEDIA_TYPE {
                let message = "the body has a media type that cannot be decoded";
                *response = Response::failure(StatusCode::BAD_REQUEST, "BadRequest", message);
            }
        }),
        Fault::EmptyBodyIsInvalid => responses(|request, response| {
            if is_post_or_put(request)
                && request.body.is_empty()
                && response.status == StatusCode::BAD_REQUEST
            {
                let code = StatusCode::UNPROCESSABLE_ENTITY;
                *response = Response::failure(code, "Invalid", "the body is empty");
            }
        }),
        _ => return future_versions(fault),
    })
}

/// Faults in the rejection of a version that does not exist yet.
fn future_versions(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::FutureVersionAs500 => responses(|_, response| {
            if response.status == StatusCode::GATEWAY_TIMEOUT {
                response.status = StatusCode::INTERNAL_SERVER_ERROR;
            }
        }),
        Fault::TooLargeVersionWithoutCause => failures(|_, status| {
            if status["reason"] == "Timeout"
                && let Some(details) = status.get_mut("details").and_then(Value::as_object_mut)
            {
                details.remove("causes");
            }
        }),
        _ => return None,
    })
}

fn malformed_body_as_500(request: &Request, response: &mut Response) {
    if is_post_or_put(request)
        && response.status == StatusCode::BAD_REQUEST
        && request.json().is_none()
    {
        let code = StatusCode::INTERNAL_SERVER_ERROR;
        *response = Response::failure(code, "InternalError", "the body cannot be parsed");
    }
}

/// Edits one text of each cause.
fn causes(
    member: &'static str,
    edit: impl Fn(&str) -> String + Send + Sync + 'static,
) -> Box<dyn Middleware> {
    failures(move |_, status| {
        let causes = status.pointer_mut("/details/causes").and_then(Value::as_array_mut);
        for cause in causes.into_iter().flatten() {
            if let Some(text) = cause[member].as_str() {
                cause[member] = edit(text).into();
            }
        }
    })
}

/// A field path whose indexes count from one.
fn one_based(path: &str) -> String {
    let mut parts = path.split('[');
    let mut shifted = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        shifted.push('[');
        let index =
            part.split_once(']').and_then(|(index, rest)| Some((index.parse::<u64>().ok()?, rest)));
        match index {
            Some((index, rest)) => shifted.extend([&(index + 1).to_string(), "]", rest]),
            None => shifted += part,
        }
    }
    shifted
}

/// Returns a Table for an error, if the client asked for another form than that of the type.
fn as_table(request: &Request, response: &mut Response) {
    if !response.status.is_success() && request.header("accept").contains("as=") {
        response.edit_value(|status| {
            *status = json!({
                "kind": "Table", "apiVersion": "meta.k8s.io/v1", "columnDefinitions": [],
                "rows": [],
            });
        });
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(Fault::OneBasedIndexes, "spec.tags[1].x[0]", "spec.tags[2].x[1]")]
    #[case(Fault::OneBasedIndexes, "data[a.b]", "data[a.b]")]
    #[case(Fault::FieldPathLeafOnly, "spec.size", "size")]
    #[case(Fault::FieldPathLeadingDot, "spec.size", ".spec.size")]
    #[case(Fault::FieldPathIsPointer, "spec.tags[1].x", "/spec/tags/1/x")]
    fn field_paths_are_changed(#[case] fault: Fault, #[case] path: &str, #[case] expected: &str) {
        let edit =
            FIELD_PATHS.iter().find(|(known, _)| *known == fault).map(|(_, edit)| edit(path));
        assert_eq!(edit.as_deref(), Some(expected));
    }
}
