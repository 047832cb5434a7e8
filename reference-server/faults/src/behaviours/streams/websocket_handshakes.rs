//! WebSocket handshakes: keys, versions, subprotocols.

use http::header::{self, HeaderValue};
use http::{HeaderMap, HeaderName, StatusCode};
use kubeproof_streaming::websocket::handshake::{self, bearer_token};

use crate::behaviours::Fault;
use crate::exchange::{Request, Response};
use crate::middleware::{Middleware, around, requests, responses};
use crate::streams::{is_command, is_websocket};

/// The prefix of a bearer token in the list of subprotocols.
const TOKEN_PREFIX: &str = "base64url.bearer.authorization.k8s.io.";
const V5: &str = "v5.channel.k8s.io";

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::WebsocketAcceptIsKey => switched(|request, response| {
            if let Some(key) = request.headers.get(header::SEC_WEBSOCKET_KEY) {
                response.headers.insert(header::SEC_WEBSOCKET_ACCEPT, key.clone());
            }
        }),
        Fault::WebsocketProtocolNotEchoed => switched(|_, response| {
            response.headers.remove(header::SEC_WEBSOCKET_PROTOCOL);
        }),
        Fault::WebsocketFirstOfferEchoed => switched(|request, response| {
            name_protocol(response, offered(&request.headers).first());
        }),
        Fault::WebsocketTokenEchoed => switched(|request, response| {
            let first = offered(&request.headers);
            name_protocol(response, first.first().filter(|first| first.starts_with(TOKEN_PREFIX)));
        }),
        Fault::WebsocketExtensionUnasked => switched(|_, response| {
            response.set_header(header::SEC_WEBSOCKET_EXTENSIONS, "permessage-deflate");
        }),
        Fault::WebsocketVersionUnchecked => requests(|request| {
            if is_websocket(request) {
                request
                    .headers
                    .insert(header::SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
            }
        }),
        Fault::WebsocketLastOfferWins => offers(|mut offers| {
            offers.reverse();
            offers
        }),
        Fault::V5Unknown => requests(|request| {
            if is_websocket(request) && is_command(request) {
                edit_offers(request, |offers| {
                    let renamed = offers.into_iter();
                    renamed
                        .map(
                            |one| if one == V5 { "unknown.channel.k8s.io".to_owned() } else { one },
                        )
                        .collect()
                });
            }
        }),
        Fault::WebsocketUnknownProtocolAccepted => unknown_protocol_accepted(),
        Fault::UpgradeWithoutConnection => requests(|request| {
            if request.headers.contains_key(header::UPGRADE)
                && request.target().subresource != "proxy"
            {
                request.headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
            }
        }),
        _ => return None,
    })
}

/// Edits the responses of handshakes that succeeded.
fn switched(edit: impl Fn(&Request, &mut Response) + Send + Sync + 'static) -> Box<dyn Middleware> {
    responses(move |request, response| {
        if response.status == StatusCode::SWITCHING_PROTOCOLS && is_websocket(request) {
            edit(request, response);
        }
    })
}

fn name_protocol(response: &mut Response, protocol: Option<&String>) {
    if let Some(protocol) = protocol.and_then(|protocol| HeaderValue::from_str(protocol).ok()) {
        response.headers.insert(header::SEC_WEBSOCKET_PROTOCOL, protocol);
    }
}

/// Edits the subprotocols that clients offer.
fn offers(
    edit: impl Fn(Vec<String>) -> Vec<String> + Send + Sync + 'static,
) -> Box<dyn Middleware> {
    requests(move |request| {
        if is_websocket(request) {
            edit_offers(request, &edit);
        }
    })
}

fn edit_offers(request: &mut Request, edit: impl Fn(Vec<String>) -> Vec<String>) {
    let offers = edit(offered(&request.headers));
    set_list(&mut request.headers, header::SEC_WEBSOCKET_PROTOCOL, &offers);
}

/// The subprotocols of a client with a token among them.
pub(super) fn offered(headers: &HeaderMap) -> Vec<String> {
    list(headers, &header::SEC_WEBSOCKET_PROTOCOL)
}

/// The members of a header that is a list.
pub(super) fn list(headers: &HeaderMap, name: &HeaderName) -> Vec<String> {
    let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    let members = values.flat_map(|value| value.split(',')).map(str::trim);
    members.filter(|member| !member.is_empty()).map(str::to_owned).collect()
}

/// Replaces a header by a list.
pub(super) fn set_list(headers: &mut HeaderMap, name: HeaderName, members: &[String]) {
    headers.remove(&name);
    if let (false, Ok(value)) = (members.is_empty(), HeaderValue::from_str(&members.join(", "))) {
        headers.insert(name, value);
    }
}

/// Replaces the subprotocols and keeps a bearer token that is among them.
pub(super) fn set_protocol(headers: &mut HeaderMap, protocol: &str) {
    let mut members = list(headers, &header::SEC_WEBSOCKET_PROTOCOL);
    members.retain(|member| member.starts_with(TOKEN_PREFIX));
    members.push(protocol.to_owned());
    set_list(headers, header::SEC_WEBSOCKET_PROTOCOL, &members);
}

/// Repeats a rejected handshake without subprotocols.
fn unknown_protocol_accepted() -> Box<dyn Middleware> {
    around(|request, next| {
        Box::pin(async move {
            let response = next.send(request.clone()).await;
            let unknown = response.status == StatusCode::FORBIDDEN
                && is_websocket(&request)
                && !handshake::protocols(&request.headers).is_empty()
                && response.value().is_none();
            if !unknown {
                return response;
            }
            let mut again = request;
            if let Ok(Some(token)) = bearer_token(&again.headers)
                && let Ok(value) = HeaderValue::from_str(&format!("Bearer {token}"))
            {
                again.headers.insert(header::AUTHORIZATION, value);
            }
            again.headers.remove(header::SEC_WEBSOCKET_PROTOCOL);
            let accepted = next.send(again).await;
            if accepted.status == StatusCode::SWITCHING_PROTOCOLS { accepted } else { response }
        })
    })
}
