//! The report on the error channel about the end of a command.

use bytes::Bytes;
use kubeproof_streaming::remotecommand::Exit;
use kubeproof_streaming::remotecommand::Version;
use kubeproof_streaming::remotecommand::status::of_exit;
use serde_json::{Value, json};

use crate::behaviours::Fault;
use crate::middleware::Middleware;
use crate::streams::command::{ERROR, Edit, Event, STDOUT, output};
use crate::streams::{Flow, Session};

/// The start of the text of a failed command, before its exit code.
const FAILED: &str =
    "command terminated with non-zero exit code: command terminated with exit code ";
/// The start of the message of a rejection by the node.
const REJECTED: &str = "Internal error occurred: unable to upgrade connection";

/// The middleware of a fault of this file.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    Some(match fault {
        Fault::StatusMissing => {
            reports(|report| if is_rejection(&report) { Some(report) } else { None })
        }
        Fault::StatusInTheOtherForm => output(|session| Some(other_form(session))),
        Fault::ExitCodeIgnored => exits(|status| {
            let metadata = status.get("metadata").cloned();
            *status = json!({ "status": "Success" });
            if let Some(metadata) = metadata {
                status["metadata"] = metadata;
            }
        }),
        Fault::ExitCodeOffByOne => exits(|status| set_exit_code(status, 1)),
        Fault::ExitCodeAsNumber => exits(|status| {
            if let Some(code) = exit_code(status) {
                status["details"]["causes"][0]["message"] = code.into();
            }
        }),
        Fault::ExitCodeWithoutCause => exits(|status| {
            if let Some(status) = status.as_object_mut() {
                status.remove("details");
            }
        }),
        Fault::ExitReasonUnknown => exits(|status| status["reason"] = "InternalError".into()),
        Fault::StartFailureUnreported => reports(|report| match &report {
            Report::Status(status)
                if status["reason"] == "InternalError" && !is_rejection(&report) =>
            {
                None
            }
            Report::Text(text) if text.starts_with("Internal error occurred") => None,
            _ => Some(report),
        }),
        Fault::NodeRejectionUnreported => {
            reports(|report| if is_rejection(&report) { None } else { Some(report) })
        }
        Fault::SpdyStatusOnStdout => output(|session| {
            let moves = session.is_spdy() && session.query.flag("stdout");
            moves.then(|| {
                edited(|event| match event {
                    Event::Data(ERROR, bytes) => Event::Data(STDOUT, bytes),
                    event => event,
                })
            })
        }),
        _ => return None,
    })
}

fn edited(edit: fn(Event) -> Event) -> Edit {
    Box::new(move |event, out| {
        out.push(edit(event));
        Flow::Continue
    })
}

/// The content of the error channel: a Status since v4, text before.
enum Report {
    Status(Value),
    Text(String),
}

impl Report {
    fn parse(session: &Session, bytes: &[u8]) -> Self {
        let status = serde_json::from_slice(bytes).ok().filter(|_| has_statuses(session));
        status.map_or_else(|| Self::Text(String::from_utf8_lossy(bytes).into_owned()), Self::Status)
    }

    fn into_bytes(self) -> Bytes {
        match self {
            Self::Status(status) => status.to_string().into(),
            Self::Text(text) => text.into(),
        }
    }
}

fn has_statuses(session: &Session) -> bool {
    session.version >= 4
}

fn is_rejection(report: &Report) -> bool {
    let Report::Status(status) = report else { return false };
    status["message"].as_str().is_some_and(|message| message.starts_with(REJECTED))
}

/// Edits or drops reports.
fn reports<E>(edit: E) -> Box<dyn Middleware>
where
    E: Fn(Report) -> Option<Report> + Copy + Send + Sync + 'static,
{
    output(move |session| {
        let session = session.clone();
        Some(Box::new(move |event, out| {
            match event {
                Event::Data(ERROR, bytes) if !bytes.is_empty() => {
                    let report = edit(Report::parse(&session, &bytes));
                    out.extend(report.map(|report| Event::Data(ERROR, report.into_bytes())));
                }
                event => out.push(event),
            }
            Flow::Continue
        }))
    })
}

/// Edits the Status of commands that exited with a code other than 0, and its text in old versions.
fn exits(edit: fn(&mut Value)) -> Box<dyn Middleware> {
    reports(move |report| match report {
        Report::Status(mut status) => {
            if status["reason"] == "NonZeroExitCode" {
                edit(&mut status);
            }
            Some(Report::Status(status))
        }
        Report::Text(text) => {
            let Some(code) = exit_code_of_text(&text) else { return Some(Report::Text(text)) };
            let mut status = status_of(code);
            edit(&mut status);
            (status["status"] != "Success").then(|| Report::Text(text_of(&status)))
        }
    })
}

fn exit_code_of_text(text: &str) -> Option<i32> {
    text.strip_prefix(FAILED)?.trim().parse().ok()
}

/// The Status of an exit code.
fn status_of(code: i32) -> Value {
    let text = of_exit(Version::V4, &Exit::Code(code)).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

fn text_of(status: &Value) -> String {
    status["message"].as_str().unwrap_or_default().to_owned()
}

fn exit_code(status: &Value) -> Option<i32> {
    status.pointer("/details/causes/0/message")?.as_str()?.parse().ok()
}

fn set_exit_code(status: &mut Value, added: i32) {
    if let Some(code) = exit_code(status) {
        let code = code + added;
        status["details"]["causes"][0]["message"] = code.to_string().into();
        status["message"] = format!("{FAILED}{code}").into();
    }
}

/// Reports exits as text where a Status is due, and as a Status where text is due.
fn other_form(session: &Session) -> Edit {
    let session = session.clone();
    let mut reported = has_statuses(&session);
    Box::new(move |event, out| {
        match event {
            Event::Data(ERROR, bytes) if !bytes.is_empty() => {
                reported = true;
                let report = in_other_form(Report::parse(&session, &bytes));
                out.extend(report.map(|report| Event::Data(ERROR, report.into_bytes())));
            }
            Event::Over if !std::mem::replace(&mut reported, true) => {
                let success = status_of(0).to_string();
                out.extend([Event::Data(ERROR, success.into()), Event::Over]);
            }
            event => out.push(event),
        }
        Flow::Continue
    })
}

fn in_other_form(report: Report) -> Option<Report> {
    match report {
        Report::Status(status) if status["status"] == "Success" => None,
        Report::Status(status) if status["reason"] == "NonZeroExitCode" => {
            Some(Report::Text(text_of(&status)))
        }
        Report::Text(text) => match exit_code_of_text(&text) {
            Some(code) => Some(Report::Status(status_of(code))),
            None => Some(Report::Text(text)),
        },
        Report::Status(status) => Some(Report::Status(status)),
    }
}
