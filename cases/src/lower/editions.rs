//! The editions that judge a check.
//!
//! A check without `editions` is judged by every edition that has one of its requirements, so that
//! no run is judged by a rule that its edition lacks. A check with `editions` may also rest on the
//! texts that the catalogue has for these editions.

use std::ops::Range;

use super::Lowering;
use crate::case::Edition;

impl Lowering<'_> {
    /// The editions of a check that judges these requirements and confines itself to those `named`,
    /// if any are.
    pub(super) fn editions_of(
        &mut self,
        named: &[Edition],
        requirements: &[String],
        place: &Range<usize>,
    ) -> Vec<Edition> {
        let confined: Vec<Edition> = Edition::ALL
            .into_iter()
            .filter(|edition| {
                [named, &self.editions].iter().all(|to| to.is_empty() || to.contains(edition))
            })
            .collect();
        let explicit = !named.is_empty() || !self.editions.is_empty();
        let catalogue = self.known.catalogue;
        let known: Vec<_> = requirements.iter().filter_map(|id| catalogue.get(id)).collect();
        let editions: Vec<Edition> = confined
            .into_iter()
            .filter(|edition| {
                // Unknown requirements are reported elsewhere.
                known.is_empty()
                    || known.iter().any(|requirement| {
                        requirement.editions.contains(edition)
                            || explicit && requirement.texts.contains_key(edition)
                    })
            })
            .collect();
        if editions.is_empty() {
            self.error(
                place,
                "never-judged",
                "no requirement of this check exists in any of its editions",
            )
            .set_help("compare `editions` with those of the requirements");
        }
        self.judged.extend(&editions);
        editions
    }

    /// Counts a check that judges all requirements of the case.
    pub(super) fn judges_all(&mut self, place: &Range<usize>) {
        let requirements = self.requirements.clone();
        self.editions_of(&[], &requirements, place);
    }
}
