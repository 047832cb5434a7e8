//! Pods: logs, proxies and evictions.

mod evictions;
pub(super) mod faults;
mod logs;
mod proxies;
mod proxy_credentials;

use super::{Fault, handled};
use crate::middleware::Middleware;

/// Returns the middleware of a fault of this folder.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    faults::rows! { handled fault }
}
