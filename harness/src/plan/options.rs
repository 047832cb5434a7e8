//! The options of a run.

use std::time::Duration;

use kubeproof_cases::Profile;
use kubeproof_cases::case::{Capability, Edition};

use super::known_failures::KnownFailures;
use super::selection::Selection;
use super::subject::SubjectArgument;
use crate::transport::write_policy::WritePolicy;

/// All options of a run except the target.
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own on the command line")]
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// Which cases to run.
    pub selection: Selection,
    /// Subjects of the user.
    pub subjects: Vec<SubjectArgument>,
    /// The edition that the run is judged by.
    pub edition: Edition,
    /// True for `--letter`: deviations fail.
    pub letter: bool,
    /// The namespace to use. With `None`, the run creates one and removes it.
    pub namespace: Option<String>,
    /// True to run only cases that change nothing, without a namespace or resources of the run.
    pub read_only: bool,
    /// True to plan only: no probe writes.
    pub dry_run: bool,
    /// Failures that do not fail the run.
    pub known_failures: Option<KnownFailures>,
    /// True to fail the run for warnings and deviations.
    pub strict: bool,
    /// Number of concurrent cases.
    pub jobs: usize,
    /// Time limit of the run. Cases without enough time end in an error.
    pub timeout: Option<Duration>,
    /// Time limit of one case.
    pub case_timeout: Duration,
    /// Time without data after which a watch or stream has stalled. Default: half of the case
    /// timeout for streams, all of it for watches.
    pub stalled_after: Option<Duration>,
    /// Longest pause between two rounds of polling.
    pub longest_pause: Duration,
    /// Seed of the case order.
    pub seed: u64,
    /// Multiplies the load of load cases, and the case timeout.
    pub load: u32,
    /// How often each case runs.
    pub repeat: u32,
    /// The image of the run's pods. With `None`, the image of the bundled runtime.
    pub pod_image: Option<String>,
    /// The id in all names of the run, from [`crate::plan::run_id`]. With `None`, the plan creates
    /// one.
    pub id: Option<String>,
    /// Number of failures after which the rest is skipped.
    pub max_fail: Option<usize>,
    /// True if the target is the bundled reference server.
    pub bundled: bool,
    /// Features that the target must have.
    pub required: Required,
    /// The command line without secrets, for reports.
    pub command: String,
    /// The command that removes the objects of failed cases, which stay. With `None`, the run
    /// removes all objects.
    pub keep: Option<String>,
}

/// Features that a target must have. Each is a result of its own, which fails without the feature.
#[derive(Clone, Debug, Default)]
pub struct Required {
    /// Capabilities, found by discovery or a probe.
    pub capabilities: Vec<Capability>,
    /// Profiles. A target lacks a profile if most of its results are skipped.
    pub profiles: Vec<Profile>,
}

impl RunOptions {
    /// Returns what the run may write.
    pub fn write_policy(&self) -> WritePolicy {
        WritePolicy::new(self.read_only, self.namespace.as_deref())
    }

    /// Returns the options that decide which results the shards of a run have. Empty if they have
    /// all.
    pub fn selected(&self) -> String {
        let mut words = vec![self.selection.to_string()];
        words.extend(self.subjects.iter().map(|subject| format!("--subject {}", subject.name)));
        words.extend(self.read_only.then(|| "--read-only".to_owned()));
        words.retain(|word| !word.is_empty());
        words.join(" ")
    }
}

impl Default for RunOptions {
    fn default() -> Self {
        Self {
            selection: Selection::default(),
            subjects: Vec::new(),
            edition: Edition::Head,
            letter: false,
            namespace: None,
            read_only: false,
            dry_run: false,
            known_failures: None,
            strict: false,
            jobs: 24,
            timeout: None,
            case_timeout: Duration::from_secs(10),
            stalled_after: None,
            longest_pause: Duration::from_millis(500),
            seed: 0,
            load: 1,
            repeat: 1,
            pod_image: None,
            id: None,
            max_fail: None,
            bundled: false,
            required: Required::default(),
            command: String::new(),
            keep: None,
        }
    }
}
