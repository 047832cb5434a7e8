//! Links the program to a fixed address.
//!
//! A program that the system may place anywhere has a table of 120,000 pointers to correct at each
//! start. It takes 3 MB of the file, and 6 MB of the memory of a server.

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let target = |key| env::var(key).unwrap_or_default();
    // Static programs of other C libraries start with other objects, which must match.
    if target("CARGO_CFG_TARGET_OS") == "linux" && target("CARGO_CFG_TARGET_ENV") == "gnu" {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
}
