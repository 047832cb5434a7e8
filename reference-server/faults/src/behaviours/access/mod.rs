//! Users and their permissions: authentication, authorization, roles, reviews and tokens.

mod authentication;
mod authorization;
mod reviews;
mod roles;
mod tokens;

use crate::middleware::Middleware;
use crate::set::Fault;

/// Returns the middleware of a fault of this folder.
pub(super) fn of(fault: Fault) -> Option<Box<dyn Middleware>> {
    let parts = [authentication::of, authorization::of, reviews::of, roles::of, tokens::of];
    parts.into_iter().find_map(|part| part(fault))
}
