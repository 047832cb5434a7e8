//! How much memory the answers of a server may take, all of them together.
//!
//! A limit on one body is no limit on a run: many requests are under way at once, and their answers are kept until the
//! case that asked for them is judged. So every answer that is not small takes its share before it is kept, and gives it back when it is
//! dropped. Where nothing is free it waits, as it would for the network, and not beyond its deadline.
//!
//! Whatever fits is let in, however long something larger has waited: a case that holds much ends by asking for little more. And when
//! all that is held belongs to those who wait for more, the last to come is told that there is none, or all would wait for each
//! other. Lines of watches that become long take turns too. Bodies do not: over HTTP/2 one that is not read holds up the others on
//! its connection.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Mutex as Turn, Notify, OwnedMutexGuard};

/// Shares grow by so many bytes at least.
pub(super) const STEP: usize = 64 << 10;

/// Bytes that nothing is held for: there are thousands of these, and they are what honest answers take.
pub(super) const SMALL: usize = 16 << 10;

/// Bytes that something has before it takes its turn, if it does that.
const LONG: usize = 256 << 10;

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
    level: Mutex<Level>,
    freed: Notify,
}

#[derive(Debug, Default)]
struct Level {
    held: usize,
    /// What of it those hold who wait for more. When some is freed, they are told, and nobody waits until each has looked.
    parked: usize,
    /// How often some was freed.
    freed: u64,
    /// What of it those hold who wait for their turn.
    queued: usize,
}

impl Room {
    fn level(&self) -> MutexGuard<'_, Level> {
        self.level.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
        let mut level = self.room.level();
        level.held -= self.bytes;
        level.parked = 0;
        level.freed += 1;
        drop(level);
        self.room.freed.notify_waiters();
    }
}

impl Budget {
    pub(super) fn new(max_body: usize, total: usize) -> Self {
        let room = Room { total, level: Mutex::default(), freed: Notify::new() };
        Self { max_body, room: Arc::new(room), turn: Arc::default() }
    }

    /// Memory for what goes beyond bytes that are free, waited for until there is some. An error if there never can be.
    pub(crate) async fn hold_beyond(&self, free: &mut usize, bytes: usize) -> Result<Option<Held>, String> {
        match free.checked_sub(bytes) {
            Some(rest) => {
                *free = rest;
                Ok(None)
            }
            None => self.hold(bytes, 0).await.map(Some),
        }
    }

    /// Memory for somebody who has some, and keeps it while waiting for more.
    async fn hold(&self, bytes: usize, own: usize) -> Result<Held, String> {
        loop {
            // What is freed after this is heard of, so nothing is missed between looking and waiting.
            let freed = self.room.freed.notified();
            let _parked = {
                let mut level = self.room.level();
                if level.held + bytes <= self.room.total {
                    level.held += bytes;
                    return Ok(Held { room: Arc::clone(&self.room), bytes });
                }
                if own + bytes > self.room.total || level.parked + level.queued + own == level.held {
                    return Err(self.spent());
                }
                Parked::new(&self.room, &mut level, own)
            };
            freed.await;
        }
    }

    /// What is said when there was no room.
    pub(crate) fn spent(&self) -> String {
        format!(
            "the answers that are looked at take more than {} MiB of memory; --answer-memory allows for more",
            self.room.total >> 20
        )
    }
}

/// Bytes that are held by somebody who waits for more.
struct Parked<'a> {
    room: &'a Room,
    bytes: usize,
    /// When the waiting began.
    freed: u64,
}

impl<'a> Parked<'a> {
    fn new(room: &'a Room, level: &mut Level, bytes: usize) -> Self {
        level.parked += bytes;
        Self { room, bytes, freed: level.freed }
    }
}

impl Drop for Parked<'_> {
    fn drop(&mut self) {
        let mut level = self.room.level();
        if level.freed == self.freed {
            level.parked -= self.bytes;
        }
    }
}

/// Bytes that are held by somebody who waits for a turn.
struct Queued<'a> {
    room: &'a Room,
    bytes: usize,
}

impl<'a> Queued<'a> {
    fn new(room: &'a Room, bytes: usize) -> Self {
        room.level().queued += bytes;
        Self { room, bytes }
    }
}

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        self.room.level().queued -= self.bytes;
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
    /// One that becomes long waits until no other does.
    takes_turns: bool,
    turn: Option<OwnedMutexGuard<()>>,
}

impl Growth {
    pub(crate) fn new(budget: &Budget, most: usize) -> Self {
        let budget = budget.clone();
        Self { budget, most, room: SMALL, held: None, takes_turns: false, turn: None }
    }

    /// One that takes turns with others.
    pub(crate) fn in_turn(budget: &Budget, most: usize) -> Self {
        Self { takes_turns: true, ..Self::new(budget, most) }
    }

    /// Waits for memory for so many bytes, twice: once in the buffer in which they come, and once in one piece. An error if there
    /// cannot be any.
    pub(crate) async fn reach(&mut self, length: usize) -> Result<(), String> {
        if self.takes_turns && length > LONG && self.turn.is_none() {
            let _queued = Queued::new(&self.budget.room, self.own());
            self.turn = Some(Arc::clone(&self.budget.turn).lock_owned().await);
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
        let more = self.budget.hold(bytes, self.own()).await?;
        match &mut self.held {
            Some(held) => held.join(more),
            None => self.held = Some(more),
        }
        Ok(())
    }

    /// The bytes that it holds.
    fn own(&self) -> usize {
        self.held.as_ref().map_or(0, |held| held.bytes)
    }

    /// What is said when it waited too long.
    pub(super) fn late(&self) -> String {
        self.budget.spent()
    }

    /// Its share, when it has grown.
    pub(super) fn into_held(self) -> Option<Held> {
        self.held
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Budget {
        /// The bytes that nobody holds.
        pub(in crate::transport) fn free(&self) -> usize {
            self.room.total - self.room.level().held
        }
    }

    #[tokio::test]
    async fn what_fits_is_let_in_before_what_has_waited_longer() {
        let budget = Budget::new(1 << 20, 1 << 20);
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

    #[tokio::test]
    async fn of_those_who_wait_for_nobody_but_each_other_the_last_gives_up() {
        let budget = Budget::new(4 << 20, 4 << 20);
        let finished = budget.hold(1 << 20, 0).await.expect("there is room");
        let (mut first, mut second) = (Growth::new(&budget, 4 << 20), Growth::new(&budget, 4 << 20));
        first.add(1 << 20).await.expect("there is room");
        second.add(1 << 20).await.expect("there is room");
        let mut waiting = Box::pin(first.add(2 << 20));
        assert!(futures_util::poll!(&mut waiting).is_pending());
        assert!(futures_util::poll!(Box::pin(second.add(2 << 20))).is_pending(), "what is finished will go");
        second.add(1 << 20).await.expect("it fits");
        drop(finished);
        assert!(futures_util::poll!(&mut waiting).is_pending(), "it has looked, and waits again");
        second.add(2 << 20).await.expect_err("the other waits for it, and nobody else has any");
        assert!(futures_util::poll!(&mut waiting).is_pending());
        drop(second);
        waiting.await.expect("all but its own is free");
        drop(first);
        assert_eq!(budget.free(), 4 << 20);
        assert_eq!(budget.room.level().parked, 0);
    }

    #[tokio::test]
    async fn who_has_just_been_told_of_room_counts_as_one_who_will_give_some_back() {
        let budget = Budget::new(4 << 20, 4 << 20);
        let finished = budget.hold(2 << 20, 0).await.expect("there is room");
        let mut first = Growth::new(&budget, 4 << 20);
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
        let budget = Budget::new(4 << 20, 4 << 20);
        let mut first = Growth::in_turn(&budget, 4 << 20);
        first.reach(1 << 20).await.expect("there is room");
        let mut second = Growth::in_turn(&budget, 4 << 20);
        second.reach(LONG).await.expect("so much is had without a turn");
        let mut waiting = Box::pin(second.reach(LONG + 1));
        assert!(futures_util::poll!(&mut waiting).is_pending());
        first.reach(2 << 20).await.expect_err("the other has some of it, and waits for its turn");
        drop(first);
        waiting.await.expect("it is its turn");
    }

    #[tokio::test]
    async fn nobody_waits_for_more_than_there_is() {
        let budget = Budget::new(1 << 20, 1 << 20);
        let _other = budget.hold(1 << 10, 0).await.expect("there is room");
        let mut growth = Growth::new(&budget, 1 << 20);
        growth.add(1 << 19).await.expect("there is room");
        growth.add((1 << 19) + 1).await.expect_err("it has half of it itself");
    }
}
