//! The self-test of kubeproof, shared by its command `self-test` and by `cargo test`.
//!
//! The program itself is in `main.rs`.

pub mod self_test;
