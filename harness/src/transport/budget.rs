//! How much memory the answers of a server may take, all of them together.
//!
//! A limit on one body is no limit on a run: many requests are under way at once, and their answers are kept until the
//! case that asked for them is judged. So every answer that is not small takes its share before it is kept, and gives it back when it is
//! dropped. Where nothing is free it waits, as it would for the network, and not beyond its deadline.
//!
//! Two rules keep those who wait from waiting for each other. Whatever fits is let in, however long something larger has waited:
//! a case that holds much ends by asking for little more. And of all that becomes long one grows at a time, and never waits for
//! what those hold that wait for it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{Mutex as Turn, Notify, OwnedMutexGuard};

/// Shares grow by so many bytes at least.
pub(super) const STEP: usize = 64 << 10;

/// Bytes that nothing is held for: there are thousands of these, and they are what honest answers take.
pub(super) const SMALL: usize = 16 << 10;

/// Bytes that something may have before it has to wait for its turn: all requests at once may have so many.
const LONG: usize = 256 << 10;

/// Why there was no room for something long, though there may have been some.
const WAITED: &str = "another long answer was read until the deadline";

/// What all answers share.
#[derive(Clone, Debug)]
pub(crate) struct Budget {
    /// The longest body of all.
    pub(super) max_body: usize,
    room: Arc<Room>,
    turn: Arc<Turn<()>>,
}

/// The bytes that there are.
#[derive(Debug)]
struct Room {
    total: usize,
    free: Mutex<usize>,
    freed: Notify,
    /// What those hold that wait for their turn.
    parked: AtomicUsize,
}

/// A share; given back when dropped.
#[derive(Debug)]
pub(crate) struct Held {
    room: Arc<Room>,
    bytes: usize,
}

impl Held {
    /// Takes another share in.
    pub(crate) fn join(&mut self, mut other: Self) {
        self.bytes += std::mem::take(&mut other.bytes);
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        *self.room.free.lock().unwrap_or_else(PoisonError::into_inner) += self.bytes;
        self.room.freed.notify_waiters();
    }
}

impl Budget {
    pub(super) fn new(max_body: usize, total: usize) -> Self {
        let room = Room { total, free: Mutex::new(total), freed: Notify::new(), parked: AtomicUsize::new(0) };
        Self { max_body, room: Arc::new(room), turn: Arc::default() }
    }

    /// Memory for what goes beyond bytes that are free, waited for until there is some. An error if there never can be.
    pub(crate) async fn hold_beyond(&self, free: &mut usize, bytes: usize) -> Result<Option<Held>, String> {
        match free.checked_sub(bytes) {
            Some(rest) => {
                *free = rest;
                Ok(None)
            }
            None => self.hold(bytes).await.map(Some),
        }
    }

    async fn hold(&self, bytes: usize) -> Result<Held, String> {
        if bytes > self.room.total {
            return Err(self.spent());
        }
        loop {
            // What is freed after this is heard of, so nothing is missed between looking and waiting.
            let freed = self.room.freed.notified();
            if let Some(held) = self.try_hold(bytes) {
                return Ok(held);
            }
            freed.await;
        }
    }

    fn try_hold(&self, bytes: usize) -> Option<Held> {
        let mut free = self.room.free.lock().unwrap_or_else(PoisonError::into_inner);
        *free = free.checked_sub(bytes)?;
        Some(Held { room: Arc::clone(&self.room), bytes })
    }

    /// What is said when there was no room.
    pub(crate) fn spent(&self) -> String {
        format!(
            "the answers that are looked at take more than {} MiB of memory; --answer-memory allows for more",
            self.room.total >> 20
        )
    }
}

/// The share of something that comes bit by bit. It is given back when this is dropped.
#[derive(Debug)]
pub(crate) struct Growth {
    budget: Budget,
    /// It will not be longer than this.
    most: usize,
    /// Bytes that memory is held for.
    room: usize,
    held: Option<Held>,
    turn: Option<OwnedMutexGuard<()>>,
    waits_for_turn: bool,
}

impl Growth {
    pub(crate) fn new(budget: &Budget, most: usize) -> Self {
        let budget = budget.clone();
        Self { budget, most, room: SMALL, held: None, turn: None, waits_for_turn: false }
    }

    /// Waits for memory for so many bytes, twice: once in the buffer in which they come, and once in one piece. An error if there
    /// cannot be any.
    pub(crate) async fn reach(&mut self, length: usize) -> Result<(), String> {
        if length > LONG && self.turn.is_none() {
            let parked = Parked::new(&self.budget.room, self.own());
            self.waits_for_turn = true;
            self.turn = Some(Arc::clone(&self.budget.turn).lock_owned().await);
            self.waits_for_turn = false;
            drop(parked);
        }
        if length > self.room {
            let doubled = self.room.min(self.most.saturating_sub(self.room));
            let more = (length - self.room).max(STEP).max(doubled);
            self.add(2 * more).await?;
            self.room += more;
        }
        Ok(())
    }

    /// Waits for so many bytes more.
    pub(super) async fn add(&mut self, bytes: usize) -> Result<(), String> {
        let room = &self.budget.room;
        // What it has itself, it cannot wait for, nor for those who wait for it.
        let parked = if self.turn.is_some() { room.parked.load(Ordering::Relaxed) } else { 0 };
        if self.own() + parked + bytes > room.total {
            return Err(self.budget.spent());
        }
        let more = self.budget.hold(bytes).await?;
        match &mut self.held {
            Some(held) => held.join(more),
            None => self.held = Some(more),
        }
        Ok(())
    }

    /// What is said when it waited too long.
    pub(super) fn late(&self) -> String {
        if self.waits_for_turn { WAITED.to_owned() } else { self.budget.spent() }
    }

    /// Its share, when it has grown.
    pub(super) fn into_held(self) -> Option<Held> {
        self.held
    }

    fn own(&self) -> usize {
        self.held.as_ref().map_or(0, |held| held.bytes)
    }
}

/// Bytes that are held by somebody who waits for a turn.
struct Parked<'a> {
    room: &'a Room,
    bytes: usize,
}

impl<'a> Parked<'a> {
    fn new(room: &'a Room, bytes: usize) -> Self {
        room.parked.fetch_add(bytes, Ordering::Relaxed);
        Self { room, bytes }
    }
}

impl Drop for Parked<'_> {
    fn drop(&mut self) {
        self.room.parked.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Budget {
        /// The bytes that nobody holds.
        pub(in crate::transport) fn free(&self) -> usize {
            *self.room.free.lock().expect("nobody died")
        }
    }

    #[tokio::test]
    async fn what_fits_is_let_in_before_what_has_waited_longer() {
        let budget = Budget::new(1 << 20, 1 << 20);
        let held = budget.try_hold(1 << 19).expect("half of it");
        let large = budget.hold(1 << 20);
        tokio::pin!(large);
        assert!(futures_util::poll!(&mut large).is_pending());
        let small = budget.hold(1 << 18).await.expect("it fits");
        drop(held);
        assert!(futures_util::poll!(&mut large).is_pending());
        drop(small);
        large.await.expect("all is free");
    }

    #[tokio::test]
    async fn nobody_waits_for_those_who_wait_for_him() {
        let budget = Budget::new(4 << 20, 4 << 20);
        let mut first = Growth::new(&budget, 4 << 20);
        first.reach(1 << 20).await.expect("there is room");
        let mut second = Growth::new(&budget, 4 << 20);
        second.reach(LONG).await.expect("so much is had without a turn");
        let waiting = second.reach(LONG + 1);
        tokio::pin!(waiting);
        assert!(futures_util::poll!(&mut waiting).is_pending());
        // Half of the room is its own, and of the other half some is held by who waits for it.
        first.reach(2 << 20).await.expect_err("there will never be room");
        drop(first);
        waiting.await.expect("it is its turn");
    }
}
