//! Runs conformance cases against a server that claims to speak the Kubernetes API.
//!
//! Data flows one way: case, plan, exchanges, verdict, event. A verdict is a pure function of a
//! check and an exchange. Reports see only events.

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
