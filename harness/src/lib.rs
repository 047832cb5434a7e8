//! Runs cases against a server: capabilities, plan, transports, watch reader, verdicts, run.
//!
//! The data goes one way: case, plan, exchanges, verdict, event. Verdicts are pure functions of
//! what a case expects and what was exchanged; reports see events only.

pub mod capability;
pub mod clean;
mod cleanup;
pub mod event;
pub mod exchange;
pub mod fence;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
pub mod json;
pub mod known_failures;
pub mod kubeconfig;
pub mod plan;
pub mod run;
pub mod schema;
pub mod selection;
pub mod stream;
pub mod subject;
pub mod target;
#[cfg(test)]
mod testing;
pub mod tls;
pub mod transport;
pub mod values;
pub mod verdict;
pub mod watch;
