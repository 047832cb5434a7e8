//! Tests that no case file contains: the run generates their requests from a seed.
//!
//! [`explore`] generates objects from schemas, and checks properties of each resource. [`stress`]
//! records the history of concurrent clients and checks it.

pub mod explore;
mod session;
pub mod stress;

pub use self::session::{GeneratedError, Session};
