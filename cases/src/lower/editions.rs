//! Under which editions a check is judged.
//!
//! A check that says nothing of editions is judged wherever one of its requirements stands, so that no run is judged by what
//! its edition does not ask for. One that names editions may also rest on what the ledger says that those ask for instead.

use std::ops::Range;

use super::Lowering;
use crate::case::Edition;

impl Lowering<'_> {
    /// The editions of a check that judges these requirements and confines itself to those `named`, if any are.
    pub(super) fn editions_of(
        &mut self,
        named: &[Edition],
        requirements: &[String],
        place: &Range<usize>,
    ) -> Vec<Edition> {
        let confined: Vec<Edition> = Edition::ALL
            .into_iter()
            .filter(|edition| [named, &self.editions].iter().all(|to| to.is_empty() || to.contains(edition)))
            .collect();
        let explicit = !named.is_empty() || !self.editions.is_empty();
        let ledger = self.known.ledger;
        let known: Vec<_> = requirements.iter().filter_map(|id| ledger.get(id)).collect();
        let editions: Vec<Edition> = confined
            .into_iter()
            .filter(|edition| {
                // What has no requirement that is known is reported elsewhere.
                known.is_empty()
                    || known.iter().any(|requirement| {
                        requirement.editions.contains(edition)
                            || explicit && requirement.texts.contains_key(edition)
                    })
            })
            .collect();
        if editions.is_empty() {
            self.error(place, "never-judged", "no requirement of this check stands in any of its editions")
                .set_help("compare `editions` with those of the requirements in the ledger");
        }
        self.judged.extend(&editions);
        editions
    }

    /// Counts a check that judges all requirements of the case wherever they stand.
    pub(super) fn judges_all(&mut self, place: &Range<usize>) {
        let requirements = self.requirements.clone();
        self.editions_of(&[], &requirements, place);
    }
}
