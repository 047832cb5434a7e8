//! How much memory the answers of a server may take, all of them together.
//!
//! A limit on one body is no limit on a run: many requests are under way at once, and their answers are kept until the
//! case that asked for them is judged. So every answer that is not small takes its share before it is kept, and gives it back when it is
//! dropped. Where nothing is free it waits, as it would for the network, and not beyond its deadline.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use super::record;
use crate::exchange::{Broken, BrokenKind, Received};
use crate::json;

/// What shares are counted in.
const UNIT: usize = 1 << 10;

/// How a body grows: by so many bytes at least.
const STEP: usize = 64 << 10;

/// Bytes of a body, and of what is read from it, that nothing is held for: there are thousands of these, and they are what
/// honest answers take.
const SMALL: usize = 16 << 10;
const LIGHT: usize = 32 << 10;

/// What all answers share.
#[derive(Clone, Debug)]
pub(crate) struct Budget {
    max_body: usize,
    total: usize,
    free: Arc<Semaphore>,
}

/// A share; given back when dropped.
#[derive(Debug)]
pub(crate) struct Held(OwnedSemaphorePermit);

impl Held {
    /// Takes another share in.
    pub(crate) fn join(&mut self, other: Self) {
        self.0.merge(other.0);
    }
}

impl Budget {
    pub(super) fn new(max_body: usize, total: usize) -> Self {
        let total = total.min(UNIT * (u32::MAX as usize)).max(UNIT);
        Self { max_body, total, free: Arc::new(Semaphore::new(total / UNIT)) }
    }

    /// The body that a head announces; it waits for memory as it grows.
    pub(super) fn body(&self, head: Received, announced: Option<u64>) -> Result<Body<'_>, Broken> {
        if announced.is_some_and(|length| length > self.max_body as u64) {
            return Err(Broken::budget("the body", self.max_body));
        }
        Ok(Body { budget: self, head, bytes: BytesMut::new(), held: None, room: SMALL })
    }

    /// Memory at once, or not at all.
    pub(crate) fn try_hold(&self, bytes: usize) -> Result<Held, String> {
        Arc::clone(&self.free).try_acquire_many_owned(units(bytes)).map(Held).map_err(|_| self.spent())
    }

    /// The same, for what goes beyond bytes that are free.
    pub(crate) fn try_hold_beyond(&self, free: &mut usize, bytes: usize) -> Result<Option<Held>, String> {
        match free.checked_sub(bytes) {
            Some(rest) => {
                *free = rest;
                Ok(None)
            }
            None => self.try_hold(bytes).map(Some),
        }
    }

    async fn hold(&self, bytes: usize, deadline: Instant) -> Result<Held, Broken> {
        let units = units(bytes);
        let spent = || Broken::new(BrokenKind::Budget, self.spent());
        if units as usize > self.total / UNIT {
            return Err(spent());
        }
        let held = tokio::time::timeout_at(deadline, Arc::clone(&self.free).acquire_many_owned(units)).await;
        held.ok().and_then(Result::ok).map(Held).ok_or_else(spent)
    }

    fn spent(&self) -> String {
        format!(
            "the answers that are looked at take more than {} MiB of memory; --answer-memory allows for more",
            self.total >> 20
        )
    }
}

fn units(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX)
}

/// A body as it comes.
pub(super) struct Body<'a> {
    budget: &'a Budget,
    head: Received,
    bytes: BytesMut,
    held: Option<Held>,
    /// Bytes that memory is held for.
    room: usize,
}

impl Body<'_> {
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(super) async fn push(&mut self, data: &[u8], deadline: Instant) -> Result<(), Broken> {
        let length = self.bytes.len() + data.len();
        if length > self.budget.max_body {
            return Err(Broken::budget("the body", self.budget.max_body));
        }
        if length > self.room {
            let more = (length - self.room).max(STEP).max(self.room);
            // What a growing buffer holds, and the text that cases see.
            self.hold(2 * more, deadline).await?;
            self.room += more;
        }
        self.bytes.extend_from_slice(data);
        Ok(())
    }

    /// The answer, as cases see it.
    pub(super) async fn finish(mut self, deadline: Instant) -> Result<Received, Broken> {
        let headers: usize = self.head.headers.iter().map(|(name, value)| name.len() + value.len()).sum();
        let weight = json::weight(&self.bytes) + headers;
        if weight > LIGHT {
            self.hold(weight, deadline).await?;
        }
        let answer = record::with_body(self.head, self.bytes.freeze());
        Ok(match self.held {
            Some(held) => Received { body: kept(answer.body.clone(), held), ..answer },
            None => answer,
        })
    }

    async fn hold(&mut self, bytes: usize, deadline: Instant) -> Result<(), Broken> {
        let more = self.budget.hold(bytes, deadline).await?;
        match &mut self.held {
            Some(held) => held.join(more),
            None => self.held = Some(more),
        }
        Ok(())
    }
}

/// Bytes that give a share back when their last copy is dropped.
pub(crate) fn kept(bytes: Bytes, held: Held) -> Bytes {
    struct Kept(Bytes, #[expect(dead_code, reason = "dropping it gives the share back")] Held);
    impl AsRef<[u8]> for Kept {
        fn as_ref(&self) -> &[u8] {
            &self.0
        }
    }
    Bytes::from_owner(Kept(bytes, held))
}

#[cfg(test)]
mod tests {
    use http::{StatusCode, Version};
    use tokio::time::Duration;

    use super::*;

    fn body(budget: &Budget) -> Body<'_> {
        let head = record::head(StatusCode::OK, Version::HTTP_11, Vec::new());
        budget.body(head, None).expect("nothing is announced")
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_millis(20)
    }

    #[tokio::test]
    async fn an_answer_gives_back_what_it_held_when_its_last_copy_goes() {
        let budget = Budget::new(1 << 20, 1 << 20);
        let mut first = body(&budget);
        first.push(&vec![b'['; 300 << 10], soon()).await.expect("there is room");
        let first = first.finish(soon()).await;
        // Brackets alone weigh far more than they are long.
        assert_eq!(first.err().map(|broken| broken.kind), Some(BrokenKind::Budget));
        assert_eq!(budget.free.available_permits(), 1024);

        let mut second = body(&budget);
        second.push(&vec![b' '; 2 * SMALL], soon()).await.expect("there is room");
        let answer = second.finish(soon()).await.expect("it is small");
        let copy = answer.body.slice(10..20);
        drop(answer);
        assert!(budget.free.available_permits() < 1024);
        drop(copy);
        assert_eq!(budget.free.available_permits(), 1024);
    }

    #[tokio::test]
    async fn an_answer_waits_for_another_to_go() {
        let budget = Budget::new(1 << 20, 1 << 20);
        let held = budget.try_hold(1 << 20).expect("all of it");
        let mut waiting = body(&budget);
        let data = vec![b' '; 2 * SMALL];
        assert!(waiting.push(&data, soon()).await.is_err(), "nothing is free");
        assert!(waiting.push(b"{}", soon()).await.is_ok(), "so little is always there");
        let deadline = Instant::now() + Duration::from_mins(1);
        let (pushed, ()) = tokio::join!(waiting.push(&data, deadline), async { drop(held) });
        pushed.expect("it is free now");
    }
}
