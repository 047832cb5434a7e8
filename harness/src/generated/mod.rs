//! Tests that no case file contains: the run generates their requests from a seed.
//!
//! [`stress`] records the history of concurrent clients and checks it.

mod session;
pub mod stress;

pub use self::session::{GeneratedError, Session};
