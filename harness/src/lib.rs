#![doc = include_str!("../README.md")]

mod capability;
pub mod cleanup;
pub mod event;
pub mod exchange;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod json;
pub mod plan;
pub mod run;
pub mod schema;
pub mod target;
#[cfg(test)]
mod testing;
pub mod transport;
mod values;
mod verdict;
