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
        let channel =
            frame.channel.as_ref().map(|channel| format!(" {channel}")).unwrap_or_default();
        let detail = match &frame.detail {
            Value::Object(members) if !members.is_empty() => format!(" {}", frame.detail),
            _ => String::new(),
        };
        let size = if frame.from.is_empty() {
            String::new()
        } else {
            format!(", {}", plural(frame.size, "byte"))
        };
        let text =
            if frame.text.is_empty() { String::new() } else { format!(": {:?}", frame.text) };
        self.block(3, mark, &format!("{}{channel}{detail}{size}{text}", frame.kind));
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
