//! Runs a plan: cases at once, each within its time, and removes what they made, however it ends.

mod again;
mod build;
mod case;
mod loops;
mod offers;
mod options;
mod pod;
mod record;
mod resume;
mod rules;
mod schedule;
mod scope;
mod setup;
mod steps;
mod streaming;
mod watching;

pub(crate) use case::{bare_result, verdict_of};
pub use options::RunOptions;
pub(crate) use pod::RunPod;
pub use schedule::{results, run};
pub(crate) use scope::base_values;
