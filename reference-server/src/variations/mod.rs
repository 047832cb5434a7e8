//! Lawful differences: what another server might do otherwise and be no less right.
//!
//! They are a front that stands before the server (`front`), as a gateway would: it changes what goes in and what comes out,
//! within what the conventions allow. The server behind it knows nothing of them, and without them there is no front. The one
//! exception is what only the server has: the object that a DELETE removed.

mod answer;
mod events;
mod front;
mod request;
mod tokens;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

pub(crate) use self::front::Front;

named! {
    /// A lawful difference.
    Variation {
        OpaqueVersions "opaque-versions" "resourceVersions are text without an order."
        OtherUids "other-uids" "UIDs are no UUIDs."
        OpaqueContinue "opaque-continue" "Tokens of pages have another form."
        UnknownFields "unknown-fields" "metadata and the details of a Status have members that nobody knows."
        OtherMessages "other-messages" "The messages of failures have other words."
        MetadataAtAdmission "metadata-at-admission" "New objects get a label and an annotation more."
        DefaultsAtAdmission "defaults-at-admission" "New config maps and secrets say that they are not immutable."
        OtherSuffixes "other-suffixes" "generateName makes other and longer suffixes."
        StatusOnDelete "status-on-delete" "DELETE answers a Status where it would have answered the object."
        ObjectOnDelete "object-on-delete" "DELETE answers the object where it would have answered a Status."
        DeletionAccepted "deletion-accepted" "DELETE answers 202."
        ListsReversed "lists-reversed" "The items of a list, or of a page, stand the other way round."
        CountsUntold "counts-untold" "A page does not tell how many items remain."
        ManyBookmarks "many-bookmarks" "A watch that asks for bookmarks gets one after every event."
        FewBookmarks "few-bookmarks" "A watch gets no bookmark but the one at the end of its initial events."
        WatchesEnd "watches-end" "A watch ends after some events or some time, whatever timeout was asked for."
        TooManyRequests "too-many-requests" "Some requests are answered 429 with Retry-After first."
        SlowAnswers "slow-answers" "Some answers take their time to begin."
        SlowBodies "slow-bodies" "Some bodies come in pieces, and some time after their head."
        Chunked "chunked" "Bodies are sent in chunks and do not announce their length."
        ConnectionsClose "connections-close" "A connection is closed after its answer."
        GzipAlways "gzip-always" "Every body is compressed, if that is accepted."
        HeadersRearranged "headers-rearranged" "Headers stand in another order, and there are some more of them."
        HeadersInTitleCase "headers-in-title-case" "Names of headers begin with capital letters."
        Http1Only "http1-only" "HTTP/2 is not spoken."
        ShortHistory "short-history" "Old versions are forgotten soon."
        CharsetsNamed "charsets-named" "The content type of JSON names its charset."
        WarningsAlways "warnings-always" "Every answer carries a warning of its own."
        IndentedAlways "indented-always" "JSON is indented, whether asked for or not."
        ClockOff "clock-off" "The server's clock is hours ahead or behind."
    }
}

/// Some variations, and the seed of every choice that they make.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Variations {
    set: u64,
    seed: u64,
}

/// One of so many variations is chosen by a seed.
const CHOSEN_ONE_IN: u32 = 3;

impl Variations {
    /// None: the server answers for itself.
    pub const fn none() -> Self {
        Self { set: 0, seed: 0 }
    }

    /// The variations that a seed chooses; the same ones each time.
    pub fn from_seed(seed: u64) -> Self {
        let mut random = StdRng::seed_from_u64(seed);
        let chosen = Variation::all().filter(|_| random.random_ratio(1, CHOSEN_ONE_IN));
        chosen.fold(Self { set: 0, seed }, Self::with)
    }

    /// This set and one variation more.
    #[must_use]
    pub const fn with(mut self, variation: Variation) -> Self {
        self.set |= 1 << variation as u64;
        self
    }

    /// Whether the server differs in this way.
    pub const fn on(self, variation: Variation) -> bool {
        self.set & (1 << variation as u64) != 0
    }

    /// The variations in the set.
    pub fn iter(self) -> impl Iterator<Item = Variation> {
        Variation::all().filter(move |variation| self.on(*variation))
    }

    /// Whether there are none.
    pub const fn is_none(self) -> bool {
        self.set == 0
    }

    /// The seed of their choices.
    pub const fn seed(self) -> u64 {
        self.seed
    }
}

impl FromIterator<Variation> for Variations {
    fn from_iter<I: IntoIterator<Item = Variation>>(variations: I) -> Self {
        variations.into_iter().fold(Self::none(), Self::with)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique_and_lead_back_to_their_variation() {
        let names: BTreeSet<&str> = Variation::all().map(Variation::name).collect();
        assert_eq!(names.len(), Variation::all().count());
        for variation in Variation::all() {
            assert_eq!(Variation::from_name(variation.name()), Some(variation));
        }
    }

    #[test]
    fn a_seed_chooses_the_same_each_time_and_fifty_seeds_choose_everything() {
        assert_eq!(Variations::from_seed(7), Variations::from_seed(7));
        let chosen: BTreeSet<&str> =
            (0..50).flat_map(|seed| Variations::from_seed(seed).iter()).map(Variation::name).collect();
        assert_eq!(chosen.len(), Variation::all().count());
    }
}
