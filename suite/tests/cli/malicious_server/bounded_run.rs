//! Runs the binary with limits on time and memory.

use std::fs;
use std::process::Stdio;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::program::command;
use crate::server::{TOKEN, USER_TOKEN};

/// Maximum memory of a run.
const MEMORY: u64 = 200 << 20;

/// Maximum duration of a run, far above the timeouts of the tests.
const TIME: Duration = Duration::from_mins(2);

/// A finished run with its reports.
pub(crate) struct BoundedRun {
    pub(crate) code: Option<i32>,
    pub(crate) stderr: String,
    /// The text of the JSON report.
    pub(crate) json: String,
    pub(crate) report: Value,
}

impl BoundedRun {
    /// Returns the results of a case.
    pub(crate) fn results(&self, id: &str) -> Vec<&Value> {
        let results = self.report["results"].as_array().into_iter().flatten();
        results.filter(|result| result["id"] == id).collect()
    }
}

/// Runs `kubeproof run` against a target with reports, and asserts the limits.
#[track_caller]
pub(crate) fn run(server: &str, arguments: &[&str]) -> BoundedRun {
    let dir = tempfile::tempdir().expect("a directory");
    let place = |name: &str| dir.path().join(name).display().to_string();
    let (json, junit, errors) = (place("report.json"), place("junit.xml"), place("stderr"));
    let target = [
        "run",
        "--server",
        server,
        "--token",
        TOKEN,
        "--second-token",
        USER_TOKEN,
        "--no-progress",
        "-q",
    ];
    let mut run = command(&[&target, arguments, &["--json", &json, "--junit", &junit]].concat())
        .stdout(Stdio::null())
        .stderr(fs::File::create(&errors).expect("a file"))
        .spawn()
        .expect("the run starts");

    let id = run.id();
    let (sender, end) = mpsc::channel();
    thread::spawn(move || sender.send(run.wait().expect("it ends")));
    let (started, mut peak) = (Instant::now(), 0);
    // The system records the peak, so polling misses only a peak at the very end.
    let status = loop {
        match end.recv_timeout(Duration::from_millis(5)) {
            Ok(status) => break status,
            Err(_) => peak = peak_memory(id).unwrap_or(peak),
        }
        if started.elapsed() > TIME || peak > 10 * MEMORY {
            let _ = std::process::Command::new("kill").args(["-KILL", &id.to_string()]).status();
        }
    };
    let stderr = fs::read_to_string(&errors).expect("its errors");
    let took = started.elapsed();
    assert!(status.code().is_some(), "no end after {took:?}, with {} MiB; {stderr}", peak >> 20);
    assert!(peak < MEMORY, "it took {} MiB; {stderr}", peak >> 20);

    let json = fs::read_to_string(&json)
        .unwrap_or_else(|error| panic!("no JSON report: {error}; {stderr}"));
    let junit = fs::read_to_string(&junit).expect("a JUnit report");
    quick_junit::Report::deserialize_from_str(&junit).expect("JUnit");
    let report = serde_json::from_str(&json).expect("JSON");
    BoundedRun { code: status.code(), stderr, json, report }
}

/// Returns the peak memory of a process in bytes.
fn peak_memory(id: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().trim_end_matches(" kB").parse::<u64>().ok().map(|kib| kib << 10)
}
