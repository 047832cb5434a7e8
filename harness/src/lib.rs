//! Runs cases against a server: capabilities, plan, transports, watch reader, verdicts, run.
//!
//! The data goes one way: case, plan, exchanges, verdict, event. Verdicts are pure functions of
//! what a case expects and what was exchanged; reports see events only.

pub mod event;
pub mod exchange;
pub mod json;
pub mod kubeconfig;
pub mod target;
pub mod tls;
pub mod transport;
pub mod values;
pub mod verdict;
pub mod watch;
