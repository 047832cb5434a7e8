//! From the text of a file to values that know where they stand.
//!
//! Everything here counts in bytes of the file; a [`Source`] turns a byte into a line and a column.

pub(crate) mod json;
pub(crate) mod source;
pub(crate) mod template;
pub(crate) mod yaml;

pub(crate) use source::{Scalar, Source};
pub(crate) use yaml::Located;
