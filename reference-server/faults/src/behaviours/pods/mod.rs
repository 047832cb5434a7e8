//! Pods: logs, proxies and evictions.

mod evictions;
mod logs;
mod proxies;
mod proxy_credentials;

use crate::middleware::Middleware;
use crate::set::Fault;

/// Returns the middleware of a fault of this folder.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    let parts = [evictions::of, logs::of, proxies::of, proxy_credentials::of];
    parts.into_iter().find_map(|part| part(fault))
}
