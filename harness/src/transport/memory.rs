//! Limits the memory of all responses together.
//!
//! A limit per body does not limit a run: many requests are concurrent, and responses stay until
//! their case is judged. Therefore each response that is not small reserves memory, and releases it
//! on drop. Without free memory it waits until its deadline.
//!
//! A small reservation may overtake a larger one that waits, because finished cases release memory.
//! If all reserved memory belongs to waiting responses, they would wait for each other. So the last
//! one may exceed the limit. Long lines of watches take turns. Bodies do not, because over HTTP/2
//! an unread body blocks others on its connection.
//!
//! Cases that keep one response and wait for the next can block each other, too. So a run starts no
//! case while less than half of the memory is free. After a standstill, one reservation may exceed
//! the limit. All together never exceed twice the limit: a response that must wait then, while all
//! others wait, fails.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Mutex as Turn, Notify, OwnedMutexGuard};
use tokio::time::timeout;

use super::documents::Documents;

/// Time without a release after which a reservation may exceed the limit.
const STANDSTILL: Duration = Duration::from_secs(1);

/// Minimum growth of a reservation.
pub(super) const STEP: usize = 64 << 10;

/// Bytes without a reservation. There are thousands of small responses.
pub(super) const SMALL: usize = 16 << 10;

/// Length of a line that needs a turn.
const LONG: usize = 256 << 10;

/// The memory of all responses of a client.
#[derive(Clone, Debug)]
pub(crate) struct MemoryBudget {
    /// Limit per body.
    pub(super) max_body: usize,
    /// Large responses that are in use.
    pub(super) documents: Arc<Documents>,
    pool: Arc<MemoryPool>,
    turn: Arc<Turn<()>>,
}

#[derive(Debug)]
struct MemoryPool {
    total: usize,
    level: Mutex<Level>,
    freed: Notify,
    standstill: Duration,
}

#[derive(Debug, Default)]
struct Level {
    held: usize,
    /// Memory of reservations that wait for more. Reset when memory is released, because each
    /// waiter then tries again.
    parked: usize,
    /// Number of releases, and of reservations that exceeded the limit.
    changes: u64,
    /// Memory of reservations that wait for a turn.
    queued: usize,
}

impl MemoryPool {
    fn level(&self) -> MutexGuard<'_, Level> {
        self.level.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets all waiting reservations try again.
    fn changed(&self, mut level: MutexGuard<'_, Level>) {
        level.parked = 0;
        level.changes += 1;
        drop(level);
        self.freed.notify_waiters();
    }
}

/// Reserved memory. Drop releases it.
#[derive(Debug)]
pub(crate) struct Reservation {
    pool: Arc<MemoryPool>,
    bytes: usize,
}

impl Reservation {
    /// Merges another reservation.
    pub(crate) fn join(&mut self, mut other: Self) {
        self.bytes += std::mem::take(&mut other.bytes);
    }

    /// Releases the memory beyond some bytes.
    fn shrink(&mut self, bytes: usize) {
        let Some(excess) = self.bytes.checked_sub(bytes).filter(|excess| *excess > 0) else {
            return;
        };
        self.bytes = bytes;
        let mut level = self.pool.level();
        level.held -= excess;
        self.pool.changed(level);
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.shrink(0);
    }
}

impl MemoryBudget {
    pub(super) fn new(max_body: usize, total: usize) -> Self {
        let pool = MemoryPool {
            total,
            level: Mutex::default(),
            freed: Notify::new(),
            standstill: STANDSTILL,
        };
        let (documents, turn) = Default::default();
        Self { max_body, documents, pool: Arc::new(pool), turn }
    }

    /// Waits until half of the memory is free.
    pub(super) async fn half_free(&self) {
        loop {
            // Registered before the check, so that no release is missed.
            let freed = self.pool.freed.notified();
            if 2 * self.pool.level().held <= self.pool.total {
                return;
            }
            freed.await;
        }
    }

    /// Reserves memory for bytes beyond `free`, and waits if necessary. Returns an error if it can
    /// never succeed.
    pub(crate) async fn hold_beyond(
        &self,
        free: &mut usize,
        bytes: usize,
    ) -> Result<Option<Reservation>, String> {
        match free.checked_sub(bytes) {
            Some(rest) => {
                *free = rest;
                Ok(None)
            }
            None => self.hold(bytes, 0).await.map(Some),
        }
    }

    /// Reserves memory for an owner that keeps its own reservation while it waits.
    async fn hold(&self, bytes: usize, own: usize) -> Result<Reservation, String> {
        // The changes at the start of a standstill.
        let mut standstill = None;
        loop {
            // Registered before the check, so that no release is missed.
            let freed = self.pool.freed.notified();
            let parked = {
                let mut level = self.pool.level();
                let exceeds = level.held + bytes > self.pool.total;
                let all_wait = level.parked + level.queued + own == level.held;
                let may_exceed = (all_wait || standstill == Some(level.changes))
                    && own + bytes <= self.pool.total
                    && level.held + bytes <= 2 * self.pool.total;
                if !exceeds || may_exceed {
                    level.held += bytes;
                    if exceeds {
                        self.pool.changed(level);
                    }
                    return Ok(Reservation { pool: Arc::clone(&self.pool), bytes });
                }
                if own + bytes > self.pool.total || all_wait {
                    return Err(self.exhausted());
                }
                Parked::new(&self.pool, &mut level, own)
            };
            standstill =
                timeout(self.pool.standstill, freed).await.is_err().then_some(parked.changes);
        }
    }

    /// Returns the message about exhausted memory.
    pub(crate) fn exhausted(&self) -> String {
        format!(
            "the responses in use need more than {} MiB of memory; use --response-memory to raise \
             the limit",
            self.pool.total >> 20
        )
    }
}

/// Registers a reservation that waits for more.
struct Parked<'a> {
    pool: &'a MemoryPool,
    bytes: usize,
    /// The changes when the wait started.
    changes: u64,
}

impl<'a> Parked<'a> {
    fn new(pool: &'a MemoryPool, level: &mut Level, bytes: usize) -> Self {
        level.parked += bytes;
        Self { pool, bytes, changes: level.changes }
    }
}

impl Drop for Parked<'_> {
    fn drop(&mut self) {
        let mut level = self.pool.level();
        if level.changes == self.changes {
            level.parked -= self.bytes;
        }
    }
}

/// Registers a reservation that waits for a turn.
struct Queued<'a> {
    pool: &'a MemoryPool,
    bytes: usize,
}

impl<'a> Queued<'a> {
    fn new(pool: &'a MemoryPool, bytes: usize) -> Self {
        pool.level().queued += bytes;
        Self { pool, bytes }
    }
}

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        self.pool.level().queued -= self.bytes;
    }
}

/// A reservation that grows with its data. Drop releases it.
#[derive(Debug)]
pub(crate) struct GrowingReservation {
    budget: MemoryBudget,
    /// The maximum size.
    most: usize,
    /// Bytes with a reservation.
    covered: usize,
    held: Option<Reservation>,
    /// True for data that needs a turn before it becomes long.
    takes_turns: bool,
    turn: Option<OwnedMutexGuard<()>>,
}

impl GrowingReservation {
    pub(crate) fn new(budget: &MemoryBudget, most: usize) -> Self {
        let budget = budget.clone();
        Self { budget, most, covered: SMALL, held: None, takes_turns: false, turn: None }
    }

    /// Creates a reservation that takes turns.
    pub(crate) fn in_turn(budget: &MemoryBudget, most: usize) -> Self {
        Self { takes_turns: true, ..Self::new(budget, most) }
    }

    /// Reserves twice this length: for the buffer, and for the joined bytes. Returns an error if it
    /// can never succeed.
    pub(crate) async fn reach(&mut self, length: usize) -> Result<(), String> {
        if self.takes_turns && length > LONG && self.turn.is_none() {
            let _queued = Queued::new(&self.budget.pool, self.own());
            self.turn = Some(Arc::clone(&self.budget.turn).lock_owned().await);
        }
        if length > self.covered {
            let doubled = self.covered.min(self.most.saturating_sub(self.covered));
            let more = (length - self.covered).max(STEP).max(doubled);
            self.add(2 * more).await?;
            self.covered += more;
        }
        Ok(())
    }

    /// Reserves more bytes.
    pub(super) async fn add(&mut self, bytes: usize) -> Result<(), String> {
        let more = self.budget.hold(bytes, self.own()).await?;
        match &mut self.held {
            Some(held) => held.join(more),
            None => self.held = Some(more),
        }
        Ok(())
    }

    /// Returns the reserved bytes.
    fn own(&self) -> usize {
        self.held.as_ref().map_or(0, |held| held.bytes)
    }

    /// Returns the message about an expired deadline.
    pub(super) fn late(&self) -> String {
        self.budget.exhausted()
    }

    /// Returns the reservation, if there is one, of at most these bytes. The others were for the
    /// buffers.
    pub(super) fn into_held(self, bytes: usize) -> Option<Reservation> {
        let mut held = self.held?;
        held.shrink(bytes);
        Some(held)
    }
}

#[cfg(test)]
mod tests;
