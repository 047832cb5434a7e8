//! Shares equal large bodies, and their parsed values.
//!
//! Many cases read the same documents at the same time, such as OpenAPI. Parsed, a document takes
//! ten times the memory of its text.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use bytes::Bytes;
use serde_json::Value;

use super::memory::Reservation;
use crate::exchange::sha256;

/// Minimum bytes of a body that is shared. Small bodies are rarely equal.
const LARGE: usize = 32 << 10;

/// The large bodies that are in use.
#[derive(Debug, Default)]
pub(super) struct Documents(Mutex<BTreeMap<Digest, Weak<Document>>>);

/// The digest of a large body.
#[derive(Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Digest(String);

/// A body with its reservation. Copies of the body keep it.
#[derive(Debug)]
struct Document {
    text: Bytes,
    /// Cases drop the value before the body, which reports read.
    value: Weak<Value>,
    #[expect(dead_code, reason = "dropping it releases the memory")]
    held: Option<Reservation>,
}

impl Digest {
    /// Returns the digest of a body that is large enough to be shared.
    pub(super) fn of(body: &[u8]) -> Option<Self> {
        (body.len() >= LARGE).then(|| Self(sha256(body)))
    }
}

impl Documents {
    /// Returns the body with this digest, and its value, if both are in use.
    pub(super) fn in_use(&self, digest: &Digest) -> Option<(Bytes, Arc<Value>)> {
        let documents = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let document = documents.get(digest)?.upgrade()?;
        drop(documents);
        let value = document.value.upgrade()?;
        Some((shared(document), value))
    }

    /// Shares a body from now on. Returns a copy that keeps the reservation.
    pub(super) fn add(
        &self,
        digest: Digest,
        text: Bytes,
        value: &Arc<Value>,
        held: Option<Reservation>,
    ) -> Bytes {
        let document = Arc::new(Document { text, value: Arc::downgrade(value), held });
        let mut documents = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        documents.retain(|_, document| document.strong_count() > 0);
        documents.insert(digest, Arc::downgrade(&document));
        drop(documents);
        shared(document)
    }
}

/// Returns the bytes of a document. They keep it.
fn shared(document: Arc<Document>) -> Bytes {
    struct Shared(Arc<Document>);
    impl AsRef<[u8]> for Shared {
        fn as_ref(&self) -> &[u8] {
            &self.0.text
        }
    }
    Bytes::from_owner(Shared(document))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn added(documents: &Documents, byte: u8) -> (Bytes, Arc<Value>) {
        let (text, value) = (vec![byte; LARGE], Arc::new(json!(byte)));
        let digest = Digest::of(&text).expect("it is large");
        (documents.add(digest, text.into(), &value, None), value)
    }

    fn in_use(documents: &Documents, byte: u8) -> Option<(Bytes, Arc<Value>)> {
        documents.in_use(&Digest::of(&vec![byte; LARGE])?)
    }

    #[test]
    fn a_body_is_shared_while_it_and_its_value_are_in_use() {
        let documents = Documents::default();
        let (body, value) = added(&documents, 1);
        let (again, same) = in_use(&documents, 1).expect("both are in use");
        assert_eq!(body.as_ptr(), again.as_ptr());
        assert!(Arc::ptr_eq(&value, &same));
        assert_eq!(in_use(&documents, 2), None);
        drop((value, same));
        assert_eq!(in_use(&documents, 1), None, "the value is not in use");
        let (other, value) = added(&documents, 1);
        drop((body, again));
        assert!(in_use(&documents, 1).is_some());
        drop(other);
        assert_eq!(in_use(&documents, 1), None, "the body is not in use");
        drop(value);
    }

    #[test]
    fn bodies_that_are_not_in_use_are_removed() {
        let documents = Documents::default();
        drop(added(&documents, 1));
        let _used = added(&documents, 2);
        assert_eq!(documents.0.lock().expect("no panic").len(), 1);
        assert_eq!(Digest::of(&vec![0; LARGE - 1]), None);
    }
}
