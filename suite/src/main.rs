//! The command `kubeproof`.

fn main() {}
