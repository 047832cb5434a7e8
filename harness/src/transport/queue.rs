//! Sends one request at a time.

use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::Instant;

/// The turn of a request. Drop ends it.
pub(super) type Turn<'a> = SemaphorePermit<'a>;

/// Grants one turn at a time.
#[derive(Debug)]
pub(super) struct Queue {
    turns: Semaphore,
    /// The time of a request from its turn on.
    timeout: Duration,
}

impl Queue {
    pub(super) fn new(timeout: Duration) -> Self {
        Self { turns: Semaphore::new(1), timeout }
    }

    /// Waits for a turn. Returns it with the deadline of the request.
    pub(super) async fn turn(&self, deadline: Instant) -> (Option<Turn<'_>>, Instant) {
        // The semaphore is never closed.
        let turn = self.turns.acquire().await.ok();
        (turn, deadline.min(Instant::now() + self.timeout))
    }
}
