//! When a case that failed may begin again.
//!
//! A server may forget old versions as soon as it likes, and may end any watch. A client then lists anew; a case begins anew.

use crate::event::NamedExchange;
use crate::exchange::{Received, WatchEnd};

/// Whether the server took something away that it need not keep: a version, or a watch.
pub(super) fn was_cut_off(exchanges: &[NamedExchange]) -> bool {
    exchanges.iter().any(|named| {
        let exchange = &named.exchange;
        let chose_its_time = exchange.request.target.contains("timeoutSeconds=");
        exchange.answer().is_some_and(|answer| {
            answer.status == 410
                || has_expired(answer)
                || (answer.end == Some(WatchEnd::Server) && !chose_its_time)
        })
    })
}

fn has_expired(answer: &Received) -> bool {
    let last = answer.events.last().filter(|event| event.kind == "ERROR");
    last.is_some_and(|event| event.object.get("code").and_then(serde_json::Value::as_u64) == Some(410))
}
