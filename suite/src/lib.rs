//! What the program `kubeproof` proves of itself, for its command `self-test` and for `cargo test`.
//!
//! The program is in `main.rs`; everything else that it is made of is in the crates it stands on.

pub mod self_test;
