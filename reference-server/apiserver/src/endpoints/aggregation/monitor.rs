//! Follows the `APIService` objects, checks their servers, and collects their documents.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use kubeproof_apimachinery::serializer::json;
use kubeproof_storage::Stored;
use tokio::sync::watch;

use super::check::{check, is_local, local, report};
use super::documents::collect;
use crate::endpoints::services::dialer;
use crate::http::client::{Client, Security};
use crate::registry::follower::Follower;
use crate::registry::remote::{ApiService, Remote, RemoteDocuments};
use crate::registry::{Lookup, ResourceType};
use crate::server::ApiServer;

/// The time between two checks of an available server.
const REFRESH: Duration = Duration::from_secs(30);
/// The time until a server that is not available is checked again.
const RETRY: Duration = Duration::from_secs(1);

const API_SERVICES: &str = "apiservices.apiregistration.k8s.io";

/// What the monitor needs of an `APIService`. A server has one for each of its own groups, so the
/// monitor parses each of them once.
#[derive(Debug, PartialEq)]
enum Entry {
    /// The server itself serves the group.
    Local {
        /// The status contains the condition of local groups.
        is_reported: bool,
    },
    Remote(Box<ApiService>),
}

const UNREPORTED: Entry = Entry::Local { is_reported: false };

impl Entry {
    fn parse(text: &[u8]) -> Option<Self> {
        let object = json::parse(text).ok()?;
        Some(match ApiService::of(&object) {
            Some(spec) => Self::Remote(Box::new(spec)),
            None => Self::Local { is_reported: is_local(&object) },
        })
    }
}

/// Starts the monitor, which runs until the server stops.
pub(crate) fn start(api: &Arc<ApiServer>) {
    let found = api.registry.current().find("apiregistration.k8s.io", "v1", "apiservices");
    let Lookup::Found(ty) = found else { return };
    let monitored = Arc::clone(api);
    api.spawn(async move {
        let entries = Follower::new(API_SERVICES, Entry::parse);
        run(&monitored, &ty, &entries).await;
    });
}

async fn run(api: &Arc<ApiServer>, ty: &ResourceType, entries: &Follower<Entry>) {
    let mut objects = api.store.subscribe(&ty.table);
    let mut services = api.store.subscribe("services");
    let mut endpoints = api.store.subscribe("endpointslices.discovery.k8s.io");
    loop {
        for changes in [&mut objects, &mut services, &mut endpoints] {
            changes.borrow_and_update();
        }
        match refresh(api, ty, entries).await {
            None => changed(&mut objects).await,
            Some(wait) => tokio::select! {
                () = changed(&mut objects) => {}
                () = changed(&mut services) => {}
                () = changed(&mut endpoints) => {}
                () = tokio::time::sleep(wait) => {}
            },
        }
    }
}

/// Waits for a change. Without a store there is none.
async fn changed(changes: &mut watch::Receiver<u64>) {
    if changes.changed().await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Checks all servers. Returns the time until the next check, or none if there is no server.
async fn refresh(
    api: &Arc<ApiServer>,
    ty: &ResourceType,
    entries: &Follower<Entry>,
) -> Option<Duration> {
    let known = api.remotes.current();
    let (keys, unreported) = entries.read(&api.store, |entries| {
        let remotes = entries.iter().filter_map(|(key, entry)| match entry {
            Entry::Remote(spec) => Some((key.clone(), ApiService::clone(spec))),
            Entry::Local { .. } => None,
        });
        let unreported = entries.iter().filter(|(_, entry)| **entry == UNREPORTED);
        let keys: Vec<_> = remotes.collect();
        (keys, unreported.map(|(key, _)| key.clone()).collect::<Vec<_>>())
    });
    for object in unreported.iter().filter_map(|key| api.store.get(&ty.table, key)) {
        report(api, ty, object, &local()).await;
    }
    let (mut stored, mut remotes) = (Vec::new(), Vec::new());
    for (key, spec) in keys {
        if let Some(object) = api.store.get(&ty.table, &key) {
            stored.push(object);
            remotes.push(remote(api, &known, spec));
        }
    }
    api.remotes.replace(remotes.clone());
    let checks = stored.into_iter().zip(remotes.clone()).enumerate();
    let check =
        |(index, (stored, remote))| async move { (index, update(api, ty, stored, remote).await) };
    let mut checks: FuturesUnordered<_> = checks.map(check).collect();
    while let Some((index, remote)) = checks.next().await {
        remotes[index] = remote;
        api.remotes.replace(remotes.clone());
    }
    let is_complete = remotes.iter().all(|remote| remote.is_available);
    (!remotes.is_empty()).then_some(if is_complete { REFRESH } else { RETRY })
}

/// Checks one server, and reports the result.
async fn update(
    api: &ApiServer,
    ty: &ResourceType,
    stored: Arc<Stored>,
    mut remote: Remote,
) -> Remote {
    let availability = check(api, &remote).await;
    remote.is_available = availability.is_available;
    if let (true, Ok(client)) = (remote.is_available, &remote.client) {
        remote.documents = collect(client, &remote.spec, &remote.documents).await;
    }
    report(api, ty, stored, &availability).await;
    remote
}

/// Returns what is known about a server. A changed spec has a new client.
fn remote(api: &Arc<ApiServer>, known: &[Remote], spec: ApiService) -> Remote {
    if let Some(same) = known.iter().find(|known| *known.spec == spec) {
        return same.clone();
    }
    let client = client(api, &spec).map(Arc::new).map_err(Arc::from);
    Remote {
        spec: Arc::new(spec),
        client,
        is_available: false,
        documents: RemoteDocuments::default(),
    }
}

fn client(api: &Arc<ApiServer>, spec: &ApiService) -> Result<Client, String> {
    let url = format!("https://{}:{}", spec.host(), spec.service.port);
    let url = url.parse().map_err(|error: http::uri::InvalidUri| error.to_string())?;
    let security = Security {
        ca_pem: &spec.ca_pem,
        insecure: spec.insecure,
        identity: Some(&api.front_proxy.identity),
    };
    let dialer = dialer(api, spec.service.clone());
    Client::secured(&url, security, Some(dialer)).map_err(|error| error.to_string())
}
