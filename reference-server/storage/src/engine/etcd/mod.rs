//! The engine on etcd 3, which several servers can share.
//!
//! The keys are those of kube-apiserver, and a [`Codec`] converts the values. Each server has all
//! objects in its cache, which one watch keeps up to date. The version of an object is the revision
//! of the last write to its key.
//!
//! A write runs on the cache. Its transaction succeeds only if all keys that it read still have the
//! same revision. Otherwise another server was faster, and the write runs again when the cache has
//! the newer state.
//!
//! The crate `etcd-client` would need the program `protoc` to compile, which users of `cargo
//! install` may not have. So [`client`] uses `tonic` with the few messages of [`messages`].

mod client;
mod commit;
mod compaction;
mod follow;
mod load;
mod messages;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::mpsc;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tonic::Status;

use self::client::Client;
use self::messages::{RangeRequest, revision};
use super::{ChangeFn, Committed, Engine, Past, WriteError};
use crate::object::{Change, Draft, Key, Stored};
use crate::saved::Saved;
use crate::state::Cache;

/// The time that the cache may need to get a write that etcd has.
const CACHE_TIMEOUT: Duration = Duration::from_secs(10);
/// The directory of keys that are no objects.
const OWN: &str = "kubeproof";

/// How to reach etcd, and where the objects are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EtcdOptions {
    /// The URLs of the members of the cluster.
    pub servers: Vec<String>,
    /// The beginning of all keys, without a slash at the end. kube-apiserver uses `/registry`.
    pub prefix: String,
    /// The certificates for URLs with `https`.
    pub tls: Option<EtcdTls>,
    /// The interval of compactions. The history of about one interval remains. With none, the
    /// server never compacts.
    pub compaction_interval: Option<Duration>,
}

impl Default for EtcdOptions {
    fn default() -> Self {
        Self {
            servers: Vec::new(),
            prefix: "/registry".to_owned(),
            tls: None,
            compaction_interval: Some(Duration::from_mins(5)),
        }
    }
}

/// The certificates of a connection to etcd.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct EtcdTls {
    /// The authorities of the certificate of etcd, as PEM.
    pub ca_pem: Option<String>,
    /// The certificate of the client and its key, as PEM.
    pub client_pem: Option<(String, String)>,
}

impl std::fmt::Debug for EtcdTls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EtcdTls").finish_non_exhaustive()
    }
}

/// The reason why etcd cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum EtcdError {
    /// The options name no server.
    #[error("expected the URL of an etcd server")]
    NoServer,
    /// A URL is invalid, or its certificates are.
    #[error("cannot use the etcd server {url:?}: {why}")]
    Url {
        /// The URL.
        url: String,
        /// What is wrong.
        why: String,
    },
    /// No server responded.
    #[error("cannot read from etcd: {0}; check --etcd-servers")]
    Unavailable(String),
    /// An object cannot be decoded.
    #[error("cannot read the key {key} of etcd: {why}")]
    Object {
        /// The key.
        key: String,
        /// What is wrong.
        why: String,
    },
    /// A snapshot cannot replace objects.
    #[error("etcd has objects below {0}; restore a snapshot to an empty prefix")]
    NotEmpty(String),
}

impl From<Status> for EtcdError {
    fn from(status: Status) -> Self {
        Self::Unavailable(describe(&status))
    }
}

/// Converts between the objects of the store, and the keys and values of etcd.
pub trait Codec: Send + Sync {
    /// Returns the path of a table below the prefix, such as `services/specs`.
    fn directory(&self, table: &str) -> String;

    /// Returns the table and the key of a path below the prefix, or none if it is no object.
    fn place(&self, path: &str) -> Option<(String, Key)>;

    /// Returns the value of an object, which is JSON with a version. The value has no version.
    fn encode(&self, table: &str, object: &[u8]) -> Result<Vec<u8>, String>;

    /// Returns the object of a value.
    fn decode(&self, table: &str, value: &[u8]) -> Result<Draft, String>;

    /// Reports whether the objects of a table define the types of others.
    fn defines_types(&self, table: &str) -> bool;

    /// Receives each change of an object, in order and before readers see it.
    fn observe(&self, table: &str, change: Change, object: &Stored);
}

/// A connection to etcd.
pub struct Etcd {
    client: Client,
    options: EtcdOptions,
    codec: Arc<dyn Codec>,
}

impl Etcd {
    /// Checks the options. The first request connects.
    pub fn new(options: &EtcdOptions, codec: Arc<dyn Codec>) -> Result<Self, EtcdError> {
        Ok(Self { client: Client::new(options)?, options: options.clone(), codec })
    }

    /// Stores objects if there are none. They get new versions.
    pub async fn fill(&self, saved: &Saved) -> Result<(), EtcdError> {
        load::fill(&self.client, &self.layout(), saved).await
    }

    fn layout(&self) -> Layout {
        let prefix = self.options.prefix.trim_end_matches('/').to_owned();
        Layout { prefix, codec: self.codec.clone() }
    }
}

impl std::fmt::Debug for Etcd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Etcd").field("servers", &self.options.servers).finish_non_exhaustive()
    }
}

/// The keys of objects.
#[derive(Clone)]
struct Layout {
    prefix: String,
    codec: Arc<dyn Codec>,
}

impl Layout {
    /// Returns the beginning of all keys.
    fn root(&self) -> String {
        format!("{}/", self.prefix)
    }

    /// Returns the beginning of the keys of a table, or of a namespace in it.
    fn directory(&self, table: &str, namespace: Option<&str>) -> String {
        let table = self.codec.directory(table);
        match namespace {
            None | Some("") => format!("{}/{table}/", self.prefix),
            Some(namespace) => format!("{}/{table}/{namespace}/", self.prefix),
        }
    }

    fn key(&self, table: &str, key: &Key) -> String {
        self.directory(table, Some(&key.namespace)) + &key.name
    }

    /// Returns the key of something that only one object can hold.
    fn claim(&self, claim: &str) -> String {
        format!("{}/{OWN}/claims/{claim}", self.prefix)
    }

    fn place(&self, key: &[u8]) -> Option<(String, Key)> {
        let path = std::str::from_utf8(key).ok()?.strip_prefix(&self.root())?;
        self.codec.place(path)
    }

    /// Decodes a value, which has this revision.
    fn decode(&self, table: &str, value: &[u8], at: (u64, Change)) -> Result<Stored, String> {
        Ok(Stored::new(&self.codec.decode(table, value)?, at.0, at.1))
    }
}

struct Shared {
    client: Client,
    layout: Layout,
    cache: Arc<Cache>,
}

/// The engine on [`Etcd`]. Its tasks end when it is dropped.
pub(crate) struct EtcdEngine {
    shared: Arc<Shared>,
    /// Requests for the current revision.
    readers: mpsc::UnboundedSender<oneshot::Sender<Result<u64, Status>>>,
    _tasks: JoinSet<()>,
}

impl EtcdEngine {
    /// Loads all objects and starts to follow etcd. Returns the cache, too, which has all writes
    /// that ended before the call.
    pub(crate) async fn start(etcd: Etcd, history: usize) -> Result<(Self, Arc<Cache>), EtcdError> {
        let layout = etcd.layout();
        let Etcd { client, options, .. } = etcd;
        let loaded = load::with_history(&client, &layout, history as u64).await?;
        let cache = Arc::new(Cache::new(history, loaded.revision));
        cache.restore(loaded.objects);
        let shared = Arc::new(Shared { client, layout, cache: cache.clone() });
        let (readers, requests) = mpsc::unbounded_channel();
        let mut tasks = JoinSet::new();
        tasks.spawn(follow::run(shared.clone()));
        tasks.spawn(serve_readers(shared.client.clone(), requests));
        if let Some(interval) = options.compaction_interval {
            tasks.spawn(compaction::run(shared.client.clone(), interval));
        }
        shared.wait_for(loaded.newest).await.map_err(|error| match error {
            WriteError::Unavailable(why) => EtcdError::Unavailable(why.to_string()),
            error => EtcdError::Unavailable(error.to_string()),
        })?;
        Ok((Self { shared, readers, _tasks: tasks }, cache))
    }
}

impl Engine for EtcdEngine {
    fn waits(&self) -> bool {
        true
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn commit<'a>(&'a self, change: &'a mut ChangeFn<'_>) -> BoxFuture<'a, Committed> {
        Box::pin(self.shared.commit(change))
    }

    fn catch_up(&self) -> BoxFuture<'_, Result<(), WriteError>> {
        Box::pin(async {
            let (sender, revision) = oneshot::channel();
            let stopped = || WriteError::Unavailable("the server stops".into());
            self.readers.send(sender).map_err(|_| stopped())?;
            let revision = revision.await.map_err(|_| stopped())?;
            let revision = revision.map_err(|status| unavailable(&status))?;
            self.shared.wait_for(revision).await
        })
    }

    fn past<'a>(
        &'a self,
        table: &'a str,
        namespace: Option<&'a str>,
        revision: u64,
    ) -> BoxFuture<'a, Past> {
        Box::pin(async move {
            let prefix = self.shared.layout.directory(table, namespace);
            let kvs = match load::range_all(&self.shared.client, &prefix, revision).await {
                Ok(kvs) => kvs,
                Err(status) if client::is_compacted(&status) => return Ok(None),
                Err(status) => return Err(unavailable(&status)),
            };
            let layout = &self.shared.layout;
            let mut objects: Vec<_> = kvs
                .iter()
                .filter_map(|kv| {
                    let (found, _) = layout.place(&kv.key).filter(|(found, _)| found == table)?;
                    let at = (kv.mod_revision.cast_unsigned(), Change::Added);
                    layout.decode(&found, &kv.value, at).ok().map(Arc::new)
                })
                .collect();
            objects.sort_by(|one, other| one.key.cmp(&other.key));
            Ok(Some(objects))
        })
    }
}

impl Shared {
    /// Waits until the cache has all writes up to a revision.
    async fn wait_for(&self, revision: u64) -> Result<(), WriteError> {
        let mut signal = self.cache.signal.subscribe();
        let caught_up = timeout(CACHE_TIMEOUT, signal.wait_for(|newest| *newest >= revision)).await;
        if let Ok(Ok(_)) = caught_up {
            return Ok(());
        }
        let why = format!("the watch of etcd did not reach revision {revision}");
        Err(WriteError::Unavailable(why.into()))
    }
}

/// Reads the current revision of etcd. All readers that wait share the next request, which starts
/// after they do.
async fn serve_readers(
    client: Client,
    mut requests: mpsc::UnboundedReceiver<oneshot::Sender<Result<u64, Status>>>,
) {
    while let Some(first) = requests.recv().await {
        let mut waiting = vec![first];
        while let Ok(next) = requests.try_recv() {
            waiting.push(next);
        }
        let current = current_revision(&client).await;
        for reader in waiting {
            // A reader may have gone away.
            let _ = reader.send(current.clone());
        }
    }
}

async fn current_revision(client: &Client) -> Result<u64, Status> {
    // The key need not exist. The header of the response has the revision.
    let request = RangeRequest { key: OWN.into(), keys_only: true, ..RangeRequest::default() };
    Ok(revision(client.range(request).await?.header.as_ref()))
}

fn unavailable(status: &Status) -> WriteError {
    WriteError::Unavailable(describe(status).into())
}

/// Returns the message of an error, and the cause if there is one.
fn describe(status: &Status) -> String {
    match std::error::Error::source(status) {
        Some(source) => format!("{} ({})", status.message(), client::source_of(source)),
        None => status.message().to_owned(),
    }
}

#[cfg(test)]
mod tests;
