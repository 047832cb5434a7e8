//! What a run may be told.

use std::time::Duration;

use kubeproof_cases::case::Edition;

use crate::fence::Fence;
use crate::known_failures::KnownFailures;
use crate::selection::Selection;
use crate::subject::SubjectArgument;

/// Everything that shapes a run, beside the target.
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own on the command line")]
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// Which cases.
    pub selection: Selection,
    /// The user's own subjects.
    pub subjects: Vec<SubjectArgument>,
    /// What the run is judged by.
    pub edition: Edition,
    /// The letter alone counts: a deviation is a failure.
    pub letter: bool,
    /// The namespace to use. `None`: the run makes one, and removes it.
    pub namespace: Option<String>,
    /// Only cases that change nothing, and no namespace or resource of the run's own.
    pub read_only: bool,
    /// The plan is all that is wanted: nothing is probed by writing.
    pub dry_run: bool,
    /// Failures that do not fail the run.
    pub known_failures: Option<KnownFailures>,
    /// Warnings and deviations fail the run.
    pub strict: bool,
    /// Cases at once.
    pub jobs: usize,
    /// For the whole run; cases that it leaves no time for end as errors.
    pub timeout: Option<Duration>,
    /// For one case.
    pub case_timeout: Duration,
    /// After how long a watch or a stream that must say something, and says nothing, has stalled. `None`: a stream after half
    /// of the time of the case, a watch after all of it.
    pub stalled_after: Option<Duration>,
    /// How long is waited, in the end, between two rounds of a step that waits for something to hold.
    pub longest_pause: Duration,
    /// The order of the cases.
    pub seed: u64,
    /// How much the cases about load do, as a multiple. Each case has so many times its time.
    pub load: u32,
    /// How often each case runs.
    pub repeat: u32,
    /// What the containers of the run's pods run; `None`: what the bundled runtime knows.
    pub pod_image: Option<String>,
    /// What the names of everything that the run makes have in common, as [`crate::plan::run_id`] makes it; `None`: one
    /// is made for the run.
    pub id: Option<String>,
    /// After so many results that fail the run, the rest is skipped.
    pub max_fail: Option<usize>,
}

impl RunOptions {
    /// What the run may write at all.
    pub fn fence(&self) -> Fence {
        Fence::new(self.read_only, self.namespace.as_deref())
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
        }
    }
}
