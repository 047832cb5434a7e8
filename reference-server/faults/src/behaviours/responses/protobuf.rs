//! Faults in the framing and the representations of protobuf.

use bytes::{Bytes, BytesMut};
use futures_util::stream::StreamExt as _;
use http::Method;
use http::header::{self, HeaderValue};

use crate::behaviours::Fault;
use crate::document::{self, PROTOBUF};
use crate::exchange::{Body, Request, Response};
use crate::middleware::{Middleware, around, requests, responses};

/// The start of each envelope.
const MAGIC: &[u8] = b"k8s\0";

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::ProtobufEventsWithoutLength => around(|request, next| {
            Box::pin(async move {
                let watches = request.is_watch();
                let mut response = next.send(request).await;
                if watches && is_protobuf(&response) {
                    drop_lengths(&mut response);
                }
                response
            })
        }),
        Fault::ProtobufDeletionsWithoutEnvelope => without_magic(b"DELETED"),
        Fault::ProtobufBookmarksWithoutEnvelope => without_magic(b"BOOKMARK"),
        Fault::ProtobufReviewsLoseAttributes => around(|request, next| {
            Box::pin(async move {
                let loses = document::is_protobuf(&request.headers)
                    && request.target().resource.ends_with("accessreviews");
                let mut response = next.send(request).await;
                if loses {
                    response.edit_value(|review| {
                        review["spec"]["resourceAttributes"] = serde_json::json!({});
                    });
                }
                response
            })
        }),
        Fault::ProtobufUidsDiffer => responses(|_, response| {
            if is_protobuf(response) && !response.bytes().is_empty() {
                let mut bytes = response.bytes().to_vec();
                zero_uids(&mut bytes);
                response.set_bytes(bytes);
            }
        }),
        Fault::ProtobufIgnoresRepresentation => requests(ignore_representation),
        Fault::ProtobufUpdatesIgnored => without_updates(""),
        Fault::ProtobufStatusIgnored => without_updates("status"),
        Fault::ProtobufScaleIgnored => without_updates("scale"),
        _ => return None,
    })
}

/// Answers a PUT in protobuf to the subresource with what is stored.
fn without_updates(subresource: &'static str) -> Box<dyn Middleware> {
    requests(move |request| {
        if request.method == Method::PUT
            && document::is_protobuf(&request.headers)
            && request.target().subresource == subresource
        {
            request.method = Method::GET;
            request.headers.remove(header::CONTENT_TYPE);
            request.body = Bytes::new();
        }
    })
}

/// Replaces each uid of metadata: the field 5 with a text of 36 bytes.
fn zero_uids(bytes: &mut [u8]) {
    for start in 0..bytes.len() {
        if let Some([0x2a, 36, uid @ ..]) = bytes.get_mut(start..start + 38) {
            uid.fill(b'0');
        }
    }
}

fn is_protobuf(response: &Response) -> bool {
    let media_type = response.headers.get(header::CONTENT_TYPE);
    media_type.is_some_and(|value| value.as_bytes().starts_with(PROTOBUF.as_bytes()))
}

/// Removes the parameters of the entries for protobuf from the header `Accept`.
fn ignore_representation(request: &mut Request) {
    let entries = request.header("accept").split(',').map(str::trim);
    let entries = entries.map(|entry| if entry.starts_with(PROTOBUF) { PROTOBUF } else { entry });
    let accept = entries.collect::<Vec<_>>().join(",");
    if let (true, Ok(accept)) = (accept.contains(PROTOBUF), HeaderValue::from_str(&accept)) {
        request.headers.insert(header::ACCEPT, accept);
    }
}

/// Overwrites the magic number in the envelope of events of a type.
fn without_magic(kind: &'static [u8]) -> Box<dyn Middleware> {
    around(move |request, next| {
        Box::pin(async move {
            let watches = request.is_watch();
            let mut response = next.send(request).await;
            if watches && is_protobuf(&response) {
                edit_frames(&mut response, move |rest| overwrite_magic(rest, kind));
            }
            response
        })
    })
}

/// Takes the complete events. Those of a type lose their magic number.
fn overwrite_magic(rest: &mut BytesMut, kind: &[u8]) -> Bytes {
    let mut events = BytesMut::new();
    while let Some(length) = rest.first_chunk::<4>() {
        let end = 4 + u32::from_be_bytes(*length) as usize;
        if rest.len() < end {
            break;
        }
        let mut event = rest.split_to(end);
        let magic = event.windows(MAGIC.len()).position(|bytes| bytes == MAGIC);
        if let (Some(magic), true) = (magic, event[6..].starts_with(kind)) {
            event[magic..magic + MAGIC.len()].fill(0);
        }
        events.unsplit(event);
    }
    events.freeze()
}

/// Sends the events of a watch without their lengths.
fn drop_lengths(response: &mut Response) {
    edit_frames(response, take_events);
}

/// Edits the events of a watch. The edit takes the complete events from what has arrived.
fn edit_frames(response: &mut Response, edit: impl Fn(&mut BytesMut) -> Bytes + Send + 'static) {
    let Body::Stream(stream) = &mut response.body else { return };
    let chunks = std::mem::replace(stream, futures_util::stream::empty().boxed());
    let events = chunks.scan(BytesMut::new(), move |rest, chunk| {
        rest.extend_from_slice(&chunk);
        std::future::ready(Some(edit(rest)))
    });
    *stream = events.filter(|events| std::future::ready(!events.is_empty())).boxed();
}

/// Takes the complete events, without their lengths.
fn take_events(rest: &mut BytesMut) -> Bytes {
    let mut events = BytesMut::new();
    while let Some(length) = rest.first_chunk::<4>() {
        let end = 4 + u32::from_be_bytes(*length) as usize;
        if rest.len() < end {
            break;
        }
        events.extend_from_slice(&rest.split_to(end)[4..]);
    }
    events.freeze()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_lose_their_lengths_across_the_borders_of_chunks() {
        let mut rest = BytesMut::new();
        let mut all = Vec::new();
        for chunk in [&b"\0\0\0"[..], b"\x02a", b"b\0\0\0\x01c\0", b"\0\0\0"] {
            rest.extend_from_slice(chunk);
            all.push(take_events(&mut rest));
        }
        assert_eq!(all, ["", "", "abc", ""]);
    }
}
