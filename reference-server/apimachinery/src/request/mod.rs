//! The parts of requests: resource paths, query parameters and YAML bodies.

mod path;
mod query;
pub mod yaml;

use percent_encoding::percent_decode_str;

pub use self::path::ResourceInfo;
pub use self::query::Query;

/// Decodes the percent encoding of a path or a parameter.
pub fn decode(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}
