//! Wrong negotiation of media types and compression.

use http::header::{self, HeaderValue};
use http::{Method, StatusCode};

use crate::behaviours::Fault;
use crate::behaviours::support::requests::{is_apply, is_post_or_put};
use crate::exchange::{Request, Response};
use crate::headers::{self, entries, range};
use crate::middleware::{Middleware, Next, around, only, requests, responses};

/// A media type that no server has.
const UNKNOWN: HeaderValue = HeaderValue::from_static("application/x-unknown");

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::AcceptIgnored => around(|request, next| Box::pin(accept_ignored(request, next))),
        Fault::DeletionsAcceptEverything => only(
            |request| request.method == Method::DELETE,
            around(|request, next| Box::pin(accept_ignored(request, next))),
        ),
        Fault::WatchesAcceptEverything => {
            only(Request::is_watch, around(|request, next| Box::pin(accept_ignored(request, next))))
        }
        Fault::ListsIgnoreAccept => only(
            |request| request.verb() == "list",
            around(|request, next| Box::pin(accept_ignored(request, next))),
        ),
        Fault::DiscoveryNeverChanges => around(|request, next| {
            Box::pin(async move {
                let conditional =
                    is_aggregated(&request) && request.headers.contains_key(header::IF_NONE_MATCH);
                let mut response = next.send(request).await;
                if conditional && response.status == StatusCode::OK {
                    response.status = StatusCode::NOT_MODIFIED;
                    response.set_bytes("");
                }
                response
            })
        }),
        Fault::DiscoveryIgnoresEtags => requests(|request| {
            if is_aggregated(request) {
                request.headers.remove(header::IF_NONE_MATCH);
            }
        }),
        Fault::AcceptQualityIgnored => requests(|request| edit_accept(request, without_quality)),
        Fault::AcceptParametersInOrder => {
            requests(|request| edit_accept(request, |entry| unless_first(entry, "v")))
        }
        Fault::AcceptParametersRejected => {
            requests(|request| edit_accept(request, |entry| unless_first(entry, "charset")))
        }
        Fault::CharsetRejected => requests(|request| {
            let parameters = request.header("content-type").contains(';');
            if parameters && matches!(request.method, Method::POST | Method::PUT | Method::DELETE) {
                request.headers.insert(header::CONTENT_TYPE, UNKNOWN);
            }
        }),
        Fault::ContentTypeIgnored => {
            around(|request, next| Box::pin(content_type_ignored(request, next)))
        }
        _ => return other_forms(fault).or_else(|| forms(fault)).or_else(|| encodings(fault)),
    })
}

/// Requests that get another form than the one that they request.
fn other_forms(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::PartialFormsInterchangeable => requests(|request| {
            let fitting = match request.verb() {
                "get" => "as=PartialObjectMetadata",
                "list" => "as=PartialObjectMetadataList",
                _ => return,
            };
            edit_accept(request, |entry| {
                let form = if entry.contains("as=PartialObjectMetadataList") {
                    "as=PartialObjectMetadataList"
                } else {
                    "as=PartialObjectMetadata"
                };
                Some(entry.replace(form, fitting))
            });
        }),
        Fault::OlderFormsAnsweredAsV1 => requests(|request| {
            edit_accept(request, |entry| {
                let is_form = entry.contains("as=");
                Some(if is_form { entry.replace("v=v1beta1", "v=v1") } else { entry.to_owned() })
            });
        }),
        _ => return None,
    })
}

/// Requests that get the whole object despite the form that they request.
fn forms(fault: Fault) -> Option<Box<dyn Middleware>> {
    let applies: fn(&Request) -> bool = match fault {
        Fault::DeletesReturnWholeObjects => |request| request.method == Method::DELETE,
        Fault::WritesIgnoreForm => {
            |request| matches!(request.method, Method::POST | Method::PUT | Method::PATCH)
        }
        Fault::StatusIgnoresForm => |request| request.target().subresource == "status",
        Fault::CreatesAndUpdatesReturnNoTables => {
            |request| is_post_or_put(request) && request.header("accept").contains("as=Table")
        }
        Fault::UnknownFormsIgnored => |request| {
            let accept = request.header("accept");
            request.target().is_resource()
                && !["as=Table", "as=PartialObjectMetadata"]
                    .iter()
                    .any(|form| accept.contains(form) && !accept.contains("v=v99"))
        },
        Fault::AppliesIgnoreForm => is_apply,
        _ => return None,
    };
    Some(whole_objects(applies))
}

/// Requests whole objects where the client requests `PartialObjectMetadata` or a `Table`.
fn whole_objects(applies: fn(&Request) -> bool) -> Box<dyn Middleware> {
    requests(move |request| {
        if applies(request) && request.header("accept").contains("as=") {
            let json = HeaderValue::from_static("application/json");
            request.headers.insert(header::ACCEPT, json);
        }
    })
}

/// Faults in the encoding of bodies.
fn encodings(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::PrettyIsText => responses(|request, response| {
            if request.query().flag("pretty") && response.headers.contains_key(header::CONTENT_TYPE)
            {
                response.set_header(header::CONTENT_TYPE, "text/plain; charset=utf-8");
            }
        }),
        Fault::GzipUnasked => requests(accept_gzip),
        Fault::GzipQualityIgnored => requests(|request| {
            let mut codings = entries(&request.headers, &header::ACCEPT_ENCODING).into_iter();
            if codings.any(|coding| range(&coding).eq_ignore_ascii_case("gzip")) {
                accept_gzip(request);
            }
        }),
        Fault::GzipUndeclared => responses(|_, response| {
            response.headers.remove(header::CONTENT_ENCODING);
        }),
        _ => return None,
    })
}

fn is_aggregated(request: &Request) -> bool {
    matches!(request.path.as_str(), "/api" | "/apis")
        && request.header("accept").contains("APIGroupDiscoveryList")
}

async fn accept_ignored(mut request: Request, next: Next<'_>) -> Response {
    let response = next.send(request.clone()).await;
    if response.status != StatusCode::NOT_ACCEPTABLE {
        return response;
    }
    request.headers.remove(header::ACCEPT);
    next.send(request).await
}

async fn content_type_ignored(mut request: Request, next: Next<'_>) -> Response {
    let response = next.send(request.clone()).await;
    if response.status != StatusCode::UNSUPPORTED_MEDIA_TYPE {
        return response;
    }
    let patch = request.method == Method::PATCH;
    let media_type = if patch { "application/merge-patch+json" } else { "application/json" };
    request.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    next.send(request).await
}

fn accept_gzip(request: &mut Request) {
    request.headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
}

/// Edits each entry of the `Accept` header, or removes it. If none remains, nothing is acceptable.
fn edit_accept(request: &mut Request, edit: impl Fn(&str) -> Option<String>) {
    let entries = entries(&request.headers, &header::ACCEPT);
    if entries.is_empty() {
        return;
    }
    let kept: Vec<_> = entries.iter().filter_map(|entry| edit(entry)).collect();
    let value = HeaderValue::from_str(&kept.join(", ")).ok().filter(|value| !value.is_empty());
    request.headers.insert(header::ACCEPT, value.unwrap_or(UNKNOWN));
}

/// The entry without its quality. An entry with the quality 0 stays excluded.
fn without_quality(entry: &str) -> Option<String> {
    let kept: Vec<_> = entry.split(';').filter(|part| !headers::is_quality(part)).collect();
    (!headers::is_excluded(entry)).then(|| kept.join(";"))
}

/// The entry, unless this parameter is its first.
fn unless_first(entry: &str, parameter: &str) -> Option<String> {
    let first = entry.split(';').nth(1).and_then(|first| first.split_once('='));
    let excluded = first.is_some_and(|(name, _)| name.trim() == parameter);
    (!excluded).then(|| entry.to_owned())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(Fault::AcceptParametersInOrder, "a/b;v=v1;as=Table, c/d", "c/d")]
    #[case(Fault::AcceptParametersInOrder, "a/b;as=Table;v=v1", "a/b;as=Table;v=v1")]
    #[case(Fault::AcceptParametersInOrder, "a/b;v=v1", "application/x-unknown")]
    #[case(Fault::AcceptParametersRejected, "a/b;charset=utf-8, c/d;x=y", "c/d;x=y")]
    #[case(Fault::AcceptQualityIgnored, "a/b;q=0.1, c/d;q=0, e/f;x=y;q=1", "a/b, e/f;x=y")]
    fn entries_are_edited(#[case] fault: Fault, #[case] accept: &str, #[case] expected: &str) {
        let mut request = Request::new(Method::GET, "/api/v1/pods");
        request.headers.insert(header::ACCEPT, accept.parse().expect("a header"));
        edit_accept(&mut request, |entry| match fault {
            Fault::AcceptParametersInOrder => unless_first(entry, "v"),
            Fault::AcceptParametersRejected => unless_first(entry, "charset"),
            _ => without_quality(entry),
        });
        assert_eq!(request.header("accept"), expected);
    }
}
