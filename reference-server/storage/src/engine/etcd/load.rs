//! Reads and fills etcd when a server starts.

use std::sync::Arc;

use tonic::Status;

use super::client::{self, Client};
use super::compaction;
use super::messages::{
    KeyValue, PutRequest, RangeRequest, Request, TxnRequest, end_of, has_revision,
};
use super::{EtcdError, Layout, current_revision};
use crate::object::{Change, Stored};
use crate::saved::Saved;

/// The number of keys in a response.
const PAGE: i64 = 1_000;
/// The number of objects in a transaction. etcd permits 128 operations, and an object can have
/// claims.
const BATCH: usize = 16;

/// All objects at a revision.
pub(super) struct Loaded {
    pub(super) revision: u64,
    /// The newest revision when the load started.
    pub(super) newest: u64,
    pub(super) objects: Vec<(String, Arc<Stored>)>,
}

/// Loads the objects at an older revision, if etcd still has it. A watch from there brings the
/// history of the last `history` revisions.
pub(super) async fn with_history(
    client: &Client,
    layout: &Layout,
    history: u64,
) -> Result<Loaded, EtcdError> {
    let newest = current_revision(client).await?;
    let compacted = compaction::last(client).await?;
    let oldest = newest.saturating_sub(history).max(compacted).max(1);
    match range_all(client, &layout.root(), oldest.min(newest)).await {
        Ok(kvs) => decode(layout, kvs, (oldest.min(newest), newest)),
        // Somebody else compacts, too.
        Err(status) if client::is_compacted(&status) => without_history(client, layout).await,
        Err(status) => Err(status.into()),
    }
}

/// Loads the current objects.
pub(super) async fn without_history(client: &Client, layout: &Layout) -> Result<Loaded, EtcdError> {
    let newest = current_revision(client).await?;
    let kvs = range_all(client, &layout.root(), newest).await?;
    decode(layout, kvs, (newest, newest))
}

/// Returns all keys with a prefix at a revision.
pub(super) async fn range_all(
    client: &Client,
    prefix: &str,
    revision: u64,
) -> Result<Vec<KeyValue>, Status> {
    let mut kvs: Vec<KeyValue> = Vec::new();
    let mut key = prefix.as_bytes().to_vec();
    loop {
        let request = RangeRequest {
            key,
            range_end: end_of(prefix),
            limit: PAGE,
            revision: revision.cast_signed(),
            keys_only: false,
        };
        let page = client.range(request).await?;
        kvs.extend(page.kvs);
        match kvs.last() {
            Some(last) if page.more => key = [&last.key, &b"\0"[..]].concat(),
            _ => return Ok(kvs),
        }
    }
}

/// Decodes objects. Definitions come first, because they define the types of others.
fn decode(
    layout: &Layout,
    kvs: Vec<KeyValue>,
    (revision, newest): (u64, u64),
) -> Result<Loaded, EtcdError> {
    let placed = kvs.into_iter().filter_map(|kv| Some((layout.place(&kv.key)?.0, kv)));
    let (definitions, others): (Vec<_>, Vec<_>) =
        placed.partition(|(table, _)| layout.codec.defines_types(table));
    let mut objects = Vec::with_capacity(definitions.len() + others.len());
    for (table, kv) in definitions.into_iter().chain(others) {
        let at = (kv.mod_revision.cast_unsigned(), Change::Added);
        let object = layout.decode(&table, &kv.value, at).map_err(|why| EtcdError::Object {
            key: String::from_utf8_lossy(&kv.key).into_owned(),
            why,
        })?;
        layout.codec.observe(&table, Change::Added, &object);
        objects.push((table, Arc::new(object)));
    }
    Ok(Loaded { revision, newest, objects })
}

/// Stores objects if there are none. The transactions keep the order of the snapshot.
pub(super) async fn fill(client: &Client, layout: &Layout, saved: &Saved) -> Result<(), EtcdError> {
    let any = RangeRequest {
        key: layout.root().into(),
        range_end: end_of(&layout.root()),
        limit: 1,
        keys_only: true,
        ..RangeRequest::default()
    };
    if !client.range(any).await?.kvs.is_empty() {
        return Err(EtcdError::NotEmpty(layout.prefix.clone()));
    }
    for batch in saved.objects.chunks(BATCH) {
        let mut transaction = TxnRequest::default();
        for object in batch {
            let key = layout.key(&object.table, &object.key);
            let failed = |why| EtcdError::Object { key: key.clone(), why };
            let value = layout.codec.encode(&object.table, &object.text).map_err(failed)?;
            let draft = layout.codec.decode(&object.table, &value).map_err(failed)?;
            for claim in &draft.facts.claims {
                let put = PutRequest { key: layout.claim(claim).into(), value: key.clone().into() };
                transaction.success.push(Request::Put(put).into());
            }
            transaction.compare.push(has_revision(&key, 0));
            let put = PutRequest { key: key.into(), value };
            transaction.success.push(Request::Put(put).into());
        }
        if !client.transact(transaction).await?.succeeded {
            return Err(EtcdError::NotEmpty(layout.prefix.clone()));
        }
    }
    Ok(())
}
