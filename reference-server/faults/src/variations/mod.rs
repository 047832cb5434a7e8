//! Valid variations: differences between servers that the conventions permit.
//!
//! Each server with variations has one [`VariationMiddleware`], which changes requests and
//! responses. The proxy sets `headers-in-title-case` and `http1-only` for its connections. Two
//! variations are options of the server: `object-on-delete`, since only the server has the deleted
//! object, and `short-history`.

mod events;
mod middleware;
mod request;
mod responses;
mod tokens;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

pub(crate) use self::middleware::VariationMiddleware;

kubeproof_apimachinery::named! {
    /// A difference that the conventions permit.
    Variation {
        OpaqueVersions "opaque-versions" "Resource versions are texts without an order."
        OtherUids "other-uids" "UIDs are not UUIDs."
        OpaqueContinue "opaque-continue" "Continue tokens have another form."
        UnknownFields "unknown-fields"
            "Metadata and Status details have additional, unknown fields."
        OtherMessages "other-messages" "Error messages have a different wording."
        MetadataAtAdmission "metadata-at-admission"
            "Admission adds a label and an annotation to new objects."
        DefaultsAtAdmission "defaults-at-admission"
            "Admission sets immutable to false on new config maps and secrets."
        OtherSuffixes "other-suffixes" "generateName appends longer suffixes from other characters."
        StatusOnDelete "status-on-delete" "DELETE returns a Status instead of the object."
        ObjectOnDelete "object-on-delete" "DELETE returns the object instead of a Status."
        DeletionAccepted "deletion-accepted" "DELETE returns 202 Accepted."
        ListsReversed "lists-reversed" "The items of a list or page have the reverse order."
        CountsOmitted "counts-omitted" "Pages omit the number of remaining items."
        ManyBookmarks "many-bookmarks" "A watch with bookmarks sends one after every event."
        FewBookmarks "few-bookmarks"
            "A watch sends only the bookmark at the end of its initial events."
        WatchesEnd "watches-end"
            "The server closes watches early, whatever timeout the client requested."
        TooManyRequests "too-many-requests" "Some requests get 429 with Retry-After first."
        SlowResponses "slow-responses" "Some responses start with a delay."
        SlowBodies "slow-bodies" "Some response bodies arrive late and in pieces."
        Chunked "chunked" "Response bodies are chunked and have no Content-Length."
        ConnectionsClose "connections-close" "The server closes the connection after each response."
        GzipAlways "gzip-always" "Every response is compressed if the client accepts gzip."
        HeadersRearranged "headers-rearranged"
            "Response headers have another order, and there are additional headers."
        HeadersInTitleCase "headers-in-title-case"
            "Names of response headers start with capital letters."
        Http1Only "http1-only" "The server does not support HTTP/2."
        ShortHistory "short-history" "The server compacts old versions early."
        CharsetsNamed "charsets-named" "The content type of JSON includes a charset."
        WarningsAlways "warnings-always" "Every response has a Warning header."
        IndentedAlways "indented-always" "JSON is always indented."
        ClockOff "clock-off" "The clock of the server is hours ahead or behind."
        DetailsOmitted "details-omitted"
            "A Status has details only if they hold causes or a delay."
        EventsConcatenated "events-concatenated" "A watch sends no newlines between events."
        ApiVersionOmitted "api-version-omitted"
            "The lists of groups and of core versions omit apiVersion."
        OptionsAsText "options-as-text" "OPTIONS returns 405 with a plain text."
        ItemsOnePerPage "items-one-per-page"
            "A page has one item, whatever limit it was requested with."
        ImagesAlwaysPulled "images-always-pulled"
            "Admission sets imagePullPolicy to Always in new pods."
    }
}

/// A set of variations, and the seed of their random choices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Variations {
    set: u64,
    seed: u64,
}

/// A seed selects one in this number of variations.
const CHOSEN_ONE_IN: u32 = 3;

impl Variations {
    /// Returns the empty set: the server responds without changes.
    pub const fn none() -> Self {
        Self { set: 0, seed: 0 }
    }

    /// Returns the variations that a seed selects. A seed always selects the same set.
    pub fn from_seed(seed: u64) -> Self {
        let mut random = StdRng::seed_from_u64(seed);
        let chosen = Variation::all().filter(|_| random.random_ratio(1, CHOSEN_ONE_IN));
        chosen.fold(Self { set: 0, seed }, Self::with)
    }

    /// Returns this set with one more variation.
    #[must_use]
    pub const fn with(mut self, variation: Variation) -> Self {
        self.set |= 1 << variation as u64;
        self
    }

    /// Returns whether the set contains the variation.
    pub const fn on(self, variation: Variation) -> bool {
        self.set & (1 << variation as u64) != 0
    }

    /// Returns the variations in the set.
    pub fn iter(self) -> impl Iterator<Item = Variation> {
        Variation::all().filter(move |variation| self.on(*variation))
    }

    /// Returns whether the set is empty.
    pub const fn is_none(self) -> bool {
        self.set == 0
    }

    /// Returns the seed of the random choices.
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
    fn names_are_unique_and_identify_their_variation() {
        let names: BTreeSet<&str> = Variation::all().map(Variation::name).collect();
        assert_eq!(names.len(), Variation::all().count());
        for variation in Variation::all() {
            assert_eq!(Variation::from_name(variation.name()), Some(variation));
        }
    }

    #[test]
    fn a_seed_chooses_the_same_each_time_and_fifty_seeds_choose_everything() {
        assert_eq!(Variations::from_seed(7), Variations::from_seed(7));
        let chosen: BTreeSet<&str> = (0..50)
            .flat_map(|seed| Variations::from_seed(seed).iter())
            .map(Variation::name)
            .collect();
        assert_eq!(chosen.len(), Variation::all().count());
    }
}
