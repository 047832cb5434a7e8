//! How long the whole suite takes over the bundled server, as a user meets it: the built program, from its start
//! to its exit code.
//!
//! `list` is the peer in the same run: the price of a process and of reading every case file. `run` waits at least
//! the one second that is the shortest `timeoutSeconds` of a watch; `run, without waiting` leaves those cases out
//! and is what the machine is busy with.

use std::process::{Command, Stdio};

use criterion::{Criterion, criterion_group, criterion_main};

criterion_group!(benches, suite);
criterion_main!(benches);

/// The cases that wait for a stream to be ended by the server's clock.
const WAITING: [&str; 3] =
    ["watch/bookmarks-carry-a-version", "watch/no-bookmarks-unasked", "watch/timeout-ends-the-stream"];

fn suite(c: &mut Criterion) {
    let mut group = c.benchmark_group("kubeproof");
    group.sample_size(10);
    group.bench_function("list", |b| b.iter(|| kubeproof(&["list"])));
    group.bench_function("run, without waiting", |b| {
        let mut arguments = vec!["run", "-q", "--skip"];
        arguments.extend(WAITING);
        b.iter(|| kubeproof(&arguments));
    });
    group.bench_function("run", |b| b.iter(|| kubeproof(&["run", "-q"])));
    group.finish();
}

fn kubeproof(arguments: &[&str]) {
    let status = Command::new(env!("CARGO_BIN_EXE_kubeproof"))
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .expect("the program starts");
    assert!(status.success(), "kubeproof {arguments:?} ended with {status}");
}
