//! The pod of a run: made once for all cases that need a running pod, shared among those that do not change it.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::setup::Obstacle;
use crate::capability::Asker;
use crate::cleanup::Tracker;
use crate::event::Verdict;
use crate::transport::Client;

/// What runs where no image is named: the bundled runtime takes any name, and knows what the suite asks for.
pub(crate) const SCRIPTED_IMAGE: &str = "kubeproof.dev/scripted";

/// The only container.
const CONTAINER: &str = "main";

/// The shortest and the longest pause between two looks at the pod.
const PAUSES: (Duration, Duration) = (Duration::from_millis(2), Duration::from_millis(250));

/// The pod of a run.
#[derive(Clone, Debug)]
pub(crate) struct RunPod {
    pub(crate) name: String,
    pub(crate) image: String,
}

impl RunPod {
    pub(crate) fn new(run: &str, image: Option<&str>) -> Self {
        Self { name: format!("kp-{run}-pod"), image: image.unwrap_or(SCRIPTED_IMAGE).to_owned() }
    }

    /// `pod`, `pod.path`, ... as cases read them.
    pub(crate) fn variables(&self, namespace: &str) -> [(&'static str, Value); 4] {
        [
            ("pod", json!(self.name)),
            ("pod.path", json!(format!("/api/v1/namespaces/{namespace}/pods/{}", self.name))),
            ("pod.container", json!(CONTAINER)),
            ("pod.image", json!(self.image)),
        ]
    }

    /// The main process writes a line and then gives back what it reads, so that there is a log, and something to
    /// attach to. The ports are served by the bundled runtime itself; a real image has to serve them.
    fn manifest(&self) -> Value {
        let serve = if self.image == SCRIPTED_IMAGE {
            ""
        } else {
            "nc -lk -p 7 -e cat & mkdir -p /tmp/www && echo hello > /tmp/www/index.html && httpd -p 8080 -h /tmp/www; "
        };
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": self.name, "labels": {"app": self.name}},
            "spec": {
                "automountServiceAccountToken": false,
                "terminationGracePeriodSeconds": 0,
                "restartPolicy": "Never",
                "containers": [{
                    "name": CONTAINER, "image": self.image, "stdin": true,
                    "command": ["sh", "-c", format!("{serve}echo started; cat")],
                    "ports": [{"name": "echo", "containerPort": 7}, {"name": "http", "containerPort": 8080}],
                }],
            },
        })
    }

    /// Creates the pod, and waits until it runs.
    pub(super) async fn start(
        &self,
        client: &Client,
        namespace: &str,
        tracker: &Tracker,
        deadline: Instant,
    ) -> Option<Obstacle> {
        let asker = Asker { client, deadline };
        let collection = format!("/api/v1/namespaces/{namespace}/pods");
        let request =
            crate::capability::outgoing("POST", &collection, "application/json", Some(&self.manifest()));
        let intent = tracker.intend(&request);
        let created = client.send(request, deadline).await;
        tracker.settle(&intent, &created);
        if created.status() != 201 {
            return Some(Obstacle::new(
                "pod-created",
                created,
                "the pod of the run must be created with 201",
            ));
        }
        let mut pause = PAUSES.0;
        loop {
            let seen = asker.get(&format!("{collection}/{}", self.name), "application/json").await;
            let status = seen.json().map(|pod| pod["status"].clone()).unwrap_or_default();
            let running = &status["containerStatuses"][0]["state"]["running"];
            if status["phase"] == "Running" && running.is_object() {
                return None;
            }
            pause = pause.mul_f64(1.5).min(PAUSES.1);
            if Instant::now() + pause > deadline
                || matches!(status["phase"].as_str(), Some("Failed" | "Succeeded"))
            {
                let expected = "the pod of the run must run (is its image there? --pod-image names another)";
                return Some(Obstacle::new("pod-runs", seen, expected).at(Verdict::Error));
            }
            tokio::time::sleep(pause).await;
        }
    }
}
