//! Removes what a run created: when a case ends, when it dies, and at the end whatever happened.
//!
//! Objects in the run's own namespace, or of its own resources, go by one request per collection at the end, all
//! others one by one as soon as their case is over. None of it delays a verdict; all of it ends before the run does.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::capability::outgoing;
use crate::exchange::{Exchange, Outcome};
use crate::transport::{Client, Outgoing};

/// Deletions at once, beside the cases.
const AT_ONCE: usize = 8;

/// For one request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

/// How often a deletion is tried that the server does not answer, or answers with trouble of its own.
const ATTEMPTS: u32 = 3;

/// How long a namespace may take to be gone before it is looked at more closely.
const NAMESPACE_PATIENCE: Duration = Duration::from_millis(300);

pub(crate) const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// What belongs to a run as a whole, so that everything in it may go.
#[derive(Clone, Debug, Default)]
pub(crate) struct Property {
    /// The namespace that the run made.
    pub(crate) namespace: Option<String>,
    /// The groups of its own resources.
    pub(crate) groups: BTreeSet<String>,
    /// Its `CustomResourceDefinitions`, by name.
    pub(crate) definitions: Vec<String>,
}

/// Removes things in the background.
#[derive(Debug)]
pub(crate) struct Cleaner {
    remover: Remover,
    property: Property,
    queue: mpsc::UnboundedSender<String>,
    worker: JoinHandle<()>,
    /// Collections of the run's own that hold something.
    collections: Arc<Mutex<BTreeSet<String>>>,
}

/// Remembers what a case creates. Dropping it hands everything over for removal, in reverse order.
#[derive(Debug)]
pub(crate) struct Tracker {
    created: Mutex<Vec<Created>>,
    queue: mpsc::UnboundedSender<String>,
    collections: Arc<Mutex<BTreeSet<String>>>,
    property: Property,
}

#[derive(Debug)]
struct Created {
    path: String,
    collection: Collection,
    /// Taken back when the server refuses.
    stands: bool,
}

/// A request that may create something, until its answer is known.
#[derive(Debug)]
pub(crate) struct Intent(Option<usize>);

impl Cleaner {
    pub(crate) fn start(client: &Client, property: Property) -> Self {
        let (queue, paths) = mpsc::unbounded_channel::<String>();
        let remover = Remover::new(client);
        let worker = tokio::spawn({
            let remover = remover.clone();
            let paths =
                futures_util::stream::unfold(paths, |mut paths| async { Some((paths.recv().await?, paths)) });
            async move {
                paths
                    .for_each_concurrent(AT_ONCE, |path| {
                        let remover = remover.clone();
                        async move { remover.remove(&path).await }
                    })
                    .await;
            }
        });
        Self { remover, property, queue, worker, collections: Arc::default() }
    }

    /// For one case.
    pub(crate) fn tracker(&self) -> Tracker {
        Tracker {
            created: Mutex::default(),
            queue: self.queue.clone(),
            collections: Arc::clone(&self.collections),
            property: self.property.clone(),
        }
    }

    /// Removes everything that is left, and tells what could not be removed. All trackers must be gone.
    pub(crate) async fn finish(self, limit: Duration) -> Vec<String> {
        let Self { remover, property, queue, mut worker, collections } = self;
        drop(queue);
        let everything = async {
            if (&mut worker).await.is_err() {
                remover.notice("the cleaner died".to_owned());
            }
            let collections = std::mem::take(&mut *lock(&collections));
            join_all(collections.iter().map(|collection| remover.empty(collection))).await;
            let definitions = property.definitions.iter().map(|name| format!("{CRDS}/{name}"));
            join_all(definitions.map(async |path| remover.remove(&path).await)).await;
            if let Some(namespace) = &property.namespace {
                remover.remove_namespace(namespace).await;
            }
        };
        if tokio::time::timeout(limit, everything).await.is_err() {
            worker.abort();
            let places: Vec<&str> =
                property.namespace.iter().chain(&property.definitions).map(String::as_str).collect();
            remover
                .notice(format!("the cleanup took longer than {limit:?}; look after {}", places.join(", ")));
        }
        std::mem::take(&mut *lock(&remover.notices))
    }
}

impl Tracker {
    /// Before a request goes out: what it may create by name is remembered, whatever becomes of the answer.
    pub(crate) fn intend(&self, request: &Outgoing) -> Intent {
        let name = || {
            let body: Value = serde_json::from_slice(&request.body).ok()?;
            Some(body.get("metadata")?.get("name")?.as_str()?.to_owned())
        };
        if request.method != "POST" {
            return Intent(None);
        }
        Intent(Collection::of(&request.target).and_then(|collection| {
            let path = format!("{}/{}", collection.path, name()?);
            Some(self.add(path, collection))
        }))
    }

    /// After the answer: a refusal created nothing, and a name that the server made is known only now.
    pub(crate) fn settle(&self, intent: &Intent, exchange: &Exchange) {
        let Outcome::Answered(answer) = &exchange.outcome else { return };
        if !(200..300).contains(&answer.status) {
            if let Some(intended) = intent.0
                && let Some(created) = lock(&self.created).get_mut(intended)
            {
                created.stands = false;
            }
            return;
        }
        let named = || answer.json.as_ref()?.get("metadata")?.get("name")?.as_str();
        match exchange.request.method.as_str() {
            "POST" if intent.0.is_none() => {
                if let Some((collection, name)) = Collection::of(&exchange.request.target).zip(named()) {
                    self.add(format!("{}/{name}", collection.path), collection);
                }
            }
            "PUT" | "PATCH" if answer.status == 201 => {
                let path = exchange.request.target.split('?').next().unwrap_or_default();
                if let Some(collection) = path.rsplit_once('/').and_then(|(parent, _)| Collection::of(parent))
                {
                    self.add(path.to_owned(), collection);
                }
            }
            _ => {}
        }
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
        for created in created.drain(..).rev().filter(|created| created.stands) {
            if self.property.holds(&created.collection) {
                lock(&self.collections).insert(created.collection.path);
            } else {
                // Nobody listens any more only when the cleanup ran out of time, which it tells itself.
                let _ = self.queue.send(created.path);
            }
        }
    }
}

impl Property {
    fn holds(&self, collection: &Collection) -> bool {
        self.groups.contains(&collection.group)
            || (collection.namespace.is_some() && collection.namespace == self.namespace)
    }
}

/// The path that objects are posted to.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Collection {
    path: String,
    pub(crate) group: String,
    pub(crate) namespace: Option<String>,
}

impl Collection {
    /// The collection that a target addresses; `None`: something else.
    pub(crate) fn of(target: &str) -> Option<Self> {
        let path = target.split('?').next()?;
        let segments: Vec<&str> = path.strip_prefix('/')?.split('/').collect();
        let (group, rest) = match segments.as_slice() {
            ["api", _, rest @ ..] => ("", rest),
            ["apis", group, _, rest @ ..] => (*group, rest),
            _ => return None,
        };
        let namespace = match rest {
            [_] => None,
            ["namespaces", namespace, _] => Some((*namespace).to_owned()),
            _ => return None,
        };
        Some(Self { path: path.to_owned(), group: group.to_owned(), namespace })
    }
}

/// Sends deletions.
#[derive(Clone, Debug)]
pub(crate) struct Remover {
    client: Client,
    notices: Arc<Mutex<Vec<String>>>,
}

impl Remover {
    pub(crate) fn new(client: &Client) -> Self {
        Self { client: client.clone(), notices: Arc::default() }
    }

    /// What could not be removed.
    pub(crate) fn into_notices(self) -> Vec<String> {
        std::mem::take(&mut *lock(&self.notices))
    }

    /// Removes one object, its finalizers if they hold it.
    pub(crate) async fn remove(&self, path: &str) {
        let exchange = self.insist("DELETE", &format!("{path}?gracePeriodSeconds=0"), None).await;
        match exchange.status() {
            200..=299 => {
                if exchange.json().is_some_and(is_held) {
                    self.release(path).await;
                }
                if is_namespace(path) {
                    self.see_off(path).await;
                }
            }
            404 | 410 => {}
            _ => self.notice(format!("cannot remove {path}: {}", exchange.in_words())),
        }
    }

    /// Removes everything in a collection of the run's own.
    pub(crate) async fn empty(&self, collection: &str) {
        let exchange = self.insist("DELETE", &format!("{collection}?gracePeriodSeconds=0"), None).await;
        let deleted = match exchange.status() {
            404 | 410 => return,
            200..=299 => exchange.json().filter(|body| body["items"].is_array()).cloned(),
            _ => None,
        };
        if let Some(deleted) = deleted {
            let held = names(&deleted, is_held);
            // A few at once: how many there are is for the server to say.
            for some in held.chunks(AT_ONCE) {
                join_all(some.iter().map(async |name| self.release(&format!("{collection}/{name}")).await))
                    .await;
            }
            return;
        }
        // A status, or a refusal: what is left has to be looked for.
        let left = self.insist("GET", collection, None).await;
        match left.json() {
            Some(list) => {
                let left = names(list, |_| true);
                for some in left.chunks(AT_ONCE) {
                    join_all(
                        some.iter().map(async |name| self.remove(&format!("{collection}/{name}")).await),
                    )
                    .await;
                }
            }
            None if left.status() == 404 => {}
            None => self.notice(format!("cannot empty {collection}: {}", left.in_words())),
        }
    }

    async fn remove_namespace(&self, namespace: &str) {
        let path = namespace_path(namespace);
        self.remove(&path).await;
        if (200..300).contains(&self.insist("GET", &path, None).await.status()) {
            self.notice(format!(
                "the namespace {namespace} is still terminating; nothing of the run is left in it, and the server \
                 removes it by itself when its namespace controller has seen it"
            ));
        }
    }

    /// Waits a moment for a namespace to go, and ends it where nobody else would.
    async fn see_off(&self, path: &str) {
        let patience = Instant::now() + NAMESPACE_PATIENCE;
        let mut pause = Duration::from_millis(1);
        loop {
            let exchange = self.insist("GET", path, None).await;
            let Some(namespace) = exchange.json().filter(|_| (200..300).contains(&exchange.status())) else {
                return;
            };
            pause *= 2;
            if Instant::now() + pause > patience {
                if self.is_abandoned(path, namespace).await {
                    let mut ended = namespace.clone();
                    ended["spec"]["finalizers"] = json!([]);
                    self.insist("PUT", &format!("{path}/finalize"), Some(&ended)).await;
                }
                return;
            }
            tokio::time::sleep(pause).await;
        }
    }

    /// Whether no controller looks after namespaces here: none has reported on this one, and none has put into it what
    /// a cluster puts into every namespace. What else it held was the run's own, and is gone.
    async fn is_abandoned(&self, path: &str, namespace: &Value) -> bool {
        if namespace["status"]["conditions"].is_array() {
            return false;
        }
        let contents = ["serviceaccounts", "configmaps"].map(|plural| format!("{path}/{plural}?limit=1"));
        let found = join_all(contents.iter().map(|target| self.insist("GET", target, None))).await;
        found.iter().all(|list| list.json().is_some_and(|list| list["items"] == json!([])))
    }

    /// Takes the finalizers off an object that is being deleted.
    async fn release(&self, path: &str) {
        let mut request =
            outgoing("PATCH", path, "application/json", Some(&json!({"metadata": {"finalizers": null}})));
        for (name, value) in &mut request.headers {
            if name == "content-type" {
                "application/merge-patch+json".clone_into(value);
            }
        }
        let exchange = self.client.send(request, Instant::now() + REQUEST_TIMEOUT).await;
        if !matches!(exchange.status(), 200..=299 | 404 | 410) {
            self.notice(format!("cannot take the finalizers off {path}: {}", exchange.in_words()));
        }
    }

    /// Tries again what got no answer, or found the server busy or broken.
    async fn insist(&self, method: &str, target: &str, body: Option<&Value>) -> Exchange {
        let mut pause = Duration::from_millis(20);
        let mut attempt = 1;
        loop {
            let request = outgoing(method, target, "application/json", body);
            let exchange = self.client.send(request, Instant::now() + REQUEST_TIMEOUT).await;
            if attempt == ATTEMPTS || !matches!(exchange.status(), 0 | 429 | 500..=599) {
                return exchange;
            }
            attempt += 1;
            tokio::time::sleep(pause).await;
            pause *= 5;
        }
    }

    fn notice(&self, text: String) {
        lock(&self.notices).push(text);
    }
}

fn namespace_path(namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}")
}

fn is_namespace(path: &str) -> bool {
    path.strip_prefix("/api/v1/namespaces/").is_some_and(|rest| !rest.is_empty() && !rest.contains('/'))
}

/// Whether the object is being deleted and finalizers keep it.
fn is_held(object: &Value) -> bool {
    object["metadata"]["finalizers"].as_array().is_some_and(|finalizers| !finalizers.is_empty())
}

fn names(list: &Value, which: impl Fn(&Value) -> bool) -> Vec<String> {
    let items = list["items"].as_array().into_iter().flatten();
    items
        .filter(|item| which(item))
        .filter_map(|item| item["metadata"]["name"].as_str().map(str::to_owned))
        .collect()
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("/api/v1/namespaces/a/configmaps", Some(("", Some("a"))))]
    #[case("/api/v1/namespaces/a/configmaps?dryRun=All", Some(("", Some("a"))))]
    #[case("/api/v1/namespaces", Some(("", None)))]
    #[case("/apis/g/v1/gauges", Some(("g", None)))]
    #[case("/apis/g/v1/namespaces/a/widgets", Some(("g", Some("a"))))]
    #[case("/api/v1/namespaces/a/pods/b/eviction", None)]
    #[case("/apis/g/v1/gauges/a", None)]
    #[case("/version", None)]
    fn only_collections_are_posted_to(#[case] target: &str, #[case] expected: Option<(&str, Option<&str>)>) {
        let collection = Collection::of(target);
        let found = collection.as_ref().map(|c| (c.group.as_str(), c.namespace.as_deref()));
        assert_eq!(found, expected);
    }
}
