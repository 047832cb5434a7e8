//! The container that exec, attach and log use, and pods that do not exist.

use bytes::BytesMut;
use http::StatusCode;
use kubeproof_apimachinery::request::Query;
use kubeproof_streaming::remotecommand::status::of_rejection;
use kubeproof_streaming::websocket::channel::Coding;
use kubeproof_streaming::websocket::frame::Frame;
use kubeproof_streaming::websocket::handshake;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::behaviours::Fault;
use crate::exchange::{Body, Io, Request, Response};
use crate::middleware::{Middleware, Next, around};
use crate::streams::command::{ERROR, STDERR, STDOUT};
use crate::streams::websocket::message;
use crate::streams::{is_command, is_websocket, protocol};

/// The lists of containers in the spec of a pod.
const LISTS: [&str; 3] = ["containers", "initContainers", "ephemeralContainers"];
const V5: &str = "v5.channel.k8s.io";
const NORMAL: u16 = 1000;
/// The buffer of a connection to a client, in bytes.
const PIPE: usize = 64 * 1024;

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::ContainerIgnored => first_container(|_, _| true),
        Fault::ContainerUnchecked => first_container(|pod, asked| {
            asked.is_some_and(|asked| {
                !LISTS.iter().any(|list| names(pod, list).any(|name| name == asked))
            })
        }),
        Fault::ContainerGuessed => first_container(|_, asked| asked.is_none()),
        Fault::LogOfEndedUnfollowed => log_of_ended(),
        Fault::MissingPodLeftToNode => around(|request, next| {
            Box::pin(async move {
                let applies = is_command(&request) && protocol(&request).is_some();
                let response = next.send(request.clone()).await;
                let missing =
                    response.status == StatusCode::NOT_FOUND && response.has_reason("NotFound");
                if applies && missing { rejected_by_node(&request) } else { response }
            })
        }),
        _ => return None,
    })
}

fn names<'a>(pod: &'a Value, list: &str) -> impl Iterator<Item = &'a str> {
    let all = pod["spec"][list].as_array().into_iter().flatten();
    all.filter_map(|container| container["name"].as_str())
}

/// The container that a request names, unless it is empty.
fn asked(query: &Query) -> Option<&str> {
    query.get("container").filter(|name| !name.is_empty())
}

/// Uses the first container of the pod where `applies` returns true for the pod and the name in the
/// request.
fn first_container(applies: fn(&Value, Option<&str>) -> bool) -> Box<dyn Middleware> {
    around(move |mut request, next| {
        Box::pin(async move {
            if let Some(pod) = pod(&request, next).await
                && applies(&pod, asked(&request.query()))
                && let Some(first) = names(&pod, "containers").next()
            {
                request.edit_query(|query| query.set("container", first));
            }
            next.send(request).await
        })
    })
}

/// The pod of a request for exec, attach or log.
async fn pod(request: &Request, next: Next<'_>) -> Option<Value> {
    let target = request.target();
    let is_log = target.is_core("pods") && target.subresource == "log";
    if !is_log && !is_command(request) {
        return None;
    }
    next.server.read(&target.object(&target.name)).await
}

/// Follows the log of a terminated container from its end.
fn log_of_ended() -> Box<dyn Middleware> {
    around(|mut request, next| {
        Box::pin(async move {
            let query = request.query();
            let follows = request.target().subresource == "log" && query.flag("follow");
            if follows
                && let Some(pod) = pod(&request, next).await
                && let Some(name) = asked(&query).or_else(|| names(&pod, "containers").next())
                && is_terminated(&pod, name)
            {
                request.edit_query(|query| query.set("tailLines", "0"));
            }
            next.send(request).await
        })
    })
}

fn is_terminated(pod: &Value, container: &str) -> bool {
    let lists = ["containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"];
    let statuses =
        lists.iter().flat_map(|list| pod["status"][list].as_array().into_iter().flatten());
    statuses
        .filter(|status| status["name"] == container)
        .any(|status| status["state"]["terminated"].is_object())
}

/// The response of a server that upgrades the connection before it finds that the node has no such
/// pod.
fn rejected_by_node(request: &Request) -> Response {
    let why = format!("pod {:?} not found", request.target().name);
    let v5 = handshake::protocols(&request.headers).contains(&V5);
    if !is_websocket(request) || !v5 {
        return Response::text(StatusCode::NOT_FOUND, format!("{why}\n"));
    }
    if let Err(error) = handshake::check(&request.method, &request.headers) {
        return response(error.response(), Body::Whole);
    }
    let (near, far) = tokio::io::duplex(PIPE);
    let query = request.query();
    let first =
        [("stdout", STDOUT), ("stderr", STDERR)].into_iter().find(|(name, _)| query.flag(name));
    let mut wire = BytesMut::new();
    for frame in [
        message(Coding::Binary, first.map_or(ERROR, |(_, channel)| channel), b""),
        message(Coding::Binary, ERROR, of_rejection(&why).as_bytes()),
        Frame::close(NORMAL, ""),
    ] {
        frame.encode(&mut wire);
    }
    tokio::spawn(farewell(far, wire));
    response(handshake::switching_protocols(&request.headers, V5), |_| {
        Body::Upgraded(Box::new(near))
    })
}

/// Sends the last bytes of a connection, and reads until the client has seen them.
async fn farewell(mut connection: impl Io, mut wire: BytesMut) {
    if connection.write_all_buf(&mut wire).await.is_ok() && connection.shutdown().await.is_ok() {
        let mut waste = [0; 1024];
        while matches!(connection.read(&mut waste).await, Ok(read) if read > 0) {}
    }
}

fn response(
    response: http::Response<bytes::Bytes>,
    body: impl FnOnce(bytes::Bytes) -> Body,
) -> Response {
    let (head, bytes) = response.into_parts();
    Response { status: head.status, headers: head.headers, body: body(bytes) }
}
