//! Reads the body of a response within its own limit and the [memory budget](super::memory).

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use tokio::time::{Instant, timeout_at};

use super::documents::{Digest, Documents};
use super::memory::{GrowingReservation, MemoryBudget, Reservation, STEP};
use super::response;
use crate::exchange::{Broken, BrokenKind, Received};
use crate::json;

/// Parsed bytes of a body that need no reservation.
const LIGHT: usize = 32 << 10;

/// A body during reception.
pub(super) struct Body {
    head: Received,
    most: usize,
    bytes: Blocks,
    share: GrowingReservation,
    documents: Arc<Documents>,
}

impl Body {
    /// Starts a body. It waits for memory as it grows.
    pub(super) fn new(
        budget: &MemoryBudget,
        head: Received,
        announced: Option<u64>,
    ) -> Result<Self, Broken> {
        let most = budget.max_body;
        if announced.is_some_and(|length| length > most as u64) {
            return Err(Broken::budget("the body", most));
        }
        Ok(Self {
            head,
            most,
            bytes: Blocks::default(),
            share: GrowingReservation::new(budget, most),
            documents: Arc::clone(&budget.documents),
        })
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.length
    }

    pub(super) async fn push(&mut self, data: &[u8], deadline: Instant) -> Result<(), Broken> {
        let length = self.len() + data.len();
        if length > self.most {
            return Err(Broken::budget("the body", self.most));
        }
        let grown = timeout_at(deadline, self.share.reach(length)).await;
        grown.unwrap_or_else(|_| Err(self.share.late())).map_err(spent)?;
        self.bytes.push(data);
        Ok(())
    }

    /// Returns the complete response.
    pub(super) async fn finish(mut self, deadline: Instant) -> Result<Received, Broken> {
        let headers: usize =
            self.head.headers.iter().map(|(name, value)| name.len() + value.len()).sum();
        let bytes = std::mem::take(&mut self.bytes).joined();
        let digest = Digest::of(&bytes).filter(|_| headers <= LIGHT);
        if let Some((body, value)) = digest.as_ref().and_then(|it| self.documents.in_use(it)) {
            return Ok(Received { body, json: Some(value), ..self.head });
        }
        let weight = json::weight(&bytes) + headers;
        if weight > LIGHT {
            let grown = timeout_at(deadline, self.share.add(weight)).await;
            grown.unwrap_or_else(|_| Err(self.share.late())).map_err(spent)?;
        }
        let needed = bytes.len() + weight;
        let mut response = response::with_body(self.head, bytes);
        let held = self.share.into_held(needed);
        response.body = match (digest, &response.json, held) {
            (Some(digest), Some(value), held) if response.json_fault.is_none() => {
                self.documents.add(digest, response.body, value, held)
            }
            (_, _, Some(held)) => kept(response.body, held),
            (_, _, None) => response.body,
        };
        Ok(response)
    }
}

fn spent(reason: String) -> Broken {
    Broken::new(BrokenKind::Budget, reason)
}

/// Bytes in blocks. A buffer that grows in place leaves fragments in the allocator.
#[derive(Default)]
struct Blocks {
    full: Vec<Bytes>,
    last: BytesMut,
    length: usize,
}

impl Blocks {
    fn push(&mut self, mut data: &[u8]) {
        self.length += data.len();
        while !data.is_empty() {
            if self.last.len() == STEP {
                let full = std::mem::replace(&mut self.last, BytesMut::with_capacity(STEP));
                self.full.push(full.freeze());
            }
            let (now, later) = data.split_at(data.len().min(STEP - self.last.len()));
            self.last.extend_from_slice(now);
            data = later;
        }
    }

    fn joined(self) -> Bytes {
        if self.full.is_empty() {
            return self.last.freeze();
        }
        let mut joined = BytesMut::with_capacity(self.length);
        for block in self.full {
            joined.extend_from_slice(&block);
        }
        joined.extend_from_slice(&self.last);
        joined.freeze()
    }
}

/// Returns bytes that release their reservation with the last copy.
pub(crate) fn kept(bytes: Bytes, held: Reservation) -> Bytes {
    struct Kept(
        Bytes,
        #[expect(dead_code, reason = "dropping it gives the share back")] Reservation,
    );
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

    const MEBIBYTE: usize = 1 << 20;

    fn body(budget: &MemoryBudget) -> Body {
        let head = response::head(StatusCode::OK, Version::HTTP_11, Vec::new());
        Body::new(budget, head, None).expect("nothing is announced")
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_millis(20)
    }

    #[tokio::test]
    async fn a_response_gives_back_what_it_held_when_its_last_copy_goes() {
        let budget = MemoryBudget::new(MEBIBYTE, MEBIBYTE);
        let mut first = body(&budget);
        first.push(&vec![b'['; 300 << 10], soon()).await.expect("there is room");
        let first = first.finish(soon()).await;
        // The memory estimate of brackets far exceeds their length.
        assert_eq!(first.err().map(|broken| broken.kind), Some(BrokenKind::Budget));
        assert_eq!(budget.free(), MEBIBYTE);

        let mut second = body(&budget);
        second.push(&vec![b' '; 32 << 10], soon()).await.expect("there is room");
        let response = second.finish(soon()).await.expect("it is small");
        let copy = response.body.slice(10..20);
        drop(response);
        assert!(budget.free() < MEBIBYTE);
        drop(copy);
        assert_eq!(budget.free(), MEBIBYTE);
    }

    #[tokio::test]
    async fn a_response_waits_for_another_to_go() {
        let budget = MemoryBudget::new(MEBIBYTE, MEBIBYTE);
        let held = budget.hold_beyond(&mut 0, MEBIBYTE).await.expect("all of it");
        let mut waiting = body(&budget);
        let data = vec![b' '; 32 << 10];
        let broken = waiting.push(&data, soon()).await.expect_err("nothing is free");
        assert_eq!(broken.kind, BrokenKind::Budget);
        assert!(waiting.push(b"{}", soon()).await.is_ok(), "so little is always there");
        let deadline = Instant::now() + Duration::from_mins(1);
        let (pushed, ()) = tokio::join!(waiting.push(&data, deadline), async { drop(held) });
        pushed.expect("it is free now");
    }

    #[tokio::test]
    async fn equal_large_responses_share_their_memory() {
        let budget = MemoryBudget::new(MEBIBYTE, MEBIBYTE);
        let response = async || {
            let mut body = body(&budget);
            let text = format!("\"{}\"", "x".repeat(64 << 10));
            body.push(text.as_bytes(), soon()).await.expect("there is room");
            body.finish(soon()).await.expect("there is room")
        };
        let first = response().await;
        let free = budget.free();
        let second = response().await;
        assert_eq!((budget.free(), &second.body), (free, &first.body));
        assert!(
            first.json.as_ref().zip(second.json.as_ref()).is_some_and(|(a, b)| Arc::ptr_eq(a, b))
        );
        drop(first);
        assert_eq!(budget.free(), free, "the second one keeps it");
        drop(second);
        assert_eq!(budget.free(), MEBIBYTE);
    }

    #[test]
    fn blocks_are_joined_in_order() {
        let data: Vec<u8> =
            (0..=3 * STEP).map(|byte| u8::try_from(byte % 251).expect("a byte")).collect();
        for piece in [1000, STEP, STEP + 1, data.len()] {
            for length in [0, 1, STEP, STEP + 1, data.len()] {
                let mut blocks = Blocks::default();
                data[..length].chunks(piece).for_each(|piece| blocks.push(piece));
                assert_eq!(blocks.length, length);
                assert!(blocks.joined() == data[..length], "{length} bytes by {piece}");
            }
        }
    }
}
