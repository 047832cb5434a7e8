//! The order of versions.

use std::collections::BTreeMap;

use crate::generated::stress::history::History;

/// Returns the position of each version: its number, or else its place in the first watch.
#[derive(Debug)]
pub(super) struct Order {
    pub(super) numeric: bool,
    places: BTreeMap<String, u64>,
}

impl Order {
    pub(super) fn of(history: &History) -> Self {
        let mut places = BTreeMap::new();
        if !history.numeric {
            let initial = &history.initial;
            let initial =
                initial.objects.iter().map(|state| &state.version).chain([&initial.version]);
            places.extend(initial.map(|version| (version.clone(), 0)));
            let first = history.watches.iter().filter(|watch| watch.watcher == 0);
            for (place, event) in first.flat_map(|watch| &watch.events).enumerate() {
                places.entry(event.state.version.clone()).or_insert(place as u64 + 1);
            }
        }
        Self { numeric: history.numeric, places }
    }

    /// Returns the position of a version. `None` if it is unknown or malformed.
    pub(super) fn position(&self, version: &str) -> Option<u64> {
        if !self.numeric {
            return self.places.get(version).copied();
        }
        let is_decimal = version.bytes().all(|byte| byte.is_ascii_digit());
        version.parse().ok().filter(|_| is_decimal && !version.starts_with('0'))
    }

    /// Reports whether a version can never have a position.
    pub(super) fn is_malformed(&self, version: &str) -> bool {
        version.is_empty() || (self.numeric && self.position(version).is_none())
    }
}
