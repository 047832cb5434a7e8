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
    let mut own = client.subscribe(&quotas);
    let mut any = client.subscribe_all();
    let mut finished = client.subscribe_finished_requests();
    client.spawn(async move {
        loop {
            own.reset();
            any.reset();
            finished.mark_unchanged();
            let Some(client) = weak.upgrade() else { return };
            let Recalculated { has_quotas, is_complete } = recalculate(&client, &quotas).await;
            drop(client);
            tokio::select! {
                () = own.changed() => {}
                () = any.changed(), if has_quotas => {}
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

/// The result of a round.
struct Recalculated {
    has_quotas: bool,
    /// All quotas are up to date.
    is_complete: bool,
}

/// Updates the status of all quotas.
async fn recalculate(client: &Client, quotas: &Resource) -> Recalculated {
    let quotas = client.list(quotas, None).items;
    let mut result = Recalculated { has_quotas: !quotas.is_empty(), is_complete: true };
    for quota in quotas {
        result.is_complete &= client.recalculate_quota(&quota).await;
    }
    result
}
