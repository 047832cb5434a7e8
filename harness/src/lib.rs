#![doc = include_str!("../README.md")]

mod capability;
mod cleanup;
pub mod event;
pub mod exchange;
mod explore;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
pub mod generated;
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
mod yaml;
