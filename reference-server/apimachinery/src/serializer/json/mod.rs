//! Strict decoding and encoding of JSON bodies.
//!
//! `serde_json` keeps the last of two equal keys without a warning, and rejects more than 128
//! levels. A server reports duplicate keys (field validation) and accepts the depth of real
//! objects. It rejects deeply nested brackets before the stack grows. Therefore this module builds
//! the tree itself, with the tokenizer of `serde_json`.

mod decode;
mod encode;

pub use decode::{DecodeError, Decoded, MAX_DEPTH, decode, parse};
pub use encode::{Bounded, compact, pretty};

use serde_json::Value;

/// Returns the nesting depth: 0 for a scalar, 1 for an array or object of scalars.
pub fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(object) => 1 + object.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}
