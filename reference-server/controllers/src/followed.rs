//! Parsed cluster-scoped objects that follow a resource.

use std::collections::BTreeMap;

use kubeproof_apiserver::loopback::{Client, Resource};
use serde_json::Value;

/// The number of events to read at once.
const BATCH: usize = 1_000;

/// What a controller needs of each object of a resource, by name.
pub(crate) struct Followed<T> {
    resource: Resource,
    parse: fn(&Value) -> T,
    items: BTreeMap<String, T>,
    /// The revision of the items, or none before the first list.
    revision: Option<u64>,
}

impl<T> Followed<T> {
    pub(crate) fn new(resource: Resource, parse: fn(&Value) -> T) -> Self {
        Self { resource, parse, items: BTreeMap::new(), revision: None }
    }

    pub(crate) fn resource(&self) -> &Resource {
        &self.resource
    }

    pub(crate) fn get(&self, name: &str) -> Option<&T> {
        self.items.get(name)
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = (&String, &T)> {
        self.items.iter()
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &T> {
        self.items.values()
    }

    /// Applies the changes since the last call.
    pub(crate) fn catch_up(&mut self, client: &Client) {
        while let Some(revision) = self.revision {
            let Ok((events, newest)) = client.events_after(&self.resource, revision, BATCH) else {
                break;
            };
            let is_complete = events.is_empty();
            for event in events {
                let name = event.object.name().to_owned();
                if event.is_removal {
                    self.items.remove(&name);
                } else {
                    self.items.insert(name, (self.parse)(&event.object.value()));
                }
            }
            self.revision = Some(newest);
            if is_complete {
                return;
            }
        }
        // The first list, or the events are expired.
        let list = client.list(&self.resource, None);
        let parsed =
            list.items.iter().map(|one| (one.name().to_owned(), (self.parse)(&one.value())));
        self.items = parsed.collect();
        self.revision = Some(list.revision);
    }
}
