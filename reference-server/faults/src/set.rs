//! Sets of faults.

use crate::behaviours::Fault;

/// The capacity of a [`Faults`] set, in words of 64 bits.
const WORDS: usize = Fault::COUNT.div_ceil(64);

/// A set of faults.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults([u64; WORDS]);

impl Faults {
    /// Returns the empty set: the server is correct.
    pub const fn none() -> Self {
        Self([0; WORDS])
    }

    /// Returns this set with one more fault.
    #[must_use]
    pub const fn with(mut self, fault: Fault) -> Self {
        self.0[fault as usize / 64] |= 1 << (fault as usize % 64);
        self
    }

    /// Returns whether the server has one of these bugs.
    pub fn any(self, faults: &[Fault]) -> bool {
        faults.iter().any(|fault| self.on(*fault))
    }

    /// Returns the faults in the set, in the order of the enumeration.
    pub fn iter(self) -> impl Iterator<Item = Fault> {
        Fault::all().filter(move |fault| self.on(*fault))
    }

    /// Returns whether the set is empty.
    pub fn is_none(self) -> bool {
        self == Self::none()
    }

    /// Returns whether the server has this bug.
    pub const fn on(self, fault: Fault) -> bool {
        self.0[fault as usize / 64] & (1 << (fault as usize % 64)) != 0
    }
}

impl FromIterator<Fault> for Faults {
    fn from_iter<I: IntoIterator<Item = Fault>>(faults: I) -> Self {
        faults.into_iter().fold(Self::none(), Self::with)
    }
}

impl From<Fault> for Faults {
    fn from(fault: Fault) -> Self {
        Self::none().with(fault)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique_kebab_case_and_parse_to_their_fault() {
        let mut seen = BTreeSet::new();
        for fault in Fault::all() {
            let name = fault.name();
            assert!(seen.insert(name), "two rows have the name {name}");
            assert!(
                name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'),
                "{name}"
            );
            assert_eq!(Fault::from_name(name), Some(fault));
            assert!(fault.summary().ends_with('.'), "{name}: a summary is a sentence");
        }
    }

    #[test]
    fn a_set_contains_only_the_added_faults() {
        for fault in Fault::all() {
            let set = Faults::from(fault);
            assert!(Fault::all().all(|other| set.on(other) == (other == fault)));
        }
    }
}
