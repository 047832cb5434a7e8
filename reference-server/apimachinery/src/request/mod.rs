//! The parts of requests: resource paths, query parameters and YAML bodies.

mod query;
pub mod yaml;

pub use self::query::Query;
pub use crate::resource::{ResourceInfo, decode};
