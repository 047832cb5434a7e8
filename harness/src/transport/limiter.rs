//! `--max-rps`: each request is given a turn, and waits for it once.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::exchange::Broken;

/// Hands out turns at a steady rate. Unused turns are not saved up: the promise is to the server.
#[derive(Debug)]
pub(super) struct Limiter {
    interval: Duration,
    next: Mutex<Option<Instant>>,
}

impl Limiter {
    pub(super) fn new(per_second: u32) -> Self {
        Self { interval: Duration::from_secs(1) / per_second.max(1), next: Mutex::new(None) }
    }

    /// Waits for a turn. A turn that lies behind the deadline is not taken.
    pub(super) async fn turn(&self, deadline: Instant) -> Result<(), Broken> {
        let turn = {
            let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
            let now = Instant::now();
            let turn = next.map_or(now, |next| next.max(now));
            if turn > deadline {
                return Err(Broken::connect(
                    "not sent: the limit on requests a second left no turn before the deadline",
                ));
            }
            *next = Some(turn + self.interval);
            turn
        };
        tokio::time::sleep_until(turn).await;
        Ok(())
    }
}
