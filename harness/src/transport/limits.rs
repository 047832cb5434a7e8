//! The limits of a client.

use std::time::Duration;

/// Limits on responses and on the request rate.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Bytes of an ordinary body.
    pub max_body: usize,
    /// Memory of all large responses and watch events together.
    pub max_held: usize,
    /// Bytes of an event of a watch.
    pub max_event: usize,
    /// Bytes of a watch.
    pub max_watch_bytes: usize,
    /// Requests per second.
    pub max_rps: Option<u32>,
    /// Time limit of a connection, including TLS. It is shorter than request deadlines, so that an
    /// unreachable server differs from one that hangs.
    pub connect_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_body: 32 << 20,
            max_held: 96 << 20,
            max_event: 8 << 20,
            max_watch_bytes: 32 << 20,
            max_rps: None,
            connect_timeout: Duration::from_secs(10),
        }
    }
}
