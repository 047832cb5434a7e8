//! The encodings of objects: JSON and protobuf.

pub mod json;
pub mod protobuf;
