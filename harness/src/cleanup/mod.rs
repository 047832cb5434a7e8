//! Removes the objects of a run when a case ends, when it panics, and when the run ends.
//!
//! Objects in the run's namespace, or of its own resources, go at the end by one request per
//! collection. All others go one by one as soon as their case is over. Cleanup does not delay
//! verdicts, and ends before the run does.
//!
//! With `--keep`, the objects of failed cases stay, with the namespace and the definitions that
//! they need.

mod collection;
mod leftovers;
mod remover;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::join_all;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::exchange::{Exchange, Outcome, Sent};
use crate::transport::{Client, Outgoing};

pub(crate) use self::collection::Collection;
pub use self::leftovers::{FindError, Found, Leftover, find, remove};
use self::remover::{Remover, namespace_path};

/// Concurrent deletions.
const AT_ONCE: usize = 8;

pub(crate) const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Everything that belongs to the run as a whole.
#[derive(Clone, Debug, Default)]
pub(crate) struct Property {
    pub(crate) namespace: Option<String>,
    pub(crate) groups: BTreeSet<String>,
    pub(crate) definitions: Vec<String>,
    /// True if the objects of failed cases stay.
    pub(crate) keeps_failed: bool,
}

/// Time limits of the cleanup.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimeLimits {
    pub(crate) usual: Duration,
    /// From the interrupt on.
    pub(crate) interrupted: Duration,
}

/// Removes objects in the background.
#[derive(Debug)]
pub(crate) struct Cleaner {
    remover: Remover,
    property: Property,
    queue: mpsc::UnboundedSender<String>,
    worker: JoinHandle<()>,
    /// Collections of the run that hold objects.
    collections: Arc<Mutex<BTreeSet<String>>>,
    kept: Arc<Mutex<Vec<Created>>>,
}

/// Tracks what a case creates. Drop queues all of it for removal, in reverse order.
#[derive(Debug)]
pub(crate) struct Tracker {
    created: Mutex<Vec<Created>>,
    queue: mpsc::UnboundedSender<String>,
    collections: Arc<Mutex<BTreeSet<String>>>,
    kept: Arc<Mutex<Vec<Created>>>,
    property: Property,
    remover: Remover,
}

#[derive(Debug)]
struct Created {
    path: String,
    collection: Collection,
    /// False after the server rejected the request.
    stands: bool,
}

/// A request that may create an object, before its response is known.
#[derive(Debug)]
pub(crate) struct Intent(Option<usize>);

impl Cleaner {
    pub(crate) fn start(client: &Client, property: Property) -> Self {
        let (queue, paths) = mpsc::unbounded_channel::<String>();
        let remover = Remover::new(client);
        let worker = tokio::spawn({
            let remover = remover.clone();
            let paths = futures_util::stream::unfold(paths, |mut paths| async {
                Some((paths.recv().await?, paths))
            });
            async move {
                paths
                    .for_each_concurrent(AT_ONCE, |path| {
                        let remover = remover.clone();
                        async move { remover.remove(&path).await }
                    })
                    .await;
            }
        });
        Self { remover, property, queue, worker, collections: Arc::default(), kept: Arc::default() }
    }

    pub(crate) fn tracker(&self) -> Tracker {
        Tracker {
            created: Mutex::default(),
            queue: self.queue.clone(),
            collections: Arc::clone(&self.collections),
            kept: Arc::clone(&self.kept),
            property: self.property.clone(),
            remover: self.remover.clone(),
        }
    }

    /// Returns the paths of the objects of failed cases that stay.
    pub(crate) fn kept(&self) -> Vec<String> {
        lock(&self.kept).iter().map(|created| created.path.clone()).collect()
    }

    /// Removes nothing more, because the server does not respond. Returns what is left.
    pub(crate) fn give_up(self) -> Vec<String> {
        let Self { remover, property, worker, kept, .. } = self;
        worker.abort();
        remover.expect(property.without_needed(&lock(&kept)).paths());
        remover.into_notices("the server does not respond")
    }

    /// Removes everything that is left, and returns what could not be removed. All trackers must be
    /// dropped before.
    pub(crate) async fn finish(
        self,
        limits: TimeLimits,
        interrupt: &CancellationToken,
    ) -> Vec<String> {
        let Self { remover, property, queue, mut worker, collections, kept } = self;
        let property = property.without_needed(&lock(&kept));
        remover.expect(property.paths());
        drop(queue);
        let everything = async {
            if (&mut worker).await.is_err() {
                remover.notice("", "the cleanup task panicked".to_owned());
            }
            let collections = std::mem::take(&mut *lock(&collections));
            join_all(collections.iter().map(|collection| remover.empty(collection))).await;
            let definitions = property.definitions.iter().map(|name| format!("{CRDS}/{name}"));
            join_all(definitions.map(async |path| remover.remove(&path).await)).await;
            if let Some(namespace) = &property.namespace {
                remover.remove_namespace(namespace).await;
            }
        };
        let timed_out = async {
            let interrupted = async {
                interrupt.cancelled().await;
                tokio::time::sleep(limits.interrupted).await;
            };
            tokio::select! {
                () = tokio::time::sleep(limits.usual) => limits.usual,
                () = interrupted => limits.interrupted,
            }
        };
        let limit = tokio::select! {
            () = everything => return remover.into_notices("the cleanup ended early"),
            limit = timed_out => limit,
        };
        worker.abort();
        remover.into_notices(&format!("the cleanup took longer than {limit:?}"))
    }
}

impl Tracker {
    /// Records the object that a request may create, before sending it: its response may get lost.
    pub(crate) fn intend(&self, request: &Outgoing) -> Intent {
        let name = || {
            let body: Value = serde_json::from_slice(&request.body).ok()?;
            Some(body.get("metadata")?.get("name")?.as_str()?.to_owned())
        };
        if request.method != "POST" {
            return Intent(None);
        }
        Intent(Collection::of(&request.target).and_then(|collection| {
            let path = collection.object(&name()?)?;
            Some(self.add(path, collection))
        }))
    }

    /// Records the object of a create whose name may come again.
    pub(crate) fn intend_again(&self, request: &Outgoing) {
        let path = || {
            let body: Value = serde_json::from_slice(&request.body).ok()?;
            let name = body.get("metadata")?.get("name")?.as_str()?;
            Collection::of(&request.target)?.object(name)
        };
        let is_known =
            |path: String| lock(&self.created).iter().any(|created| created.path == path);
        if request.method == "POST" && !path().is_some_and(is_known) {
            self.intend(request);
        }
    }

    /// Records an object that exists although its create failed.
    pub(crate) fn found(&self, created: &Sent) {
        let name = || {
            let body: Value = serde_json::from_slice(&created.body).ok()?;
            Some(body.get("metadata")?.get("name")?.as_str()?.to_owned())
        };
        if let Some((collection, name)) = Collection::of(&created.target).zip(name())
            && let Some(path) = collection.object(&name)
        {
            self.add(path, collection);
        }
    }

    /// Records the outcome. A rejection created nothing, and only a response has a generated name.
    pub(crate) fn settle(&self, intent: &Intent, exchange: &Exchange) {
        let Outcome::Response(response) = &exchange.outcome else { return };
        if !(200..300).contains(&response.status) {
            if let Some(intended) = intent.0
                && let Some(created) = lock(&self.created).get_mut(intended)
            {
                created.stands = false;
            }
            return;
        }
        let named = || response.json.as_ref()?.get("metadata")?.get("name")?.as_str();
        match exchange.request.method.as_str() {
            "POST" if intent.0.is_none() => {
                if let Some((collection, name)) =
                    Collection::of(&exchange.request.target).zip(named())
                    && let Some(path) = collection.object(name)
                {
                    self.add(path, collection);
                }
            }
            "PUT" | "PATCH" if response.status == 201 => {
                let path = exchange.request.target.split('?').next().unwrap_or_default();
                if let Some(collection) =
                    path.rsplit_once('/').and_then(|(parent, _)| Collection::of(parent))
                {
                    self.add(path.to_owned(), collection);
                }
            }
            _ => {}
        }
    }

    /// Leaves the objects of the case in place.
    pub(crate) fn keep(&self) {
        let created = std::mem::take(&mut *lock(&self.created));
        lock(&self.kept).extend(created.into_iter().filter(|created| created.stands));
    }

    fn add(&self, path: String, collection: Collection) -> usize {
        let mut created = lock(&self.created);
        created.push(Created { path, collection, stands: true });
        created.len() - 1
    }
}

impl Drop for Tracker {
    fn drop(&mut self) {
        let created = self.created.get_mut().unwrap_or_else(PoisonError::into_inner);
        let mut queued = BTreeSet::new();
        for created in created.drain(..).rev().filter(|created| created.stands) {
            // A collection may also hold objects of a failed case, which stay.
            if self.property.holds(&created.collection) && !self.property.keeps_failed {
                lock(&self.collections).insert(created.collection.path);
            } else if queued.insert(created.path.clone()) {
                self.remover.expect([created.path.clone()]);
                // The receiver is gone only after the cleanup timed out, which has its own notice.
                let _ = self.queue.send(created.path);
            }
        }
    }
}

impl Property {
    /// Returns what no kept object needs.
    fn without_needed(mut self, kept: &[Created]) -> Self {
        let is_inside = |created: &Created| {
            created.collection.namespace.is_some() && created.collection.namespace == self.namespace
        };
        if kept.iter().any(is_inside) {
            self.namespace = None;
        }
        let serves = |definition: &str, created: &Created| {
            let Collection { path, group, .. } = &created.collection;
            let plural = path.rsplit('/').next().unwrap_or_default();
            definition.split_once('.') == Some((plural, group))
        };
        self.definitions
            .retain(|definition| !kept.iter().any(|created| serves(definition, created)));
        self
    }

    /// Returns the paths of the definitions and the namespace.
    fn paths(&self) -> Vec<String> {
        let definitions = self.definitions.iter().map(|name| format!("{CRDS}/{name}"));
        definitions.chain(self.namespace.as_deref().map(namespace_path)).collect()
    }

    fn holds(&self, collection: &Collection) -> bool {
        self.groups.contains(&collection.group)
            || (collection.namespace.is_some() && collection.namespace == self.namespace)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;
    use crate::target::TargetConfig;
    use crate::transport::Limits;

    /// Starts the cleanup on a server that accepts connections and sends nothing.
    async fn on_silent_server() -> (TcpListener, Cleaner) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let config = TargetConfig::new(&url).unwrap();
        let client = Client::new(&config, Limits::default()).unwrap();
        let namespace = Some("kubeproof-a2c123".to_owned());
        let property = Property { namespace, ..Property::default() };
        (listener, Cleaner::start(&client, property))
    }

    /// Records an object as often as given.
    fn create(cleaner: &Cleaner, times: usize) {
        let tracker = cleaner.tracker();
        for _ in 0..times {
            let path = "/api/v1/nodes/kp-a2c123-1".to_owned();
            tracker.add(path, Collection::of("/api/v1/nodes").unwrap());
        }
    }

    /// The usual limit would end the test much later.
    #[tokio::test]
    async fn an_interrupt_ends_the_cleanup_and_each_object_is_reported_once() {
        let (_listener, cleaner) = on_silent_server().await;
        create(&cleaner, 3);
        let limits =
            TimeLimits { usual: Duration::from_hours(1), interrupted: Duration::from_millis(20) };
        let interrupt = CancellationToken::new();
        interrupt.cancel();
        let notices = cleaner.finish(limits, &interrupt).await;
        let [notice] = notices.as_slice() else { panic!("{notices:?}") };
        for path in ["/api/v1/nodes/kp-a2c123-1", "/api/v1/namespaces/kubeproof-a2c123"] {
            assert_eq!(notice.matches(path).count(), 1, "{notice}");
        }
    }

    #[tokio::test]
    async fn without_a_server_everything_is_left() {
        let (_listener, cleaner) = on_silent_server().await;
        create(&cleaner, 1);
        let notices = cleaner.give_up();
        let [notice] = notices.as_slice() else { panic!("{notices:?}") };
        assert!(notice.starts_with("the server does not respond; `kubeproof clean`"), "{notice}");
        assert!(notice.contains("/api/v1/nodes/kp-a2c123-1"), "{notice}");
    }
}
