//! A checked part of an expression: its type, its size and its cost.

use super::size::{Place, Range};
use super::types::Type;

/// The sizes of the keys and values of a container that the expression creates.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) keys: Range,
    pub(super) values: Range,
}

impl Entry {
    /// Returns the sizes of a container that is one of two.
    pub(super) fn union(one: Option<Self>, other: Option<Self>) -> Option<Self> {
        let (one, other) = (one?, other?);
        Some(Self { keys: one.keys.union(other.keys), values: one.values.union(other.values) })
    }
}

#[derive(Clone, Debug)]
pub(super) struct Node<'s> {
    pub(super) ty: Type<'s>,
    /// The maximum number of steps of an evaluation.
    pub(super) cost: u64,
    /// The size of the value, if it is known.
    pub(super) size: Option<Range>,
    pub(super) entry: Option<Entry>,
    pub(super) place: Place<'s>,
    /// The value of a literal.
    pub(super) literal: Option<u64>,
}

impl<'s> Node<'s> {
    /// Returns a value that the schema does not describe.
    pub(super) fn new(ty: Type<'s>, cost: u64) -> Self {
        Self {
            size: ty.is_scalar().then_some(Range::ONE),
            ty,
            cost,
            entry: None,
            place: Place::None,
            literal: None,
        }
    }

    /// Returns a value with a size that the expression determines.
    #[must_use]
    pub(super) fn sized(mut self, size: Option<Range>) -> Self {
        self.size = size.or(self.size);
        self
    }

    /// Returns a value at a place of the schema. The limit of the schema decides its size.
    #[must_use]
    pub(super) fn at(mut self, place: Place<'s>) -> Self {
        self.place = place;
        self.size = place.size().or(self.size);
        self
    }

    pub(super) fn size_or_unknown(&self) -> Range {
        self.size.unwrap_or(Range::UNKNOWN)
    }

    /// Returns the size of the items of a list.
    pub(super) fn item_size(&self) -> Range {
        self.place.item_size().unwrap_or(Range::UNKNOWN)
    }

    /// Returns the value of an integer literal.
    pub(super) fn number(&self) -> Option<u64> {
        self.literal
    }
}
