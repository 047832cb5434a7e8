//! Runs a plan: cases concurrently, each with a timeout, and cleanup in any event.

mod case;
mod explore_steps;
mod jobs;
mod loops;
mod lost_server;
mod paging;
mod pod;
mod prerequisites;
mod protobuf;
mod protocol_support;
mod record;
mod reported;
mod request;
mod required;
mod restart;
mod result_recorder;
mod rights;
mod schedule;
mod schema_steps;
mod scope;
pub(crate) mod setup;
mod shown;
mod steps;
mod stream_data;
mod stream_steps;
mod stream_waits;
mod watch_resume;
mod watch_steps;

pub use self::schedule::{results, run};

/// What earlier runs left behind.
pub mod leftovers {
    pub use crate::cleanup::{FindError, Found, Leftover, find, remove};
}
