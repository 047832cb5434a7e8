//! Starts the pod that cases of a run share.

use std::time::Duration;

use tokio::time::Instant;

use super::setup::{LONGEST_PAUSE, SetupFailure, existing};
use crate::capability::Requester;
use crate::cleanup::Tracker;
use crate::event::Verdict;
use crate::plan::RunPod;
use crate::transport::Client;

/// First and longest pause between two polls.
const PAUSES: (Duration, Duration) = (Duration::from_millis(2), LONGEST_PAUSE);

impl RunPod {
    /// Creates the pod and waits until it is ready.
    pub(super) async fn start(
        &self,
        client: &Client,
        namespace: &str,
        tracker: &Tracker,
        deadline: Instant,
    ) -> Option<SetupFailure> {
        // Concurrent cases must not disturb this connection.
        let client = &client.apart();
        let requester = Requester { client, deadline };
        let collection = format!("/api/v1/namespaces/{namespace}/pods");
        let request = crate::capability::outgoing(
            "POST",
            &collection,
            "application/json",
            Some(&self.manifest()),
        );
        let intent = tracker.intend(&request);
        let created = client.send(request, deadline).await;
        tracker.settle(&intent, &created);
        let path = format!("{collection}/{}", self.name);
        if created.status() != 201 && existing(&requester, &path, &created).await.is_none() {
            return Some(SetupFailure::new(
                "pod-created",
                created,
                "the pod of the run must be created with 201",
            ));
        }
        let mut pause = PAUSES.0;
        loop {
            let seen =
                requester.get(&format!("{collection}/{}", self.name), "application/json").await;
            let status = seen.json().map(|pod| pod["status"].clone()).unwrap_or_default();
            let running = &status["containerStatuses"][0]["state"]["running"];
            let ready = status["conditions"].as_array().is_some_and(|conditions| {
                conditions.iter().any(|one| one["type"] == "Ready" && one["status"] == "True")
            });
            if status["phase"] == "Running" && running.is_object() && ready {
                return None;
            }
            pause = pause.mul_f64(1.5).min(PAUSES.1);
            let is_late = Instant::now() + pause > deadline;
            if is_late || matches!(status["phase"].as_str(), Some("Failed" | "Succeeded")) {
                let expected = "the pod of the run must run and get ready (is its image there, \
                                and has it what a busybox has? --pod-image names another)";
                let failure = SetupFailure::new("pod-runs", seen, expected).at(Verdict::Error);
                return Some(if is_late { failure.polled() } else { failure });
            }
            tokio::time::sleep(pause).await;
        }
    }
}
