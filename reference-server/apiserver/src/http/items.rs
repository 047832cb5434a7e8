//! Writes the text of a list while it is sent. A slow client holds references to objects instead of
//! a copy of all.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;

use kubeproof_storage::Stored;

/// The size of one piece.
const PIECE: usize = 64 * 1024;

/// A list of objects, between a head and a tail.
pub struct Items {
    head: String,
    /// The text before the body of an object.
    item_head: String,
    tail: &'static str,
    waiting: VecDeque<Item>,
    begun: bool,
    ended: bool,
    /// The remaining bytes.
    length: usize,
}

enum Item {
    Stored(Arc<Stored>),
    Bytes(Bytes),
}

impl Items {
    pub fn new(head: String, item_head: String, tail: &'static str) -> Self {
        let length = head.len() + tail.len();
        Self { head, item_head, tail, waiting: VecDeque::new(), begun: false, ended: false, length }
    }

    /// Adds an object with its stored bytes.
    pub fn stored(&mut self, object: Arc<Stored>) {
        self.length += self.comma() + self.item_head.len() + object.body().len();
        self.waiting.push_back(Item::Stored(object));
    }

    /// Adds an object that is already serialised.
    pub fn bytes(&mut self, object: Bytes) {
        self.length += self.comma() + object.len();
        self.waiting.push_back(Item::Bytes(object));
    }

    fn comma(&self) -> usize {
        usize::from(!self.waiting.is_empty())
    }

    /// Returns the number of remaining bytes.
    pub fn length(&self) -> usize {
        self.length
    }

    /// Returns the next piece, or none at the end.
    pub fn next(&mut self) -> Option<Bytes> {
        self.piece(PIECE)
    }

    /// Returns all remaining bytes.
    pub fn rest(&mut self) -> Bytes {
        self.piece(usize::MAX).unwrap_or_default()
    }

    fn piece(&mut self, enough: usize) -> Option<Bytes> {
        if self.ended {
            return None;
        }
        let mut piece = Vec::with_capacity(self.length.min(enough.saturating_add(PIECE)));
        if !std::mem::replace(&mut self.begun, true) {
            piece.extend_from_slice(self.head.as_bytes());
        }
        while piece.len() < enough {
            let Some(item) = self.waiting.pop_front() else {
                piece.extend_from_slice(self.tail.as_bytes());
                self.ended = true;
                break;
            };
            match item {
                Item::Stored(object) => {
                    piece.extend_from_slice(self.item_head.as_bytes());
                    piece.extend_from_slice(object.body());
                }
                Item::Bytes(bytes) => piece.extend_from_slice(&bytes),
            }
            if !self.waiting.is_empty() {
                piece.push(b',');
            }
        }
        self.length -= piece.len();
        Some(piece.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(count: usize) -> Items {
        let mut items = Items::new("[".to_owned(), "{".to_owned(), "]");
        for n in 0..count {
            items.bytes(format!("{n:05}").into());
        }
        items
    }

    #[test]
    fn the_pieces_have_the_announced_length() {
        for count in [0, 1, 2, 50_000] {
            let expected = format!(
                "[{}]",
                (0..count).map(|n| format!("{n:05}")).collect::<Vec<_>>().join(",")
            );
            assert_eq!(items(count).length(), expected.len());
            assert_eq!(items(count).rest(), expected);
            let (mut list, mut text) = (items(count), Vec::new());
            while let Some(piece) = list.next() {
                assert!(piece.len() < PIECE + 8, "{}", piece.len());
                text.extend_from_slice(&piece);
                assert_eq!(list.length(), expected.len() - text.len());
            }
            assert_eq!(text, expected.as_bytes());
        }
    }
}
