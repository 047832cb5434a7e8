//! What is said about the end of a command: bytes on its error channel.
//!
//! Since the fourth version of the protocol a Status as JSON, which also says that all went well. Before that, the text of
//! what went wrong, and nothing otherwise. The fifth is answered by the API server in the place of the node, which shows in
//! an empty `metadata` and in one more wrapping of errors.

use serde::Serialize;
use serde_json::Value;

use super::Version;
use crate::runtime::Exit;
use crate::{Fault, Faults};

/// A Status with its fields in the order in which real servers write them.
#[derive(Debug, Default, Serialize)]
#[expect(clippy::struct_field_names, reason = "they are the fields of the type")]
struct Status {
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<Empty>,
    status: &'static str,
    #[serde(skip_serializing_if = "String::is_empty")]
    message: String,
    #[serde(skip_serializing_if = "str::is_empty")]
    reason: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<Details>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<u16>,
}

#[derive(Debug, Serialize)]
struct Empty {}

#[derive(Debug, Serialize)]
struct Details {
    causes: [Cause; 1],
}

#[derive(Debug, Serialize)]
struct Cause {
    #[serde(skip_serializing_if = "str::is_empty")]
    reason: &'static str,
    message: Value,
}

impl Status {
    fn internal_error(message: String) -> Self {
        Self { status: "Failure", message, reason: "InternalError", code: Some(500), ..Self::default() }
    }

    fn caused(mut self, reason: &'static str, message: impl Into<Value>) -> Self {
        self.details = Some(Details { causes: [Cause { reason, message: message.into() }] });
        self
    }

    fn render(mut self, version: Version) -> String {
        self.metadata = (version == Version::V5).then_some(Empty {});
        // Nothing in it can fail to be written as JSON.
        serde_json::to_string(&self).unwrap_or_default()
    }
}

/// What to write on the error channel; nothing at times.
pub(super) fn of_exit(version: Version, exit: &Exit, faults: Faults) -> Option<String> {
    match exit {
        Exit::Code(code) => of_code(version, *code, faults),
        Exit::Failed(why) => {
            of_failure(version, &format!("error executing command in container: {why}"), faults)
        }
    }
}

fn of_code(version: Version, code: i32, faults: Faults) -> Option<String> {
    if faults.on(Fault::StatusMissing) {
        return None;
    }
    let json = version.status_is_json() != faults.on(Fault::StatusInTheOtherForm);
    if code == 0 || faults.on(Fault::ExitCodeIgnored) {
        return json.then(|| Status { status: "Success", ..Status::default() }.render(version));
    }
    let code = if faults.on(Fault::ExitCodeOffByOne) { code + 1 } else { code };
    let message =
        format!("command terminated with non-zero exit code: command terminated with exit code {code}");
    if !json {
        return Some(message);
    }
    let reason = if faults.on(Fault::ExitReasonUnknown) { "InternalError" } else { "NonZeroExitCode" };
    let status = Status { status: "Failure", message, reason, ..Status::default() };
    let status = if faults.on(Fault::ExitCodeWithoutCause) {
        status
    } else if faults.on(Fault::ExitCodeAsNumber) {
        status.caused("ExitCode", code)
    } else {
        status.caused("ExitCode", code.to_string())
    };
    Some(status.render(version))
}

/// The command could not be started, or not be run to its end.
pub(super) fn of_failure(version: Version, why: &str, faults: Faults) -> Option<String> {
    if faults.on(Fault::StatusMissing) || faults.on(Fault::StartFailureUntold) {
        return None;
    }
    let message = format!("Internal error occurred: {why}");
    Some(match version {
        _ if !version.status_is_json() => message,
        Version::V5 => {
            let outer = format!("Internal error occurred: {message}");
            Status::internal_error(outer).caused("", message).render(version)
        }
        _ => Status::internal_error(message).render(version),
    })
}

/// The Status of a connection that was accepted for a node that refuses it.
pub(super) fn of_refusal(why: &str) -> String {
    let why = format!("unable to upgrade connection: {why}");
    Status::internal_error(format!("Internal error occurred: {why}")).caused("", why).render(Version::V5)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(Version::V5, 0, Some(r#"{"metadata":{},"status":"Success"}"#))]
    #[case(Version::V4, 0, Some(r#"{"status":"Success"}"#))]
    #[case(Version::V3, 0, None)]
    #[case(
        Version::V4,
        42,
        Some(r#"{"status":"Failure","message":"command terminated with non-zero exit code: command terminated with exit code 42","reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"42"}]}}"#)
    )]
    #[case(
        Version::V1,
        7,
        Some("command terminated with non-zero exit code: command terminated with exit code 7")
    )]
    fn the_end_of_a_command_as_a_real_server_tells_it(
        #[case] version: Version,
        #[case] code: i32,
        #[case] expected: Option<&str>,
    ) {
        assert_eq!(of_exit(version, &Exit::Code(code), Faults::none()).as_deref(), expected);
    }

    #[rstest]
    #[case(
        Version::V5,
        r#"{"metadata":{},"status":"Failure","message":"Internal error occurred: Internal error occurred: error executing command in container: runtime said no","reason":"InternalError","details":{"causes":[{"message":"Internal error occurred: error executing command in container: runtime said no"}]},"code":500}"#
    )]
    #[case(
        Version::V4,
        r#"{"status":"Failure","message":"Internal error occurred: error executing command in container: runtime said no","reason":"InternalError","code":500}"#
    )]
    #[case(Version::V2, "Internal error occurred: error executing command in container: runtime said no")]
    fn a_failure_as_a_real_server_tells_it(#[case] version: Version, #[case] expected: &str) {
        let exit = Exit::Failed("runtime said no".to_owned());
        assert_eq!(of_exit(version, &exit, Faults::none()).as_deref(), Some(expected));
    }

    #[test]
    fn a_refusal_behind_the_handshake_as_a_real_server_tells_it() {
        let expected = r#"{"metadata":{},"status":"Failure","message":"Internal error occurred: unable to upgrade connection: you must specify at least 1 of stdin, stdout, stderr","reason":"InternalError","details":{"causes":[{"message":"unable to upgrade connection: you must specify at least 1 of stdin, stdout, stderr"}]},"code":500}"#;
        assert_eq!(of_refusal("you must specify at least 1 of stdin, stdout, stderr"), expected);
    }
}
