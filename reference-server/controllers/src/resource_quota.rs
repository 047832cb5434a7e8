//! The controller that computes the usage of resource quotas.
//!
//! The admission of the server adds the usage of new objects. This controller sets the limits of
//! new quotas, and frees the usage of objects that were deleted or changed.

use std::time::Duration;

use kubeproof_apiserver::loopback::{Client, Resource};
use tokio::time::sleep;

/// The time after which the controller tries again if a request is unfinished. The end of a request
/// to another server does not wake it.
const RETRY: Duration = Duration::from_millis(500);

/// Starts the controller, which runs until the server stops.
pub(crate) fn start(client: &Client) {
    let Some(quotas) = client.resource("", "v1", "resourcequotas") else { return };
    let weak = client.downgrade();
    let mut changes = client.subscribe_all();
    let mut finished = client.subscribe_finished_requests();
    client.spawn(async move {
        loop {
            changes.reset();
            finished.mark_unchanged();
            let Some(client) = weak.upgrade() else { return };
            let is_complete = recalculate(&client, &quotas).await;
            drop(client);
            tokio::select! {
                () = changes.changed() => {}
                result = finished.changed(), if !is_complete => {
                    if result.is_err() {
                        return;
                    }
                }
                () = sleep(RETRY), if !is_complete => {}
            }
        }
    });
}

/// Updates the status of all quotas. Returns whether all are up to date.
async fn recalculate(client: &Client, quotas: &Resource) -> bool {
    let mut is_complete = true;
    for quota in client.list(quotas, None).items {
        is_complete &= client.recalculate_quota(&quota).await;
    }
    is_complete
}
