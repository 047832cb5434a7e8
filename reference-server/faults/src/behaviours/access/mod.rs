//! Users and their permissions: authentication, authorization, roles, reviews and tokens.

mod authentication;
mod authorization;
pub(super) mod faults;
mod reviews;
mod roles;
mod tokens;

use super::{Fault, handled};
use crate::middleware::Middleware;

/// Returns the middleware of a fault of this folder.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    faults::rows! { handled fault }
}
