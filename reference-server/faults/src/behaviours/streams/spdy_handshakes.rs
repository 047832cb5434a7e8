//! SPDY handshakes: the protocols that clients offer and servers choose.

use http::header::{self, HeaderName};
use http::{HeaderMap, StatusCode};
use kubeproof_streaming::Protocol;

use super::websocket_handshakes::{list, set_list, set_protocol};
use crate::behaviours::Fault;
use crate::exchange::Request;
use crate::middleware::{Middleware, around, requests, responses};
use crate::streams::protocol;

const VERSION: HeaderName = HeaderName::from_static("x-stream-protocol-version");
const ACCEPTED: HeaderName = HeaderName::from_static("x-accepted-stream-protocol-versions");

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::SpdyLastOfferWins => requests(|request| {
            if is_spdy(request) {
                let mut offers = list(&request.headers, &VERSION);
                offers.reverse();
                set_offers(&mut request.headers, &offers);
            }
        }),
        Fault::SpdyNoOfferAccepted => requests(|request| {
            if is_spdy(request) && !request.headers.contains_key(VERSION) {
                let forwards = request.target().subresource == "portforward";
                let oldest = if forwards { "portforward.k8s.io" } else { "channel.k8s.io" };
                set_list(&mut request.headers, VERSION, &[oldest.to_owned()]);
            }
        }),
        Fault::SpdyProtocolNotNamed => without_header(VERSION),
        Fault::SpdyAcceptedVersionsMissing => without_header(ACCEPTED),
        Fault::SpdyUnknownProtocolAccepted => unknown_protocol_accepted(),
        _ => return None,
    })
}

fn is_spdy(request: &Request) -> bool {
    protocol(request) == Some(Protocol::Spdy)
}

fn set_offers(headers: &mut HeaderMap, offers: &[String]) {
    if !offers.is_empty() {
        set_list(headers, VERSION, offers);
    }
}

fn without_header(name: HeaderName) -> Box<dyn Middleware> {
    responses(move |request, response| {
        if protocol(request).is_some() {
            response.headers.remove(&name);
        }
    })
}

/// Repeats a rejected handshake with the first protocol that the server accepts.
fn unknown_protocol_accepted() -> Box<dyn Middleware> {
    around(|request, next| {
        Box::pin(async move {
            let response = next.send(request.clone()).await;
            let accepted = list(&response.headers, &ACCEPTED).into_iter().next();
            let (StatusCode::FORBIDDEN, Some(accepted)) = (response.status, accepted) else {
                return response;
            };
            let mut again = request;
            match protocol(&again) {
                Some(Protocol::Spdy) => set_offers(&mut again.headers, &[accepted]),
                Some(Protocol::Websocket)
                    if again.headers.contains_key(header::SEC_WEBSOCKET_PROTOCOL) =>
                {
                    set_protocol(&mut again.headers, &format!("SPDY/3.1+{accepted}"));
                }
                _ => return response,
            }
            next.send(again).await
        })
    })
}
