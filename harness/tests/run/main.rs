//! Tests of plans and runs, with scripted servers and the reference server.

#![expect(clippy::unwrap_used, reason = "what a test cannot set up fails it")]

mod discovery;
mod leftovers;
mod levels;
mod plans;
mod rejections;
mod runs;
mod stops;
mod support;
mod verdicts;
