//! The options of pod logs.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use futures_util::{FutureExt as _, StreamExt as _};
use http::header::SEC_WEBSOCKET_PROTOCOL;
use kubeproof_apimachinery::request::Query;

use crate::behaviours::Fault;
use crate::exchange::{Body, Request, Response};
use crate::frames;
use crate::middleware::{Middleware, requests, responses};

/// Options with the least value that is valid.
const LEAST: [(&str, i64); 3] = [("tailLines", 0), ("limitBytes", 1), ("sinceSeconds", 1)];

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    let ignored: &'static [&'static str] = match fault {
        Fault::LogFollowEnds => &["follow"],
        Fault::LogPreviousIgnored => &["previous"],
        Fault::LogTailIgnored => &["tailLines"],
        Fault::LogLimitIgnored => &["limitBytes"],
        Fault::LogSinceIgnored => &["sinceSeconds", "sinceTime"],
        Fault::LogTimestampsMissing => &["timestamps"],
        Fault::LogBytesAsText => return Some(as_text(|_| true)),
        Fault::LogBytesAsTextOverWebsocket => {
            return Some(as_text(|response| matches!(response.body, Body::Upgraded(_))));
        }
        Fault::LogInOnePiece => return Some(in_one_piece()),
        Fault::LogOptionsUnchecked => return Some(options(without_invalid)),
        _ => return None,
    };
    Some(options(move |query| {
        for name in ignored {
            query.remove(name);
        }
    }))
}

/// Replaces the bytes of logs that are not UTF-8 where `applies` says so.
fn as_text(applies: fn(&Response) -> bool) -> Box<dyn Middleware> {
    responses(move |request, response| {
        if !is_log(request) || !applies(response) {
            return;
        }
        let protocol = response.headers.get(SEC_WEBSOCKET_PROTOCOL);
        let base64 = protocol.is_some_and(|name| name.as_bytes().starts_with(b"base64."));
        match &mut response.body {
            Body::Whole(bytes) => *bytes = text(bytes),
            Body::Stream(stream) => {
                let chunks = std::mem::replace(stream, futures_util::stream::empty().boxed());
                *stream = chunks.map(|chunk| text(&chunk)).boxed();
            }
            Body::Upgraded(_) if base64 => frames::edit_messages(response, |message| {
                let decoded = BASE64_STANDARD.decode(&message).unwrap_or_default();
                vec![BASE64_STANDARD.encode(text(&decoded)).into()]
            }),
            Body::Upgraded(_) => frames::edit_messages(response, |message| vec![text(&message)]),
        }
    })
}

/// Collects a log that arrives over time.
fn in_one_piece() -> Box<dyn Middleware> {
    responses(|request, response| {
        if let Body::Stream(stream) = &mut response.body
            && is_log(request)
        {
            let chunks = std::mem::replace(stream, futures_util::stream::empty().boxed());
            let whole = chunks.collect::<Vec<Bytes>>().map(|chunks| Bytes::from(chunks.concat()));
            *stream = futures_util::stream::once(whole).boxed();
        }
    })
}

/// Returns bytes as UTF-8, with U+FFFD for each that is not.
fn text(bytes: &[u8]) -> Bytes {
    String::from_utf8_lossy(bytes).into_owned().into()
}

fn is_log(request: &Request) -> bool {
    let target = request.target();
    target.is_core("pods") && target.subresource == "log"
}

/// Edits the options of requests for logs.
fn options(edit: impl Fn(&mut Query) + Send + Sync + 'static) -> Box<dyn Middleware> {
    requests(move |request| {
        if is_log(request) {
            request.edit_query(&edit);
        }
    })
}

/// Removes the options that the server rejects.
fn without_invalid(query: &mut Query) {
    for (name, least) in LEAST {
        let value: Option<i64> = query.get(name).and_then(|value| value.parse().ok());
        if value.is_some_and(|value| value < least) {
            query.remove(name);
        }
    }
    if query.get("sinceSeconds").is_some() {
        query.remove("sinceTime");
    }
}
