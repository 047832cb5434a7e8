//! Measures the duration of the whole suite over the bundled server, process start included.
//!
//! `list` measures the start of a process and the parsing of all case files. `run` waits at least
//! one second, the shortest `timeoutSeconds` of a watch. `run, without waiting` leaves these cases
//! out and measures computation.

use std::process::{Command, Stdio};

use criterion::{Criterion, criterion_group, criterion_main};

criterion_group!(benches, suite);
criterion_main!(benches);

/// The cases that wait for a timeout of the server.
const WAITING: [&str; 3] = [
    "watch/bookmarks-carry-a-version",
    "watch/no-bookmarks-by-default",
    "watch/timeout-ends-the-stream",
];

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
