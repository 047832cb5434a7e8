//! Runs a plan: cases at once, each within its time, and removes what they made, however it ends.

mod build;
mod case;
mod loops;
mod options;
mod record;
mod rules;
mod schedule;
mod scope;
mod setup;
mod steps;
mod watching;

pub use options::RunOptions;
pub use schedule::run;
pub(crate) use scope::base_values;
