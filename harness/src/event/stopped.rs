//! Why a run ended before all of its cases ran.

use std::fmt::{self, Display, Formatter};

use serde::{Deserialize, Serialize};

/// Why a run stopped, when, and after which request.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Stopped {
    /// The behaviour of the server.
    pub reason: StopReason,
    /// The time when this began, as RFC 3339 in UTC.
    pub since: String,
    /// The last request with a response before that, such as `GET /api/v1/pods`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

/// The behaviour of a server that stops a run.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StopReason {
    /// It refuses connections.
    Refused,
    /// It accepts requests of any kind, and sends no response in time.
    Silent,
    /// It sends no response to creates in time.
    CreatesHang,
}

impl Display for Stopped {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let what = match self.reason {
            StopReason::Refused => "the server refuses connections",
            StopReason::Silent => "the server sends no response in time",
            StopReason::CreatesHang => "the server sends no response to creates in time",
        };
        write!(f, "{what} since {}", self.since)?;
        match &self.after {
            Some(request) => write!(f, ", after {request}"),
            None => Ok(()),
        }
    }
}
