//! A client: chooses operations at random, and records them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio_util::sync::CancellationToken;

use super::check::own_key;
use super::history::{Action, Content, Operation, Outcome, State};
use super::workload::Workload;

/// The pause after a request without a response.
const PAUSE: Duration = Duration::from_millis(20);

/// The kinds of operations, and how often clients choose each.
const WEIGHTS: [(Verb, u32); 11] = [
    (Verb::Create, 16),
    (Verb::Update, 20),
    (Verb::UpdateAny, 6),
    (Verb::MergePatch, 12),
    (Verb::JsonPatch, 8),
    (Verb::Apply, 10),
    (Verb::Delete, 4),
    (Verb::DeleteVersion, 6),
    (Verb::Get, 12),
    (Verb::List, 3),
    (Verb::Pages, 3),
];

/// A kind of operation.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Verb {
    Create,
    Update,
    UpdateAny,
    MergePatch,
    JsonPatch,
    Apply,
    Delete,
    DeleteVersion,
    Get,
    List,
    Pages,
}

impl Verb {
    pub(super) const OPTIONAL: [Self; 8] = [
        Self::Update,
        Self::UpdateAny,
        Self::MergePatch,
        Self::JsonPatch,
        Self::Apply,
        Self::DeleteVersion,
        Self::List,
        Self::Pages,
    ];

    /// Returns the operation on an object. Without a known state, some become a GET.
    pub(super) fn action(
        self,
        name: &str,
        key: &str,
        value: &str,
        known: Option<&State>,
    ) -> Action {
        let own = || Content::from([(key.to_owned(), value.to_owned())]);
        let name = name.to_owned();
        match (self, known) {
            (Self::Create, _) => Action::Create(name, own()),
            (Self::Update, Some(state)) => {
                let mut content = state.content.clone();
                content.extend(own());
                Action::Update(name, Some(state.version.clone()), content)
            }
            (Self::UpdateAny, _) => Action::Update(name, None, own()),
            (Self::MergePatch, _) => Action::MergePatch(name, own()),
            (Self::JsonPatch, _) => Action::JsonPatch(name, own()),
            (Self::Apply, _) => Action::Apply(name, own()),
            (Self::Delete, _) => Action::Delete(name, None),
            (Self::DeleteVersion, Some(state)) => Action::Delete(name, Some(state.version.clone())),
            (Self::List, _) => Action::List(None),
            (Self::Pages, _) => Action::List(Some(2)),
            (Self::Get | Self::Update | Self::DeleteVersion, _) => Action::Get(name),
        }
    }
}

/// What ends the work of the clients.
#[derive(Clone, Debug)]
pub(super) struct Quota {
    /// Operations of each client.
    pub(super) operations: usize,
    /// The clients go on until this is cancelled.
    pub(super) least: CancellationToken,
    /// The clients stop when this is cancelled.
    pub(super) most: CancellationToken,
}

/// A client of the server under test.
#[derive(Debug)]
pub(super) struct Worker {
    pub(super) workload: Arc<Workload>,
    pub(super) number: usize,
    /// Verbs that the target does not support.
    pub(super) without: Vec<Verb>,
    random: StdRng,
    /// The number of the last write, which makes the content of each write unique.
    writes: u64,
}

impl Worker {
    pub(super) fn new(
        workload: &Arc<Workload>,
        number: usize,
        seed: u64,
        without: &[Verb],
    ) -> Self {
        let seed = seed.wrapping_mul(1009).wrapping_add(number as u64);
        Self {
            workload: Arc::clone(workload),
            number,
            without: without.to_vec(),
            random: StdRng::seed_from_u64(seed),
            writes: 0,
        }
    }

    /// Works until the quota is used. Returns itself for the next round, and its operations.
    pub(super) async fn work(mut self, quota: Quota) -> (Self, Vec<Operation>) {
        let mut done = Vec::new();
        let mut known: BTreeMap<usize, State> = BTreeMap::new();
        while (done.len() < quota.operations || !quota.least.is_cancelled())
            && !quota.most.is_cancelled()
        {
            let place = self.random.random_range(..self.workload.names.len());
            let verb = self.verb();
            let action = self.action(verb, place, known.get(&place));
            let operation = self.workload.perform(self.number, action).await;
            match &operation.outcome {
                Outcome::Object(state) => drop(known.insert(place, state.clone())),
                Outcome::Deleted(_) => drop(known.remove(&place)),
                // A stale version would be rejected again and again.
                Outcome::Rejected(..) if self.random.random_ratio(1, 2) => {
                    known.remove(&place);
                }
                Outcome::Unknown(_) => tokio::time::sleep(PAUSE).await,
                _ => {}
            }
            done.push(operation);
        }
        (self, done)
    }

    /// Returns the operation of a verb.
    pub(super) fn action(&mut self, verb: Verb, place: usize, known: Option<&State>) -> Action {
        self.writes += 1;
        let value = self.writes.to_string();
        verb.action(&self.workload.names[place], &own_key(self.number), &value, known)
    }

    fn verb(&mut self) -> Verb {
        let total = WEIGHTS.iter().map(|(_, weight)| weight).sum();
        let mut left = self.random.random_range(0..total);
        let chosen = WEIGHTS.iter().find_map(|(verb, weight)| {
            let is_chosen = left < *weight;
            left = left.saturating_sub(*weight);
            is_chosen.then_some(*verb)
        });
        chosen.filter(|verb| !self.without.contains(verb)).unwrap_or(Verb::Get)
    }
}
