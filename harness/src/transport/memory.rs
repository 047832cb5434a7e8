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
        Self { max_body, pool: Arc::new(pool), turn: Arc::default() }
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
mod tests {
    use super::*;

    impl MemoryBudget {
        /// Returns the free bytes.
        pub(in crate::transport) fn free(&self) -> usize {
            self.pool.total - self.pool.level().held
        }
    }

    #[tokio::test]
    async fn what_fits_is_let_in_before_what_has_waited_longer() {
        let budget = MemoryBudget::new(1 << 20, 1 << 20);
        let held = budget.hold(1 << 19, 0).await.expect("half of it");
        let large = budget.hold(1 << 20, 0);
        tokio::pin!(large);
        assert!(futures_util::poll!(&mut large).is_pending());
        let small = budget.hold(1 << 18, 0).await.expect("it fits");
        drop(held);
        assert!(futures_util::poll!(&mut large).is_pending());
        drop(small);
        large.await.expect("all is free");
    }

    fn grown(budget: &MemoryBudget) -> GrowingReservation {
        GrowingReservation::new(budget, budget.pool.total)
    }

    #[tokio::test]
    async fn when_all_reservations_wait_for_each_other_the_last_one_exceeds_the_limit() {
        let budget = MemoryBudget::new(4 << 20, 4 << 20);
        let finished = budget.hold(1 << 20, 0).await.expect("there is room");
        let (mut first, mut second) = (grown(&budget), grown(&budget));
        first.add(1 << 20).await.expect("there is room");
        second.add(1 << 20).await.expect("there is room");
        let mut waiting = Box::pin(first.add(2 << 20));
        assert!(futures_util::poll!(&mut waiting).is_pending());
        assert!(
            futures_util::poll!(Box::pin(second.add(2 << 20))).is_pending(),
            "the finished response will be released"
        );
        second.add(1 << 20).await.expect("it fits");
        drop(finished);
        assert!(futures_util::poll!(&mut waiting).is_pending(), "it waits again");
        second.add(2 << 20).await.expect("the only other reservation waits");
        assert_eq!(budget.pool.level().held, 5 << 20);
        assert!(futures_util::poll!(&mut waiting).is_pending());
        drop(second);
        waiting.await.expect("only its own memory is in use");
        drop(first);
        assert_eq!(budget.free(), 4 << 20);
        assert_eq!(budget.pool.level().parked, 0);
    }

    #[tokio::test]
    async fn a_reservation_that_would_exceed_twice_the_limit_fails() {
        let budget = MemoryBudget::new(8 << 20, 8 << 20);
        let (mut first, mut second, mut third) = (grown(&budget), grown(&budget), grown(&budget));
        first.add(2 << 20).await.expect("there is room");
        second.add(2 << 20).await.expect("there is room");
        third.add(4 << 20).await.expect("there is room");
        let (mut first, mut second) = (Box::pin(first.add(6 << 20)), Box::pin(second.add(6 << 20)));
        assert!(futures_util::poll!(&mut first).is_pending());
        assert!(futures_util::poll!(&mut second).is_pending());
        third.add(3 << 20).await.expect("all others wait");
        assert!(futures_util::poll!(&mut second).is_pending());
        let mut third = Box::pin(third.add(1 << 20));
        assert!(futures_util::poll!(&mut third).is_pending(), "the first will try again");
        first.await.expect_err("2 + 2 + 7 of 8 MiB are in use, and it needs 6 more");
    }

    #[tokio::test]
    async fn who_has_just_been_reported_of_room_counts_as_one_who_will_give_some_back() {
        let budget = MemoryBudget::new(4 << 20, 4 << 20);
        let finished = budget.hold(2 << 20, 0).await.expect("there is room");
        let mut first = GrowingReservation::new(&budget, 4 << 20);
        first.add(1 << 20).await.expect("there is room");
        let mut waiting = Box::pin(first.add(2 << 20));
        assert!(futures_util::poll!(&mut waiting).is_pending());
        drop(finished);
        let mut newcomer = Box::pin(budget.hold(4 << 20, 0));
        assert!(futures_util::poll!(&mut newcomer).is_pending(), "the first has not looked yet");
        waiting.await.expect("it fits");
        drop(first);
        newcomer.await.expect("all is free");
    }

    #[tokio::test]
    async fn of_those_that_take_turns_one_becomes_long() {
        let budget = MemoryBudget::new(4 << 20, 4 << 20);
        let mut first = GrowingReservation::in_turn(&budget, 4 << 20);
        first.reach(1 << 20).await.expect("there is room");
        let mut second = GrowingReservation::in_turn(&budget, 4 << 20);
        second.reach(LONG).await.expect("so much is had without a turn");
        let mut waiting = Box::pin(second.reach(LONG + 1));
        assert!(futures_util::poll!(&mut waiting).is_pending());
        first.reach(2 << 20).await.expect("the other waits for its turn");
        assert!(futures_util::poll!(&mut waiting).is_pending());
        drop(first);
        waiting.await.expect("it is its turn");
    }

    #[tokio::test]
    async fn after_a_standstill_one_reservation_exceeds_the_limit() {
        let mut budget = MemoryBudget::new(1 << 20, 1 << 20);
        let standstill = Duration::from_millis(1);
        Arc::get_mut(&mut budget.pool).expect("the only owner").standstill = standstill;
        let _kept = budget.hold(3 << 18, 0).await.expect("there is room");
        let first = budget.hold(1 << 19, 0).await.expect("nothing is released meanwhile");
        let mut third = Box::pin(budget.hold(1 << 20, 0));
        let waited = timeout(10 * standstill, &mut third).await;
        waited.expect_err("with it, the limit would be exceeded twice");
        drop(first);
        third.await.expect("the standstill goes on");
    }

    #[tokio::test]
    async fn half_of_the_memory_becomes_free_when_buffers_go() {
        let budget = MemoryBudget::new(1 << 20, 1 << 20);
        let mut growth = GrowingReservation::new(&budget, 1 << 20);
        growth.add(3 << 18).await.expect("there is room");
        let mut waiting = Box::pin(budget.half_free());
        assert!(futures_util::poll!(&mut waiting).is_pending());
        let _held = growth.into_held(1 << 19);
        waiting.await;
        assert_eq!(budget.free(), 1 << 19);
    }

    #[tokio::test]
    async fn nobody_waits_for_more_than_there_is() {
        let budget = MemoryBudget::new(1 << 20, 1 << 20);
        let _other = budget.hold(1 << 10, 0).await.expect("there is room");
        let mut growth = GrowingReservation::new(&budget, 1 << 20);
        growth.add(1 << 19).await.expect("there is room");
        growth.add((1 << 19) + 1).await.expect_err("it has half of it itself");
    }
}
