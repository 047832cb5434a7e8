//! Plans and runs over small scripted servers and over the reference server.

#![expect(clippy::unwrap_used, reason = "what a test cannot set up fails it")]

mod cleaning;
mod executing;
mod planning;
mod support;
