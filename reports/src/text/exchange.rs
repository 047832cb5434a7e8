//! An exchange as text.

use kubeproof_cases::plural;
use serde_json::Value;

use super::lines::Lines;
use super::{Limits, printable, shorten};
use crate::document::{ExchangeRecord, FrameRecord};
use crate::paint::Paint;

/// Returns an exchange with its headers and bodies.
pub(crate) fn exchange(exchange: &ExchangeRecord, limits: Limits, paint: Paint) -> String {
    let mut lines = Lines::new(limits, paint);
    lines.exchange(exchange);
    lines.text
}

/// Returns the method, the path and the user of a request.
pub(super) fn request_line(exchange: &ExchangeRecord) -> String {
    let identity = match exchange.identity.as_str() {
        "" | "admin" => String::new(),
        other => format!(" as {other}"),
    };
    format!("{} {}{identity}", exchange.method, printable(&exchange.target))
}

/// Returns a response in one line of at most `columns` characters of content.
pub(super) fn response_line(exchange: &ExchangeRecord, columns: usize) -> String {
    if let Some(broken) = &exchange.broken {
        return format!("no response: {}", printable(&shorten(broken, columns)));
    }
    let mut parts: Vec<String> = exchange.status.iter().map(u16::to_string).collect();
    if !exchange.response_body.is_empty() {
        parts.push(printable(&shorten(&one_line(&exchange.response_body), columns)));
    }
    if !exchange.events.is_empty() {
        let kinds: Vec<_> = exchange.events.iter().map(|event| event.kind.as_str()).collect();
        parts.push(printable(&shorten(&format!("events: {}", kinds.join(", ")), columns)));
    }
    if !exchange.frames.is_empty() {
        parts.push(plural(exchange.frames.len(), "frame"));
    }
    if let Some(end) = &exchange.end {
        parts.push(printable(&shorten(&format!("(end: {end})"), columns)));
    }
    parts.join(" ")
}

/// Returns the kind of a frame, its channel, its fields, its size and the beginning of its payload.
fn frame_line(frame: &FrameRecord) -> String {
    let channel = frame.channel.as_ref().map(|channel| format!(" {channel}")).unwrap_or_default();
    let detail = match &frame.detail {
        Value::Object(members) if !members.is_empty() => format!(" {}", frame.detail),
        _ => String::new(),
    };
    let size = if frame.from.is_empty() {
        String::new()
    } else {
        format!(", {}", plural(frame.size, "byte"))
    };
    let text = if frame.text.is_empty() { String::new() } else { format!(": {:?}", frame.text) };
    format!("{}{channel}{detail}{size}{text}", frame.kind)
}

/// Returns a body in one line. Of a Status, only its reason and message matter.
pub(super) fn one_line(body: &str) -> String {
    let Ok(value) = serde_json::from_str::<Value>(body) else {
        return body.split_whitespace().collect::<Vec<_>>().join(" ");
    };
    match (value["kind"].as_str(), value["reason"].as_str(), value["message"].as_str()) {
        (Some("Status"), Some(reason), Some(message)) => format!("{reason}: {message}"),
        (Some("Status"), None, Some(message)) => format!("Status: {message}"),
        _ => value.to_string(),
    }
}

impl Lines {
    /// Adds the first and the last frames of a stream, each in one line.
    pub(super) fn some_frames(&mut self, frames: &[FrameRecord]) {
        let left_out = frames.len().saturating_sub(2 * self.limits.lines);
        for (at, frame) in frames.iter().enumerate() {
            let place = at.checked_sub(self.limits.lines);
            if left_out > 0 && place == Some(0) {
                let more = plural(left_out, "more frame");
                self.line(1, &self.paint.dim(format!("         ... {more}")));
            }
            if left_out > 0 && place.is_some_and(|place| place < left_out) {
                continue;
            }
            let mark = self.paint.dim(if frame.from == "client" { "> " } else { "< " });
            let line = printable(&shorten(&frame_line(frame), self.limits.columns));
            self.line(1, &format!("         {mark}{line}"));
        }
    }

    pub(super) fn exchange(&mut self, exchange: &ExchangeRecord) {
        let step =
            if exchange.step.is_empty() { String::new() } else { format!("{}: ", exchange.step) };
        self.line(2, &format!("{step}{}", request_line(exchange)));
        for (name, value) in &exchange.request_headers {
            self.block(3, "> ", &format!("{name}: {value}"));
        }
        self.body("> ", &exchange.request_body);
        if let Some(status) = exchange.status {
            self.line(3, &format!("< {status} {}", exchange.http_version));
        }
        for (name, value) in &exchange.response_headers {
            self.block(3, "< ", &format!("{name}: {value}"));
        }
        self.body("< ", &exchange.response_body);
        if let Some(error) = &exchange.json_error {
            self.block(3, "< ", &format!("(invalid JSON: {error})"));
        }
        for event in &exchange.events {
            self.block(3, "< ", &format!("{} {}", event.kind, event.object));
        }
        for frame in &exchange.frames {
            self.frame(frame);
        }
        if let Some(end) = &exchange.end {
            let what = if exchange.frames.is_empty() { "watch" } else { "stream" };
            self.block(3, "< ", &format!("(end of the {what}: {end})"));
        }
        if let Some(broken) = &exchange.broken {
            self.block(3, "< ", &format!("(no response: {broken})"));
        }
    }

    fn frame(&mut self, frame: &FrameRecord) {
        let mark = if frame.from == "client" { "> " } else { "< " };
        self.block(3, mark, &frame_line(frame));
    }

    fn body(&mut self, mark: &str, body: &str) {
        if body.is_empty() {
            return;
        }
        if self.limits.lines == usize::MAX {
            self.block(3, mark, body);
            return;
        }
        let columns = self.limits.columns;
        let text = match serde_json::from_str::<Value>(body) {
            Ok(value) if value.to_string().len() <= columns => value.to_string(),
            Ok(value) => format!("{value:#}"),
            Err(_) => body.to_owned(),
        };
        self.block(3, mark, &text);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn frame(from: &str, text: &str) -> FrameRecord {
        FrameRecord {
            from: from.to_owned(),
            kind: "binary".to_owned(),
            channel: Some("stdout".to_owned()),
            size: text.len(),
            text: text.to_owned(),
            detail: Value::Null,
            at_ms: 0.0,
        }
    }

    #[test]
    fn a_long_stream_shows_its_first_and_its_last_frames() {
        let frames: Vec<_> = ["a", "b", "c", "d", "e", "f"]
            .into_iter()
            .zip(["client", "server"].into_iter().cycle())
            .map(|(text, from)| frame(from, text))
            .collect();
        let mut lines = Lines::new(Limits { lines: 2, columns: 99 }, Paint::new(false));
        lines.some_frames(&frames);
        let shown: Vec<_> = lines.text.lines().map(str::trim).collect();
        assert_eq!(
            shown,
            [
                r#"> binary stdout, 1 byte: "a""#,
                r#"< binary stdout, 1 byte: "b""#,
                "... 2 more frames",
                r#"> binary stdout, 1 byte: "e""#,
                r#"< binary stdout, 1 byte: "f""#,
            ]
        );
    }
}
