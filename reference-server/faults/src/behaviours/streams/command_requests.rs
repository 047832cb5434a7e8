//! Requests for exec and attach (and in part portforward): methods, upgrades, pods, options.

use http::{Method, StatusCode};
use kubeproof_apimachinery::request::Query;

use crate::behaviours::Fault;
use crate::behaviours::support::failures::method_not_allowed;
use crate::exchange::{Request, Response};
use crate::middleware::{Middleware, around, requests};
use crate::streams::{is_command, is_websocket, protocol};

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::CommandFirstOnly => words(|words| words.into_iter().take(1).collect()),
        Fault::CommandSplit => {
            words(|words| words.join(" ").split(' ').map(str::to_owned).collect())
        }
        Fault::EmptyWordsDropped => {
            words(|words| words.into_iter().filter(|word| !word.is_empty()).collect())
        }
        Fault::UnaskedStdinStaysOpen => options(|query| query.set("stdin", "true")),
        Fault::TerminalAlways => options(|query| query.set("tty", "true")),
        Fault::TerminalNever => options(|query| {
            query.remove("tty");
        }),
        Fault::UnaskedOutputSent => requests(|request| {
            if is_command(request) && is_websocket(request) && has_streams(&request.query()) {
                request.edit_query(|query| {
                    query.set("stdout", "true");
                    query.set("stderr", "true");
                });
            }
        }),
        Fault::ExecByGetRejected => without_method(Method::GET),
        Fault::ExecByPostRejected => without_method(Method::POST),
        Fault::UpgradeNotRequired => around(|request, next| {
            Box::pin(async move {
                let applies = is_stream(&request) && protocol(&request).is_none();
                let response = next.send(request).await;
                if applies && is_bad_request(&response, "Upgrade request required") {
                    return Response::text(StatusCode::OK, "");
                }
                response
            })
        }),
        Fault::UnscheduledPodMissing => around(|request, next| {
            Box::pin(async move {
                let (applies, pod) = (is_stream(&request), request.target().name);
                let response = next.send(request).await;
                if applies && is_bad_request(&response, "does not have a host assigned") {
                    return pod_not_found(&pod);
                }
                response
            })
        }),
        Fault::AttachStartsAnotherProcess => requests(|request| {
            if is_command(request)
                && let Some(pod) = request.path.strip_suffix("/attach")
            {
                request.path = format!("{pod}/exec");
            }
        }),
        _ => return None,
    })
}

fn is_stream(request: &Request) -> bool {
    is_command(request) || request.target().subresource == "portforward"
}

/// Returns true if a request asks for a stream of the command.
pub(super) fn has_streams(query: &Query) -> bool {
    ["stdin", "stdout", "stderr"].iter().any(|stream| query.flag(stream))
}

fn is_bad_request(response: &Response, text: &str) -> bool {
    let message = response.value().and_then(|status| Some(status["message"].as_str()?.to_owned()));
    response.status == StatusCode::BAD_REQUEST
        && message.is_some_and(|message| message.contains(text))
}

fn pod_not_found(pod: &str) -> Response {
    let mut response =
        Response::failure(StatusCode::NOT_FOUND, "NotFound", format!("pods {pod:?} not found"));
    response.edit_value(|status| {
        status["details"] = serde_json::json!({ "name": pod, "kind": "pods" });
    });
    response
}

/// Edits the words of the command to run.
fn words(edit: fn(Vec<String>) -> Vec<String>) -> Box<dyn Middleware> {
    options(move |query| {
        let words: Vec<String> = query.all("command").map(str::to_owned).collect();
        query.remove("command");
        for word in edit(words) {
            query.add("command", word);
        }
    })
}

/// Edits the options of exec and attach.
fn options(edit: impl Fn(&mut Query) + Send + Sync + 'static) -> Box<dyn Middleware> {
    requests(move |request| {
        if is_command(request) {
            request.edit_query(&edit);
        }
    })
}

fn without_method(method: Method) -> Box<dyn Middleware> {
    around(move |request, next| {
        let rejected = is_stream(&request) && request.method == method;
        Box::pin(async move {
            if rejected {
                return method_not_allowed();
            }
            next.send(request).await
        })
    })
}
