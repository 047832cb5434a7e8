//! `include_dir!` is not told about new files by cargo; this is.

fn main() {
    println!("cargo::rerun-if-changed=data");
}
