//! HTTP: paths, methods, queries, media types and framing.

pub(super) mod faults;
mod framing;
mod negotiation;
mod paths;
mod routing;
mod spelling;
mod timeouts;

use super::{Fault, handled};
use crate::middleware::Middleware;

/// Returns the middleware of a fault of this folder.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    faults::rows! { handled fault }
}
