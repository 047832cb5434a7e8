//! The exit status of a command on its error channel.
//!
//! Since v4 it is a JSON Status, also for success. Before, it is the text of the failure, and a
//! success has none. With v5, kube-apiserver responds in place of the node. The Status then has an
//! empty `metadata`, and errors are wrapped once more.

use serde::Serialize;

use super::{Exit, Version};

/// A Status with its fields in the order of kube-apiserver.
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
    message: String,
}

impl Status {
    fn internal_error(message: String) -> Self {
        Self {
            status: "Failure",
            message,
            reason: "InternalError",
            code: Some(500),
            ..Self::default()
        }
    }

    fn with_cause(mut self, reason: &'static str, message: String) -> Self {
        self.details = Some(Details { causes: [Cause { reason, message }] });
        self
    }

    fn render(mut self, version: Version) -> String {
        self.metadata = (version == Version::V5).then_some(Empty {});
        // All fields are strings and numbers, so this cannot fail.
        serde_json::to_string(&self).unwrap_or_default()
    }
}

/// Returns the status of a command that was started. Before v4, a success has none.
pub fn of_exit(version: Version, exit: &Exit) -> Option<String> {
    match exit {
        Exit::Code(code) => of_code(version, *code),
        Exit::Failed(reason) => {
            Some(of_failure(version, &format!("error executing command in container: {reason}")))
        }
    }
}

fn of_code(version: Version, code: i32) -> Option<String> {
    let json = version.status_is_json();
    if code == 0 {
        return json.then(|| Status { status: "Success", ..Status::default() }.render(version));
    }
    let message = format!(
        "command terminated with non-zero exit code: command terminated with exit code {code}"
    );
    if !json {
        return Some(message);
    }
    let status =
        Status { status: "Failure", message, reason: "NonZeroExitCode", ..Status::default() };
    Some(status.with_cause("ExitCode", code.to_string()).render(version))
}

/// Returns the status of a command that did not start, or did not run to its end.
pub fn of_failure(version: Version, reason: &str) -> String {
    let message = format!("Internal error occurred: {reason}");
    match version {
        _ if !version.status_is_json() => message,
        Version::V5 => {
            let outer = format!("Internal error occurred: {message}");
            Status::internal_error(outer).with_cause("", message).render(version)
        }
        _ => Status::internal_error(message).render(version),
    }
}

/// Returns the status of a v5 connection that the node rejects after the handshake.
pub fn of_rejection(reason: &str) -> String {
    let reason = format!("unable to upgrade connection: {reason}");
    let status = Status::internal_error(format!("Internal error occurred: {reason}"));
    status.with_cause("", reason).render(Version::V5)
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
        Some(concat!(
            r#"{"status":"Failure","message":"command terminated with non-zero exit code: "#,
            r#"command terminated with exit code 42","reason":"NonZeroExitCode","#,
            r#""details":{"causes":[{"reason":"ExitCode","message":"42"}]}}"#
        ))
    )]
    #[case(
        Version::V1,
        7,
        Some("command terminated with non-zero exit code: command terminated with exit code 7")
    )]
    fn exit_codes_match_those_of_kube_apiserver(
        #[case] version: Version,
        #[case] code: i32,
        #[case] expected: Option<&str>,
    ) {
        assert_eq!(of_exit(version, &Exit::Code(code)).as_deref(), expected);
    }

    #[rstest]
    #[case(
        Version::V5,
        concat!(
            r#"{"metadata":{},"status":"Failure","message":"Internal error occurred: "#,
            r#"Internal error occurred: error executing command in container: runtime said no","#,
            r#""reason":"InternalError","details":{"causes":[{"message":"#,
            r#""Internal error occurred: error executing command in container: "#,
            r#"runtime said no"}]},"code":500}"#
        )
    )]
    #[case(
        Version::V4,
        concat!(
            r#"{"status":"Failure","message":"Internal error occurred: "#,
            r#"error executing command in container: runtime said no","#,
            r#""reason":"InternalError","code":500}"#
        )
    )]
    #[case(
        Version::V2,
        "Internal error occurred: error executing command in container: runtime said no"
    )]
    fn failures_match_those_of_kube_apiserver(#[case] version: Version, #[case] expected: &str) {
        let exit = Exit::Failed("runtime said no".to_owned());
        assert_eq!(of_exit(version, &exit).as_deref(), Some(expected));
    }

    #[test]
    fn rejections_match_those_of_kube_apiserver() {
        let expected = concat!(
            r#"{"metadata":{},"status":"Failure","message":"Internal error occurred: "#,
            r#"unable to upgrade connection: you must specify at least 1 of stdin, stdout, "#,
            r#"stderr","reason":"InternalError","details":{"causes":[{"message":"unable to "#,
            r#"upgrade connection: you must specify at least 1 of stdin, stdout, stderr"}]},"#,
            r#""code":500}"#
        );
        assert_eq!(of_rejection("you must specify at least 1 of stdin, stdout, stderr"), expected);
    }
}
