//! Messages that end stdin over WebSocket and should not.
//!
//! Only v5 lets a client end stdin. For an older protocol the middleware connects to the server
//! with v5 and translates between the two versions.

use bytes::Bytes;
use http::header;
use http::{HeaderValue, StatusCode};
use kubeproof_streaming::websocket::channel::Coding;
use kubeproof_streaming::websocket::handshake;
use serde_json::Value;

use super::command_requests::has_streams;
use super::websocket_handshakes::set_protocol;
use crate::behaviours::Fault;
use crate::exchange::{Request, Response};
use crate::middleware::{Middleware, Next, around};
use crate::streams::command::{CLOSE, Dialect, ERROR, Edit, Event, STDIN, channels};
use crate::streams::{Flow, Pump, is_command, is_websocket, wrap_session};

const V5: &str = "v5.channel.k8s.io";
/// The protocols before v5.
const OLDER: &[&str] =
    &["v4.channel.k8s.io", "v4.base64.channel.k8s.io", "channel.k8s.io", "base64.channel.k8s.io"];
/// The start of errors with v5, which wraps them twice.
const WRAPPED: &str = "Internal error occurred: Internal error occurred: ";

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    match fault {
        Fault::StdinCloseBeforeV5 => Some(around(|request, next| {
            Box::pin(async move {
                match older_protocol(&request) {
                    Some(protocol) => translated(request, next, protocol, true).await,
                    None => next.send(request).await,
                }
            })
        })),
        Fault::EmptyStdinFrameEnds => Some(around(|request, next| {
            Box::pin(async move {
                if let Some(protocol) = older_protocol(&request) {
                    return translated(request, next, protocol, false).await;
                }
                let mut response = next.send(request.clone()).await;
                if is_command(&request) && is_websocket(&request) {
                    wrap_session(&request, &mut response, &|session, server| {
                        let to_server = Box::new(empty_ends);
                        crate::streams::command::pump(
                            session,
                            to_server,
                            crate::streams::command::unchanged(),
                        )
                        .start(server)
                    });
                }
                response
            })
        })),
        _ => None,
    }
}

/// The protocol before v5 that the server would choose for a command.
fn older_protocol(request: &Request) -> Option<&'static str> {
    let applies = is_command(request) && is_websocket(request);
    if !applies || handshake::protocols(&request.headers).contains(&V5) {
        return None;
    }
    handshake::negotiate(&request.headers, OLDER).ok()
}

/// Ends stdin at an empty message for it.
fn empty_ends(event: Event, out: &mut Vec<Event>) -> Flow {
    match event {
        Event::Data(STDIN, bytes) if bytes.is_empty() => out.push(Event::End(STDIN)),
        event => out.push(event),
    }
    Flow::Continue
}

/// Connects with v5, and translates for a client of an older protocol.
async fn translated(
    request: Request,
    next: Next<'_>,
    protocol: &'static str,
    closes: bool,
) -> Response {
    if !node_accepts(&request, next).await {
        return next.send(request).await;
    }
    let mut newer = request;
    set_protocol(&mut newer.headers, V5);
    let mut response = next.send(newer.clone()).await;
    if response.status != StatusCode::SWITCHING_PROTOCOLS {
        return response;
    }
    let client = Dialect { coding: Coding::of(protocol), closes };
    let server = Dialect { coding: Coding::Binary, closes: true };
    wrap_session(&newer, &mut response, &|_, io| {
        let to_server: Edit = Box::new(move |event, out| match event {
            // Without a meaning in old protocols, and with one in v5.
            Event::Data(CLOSE, _) => Flow::Continue,
            Event::Data(..) if !closes => empty_ends(event, out),
            event => {
                out.push(event);
                Flow::Continue
            }
        });
        let has_statuses = protocol.starts_with("v4");
        let to_client: Edit = Box::new(move |event, out| {
            match event {
                Event::Data(ERROR, bytes) if !bytes.is_empty() => {
                    out.extend(
                        older_status(&bytes, has_statuses).map(|bytes| Event::Data(ERROR, bytes)),
                    );
                }
                event => out.push(event),
            }
            Flow::Continue
        });
        Pump {
            to_server: channels(client, server, to_server),
            to_client: channels(server, client, to_client),
            ..Pump::default()
        }
        .start(io)
    });
    response.headers.remove(header::SEC_WEBSOCKET_PROTOCOL);
    if !protocol.is_empty() {
        response.headers.insert(header::SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(protocol));
    }
    response
}

/// Returns true if the server would upgrade the connection. With v5 it rejects some requests only
/// after the upgrade. A request without streams gets through all checks but the last one, and runs
/// nothing.
async fn node_accepts(request: &Request, next: Next<'_>) -> bool {
    if !has_streams(&request.query()) {
        return false;
    }
    let mut probe = request.clone();
    probe.edit_query(|query| {
        for stream in ["stdin", "stdout", "stderr"] {
            query.remove(stream);
        }
    });
    let response = next.send(probe).await;
    let text = String::from_utf8_lossy(response.bytes()).into_owned();
    response.status == StatusCode::BAD_REQUEST && text.contains("at least 1 of stdin")
}

/// The report of v5 in the form of an older protocol.
fn older_status(bytes: &[u8], has_statuses: bool) -> Option<Bytes> {
    let Ok(mut status) = serde_json::from_slice::<Value>(bytes) else {
        return Some(Bytes::copy_from_slice(bytes));
    };
    if let Some(rest) = status["message"].as_str().and_then(|message| message.strip_prefix(WRAPPED))
    {
        status["message"] = format!("Internal error occurred: {rest}").into();
    }
    if !has_statuses {
        let message = status["message"].as_str().map(str::to_owned);
        return (status["status"] != "Success").then_some(message)?.map(Bytes::from);
    }
    let fields = status.as_object_mut()?;
    fields.remove("metadata");
    if fields.get("reason").is_some_and(|reason| reason == "InternalError") {
        fields.remove("details");
    }
    Some(status.to_string().into())
}

#[cfg(test)]
mod tests {
    use kubeproof_streaming::remotecommand::status::{of_exit, of_failure};
    use kubeproof_streaming::remotecommand::{Exit, Version};
    use serde_json::from_slice;

    use super::*;

    #[test]
    fn statuses_become_those_of_older_protocols() {
        let failure = |version| of_failure(version, "no such file");
        let exit = |version, code| of_exit(version, &Exit::Code(code));
        for (newer, v4, v1) in [
            (Some(failure(Version::V5)), Some(failure(Version::V4)), Some(failure(Version::V1))),
            (exit(Version::V5, 0), exit(Version::V4, 0), exit(Version::V1, 0)),
            (exit(Version::V5, 3), exit(Version::V4, 3), exit(Version::V1, 3)),
        ] {
            let newer = newer.expect("v5 always reports the end");
            let status: Value =
                from_slice(&older_status(newer.as_bytes(), true).expect("v4 too")).expect("JSON");
            let expected: Value = serde_json::from_str(&v4.expect("v4 too")).expect("JSON");
            assert_eq!(status, expected);
            let text = older_status(newer.as_bytes(), false);
            assert_eq!(text.as_deref(), v1.as_deref().map(str::as_bytes));
        }
    }
}
