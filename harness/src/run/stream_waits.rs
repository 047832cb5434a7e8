//! Steps that wait for data on streams and for their end.

use kubeproof_cases::case::{Arrival, Finish, Receiving};
use kubeproof_cases::pattern::TextPattern;
use serde_json::{Value, json};

use super::scope::{Ended, Flow, Scope};
use super::stream_data::{arrived, seen};
use crate::exchange::{StreamEnd, Transcript};
use crate::transport::stream::WaitOutcome;
use crate::values::Undefined;
use crate::verdict::{describe, noun_in_words, short, text_in_words};

impl Scope<'_> {
    pub(super) async fn receive_on_stream(&mut self, receiving: &Receiving) -> Flow {
        let (id, open) = (&receiving.stream, self.stream(&receiving.stream)?);
        let mut undefined = None;
        let (until, values) = (&receiving.until, &self.values);
        let mut timeout = self.timeout();
        let waited = open
            .wait(&mut timeout, |transcript, seen| match arrived(until, transcript, seen, values) {
                Ok(true) => Some(()),
                Ok(false) => None,
                Err(error) => {
                    undefined = Some(error);
                    Some(())
                }
            })
            .await;
        self.deadline = timeout.deadline;
        if let Some(undefined) = undefined {
            return Err(self.undefined(&receiving.id, &undefined));
        }
        self.refresh_stream(id, &open);
        let mut check = self.stream_check(&receiving.id, id, &open);
        check.expected = self.awaited(until).unwrap_or_default();
        if waited == WaitOutcome::Arrived(()) {
            self.pass(check);
            return Ok(());
        }
        let snapshot = open.snapshot();
        let transcript =
            snapshot.response().and_then(|response| response.stream.clone()).unwrap_or_default();
        let mut also = "";
        if let WaitOutcome::TimedOut(why) = waited {
            (check.verdict, also) = self.timed_out(why, check.level).await;
        }
        check.actual = seen(until, &transcript);
        let why = in_words(&waited, &transcript);
        let awaited = self.awaited_in_words(until).unwrap_or_default();
        check.message = format!("{awaited} not arrive: {why}{also}");
        self.record.check(check);
        Err(Ended)
    }

    /// Returns what a step waits for, for reports.
    fn awaited(&self, until: &Arrival) -> Result<Value, Undefined> {
        Ok(match until {
            Arrival::Text { channel, text } => json!({channel: text_in_words(text, &self.values)?}),
            Arrival::Bytes { channel, bytes } => json!({channel: format!("{bytes} bytes")}),
            Arrival::End { channel } => json!({channel: "its end"}),
            Arrival::Frame(pattern) => json!({"frame": describe(pattern, &self.values)?}),
        })
    }

    /// Returns the start of a message about missing data, such as `a byte on stdout does`.
    fn awaited_in_words(&self, until: &Arrival) -> Result<String, Undefined> {
        Ok(match until {
            Arrival::Text { channel, text: TextPattern::Equal(text) } => {
                format!("{} on {channel} does", short(&json!(self.values.render(text)?)))
            }
            Arrival::Text { channel, text } => {
                format!("{} on {channel} does", text_in_words(text, &self.values)?)
            }
            Arrival::Bytes { channel, bytes: 1 } => format!("a byte on {channel} does"),
            Arrival::Bytes { channel, bytes } => format!("{bytes} bytes on {channel} do"),
            Arrival::End { channel } => format!("the end of the channel {channel} does"),
            Arrival::Frame(pattern) => {
                format!("{} does", noun_in_words("a frame", pattern, &self.values)?)
            }
        })
    }

    pub(super) async fn finish_stream(&mut self, finish: &Finish) -> Flow {
        let (id, open) = (&finish.stream, self.stream(&finish.stream)?);
        if open.is_open() {
            let mut timeout = self.timeout();
            let waited = open.finish(&mut timeout).await;
            self.deadline = timeout.deadline;
            let mut check = self.stream_check(&finish.id, id, &open);
            check.expected = json!("the server ends the stream");
            let snapshot = open.snapshot();
            let transcript = snapshot
                .response()
                .and_then(|response| response.stream.clone())
                .unwrap_or_default();
            match &waited {
                WaitOutcome::Arrived(StreamEnd::Server) => self.pass(check),
                WaitOutcome::Arrived(StreamEnd::Dropped(_)) if finish.dropped => self.pass(check),
                waited => {
                    let mut also = "";
                    if let WaitOutcome::TimedOut(why) = waited {
                        (check.verdict, also) = self.timed_out(*why, check.level).await;
                    }
                    check.actual = broken_code(&transcript);
                    let why = in_words(waited, &transcript);
                    check.message = format!("the stream does not end: {why}{also}");
                    self.record.check(check);
                }
            }
            open.hang_up();
        }
        self.refresh_stream(id, &open);
        self.judge(&finish.expect, id, None, &[]);
        Ok(())
    }
}

/// Returns the code of a framing error, for reports.
fn broken_code(transcript: &Transcript) -> Value {
    match &transcript.end {
        Some(StreamEnd::Broken(error)) => json!({"code": error.code()}),
        _ => Value::Null,
    }
}

fn in_words<T>(waited: &WaitOutcome<T>, transcript: &Transcript) -> String {
    match (waited, &transcript.end) {
        (WaitOutcome::TimedOut(why), _) => why.to_string(),
        (_, Some(StreamEnd::Server)) => "the server ended the stream".to_owned(),
        (_, Some(StreamEnd::Client)) => "the client hung up".to_owned(),
        (_, Some(StreamEnd::Dropped(why))) => {
            format!("the connection ended without a close: {why}")
        }
        (_, Some(StreamEnd::Broken(why))) => format!("the data is invalid: {why}"),
        (_, None) => match transcript.violations.first() {
            Some(violation) => violation.clone(),
            None => "the stream was not opened".to_owned(),
        },
    }
}
