//! The proof that the suite is right both ways: each case is held against servers that are known to be wrong, and against
//! servers that are known to be right though they differ.
//!
//! A fault that no case sees, a case that sees no fault and a verdict of `error` where a fault is at work are mistakes of
//! the suite ([`faults`]); so is a lawful difference that a case fails, cannot judge, or skips ([`variations`]).

mod bundled;
pub mod faults;
pub mod variations;

pub use self::bundled::{Bundled, SelfTestError};
