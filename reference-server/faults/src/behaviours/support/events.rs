//! The events of watches.

use bytes::Bytes;
use futures_util::stream::{self, BoxStream};
use futures_util::{Stream, StreamExt as _};
use serde_json::Value;

use crate::exchange::{Body, Response};
use crate::middleware::edit_lines;

/// Returns whether an event reports a change of an object.
pub(crate) fn is_change(event: &Value) -> bool {
    matches!(event["type"].as_str(), Some("ADDED" | "MODIFIED" | "DELETED"))
}

/// Takes the events of a watch, to send others instead.
pub(crate) fn take_events(response: &mut Response) -> Option<BoxStream<'static, Value>> {
    edit_lines(response, |line| vec![line]);
    let Body::Stream(body) = &mut response.body else { return None };
    let chunks = std::mem::replace(body, stream::empty().boxed());
    let events = chunks.flat_map(|chunk| {
        let lines = chunk.split(|byte| *byte == b'\n');
        let events: Vec<Value> =
            lines.filter_map(|line| serde_json::from_slice(line).ok()).collect();
        stream::iter(events)
    });
    Some(events.boxed())
}

/// Sets the events of a watch.
pub(crate) fn set_events(
    response: &mut Response,
    events: impl Stream<Item = Value> + Send + 'static,
) {
    let lines = events.map(|event| Bytes::from(format!("{event}\n")));
    response.body = Body::Stream(lines.boxed());
}
