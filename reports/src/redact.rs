//! Takes out what must not be seen before any report sees it.
//!
//! Three things are secret: the run's own tokens, wherever they turn up; the headers that carry credentials; and the
//! data of Secrets and the tokens of reviews, in bodies, in checks, and in texts made from them. A run reads Secrets that
//! are not its own when it lists all namespaces, so even the suite's harmless ones are treated alike.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use kubeproof_cases::case::Identity;
use kubeproof_harness::event::{CaseResult, CheckResult, NamedExchange, Verdict};
use kubeproof_harness::exchange::{Outcome, Received, WatchEnd};
use kubeproof_harness::json;
use kubeproof_harness::transport::Secrets;
use serde_json::Value;

use kubeproof_harness::stream::{Frame, StreamEnd, Transcript};

use crate::document::{CheckRecord, EventRecord, ExchangeRecord, FrameRecord, Record, milliseconds};

/// What stands in the place of a secret.
pub const REDACTED: &str = "[redacted]";

/// Shorter values stay in free text, where they would blot out ordinary words; in structured data they never do.
const SHORTEST_IN_TEXT: usize = 4;

/// A secret shorter than this is taken for one only where it stands alone: with the token `admin`, an
/// `administrator` is no leak, and a report that says so is still to be read.
const SHORTEST_IN_WORDS: usize = 8;

/// Events of a watch that are shown.
const EVENTS: usize = 1000;

/// Frames of a stream that are shown, of its beginning and of its end.
const FRAMES: usize = 100;

/// Bytes of a frame that are shown where they are no text.
const HEX: usize = 32;

const HEADERS: [&str; 4] = ["authorization", "proxy-authorization", "cookie", "set-cookie"];

/// How raw JSON and YAML, also quoted, come to what is secret in a Secret.
const RAW_DATA: [&str; 6] =
    ["data\":", "stringData\":", "data\\\":", "stringData\\\":", "\ndata:", "\nstringData:"];

const QUOTED_DATA: [&str; 2] = ["data\\\":", "stringData\\\":"];

const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Knows what is secret in this run.
#[derive(Clone, Debug, Default)]
pub struct Redactor {
    tokens: Secrets,
}

impl Redactor {
    /// Hides these tokens, those that are learned later too, and everything that is secret in any run.
    pub fn new(tokens: Secrets) -> Self {
        Self { tokens }
    }

    /// A text without the run's tokens.
    pub fn text(&self, text: &str) -> String {
        self.tokens.forms().iter().fold(text.to_owned(), |text, token| hide(&text, token))
    }

    /// A result as reports may see it. Exchanges are kept for remarkable results, or for all.
    pub(crate) fn record(&self, result: &CaseResult, every_exchange: bool) -> Record {
        let mut pass =
            Pass { tokens: self.tokens.forms(), secret: is_about_secrets(result), found: BTreeSet::new() };
        let wanted = every_exchange
            || pass.secret
            || result.known.is_some()
            || !matches!(result.verdict, Verdict::Pass | Verdict::Skip);
        let mut exchanges = Vec::new();
        if wanted {
            exchanges = result.exchanges.iter().map(|named| pass.exchange(named)).collect();
        }
        let mut checks: Vec<_> = result.checks.iter().map(|check| pass.check(check)).collect();
        // Only now is every secret value known that a text could repeat.
        let mut reason = result.reason.clone();
        pass.cut(&mut reason);
        pass.texts(std::iter::once(&mut reason));
        for check in &mut checks {
            pass.cut(&mut check.message);
            pass.cut_values(&mut check.actual);
            if let Some(diff) = &mut check.diff {
                pass.cut_lines(diff);
            }
            pass.values([&mut check.expected, &mut check.actual]);
            pass.texts(check.places.iter_mut().flat_map(|place| [&mut place.at, &mut place.message]));
            pass.texts(
                [Some(&mut check.message), check.diff.as_mut(), check.curl.as_mut(), check.means.as_mut()]
                    .into_iter()
                    .flatten(),
            );
        }
        for exchange in &mut exchanges {
            for text in
                [&mut exchange.end, &mut exchange.broken, &mut exchange.json_fault].into_iter().flatten()
            {
                pass.cut(text);
            }
            pass.texts(
                [Some(&mut exchange.target), exchange.broken.as_mut(), exchange.json_fault.as_mut()]
                    .into_iter()
                    .flatten(),
            );
            pass.texts([&mut exchange.request_body, &mut exchange.response_body]);
            pass.texts(exchange.request_headers.iter_mut().map(|(_, value)| value));
            pass.texts(exchange.response_headers.iter_mut().map(|(_, value)| value));
            pass.values(exchange.events.iter_mut().map(|event| &mut event.object));
            pass.texts(exchange.frames.iter_mut().map(|frame| &mut frame.text));
            pass.values(exchange.frames.iter_mut().map(|frame| &mut frame.detail));
        }
        Record {
            id: result.id.clone(),
            subject: result.subject.clone(),
            level: result.level,
            requirements: result.requirements.clone(),
            verdict: result.verdict,
            reason: one_line(&reason),
            duration_ms: milliseconds(result.duration),
            checks,
            summary: result.summary.clone(),
            why: result.why.clone(),
            known: result.known.clone(),
            exchanges,
        }
    }
}

/// A case that touches Secrets: all `data` in it is secret, also in bodies that name no kind, such as patches.
fn is_about_secrets(result: &CaseResult) -> bool {
    result.subject.split('.').next() == Some("secrets")
        || result.exchanges.iter().any(|named| {
            let path = named.exchange.request.target.split('?').next().unwrap_or_default();
            path.split('/').any(|segment| segment == "secrets")
        })
}

/// The redaction of one result.
struct Pass {
    tokens: Arc<[String]>,
    secret: bool,
    found: BTreeSet<String>,
}

impl Pass {
    fn check(&mut self, check: &CheckResult) -> CheckRecord {
        let mut record = CheckRecord {
            id: check.id.clone(),
            verdict: check.verdict,
            expected: check.expected.clone(),
            actual: check.actual.clone(),
            places: check.places.clone(),
            level: check.level,
            requirements: check.requirements.clone(),
            message: one_line(&check.message),
            means: check.means.clone(),
            diff: check.diff.clone(),
            curl: check.curl.clone(),
            step: check.step.clone(),
        };
        self.strip(&mut record.expected);
        self.strip(&mut record.actual);
        record
    }

    fn exchange(&mut self, named: &NamedExchange) -> ExchangeRecord {
        let exchange = &named.exchange;
        let mut record = ExchangeRecord {
            step: named.step.clone(),
            method: exchange.request.method.clone(),
            target: exchange.request.target.clone(),
            identity: identity(exchange.request.identity).to_owned(),
            request_headers: headers(&exchange.request.headers),
            request_body: self.body(&exchange.request.body, None),
            started_ms: milliseconds(exchange.started),
            took_ms: milliseconds(exchange.took),
            ..ExchangeRecord::default()
        };
        match &exchange.outcome {
            Outcome::Answered(received) => self.answer(received, &mut record),
            Outcome::Broken(broken) => record.broken = Some(broken.message.clone()),
        }
        record
    }

    fn answer(&mut self, received: &Received, record: &mut ExchangeRecord) {
        record.status = Some(received.status);
        received.version.clone_into(&mut record.http_version);
        record.response_headers = headers(&received.headers);
        record.response_body = self.body(&received.body, received.json.as_deref());
        record.json_fault.clone_from(&received.json_fault);
        for (at, event) in received.events.iter().enumerate() {
            // All of them are searched for what is secret; a copy of each is more than anybody reads.
            let mut object = Value::clone(&event.object);
            self.strip(&mut object);
            if at < EVENTS {
                record.events.push(EventRecord {
                    kind: event.kind.clone(),
                    object,
                    at_ms: milliseconds(event.at),
                });
            }
        }
        if let Some(more) = received.events.len().checked_sub(EVENTS).filter(|more| *more > 0) {
            record.events.push(EventRecord {
                kind: format!("({more} more events)"),
                object: Value::Null,
                at_ms: 0.0,
            });
        }
        record.end = received.end.as_ref().map(|end| match end {
            WatchEnd::Server => "the server ended it".to_owned(),
            WatchEnd::Client => "the client hung up".to_owned(),
            WatchEnd::Broken(why) => format!("broken: {why}"),
            WatchEnd::Budget(why) => format!("cut off: {why}"),
        });
        if let Some(stream) = &received.stream {
            self.stream(stream, record);
        }
    }

    fn stream(&self, stream: &Transcript, record: &mut ExchangeRecord) {
        let frames = &stream.frames;
        let left_out = frames.len().saturating_sub(2 * FRAMES);
        let first = frames.len().min(FRAMES + usize::from(left_out == 0) * FRAMES);
        record.frames = frames[..first].iter().map(|frame| self.frame(frame)).collect();
        if left_out + stream.omitted > 0 {
            record.frames.push(FrameRecord {
                from: String::new(),
                kind: format!("({} more frames)", left_out + stream.omitted),
                channel: None,
                size: 0,
                text: String::new(),
                detail: Value::Null,
                at_ms: 0.0,
            });
            record.frames.extend(frames[first + left_out..].iter().map(|frame| self.frame(frame)));
        }
        record.end = stream.end.as_ref().map(|end| match end {
            StreamEnd::Server => "the server ended it".to_owned(),
            StreamEnd::Client => "the client hung up".to_owned(),
            StreamEnd::Dropped(why) => format!("the connection ended without a close: {why}"),
            StreamEnd::Broken(why) => format!("broken: {why}"),
        });
    }

    fn frame(&self, frame: &Frame) -> FrameRecord {
        let hide = self.secret && !frame.start.is_empty();
        FrameRecord {
            from: if frame.from_server { "server" } else { "client" }.to_owned(),
            kind: frame.kind.clone(),
            channel: frame.channel.clone(),
            size: frame.size,
            text: if hide { REDACTED.to_owned() } else { readable(&frame.start) },
            detail: Value::Object(frame.detail.clone()),
            at_ms: milliseconds(frame.at),
        }
    }

    fn body(&mut self, body: &Bytes, json: Option<&Value>) -> String {
        let Ok(text) = std::str::from_utf8(body) else {
            return format!("({} bytes that are no UTF-8)", body.len());
        };
        let parsed = json.cloned().or_else(|| Some(json::read(body).ok()?.into_value()));
        let Some(mut value) = parsed else {
            // What is no JSON cannot be searched for the data of a Secret.
            let hide = self.secret && !text.is_empty();
            return if hide { format!("{REDACTED} ({} bytes)", text.len()) } else { text.to_owned() };
        };
        if self.strip(&mut value) { value.to_string() } else { text.to_owned() }
    }

    /// Takes secrets out of a value, and remembers them. Whether there was one.
    fn strip(&mut self, value: &mut Value) -> bool {
        let before = self.found.len();
        let mut stripped = false;
        self.walk(value, self.secret, &mut stripped);
        stripped || self.found.len() > before
    }

    fn walk(&mut self, value: &mut Value, secret: bool, stripped: &mut bool) {
        match value {
            Value::Array(items) => items.iter_mut().for_each(|item| self.walk(item, secret, stripped)),
            Value::Object(members) => {
                let kind = members.get("kind").and_then(Value::as_str).unwrap_or_default();
                let secret = secret || matches!(kind, "Secret" | "SecretList");
                let review = matches!(kind, "TokenReview" | "TokenRequest");
                let patched = members
                    .get("path")
                    .and_then(Value::as_str)
                    .is_some_and(|path| path.starts_with("/data") || path.starts_with("/stringData"));
                for (key, member) in members.iter_mut() {
                    let hide = match key.as_str() {
                        "data" | "stringData" | LAST_APPLIED => secret,
                        "value" => secret && patched,
                        "status" | "spec" if review => {
                            if let Some(token) = member.get_mut("token") {
                                self.blot(token, stripped);
                            }
                            false
                        }
                        _ => false,
                    };
                    if hide { self.blot(member, stripped) } else { self.walk(member, secret, stripped) }
                }
            }
            _ => {}
        }
    }

    fn blot(&mut self, value: &mut Value, stripped: &mut bool) {
        match value {
            Value::String(text) => {
                *stripped = true;
                let text = std::mem::replace(text, REDACTED.to_owned());
                if text.len() >= SHORTEST_IN_TEXT && text != REDACTED {
                    self.found.insert(text);
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.blot(item, stripped)),
            Value::Object(members) => members.values_mut().for_each(|member| self.blot(member, stripped)),
            _ => {}
        }
    }

    /// Ends a text of a case about Secrets where raw JSON or YAML in it comes to the data: a part of a body, perhaps no sound
    /// one, in which values cannot be told.
    fn cut(&self, text: &mut String) {
        let data = RAW_DATA.iter().filter_map(|key| text.find(key)).min().filter(|_| self.secret);
        if let Some(data) = data {
            text.truncate(data);
            text.push_str(REDACTED);
        }
    }

    /// The same in each line of a difference, where what is not quoted is structured data, and is known.
    fn cut_lines(&self, text: &mut String) {
        if self.secret && QUOTED_DATA.iter().any(|key| text.contains(key)) {
            let cut = |line: &str| {
                let mut line = line.to_owned();
                if QUOTED_DATA.iter().any(|key| line.contains(key)) {
                    self.cut(&mut line);
                }
                line
            };
            *text = text.lines().map(cut).collect::<Vec<_>>().join("\n");
        }
    }

    fn cut_values(&self, value: &mut Value) {
        match value {
            Value::String(text) => self.cut(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.cut_values(item)),
            Value::Object(members) => members.values_mut().for_each(|member| self.cut_values(member)),
            _ => {}
        }
    }

    fn texts<'a>(&self, texts: impl IntoIterator<Item = &'a mut String>) {
        for text in texts {
            for secret in self.tokens.iter().chain(&self.found) {
                if text.contains(secret.as_str()) {
                    *text = hide(text, secret);
                }
            }
        }
    }

    fn values<'a>(&self, values: impl IntoIterator<Item = &'a mut Value>) {
        for value in values {
            match value {
                Value::String(text) => self.texts([text]),
                Value::Array(items) => self.values(items),
                Value::Object(members) => {
                    if members.keys().any(|name| self.tells(name)) {
                        let named = std::mem::take(members).into_iter().map(|(mut name, value)| {
                            self.texts([&mut name]);
                            (name, value)
                        });
                        *members = named.collect();
                    }
                    self.values(members.values_mut());
                }
                _ => {}
            }
        }
    }

    fn tells(&self, text: &str) -> bool {
        self.tokens.iter().chain(&self.found).any(|secret| text.contains(secret.as_str()))
    }
}

/// A text with a secret blotted out.
fn hide(text: &str, secret: &str) -> String {
    if secret.len() >= SHORTEST_IN_WORDS {
        return text.replace(secret, REDACTED);
    }
    let mut hidden = String::with_capacity(text.len());
    let mut rest = 0;
    for (start, found) in text.match_indices(secret) {
        let end = start + found.len();
        let alone = !text[..start].ends_with(char::is_alphanumeric)
            && !text[end..].starts_with(char::is_alphanumeric);
        if alone {
            hidden.push_str(&text[rest..start]);
            hidden.push_str(REDACTED);
            rest = end;
        }
    }
    hidden.push_str(&text[rest..]);
    hidden
}

fn headers(headers: &[(String, String)]) -> Vec<(String, String)> {
    let hide = |name: &str| HEADERS.iter().any(|secret| name.eq_ignore_ascii_case(secret));
    headers
        .iter()
        .map(|(name, value)| (name.clone(), if hide(name) { REDACTED.to_owned() } else { value.clone() }))
        .collect()
}

fn identity(identity: Identity) -> &'static str {
    match identity {
        Identity::Admin => "admin",
        Identity::Second => "second",
        Identity::Anonymous => "anonymous",
        Identity::Invalid => "invalid",
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The beginning of a frame: text where it is text, else bytes in hexadecimal.
fn readable(bytes: &[u8]) -> String {
    let whole = match std::str::from_utf8(bytes) {
        Ok(_) => bytes.len(),
        // What was cut inside of a character is text up to there.
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        Err(_) => {
            let hex: Vec<String> = bytes.iter().take(HEX).map(|byte| format!("{byte:02x}")).collect();
            return hex.join(" ");
        }
    };
    String::from_utf8_lossy(&bytes[..whole]).into_owned()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(
        r#"got "{\"kind\":\"Secret\",\"data\":{\"a\":\"aHVu""#,
        r#"got "{\"kind\":\"Secret\",\"[redacted]"#
    )]
    #[case(r#"{"items":[{"stringData":{"a":"hunt"#, r#"{"items":[{"[redacted]"#)]
    #[case("kind: Secret\ndata:\n  a: aHVu", "kind: Secret[redacted]")]
    #[case("expected a list of metadata, got data", "expected a list of metadata, got data")]
    fn raw_text_ends_where_the_data_of_a_secret_begins(#[case] text: &str, #[case] expected: &str) {
        for (secret, expected) in [(true, expected), (false, text)] {
            let pass = Pass { tokens: [].into(), secret, found: BTreeSet::new() };
            let mut value = Value::Array(vec![text.into()]);
            pass.cut_values(&mut value);
            assert_eq!(value[0], expected);
        }
    }

    #[test]
    fn a_short_token_is_hidden_where_it_stands_alone() {
        let redactor = Redactor::new(["t", "a-long-token"].map(str::to_owned).into_iter().collect());
        assert_eq!(
            redactor.text("Bearer t, expected text with a-long-tokens; t"),
            "Bearer [redacted], expected text with [redacted]s; [redacted]"
        );
    }
}
