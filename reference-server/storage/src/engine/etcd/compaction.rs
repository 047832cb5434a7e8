//! Compacts the history of etcd, as kube-apiserver does.
//!
//! All servers use the key of kube-apiserver, which has the last compacted revision. Its version is
//! a clock: the first server that writes it in an interval compacts, and the others wait for the
//! next interval.

use std::time::Duration;

use tokio::time::sleep;
use tonic::Status;

use super::client::Client;
use super::messages::{
    Compare, CompareTarget, Expected, PutRequest, RangeRequest, Request, TxnRequest, revision,
};

/// The key has no prefix.
pub(super) const KEY: &str = "compact_rev_key";

/// Compacts after each interval, until the future is dropped.
pub(super) async fn run(client: Client, interval: Duration) {
    let mut clock = Clock::default();
    loop {
        sleep(interval).await;
        // After an error, the next interval tries again.
        if let Ok(next) = tick(&client, clock).await {
            clock = next;
        }
    }
}

/// Returns the revision of the last compaction, or 0.
pub(super) async fn last(client: &Client) -> Result<u64, Status> {
    let found = client.range(RangeRequest { key: KEY.into(), ..RangeRequest::default() }).await?;
    let value = found.kvs.first().and_then(|kv| std::str::from_utf8(&kv.value).ok());
    Ok(value.and_then(|value| value.parse().ok()).unwrap_or_default())
}

/// The last known version of the key, and the revision at that time, which is compacted next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Clock {
    pub(super) version: i64,
    pub(super) revision: u64,
}

/// Compacts the revision of the previous interval, unless another server has done so.
pub(super) async fn tick(client: &Client, clock: Clock) -> Result<Clock, Status> {
    let is_unchanged = Compare {
        target: CompareTarget::Version.into(),
        key: KEY.into(),
        expected: Some(Expected::Version(clock.version)),
    };
    let put = PutRequest { key: KEY.into(), value: clock.revision.to_string().into() };
    let get = RangeRequest { key: KEY.into(), ..RangeRequest::default() };
    let transaction = TxnRequest {
        compare: vec![is_unchanged],
        success: vec![Request::Put(put).into()],
        failure: vec![Request::Range(get).into()],
    };
    let response = client.transact(transaction).await?;
    let revision = revision(response.header.as_ref());
    if !response.succeeded {
        let found = response.responses.first().and_then(|response| response.range.as_ref());
        let version = found.and_then(|range| range.kvs.first()).map_or(0, |kv| kv.version);
        return Ok(Clock { version, revision });
    }
    if clock.revision > 0 {
        client.compact(clock.revision).await?;
    }
    Ok(Clock { version: clock.version + 1, revision })
}
