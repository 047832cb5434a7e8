//! JSON bodies, read strictly.
//!
//! `serde_json` silently keeps the last of two equal keys and gives up at 128 levels. A server has to say which
//! keys came twice (field validation), must take what a real server takes, and must refuse a bomb of brackets
//! without growing its stack. So the tree is built here, on top of `serde_json`'s tokenizer.

mod decode;
mod encode;

pub use decode::{DecodeError, Decoded, MAX_DEPTH, decode, parse};
pub use encode::{Bounded, compact, pretty};

use serde_json::Value;

/// How deeply a tree is nested: 0 for a scalar, 1 for an array or object without any in it.
pub fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(object) => 1 + object.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}
