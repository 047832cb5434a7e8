//! The deliberate bugs of this server: what a conformance suite must be able to find.
//!
//! Every fault is one row of the table in `table.rs` and one `if` beside the rule that it bends, so the correct path reads as if it
//! were not there. A set of them is a few machine words that are copied about: a fault that is off costs a bit test.

#[macro_use]
mod table;

/// Names the bits that a [`Faults`] set has room for.
const WORDS: usize = 12;

macro_rules! faults {
    ($($rows:tt)*) => {
        named! {
            /// A deliberate bug.
            #[expect(clippy::doc_markdown, reason = "the same sentences are printed for people")]
            Fault { $($rows)* }
        }
    };
}

rows! { faults }

/// A set of faults.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults([u64; WORDS]);

impl Faults {
    /// No fault: the server is correct.
    pub const fn none() -> Self {
        Self([0; WORDS])
    }

    /// This set and one fault more.
    #[must_use]
    pub const fn with(mut self, fault: Fault) -> Self {
        self.0[fault as usize / 64] |= 1 << (fault as usize % 64);
        self
    }

    /// Whether the server has one of these bugs.
    pub fn any(self, faults: &[Fault]) -> bool {
        faults.iter().any(|fault| self.on(*fault))
    }

    /// Whether the server has this bug.
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
    fn names_are_unique_kebab_case_and_lead_back_to_their_fault() {
        let mut seen = BTreeSet::new();
        for fault in Fault::all() {
            let name = fault.name();
            assert!(seen.insert(name), "{name} stands twice in the table");
            assert!(name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'), "{name}");
            assert_eq!(Fault::from_name(name), Some(fault));
            assert!(fault.summary().ends_with('.'), "{name}: a summary is a sentence");
        }
        assert!(seen.len() <= WORDS * 64, "the set has no room for so many faults");
    }

    #[test]
    fn a_set_holds_what_was_put_in_and_nothing_else() {
        for fault in Fault::all() {
            let set = Faults::from(fault);
            assert!(Fault::all().all(|other| set.on(other) == (other == fault)));
        }
    }
}
