#![doc = include_str!("../README.md")]

#[macro_use]
mod named;

mod field;
#[doc(hidden)]
#[cfg(any(fuzzing, test))]
pub mod fuzzing;
mod go_values;
pub mod object;
pub mod patch;
pub mod request;
mod resource;
pub mod schema;
pub mod selector;
pub mod serializer;
pub mod status;
pub mod table;

pub use go_values::go_type;
