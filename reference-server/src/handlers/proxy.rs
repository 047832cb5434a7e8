//! The proxy subresources of pods, services and nodes: any request at all, passed on to a port of a pod, or to the agent of
//! a node, and back.

use std::convert::Infallible;
use std::sync::Weak;

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri, header};
use http_body::Body;
use http_body_util::{BodyExt as _, Empty, StreamBody};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rand::seq::IndexedRandom as _;
use serde_json::Value;
use tokio::io::DuplexStream;
use tokio::sync::mpsc;

use super::{Call, streams};
use crate::object::Object as _;
use crate::respond::{Answer, Payload};
use crate::runtime::PodKey;
use crate::status::ApiError;
use crate::streams::{Connection, Reply};
use crate::{Fault, Faults};

/// Headers that concern one connection only.
const HOP_BY_HOP: [HeaderName; 8] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// The name in the URL: `[scheme:]name[:port]`.
struct Target<'a> {
    https: bool,
    name: &'a str,
    /// Empty for the first one.
    port: &'a str,
}

impl<'a> Target<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let parts: Vec<&str> = text.split(':').collect();
        let (scheme, name, port) = match parts.as_slice() {
            [name] => ("", *name, ""),
            [name, port] => ("", *name, *port),
            [scheme @ ("" | "http" | "https"), name, port] => (*scheme, *name, *port),
            _ => return None,
        };
        (!name.is_empty()).then_some(Self { https: scheme == "https", name, port })
    }
}

/// Where a request goes.
struct Backend {
    /// None for the agent of a node.
    pod: Option<PodKey>,
    /// None where no port could be made of what was asked for.
    port: Option<u16>,
    host: String,
}

/// Passes a request on.
pub(super) async fn handle(mut call: Call, method: &Method, body: &mut Incoming) -> Result<Answer, ApiError> {
    let faults = call.faults();
    if faults.on(Fault::ProxyUpgradeRefused) {
        call.upgrade = None;
    }
    if faults.on(Fault::ProxyByGetOnly) && method != Method::GET {
        return Err(ApiError::method_not_allowed());
    }
    let asked = call.info.name.clone();
    let name = Target::parse(&asked)
        .ok_or_else(|| ApiError::bad_request(format!("invalid {} request {asked:?}", call.ty.singular)))?;
    name.name.clone_into(&mut call.info.name);
    let stored = call.api.store.get(&call.ty.table, &call.key()).ok_or_else(|| {
        if call.ty.plural == "nodes" && faults.on(Fault::UnknownNodeIsDown) {
            ApiError::unreachable_node("error dialing backend: no node of this name answers")
        } else {
            call.not_found()
        }
    })?;
    let object = call.ty.load(&stored, faults);
    let backend = match call.ty.plural.as_str() {
        "services" => of_service(&call, &object, &name)?,
        "nodes" => of_node(&object, &name),
        _ => of_pod(&object, &name)?,
    };
    let (prefix, rest) = split(&call.uri);
    if rest.is_empty() && matches!(*method, Method::GET | Method::HEAD) {
        return Ok(to_directory(&call.uri));
    }
    let connection = connect(&call, &backend, name.https && backend.pod.is_some()).await?;
    let request = request(&call, method, &backend, rest)?;
    let prefix = prefix.to_owned();
    if call.upgrade.is_some() {
        return upgrade(call, connection, request).await;
    }
    let response = if body.is_end_stream() || faults.on(Fault::ProxyBodyLost) {
        send(connection, request.map(|()| Empty::<Bytes>::new())).await?
    } else {
        let (pieces, taken) = mpsc::channel(1);
        let pass_on = async {
            while let Some(Ok(frame)) = body.frame().await
                && pieces.send(Ok::<_, Infallible>(frame)).await.is_ok()
            {}
            drop(pieces);
        };
        let frames = stream::unfold(taken, |mut taken| async move {
            let frame = taken.recv().await?;
            Some((frame, taken))
        });
        tokio::join!(send(connection, request.map(|()| StreamBody::new(frames))), pass_on).0?
    };
    Ok(answer(response, &prefix, faults))
}

/// The URL up to `/proxy`, and what follows it.
fn split(uri: &Uri) -> (&str, &str) {
    let path = uri.path();
    // What stands before it: `/api/v1/namespaces/…/pods/…/proxy`, or `/api/v1/nodes/…/proxy`.
    let segments = if path.starts_with("/api/v1/namespaces/") { 7 } else { 5 };
    let end = path.match_indices('/').nth(segments).map_or(path.len(), |(at, _)| at);
    path.split_at(end)
}

/// A directory without its slash: what is relative would be looked for beside it.
fn to_directory(uri: &Uri) -> Answer {
    let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    let answer = Answer::bare(StatusCode::MOVED_PERMANENTLY);
    match HeaderValue::try_from(format!("{}/{query}", uri.path())) {
        Ok(location) => answer.header(header::LOCATION, location),
        Err(_) => answer,
    }
}

fn of_pod(pod: &Value, name: &Target<'_>) -> Result<Backend, ApiError> {
    let ip = pod["status"]["podIP"].as_str().unwrap_or_default();
    if ip.is_empty() {
        return Err(ApiError::bad_request("address not allowed"));
    }
    let port = if name.port.is_empty() { first_port(pod).or(Some(80)) } else { name.port.parse().ok() };
    let host = port.map_or_else(|| format!("{ip}:{}", name.port), |port| format!("{ip}:{port}"));
    Ok(Backend { pod: Some(streams::key(pod)), port, host })
}

/// The agent of a node, at the one port that it has.
fn of_node(node: &Value, name: &Target<'_>) -> Backend {
    let mut addresses = node["status"]["addresses"].as_array().into_iter().flatten();
    let ip = addresses.find_map(|address| address["address"].as_str()).unwrap_or_default();
    let own = node.pointer("/status/daemonEndpoints/kubeletEndpoint/Port").and_then(number);
    let port = own.filter(|own| name.port.is_empty() || name.port == own.to_string());
    Backend { pod: None, port, host: format!("{ip}:{}", port.unwrap_or_default()) }
}

fn ports(pod: &Value) -> impl Iterator<Item = &Value> {
    let containers = pod["spec"]["containers"].as_array().into_iter().flatten();
    containers.flat_map(|container| container["ports"].as_array().into_iter().flatten())
}

fn number(port: &Value) -> Option<u16> {
    u16::try_from(port.as_u64()?).ok()
}

fn first_port(pod: &Value) -> Option<u16> {
    ports(pod).find_map(|port| number(&port["containerPort"]))
}

/// One of the ready pods behind a service.
fn of_service(call: &Call, service: &Value, name: &Target<'_>) -> Result<Backend, ApiError> {
    let all = service["spec"]["ports"].as_array().into_iter().flatten();
    let mut wanted = all.filter(|port| match name.port {
        "" => true,
        text if call.faults().on(Fault::ServicePortNamesUnknown) => {
            text.parse().is_ok_and(|text: u64| port["port"] == text)
        }
        text => port["name"] == text || text.parse().is_ok_and(|text: u64| port["port"] == text),
    });
    let Some(port) = wanted.next() else {
        let why = format!("no service port {} found for service {:?}", name.port, name.name);
        return Err(ApiError::unavailable(why));
    };
    let selector = service["spec"]["selector"].as_object();
    let Ok(pods) = call.api.find_core("pods") else { return Err(ApiError::no_such_resource()) };
    let (candidates, _) = call.api.store.snapshot(&pods.table, Some(&call.info.namespace));
    let mut backends = Vec::new();
    for stored in candidates {
        let labels = &stored.facts.labels;
        let selected = selector.is_some_and(|selector| {
            !selector.is_empty()
                && selector.iter().all(|(key, value)| labels.get(key).map(String::as_str) == value.as_str())
        });
        if !selected || stored.facts.deleting {
            continue;
        }
        let pod = pods.load(&stored, call.faults());
        let conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
        let ready = conditions.clone().any(|one| one["type"] == "Ready" && one["status"] == "True");
        let target = match &port["targetPort"] {
            Value::Null => number(&port["port"]),
            Value::String(name) => ports(&pod)
                .find(|port| port["name"] == name.as_str())
                .and_then(|port| number(&port["containerPort"])),
            target => number(target),
        };
        if let (true, Some(target)) = (ready, target) {
            let ip = pod["status"]["podIP"].as_str().unwrap_or_default();
            backends.push(Backend {
                pod: Some(streams::key(&pod)),
                port: Some(target),
                host: format!("{ip}:{target}"),
            });
        }
    }
    let chosen = backends.choose(&mut rand::rng()).map(|chosen| Backend {
        pod: chosen.pod.clone(),
        port: chosen.port,
        host: chosen.host.clone(),
    });
    chosen.ok_or_else(|| {
        let why = format!("no endpoints available for service {:?}", service.meta("name"));
        let internal = call.faults().on(Fault::NothingBehindIsInternal);
        if internal { ApiError::internal(why) } else { ApiError::unavailable(why) }
    })
}

async fn connect(call: &Call, backend: &Backend, https: bool) -> Result<DuplexStream, ApiError> {
    let unreachable = |why: String| ApiError::unavailable(format!("error trying to reach service: {why}"));
    if https {
        return Err(unreachable("tls: first record does not look like a TLS handshake".to_owned()));
    }
    let nobody = || unreachable(format!("dial tcp {}: connect: no such host or port", backend.host));
    let (Some(runtime), Some(port)) = (call.api.runtime.get(), backend.port) else { return Err(nobody()) };
    let Some(pod) = &backend.pod else {
        let agent = call.api.agent.get().and_then(Weak::upgrade);
        let agent = agent.filter(|agent| agent.node() == call.info.name).ok_or_else(nobody)?;
        return Ok(agent.connect());
    };
    let connected = runtime.connect(pod, port).await;
    connected.map_err(|error| unreachable(format!("dial tcp {}: {error}", backend.host)))
}

/// The request as the port gets it.
fn request(call: &Call, method: &Method, backend: &Backend, rest: &str) -> Result<Request<()>, ApiError> {
    let faults = call.faults();
    let path = if rest.is_empty() || faults.on(Fault::ProxyPathLost) { "/" } else { rest };
    let query = call.uri.query().filter(|_| !faults.on(Fault::ProxyQueryLost));
    let target = query.map_or_else(|| path.to_owned(), |query| format!("{path}?{query}"));
    let uri = Uri::try_from(target).map_err(|error| ApiError::bad_request(error.to_string()))?;
    let mut headers = without_hops(&call.headers);
    if faults.on(Fault::ProxyHeadersLost) {
        let length = headers.get(header::CONTENT_LENGTH).cloned();
        headers = length.into_iter().map(|length| (header::CONTENT_LENGTH, length)).collect();
    }
    // Whoever serves the port has no business with the client's credential.
    if !faults.on(Fault::ProxyLeaksToken) {
        headers.remove(header::AUTHORIZATION);
    }
    let host = call.headers.get(header::HOST).cloned();
    for (name, value) in [
        ("x-forwarded-uri", HeaderValue::try_from(call.uri.path()).ok()),
        ("x-forwarded-host", host.or_else(|| HeaderValue::try_from(call.api.address.as_str()).ok())),
        ("x-forwarded-proto", Some(HeaderValue::from_static("http"))),
    ] {
        if let Some(value) = value {
            headers.insert(name, value);
        }
    }
    if faults.on(Fault::ProxyBodyLost) {
        headers.remove(header::CONTENT_LENGTH);
    }
    if let Ok(host) = HeaderValue::try_from(backend.host.as_str()) {
        headers.insert(header::HOST, host);
    }
    if call.upgrade.is_some() {
        headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
        for value in call.headers.get_all(header::UPGRADE) {
            headers.append(header::UPGRADE, value.clone());
        }
    }
    let mut request = Request::new(());
    *request.method_mut() = method.clone();
    *request.uri_mut() = uri;
    *request.headers_mut() = headers;
    Ok(request)
}

fn without_hops(headers: &HeaderMap) -> HeaderMap {
    let mut headers = headers.clone();
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in HOP_BY_HOP.into_iter().chain(named) {
        headers.remove(name);
    }
    headers
}

async fn send<B>(connection: DuplexStream, request: Request<B>) -> Result<Response<Incoming>, ApiError>
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let failed =
        |error: hyper::Error| ApiError::unavailable(format!("error trying to reach service: {error}"));
    let (mut sender, connection) = http1::handshake(TokioIo::new(connection)).await.map_err(failed)?;
    tokio::spawn(async move {
        // The response says how it ended.
        let _ = connection.with_upgrades().await;
    });
    sender.send_request(request).await.map_err(failed)
}

/// The response as the client gets it.
fn answer(response: Response<Incoming>, prefix: &str, faults: Faults) -> Answer {
    let (parts, body) = response.into_parts();
    let chunks = body.into_data_stream();
    // A body that breaks off ends short of its length, which is how the client comes to know.
    let chunks = stream::unfold(chunks, |mut chunks| async move {
        let chunk: Bytes = chunks.next().await?.ok()?;
        Some((chunk, chunks))
    });
    let status = if faults.on(Fault::ProxyStatusLost) { StatusCode::OK } else { parts.status };
    let mut answer = Answer::bare(status);
    answer.payload = Payload::Stream(Box::pin(chunks));
    answer.patient = true;
    for (name, value) in &without_hops(&parts.headers) {
        answer = answer.header(name.clone(), relocated(name, value, prefix));
    }
    answer
}

/// A place on the backend's own host, as the client can reach it.
fn relocated(name: &HeaderName, value: &HeaderValue, prefix: &str) -> HeaderValue {
    let place = value.to_str().ok().filter(|place| *name == header::LOCATION && place.starts_with('/'));
    let moved = place.and_then(|place| HeaderValue::try_from(format!("{prefix}{place}")).ok());
    moved.unwrap_or_else(|| value.clone())
}

/// Joins the connections of client and backend, if the backend agrees.
async fn upgrade(mut call: Call, connection: DuplexStream, request: Request<()>) -> Result<Answer, ApiError> {
    let mut response = send(connection, request.map(|()| Empty::<Bytes>::new())).await?;
    if response.status() != StatusCode::SWITCHING_PROTOCOLS {
        let (prefix, _) = split(&call.uri);
        return Ok(answer(response, prefix, call.faults()));
    }
    let Some(upgrade) = call.upgrade.take() else { return Err(ApiError::bad_request("nothing to upgrade")) };
    let far = hyper::upgrade::on(&mut response);
    let mut agreed = Answer::bare(StatusCode::SWITCHING_PROTOCOLS);
    for (name, value) in response.headers() {
        agreed = agreed.header(name.clone(), value.clone());
    }
    let reply: Reply = upgrade.switch(agreed, move |mut near: Connection| async move {
        if let Ok(far) = far.await {
            // Either side may end it.
            let _ = tokio::io::copy_bidirectional(&mut near, &mut TokioIo::new(far)).await;
        }
    });
    Ok(call.switch(reply))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("p", Some((false, "p", "")))]
    #[case("p:80", Some((false, "p", "80")))]
    #[case("https:p:", Some((true, "p", "")))]
    #[case(":p:web", Some((false, "p", "web")))]
    #[case("a:b:c:d", None)]
    #[case("ftp:p:1", None)]
    #[case("", None)]
    fn names(#[case] text: &str, #[case] parts: Option<(bool, &str, &str)>) {
        assert_eq!(Target::parse(text).map(|name| (name.https, name.name, name.port)), parts);
    }

    #[rstest]
    #[case("/api/v1/namespaces/n/pods/p/proxy", "")]
    #[case("/api/v1/namespaces/n/pods/p:80/proxy/", "/")]
    #[case("/api/v1/nodes/n/proxy", "")]
    #[case("/api/v1/nodes/n:10250/proxy/healthz", "/healthz")]
    #[case("/api/v1/namespaces/n/services/s/proxy/a%2Fb//c/", "/a%2Fb//c/")]
    fn what_follows_the_proxy(#[case] uri: &str, #[case] rest: &str) {
        assert_eq!(split(&uri.parse().unwrap()).1, rest);
    }
}
