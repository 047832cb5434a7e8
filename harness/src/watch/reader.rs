//! The task that reads a watch.

use std::sync::Arc;

use http_body_util::BodyExt;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::lines::Lines;
use crate::exchange::{WatchEnd, WatchEvent};
use crate::transport::{OpenBody, chain, json_of};

/// What the task tells.
#[derive(Debug)]
pub(super) enum Item {
    /// An event, and what is wrong with its JSON for all that it could be read.
    Event(WatchEvent, Option<String>),
    /// Last.
    End(WatchEnd),
}

/// Reads to the end, or until nobody listens.
pub(super) async fn read(mut body: OpenBody, mut lines: Lines, origin: Instant, to: mpsc::Sender<Item>) {
    let end = loop {
        let data = match body.incoming.frame().await {
            Some(Ok(frame)) => frame.into_data().unwrap_or_default(),
            Some(Err(error)) => break WatchEnd::Broken(format!("the stream broke: {}", chain(&error))),
            None => break last(lines, origin, &to).await,
        };
        lines.push(&data);
        if let Some(end) = complete(&mut lines, origin, &to).await {
            break end;
        }
    };
    // The server is let go before its end is told: whoever sees the end finds the connection closed.
    drop(body);
    let _ = to.send(Item::End(end)).await;
}

/// Tells the lines that are complete. `Some` when one of them, or their length, ends the watch.
async fn complete(lines: &mut Lines, origin: Instant, to: &mpsc::Sender<Item>) -> Option<WatchEnd> {
    loop {
        let line = match lines.next() {
            Ok(Some(line)) => line,
            Ok(None) => return None,
            Err(overrun) => return Some(WatchEnd::Budget(overrun.to_string())),
        };
        if line.trim_ascii().is_empty() {
            continue;
        }
        match event(&line, origin) {
            Ok(item) => {
                if to.send(item).await.is_err() {
                    return Some(WatchEnd::Client);
                }
            }
            Err(reason) => return Some(WatchEnd::Broken(reason)),
        }
    }
}

/// The end of a stream that the server ended: in order, unless it stopped inside a line.
async fn last(lines: Lines, origin: Instant, to: &mpsc::Sender<Item>) -> WatchEnd {
    let rest = lines.rest();
    if rest.trim_ascii().is_empty() {
        return WatchEnd::Server;
    }
    // Clients that read JSON rather than lines see a complete event here; only a cut one is lost to them.
    match event(&rest, origin) {
        Ok(item) => {
            let _ = to.send(item).await;
            WatchEnd::Server
        }
        Err(reason) => WatchEnd::Broken(format!("the stream ended inside a line: {reason}")),
    }
}

fn event(line: &[u8], origin: Instant) -> Result<Item, String> {
    let at = origin.elapsed();
    let (value, fault) = json_of(line);
    let value = value.ok_or_else(|| {
        format!("a line is not JSON: {}; it starts {:?}", fault.clone().unwrap_or_default(), start(line))
    })?;
    let kind = value.get("type").and_then(Value::as_str);
    let object = value.get("object").filter(|object| object.is_object());
    match (kind, object) {
        (Some(kind), Some(object)) => {
            let event = WatchEvent { kind: kind.to_owned(), object: Arc::new(object.clone()), at };
            Ok(Item::Event(event, fault))
        }
        _ => Err(format!("a line is no event, which has a type and an object: {:?}", start(line))),
    }
}

/// Enough of a line to know it by; nothing of an object that stands in it, which may be a Secret.
fn start(line: &[u8]) -> String {
    let braces = line.iter().enumerate().filter(|(_, byte)| **byte == b'{');
    let shown = braces.map(|(at, _)| at + 1).nth(1).unwrap_or(line.len()).min(120);
    String::from_utf8_lossy(&line[..shown]).into_owned()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(r#"{"type":"ADDED","object":{"data":{"a":"b"#, r#"{"type":"ADDED","object":{"#)]
    #[case("<html>", "<html>")]
    #[case("", "")]
    fn a_line_is_shown_up_to_the_object_in_it(#[case] line: &str, #[case] expected: &str) {
        assert_eq!(start(line.as_bytes()), expected);
    }
}
