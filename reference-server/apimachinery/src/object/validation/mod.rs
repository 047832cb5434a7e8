//! Validation that applies to all objects: names and `metadata`.

pub mod addresses;
pub mod metadata;
pub mod names;
pub mod syntax;
