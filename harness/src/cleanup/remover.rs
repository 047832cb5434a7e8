//! Sends deletions.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{AT_ONCE, lock};
use crate::capability::outgoing;
use crate::exchange::Exchange;
use crate::transport::Client;

const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

/// Attempts per deletion without response, or with a 429 or 5xx.
const ATTEMPTS: u32 = 3;

/// Limit on the paths in a notice.
const NAMED: usize = 10;

/// The longest pause before the remover removes finalizers of controllers.
const OTHERS_TIMEOUT: Duration = Duration::from_secs(1);

/// Time for a namespace to disappear before the remover checks its finalizers.
const NAMESPACE_TIMEOUT: Duration = Duration::from_millis(300);

#[derive(Clone, Debug)]
pub(crate) struct Remover {
    client: Client,
    /// The reasons why objects stay, by path, so that each object is reported once.
    notices: Arc<Mutex<BTreeMap<String, String>>>,
    /// Paths that are not removed yet.
    pending: Arc<Mutex<BTreeSet<String>>>,
}

impl Remover {
    pub(crate) fn new(client: &Client) -> Self {
        Self { client: client.clone(), notices: Arc::default(), pending: Arc::default() }
    }

    /// Records paths that will be removed.
    pub(super) fn expect(&self, paths: impl IntoIterator<Item = String>) {
        lock(&self.pending).extend(paths);
    }

    /// Returns what could not be removed, and what is still pending, for this reason.
    pub(crate) fn into_notices(self, why: &str) -> Vec<String> {
        let reported = std::mem::take(&mut *lock(&self.notices));
        let mut pending = std::mem::take(&mut *lock(&self.pending));
        pending.retain(|path| !reported.contains_key(path));
        let count = pending.len();
        let mut named: Vec<String> = pending.into_iter().take(NAMED).collect();
        if count > NAMED {
            named.push(format!("and {} more", count - NAMED));
        }
        let left =
            format!("{why}; `kubeproof clean` removes what may be left: {}", named.join(", "));
        reported.into_values().chain((count > 0).then_some(left)).collect()
    }

    /// Removes one object, and its finalizers if they block the deletion.
    pub(crate) async fn remove(&self, path: &str) {
        self.try_remove(path).await;
        lock(&self.pending).remove(path);
    }

    async fn try_remove(&self, path: &str) {
        let exchange = self.insist("DELETE", &format!("{path}?gracePeriodSeconds=0"), None).await;
        match exchange.status() {
            200..=299 => {
                if let Some(held) = exchange.json().filter(|object| is_held(object)) {
                    self.release(path, held).await;
                }
                if is_namespace(path) {
                    self.see_off(path).await;
                }
            }
            404 | 410 => {}
            _ if self.is_gone(path).await => {}
            _ => self.notice(path, format!("cannot remove {path}: {}", exchange.in_words())),
        }
    }

    /// Removes everything in a collection of the run.
    pub(crate) async fn empty(&self, collection: &str) {
        let exchange =
            self.insist("DELETE", &format!("{collection}?gracePeriodSeconds=0"), None).await;
        let deleted = match exchange.status() {
            404 | 410 => return,
            200..=299 => exchange.json().filter(|body| body["items"].is_array()).cloned(),
            _ => None,
        };
        if let Some(deleted) = deleted {
            let items = deleted["items"].as_array().into_iter().flatten();
            let held: Vec<&Value> = items.filter(|item| is_held(item)).collect();
            // The server decides how many there are, so the requests are limited.
            for some in held.chunks(AT_ONCE) {
                join_all(some.iter().filter_map(|item| {
                    let path = format!("{collection}/{}", item["metadata"]["name"].as_str()?);
                    Some(async move { self.release(&path, item).await })
                }))
                .await;
            }
            return;
        }
        // Neither a list nor a Status names the objects that remain.
        let left = self.insist("GET", collection, None).await;
        match left.json() {
            Some(list) => {
                let left = names(list);
                for some in left.chunks(AT_ONCE) {
                    join_all(
                        some.iter()
                            .map(async |name| self.remove(&format!("{collection}/{name}")).await),
                    )
                    .await;
                }
            }
            None if left.status() == 404 => {}
            None => {
                self.notice(collection, format!("cannot empty {collection}: {}", left.in_words()));
            }
        }
    }

    pub(super) async fn remove_namespace(&self, namespace: &str) {
        let path = namespace_path(namespace);
        self.remove(&path).await;
        if (200..300).contains(&self.insist("GET", &path, None).await.status()) {
            let notice = format!(
                "the namespace {namespace} is still terminating; nothing of the run is left in \
                 it, and the server removes it by itself when its namespace controller has seen it"
            );
            self.notice(&path, notice);
        }
    }

    /// Waits briefly for a namespace to disappear, and finalizes it if no controller does.
    async fn see_off(&self, path: &str) {
        let deadline = Instant::now() + NAMESPACE_TIMEOUT;
        let mut pause = Duration::from_millis(1);
        loop {
            let exchange = self.insist("GET", path, None).await;
            let Some(namespace) =
                exchange.json().filter(|_| (200..300).contains(&exchange.status()))
            else {
                return;
            };
            pause *= 2;
            if Instant::now() + pause > deadline {
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

    /// A namespace has a controller if one reported a condition, or created the default objects of
    /// a cluster in it. The run's own objects are gone by now.
    async fn is_abandoned(&self, path: &str, namespace: &Value) -> bool {
        if namespace["status"]["conditions"].is_array() {
            return false;
        }
        let contents =
            ["serviceaccounts", "configmaps"].map(|plural| format!("{path}/{plural}?limit=1"));
        let found = join_all(contents.iter().map(|target| self.insist("GET", target, None))).await;
        found.iter().all(|list| list.json().is_some_and(|list| list["items"] == json!([])))
    }

    /// Removes the finalizers of an object in deletion. The controllers of other finalizers get
    /// some time to remove theirs.
    async fn release(&self, path: &str, object: &Value) {
        let others: Vec<&Value> = finalizers(object).filter(|name| is_of_others(name)).collect();
        if !others.is_empty() {
            self.keep_finalizers(path, &json!(others)).await;
            let mut pause = Duration::from_millis(50);
            while pause < OTHERS_TIMEOUT {
                tokio::time::sleep(pause).await;
                if self.is_gone(path).await {
                    return;
                }
                pause *= 2;
            }
        }
        let exchange = self.keep_finalizers(path, &Value::Null).await;
        if !matches!(exchange.status(), 200..=299 | 404 | 410) && !self.is_gone(path).await {
            let notice = format!("cannot take the finalizers off {path}: {}", exchange.in_words());
            self.notice(path, notice);
        }
    }

    async fn keep_finalizers(&self, path: &str, kept: &Value) -> Exchange {
        let body = json!({"metadata": {"finalizers": kept}});
        self.insist("PATCH", path, Some(&body)).await
    }

    async fn is_gone(&self, path: &str) -> bool {
        let request = outgoing("GET", path, "application/json", None);
        let exchange = self.client.send(request, Instant::now() + REQUEST_TIMEOUT).await;
        matches!(exchange.status(), 404 | 410)
    }

    /// Retries a request that gets no response, 429 or 5xx. A patch meets writes of controllers,
    /// and is retried after 409 too.
    async fn insist(&self, method: &str, target: &str, body: Option<&Value>) -> Exchange {
        let mut pause = Duration::from_millis(20);
        let mut attempt = 1;
        loop {
            let mut request = outgoing(method, target, "application/json", body);
            let is_patch = method == "PATCH";
            if is_patch
                && let Some((_, value)) =
                    request.headers.iter_mut().find(|(name, _)| name == "content-type")
            {
                "application/merge-patch+json".clone_into(value);
            }
            let exchange = self.client.send(request, Instant::now() + REQUEST_TIMEOUT).await;
            let may_succeed = matches!(exchange.status(), 0 | 429 | 500..=599)
                || is_patch && exchange.status() == 409;
            if attempt == ATTEMPTS || !may_succeed {
                return exchange;
            }
            attempt += 1;
            tokio::time::sleep(pause).await;
            pause *= 5;
        }
    }

    /// Records what could not be removed. The first notice about a path stays.
    pub(super) fn notice(&self, path: &str, text: String) {
        lock(&self.notices).entry(path.to_owned()).or_insert(text);
    }
}

pub(super) fn namespace_path(namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}")
}

fn is_namespace(path: &str) -> bool {
    path.strip_prefix("/api/v1/namespaces/")
        .is_some_and(|rest| !rest.is_empty() && !rest.contains('/'))
}

fn is_held(object: &Value) -> bool {
    finalizers(object).next().is_some()
}

fn finalizers(object: &Value) -> impl Iterator<Item = &Value> {
    object["metadata"]["finalizers"].as_array().into_iter().flatten()
}

/// Reports whether neither the suite nor the garbage collector of the server set a finalizer.
fn is_of_others(finalizer: &Value) -> bool {
    let name = finalizer.as_str().unwrap_or_default();
    !name.contains("kubeproof") && !matches!(name, "foregroundDeletion" | "orphan")
}

fn names(list: &Value) -> Vec<String> {
    let items = list["items"].as_array().into_iter().flatten();
    items.filter_map(|item| item["metadata"]["name"].as_str().map(str::to_owned)).collect()
}
