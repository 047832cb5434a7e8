//! Kubernetes API objects without I/O: JSON, metadata, Status, selectors, patches, server-side
//! apply, schemas, validation rules, tables and protobuf.
//!
//! Every module is a pure function of its input. The API server stores and serves the results.

#[macro_use]
mod named;

mod field;
#[cfg(any(fuzzing, test))]
#[doc(hidden)]
pub mod fuzzing;
pub mod object;
pub mod patch;
pub mod request;
pub mod schema;
pub mod selector;
pub mod serializer;
pub mod status;
pub mod table;
