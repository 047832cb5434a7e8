//! Implements `--max-rps`.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::exchange::Broken;

/// Grants turns at a steady rate. Unused turns expire, because the limit protects the server.
#[derive(Debug)]
pub(super) struct Limiter {
    interval: Duration,
    next: Mutex<Option<Instant>>,
}

impl Limiter {
    pub(super) fn new(per_second: u32) -> Self {
        Self { interval: Duration::from_secs(1) / per_second.max(1), next: Mutex::new(None) }
    }

    /// Waits for a turn. Fails if it comes after the deadline.
    pub(super) async fn turn(&self, deadline: Instant) -> Result<(), Broken> {
        let turn = {
            let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
            let now = Instant::now();
            let turn = next.map_or(now, |next| next.max(now));
            if turn > deadline {
                return Err(Broken::not_sent(
                    "the request rate limit (--max-rps) allows no request before the deadline",
                ));
            }
            *next = Some(turn + self.interval);
            turn
        };
        tokio::time::sleep_until(turn).await;
        Ok(())
    }
}
